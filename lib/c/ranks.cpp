// Ranks and their transports.

#include <cstdio>

#include "baton/launch.hpp"
#include "baton/thread.hpp"
#include "handles.hpp"

using namespace baton;
using namespace baton::c;

namespace {

/// The program of a rank; throws its failure.
class Body {
 public:
  Body(baton_body body, void* context, const baton_options* options)
      : body_(body), context_(context), options_(options) {
    if (body == nullptr) base::refuse("expected a function for each rank, found NULL");
  }
  void operator()(std::unique_ptr<Transport> transport) const {
    const int rank = transport->rank();
    baton_communicator world{Communicator(std::move(transport), options_of(options_))};
    if (const int status = body_(&world, context_))
      fail_returned(status, fmt::format("the function of rank {}", rank));
  }

 private:
  baton_body body_;
  void* context_;
  const baton_options* options_;
};

}  // namespace

int baton_run_threads(int size, const baton_options* options, baton_body body, void* context) {
  return guarded([&] { run_threads(size, Body(body, context, options)); });
}

int baton_launch(int ranks, const baton_options* options, baton_body body, void* context) {
  return guarded([&] {
    const Body program(body, context, options);
    char* none[] = {nullptr};
    char** arguments = none;
    int number = 0;
    const std::unique_ptr<Launch> launch = Launch::start(number, arguments);
    try {
      launch->run(ranks, program);
    } catch (...) {
      if (launch->processes() == 0) throw;
      failed();
      std::fprintf(stderr, "rank %d: %s\n", launch->rank(), baton_last_error());
      launch->abort(1);
    }
  });
}

int baton_thread_transports(int size, const int* hosts, baton_transport** transports) {
  return guarded([&] {
    given(transports, "an address for the transports");
    for (int r = 0; r < size; ++r) transports[r] = nullptr;
    ThreadOptions options;
    if (hosts != nullptr && size > 0) options.hosts.assign(hosts, hosts + size);
    std::vector<std::unique_ptr<baton_transport>> made;
    for (auto& transport : thread_transports(size, options))
      made.push_back(std::make_unique<baton_transport>(baton_transport{std::move(transport)}));
    for (auto& transport : made) *transports++ = transport.release();
  });
}

int baton_transport_rank(const baton_transport* transport) {
  return transport == nullptr ? -1 : transport->transport->rank();
}
int baton_transport_size(const baton_transport* transport) {
  return transport == nullptr ? -1 : transport->transport->size();
}
void baton_transport_destroy(baton_transport* transport) { delete transport; }

int baton_blocks_set(baton_blocks* blocks, int rank, const void* data, size_t bytes) {
  return guarded([&] {
    auto& all = given(blocks, "the blocks of an exchange").blocks;
    if (rank < 0 || static_cast<std::size_t>(rank) >= all.size())
      base::refuse("expected the block of a rank from 0 to {}, found rank {}", all.size() - 1,
                   rank);
    const auto* const begin = static_cast<const std::byte*>(data);
    if (bytes > 0) given(begin, "the bytes of a block");
    all[static_cast<std::size_t>(rank)].assign(begin, begin + bytes);
  });
}
