/// Options and what else is written on a command line: VARIABLE=VALUE, a choice, bytes, hosts.

#include "baton/options.hpp"

#include "baton/schedule/hosts.hpp"
#include "target.hpp"

using namespace baton;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const std::size_t equals = text.find('=');
  if (equals != std::string_view::npos) {
    Options options;
    fuzz::accepted([&] { options.set(text.substr(0, equals), text.substr(equals + 1)); });
    fuzz::require(options.timeout.count() >= 0 && options.window >= 1 && options.plans >= 1 &&
                      options.trace_events >= 1,
                  "options are within their limits");
  }
  fuzz::accepted([&] {
    const Choice choice = parse_choice(text);
    fuzz::require(!choice.algorithm.empty() && choice.segment.value_or(0) >= 0,
                  "a choice names an algorithm");
  });
  fuzz::accepted([&] { fuzz::require(parse_bytes(text) >= 0, "bytes are not negative"); });
  fuzz::accepted([&] {
    const Hosts hosts = parse_hosts(text);
    if (hosts.size() < 10'000)
      fuzz::require(parse_hosts(print(hosts)) == hosts, "print() is read back");
  });
  return 0;
}
