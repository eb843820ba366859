#include "baton/ucx.hpp"

#include "handles.hpp"

using namespace baton;
using namespace baton::c;

namespace {

UcxOptions ucx_options(const baton_ucx_options* from) {
  const baton_ucx_options given = taken(from, "baton_ucx_options");
  UcxOptions options;
  const auto set = [](std::chrono::milliseconds& to, std::int64_t ms, const char* name) {
    if (ms < 0) base::refuse("baton_ucx_options: expected {} of at least 0, found {}", name, ms);
    if (ms > 0) to = std::chrono::milliseconds(ms);
  };
  set(options.meeting, given.meeting_ms, "meeting_ms");
  set(options.farewell, given.farewell_ms, "farewell_ms");
  options.concurrent = given.concurrent != 0;
  return options;
}

}  // namespace

int baton_ucx_transport(int rank, int size, const char* address, const baton_ucx_options* options,
                        baton_transport** transport) {
  return made(transport, [&] {
    return ucx_transport(rank, size, std::string(&given(address, "an address")),
                         ucx_options(options));
  });
}

int baton_ucx_transport_by_exchange(int rank, int size, baton_exchange exchange, void* context,
                                    const baton_ucx_options* options, baton_transport** transport) {
  return made(transport, [&] {
    if (exchange == nullptr) base::refuse("expected an exchange of addresses, found NULL");
    const Exchange bring = [&](const std::vector<std::byte>& own) {
      baton_blocks all{std::vector<std::vector<std::byte>>(static_cast<std::size_t>(size))};
      if (const int status = exchange(own.data(), own.size(), &all, context))
        fail_returned(status, fmt::format("the exchange of addresses of rank {}", rank));
      return std::move(all.blocks);
    };
    return ucx_transport(rank, size, bring, ucx_options(options));
  });
}
