// Agreement of the ranks: rank 0 sends its values, all others take them over.

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "baton/error.hpp"
#include "state.hpp"

namespace baton::communicator {
namespace {

/// The shared options as text: one line each, then the table.
std::string written(const Options& options) {
  std::string text = options.check ? "1\n" : "0\n";
  for (const Choice& choice : options.choices)
    text += fmt::format("{}\n{}\n", choice.algorithm, choice.segment.value_or(-1));
  text += fmt::format("{}\n{}\n{}\n", options.trace, options.trace_events, options.table);
  if (!options.table.empty()) text += selecting::table_text(options.table);
  return text;
}

}  // namespace

void State::broadcast(std::span<std::byte> bytes) {
  std::byte* const bases[] = {nullptr, bytes.data()};
  launcher.run({&planner.internal(Collective::broadcast, "binomial",
                                  static_cast<std::int64_t>(bytes.size())),
                {},
                bases,
                "agreement on options"});
}

std::string State::agreed(const std::function<std::string()>& write) {
  struct Head {
    std::int64_t length = 0;
    std::int64_t failed = 0;
  } head;
  std::string text;
  if (context.rank == 0) {
    try {
      text = write();
    } catch (const Error& error) {
      text = error.what();
      head.failed = 1;
    }
    head.length = static_cast<std::int64_t>(text.size());
  }
  // One message suffices for a text of usual length; a longer text needs a second one.
  std::array<std::byte, 2048> record{};
  constexpr std::size_t room = record.size() - sizeof head;
  std::memcpy(record.data(), &head, sizeof head);
  std::memcpy(record.data() + sizeof head, text.data(), std::min(text.size(), room));
  broadcast(record);
  std::memcpy(&head, record.data(), sizeof head);
  text.resize(static_cast<std::size_t>(head.length));
  std::memcpy(text.data(), record.data() + sizeof head, std::min(text.size(), room));
  if (text.size() > room) broadcast(std::as_writable_bytes(std::span(text).subspan(room)));
  if (head.failed != 0) throw Error(ErrorCode::invalid_argument, text);
  return text;
}

void State::agree_options() {
  Options& options = context.options;
  const std::string text = agreed([&] {
    if (!options.trace.empty()) {
      options.trace = next_trace_name(options.trace);
      write_trace(options.trace, {});  // throws now if the file cannot be written
    }
    return written(options);
  });
  std::size_t at = 0;
  const auto line = [&] {
    const std::size_t begin = at, end = text.find('\n', begin);
    at = end + 1;
    return text.substr(begin, end - begin);
  };
  options.check = line() == "1";
  for (Choice& choice : options.choices) {
    choice.algorithm = line();
    const std::int64_t segment = std::stoll(line());
    choice.segment = segment < 0 ? std::nullopt : std::optional(segment);
  }
  options.trace = line();
  options.trace_events = std::stoll(line());
  options.table = line();
  if (options.table.empty()) return;
  context.table = std::make_shared<const selecting::Table>(
      selecting::parse_table(text.substr(at), options.table, *context.registry));
  context.section =
      &context.table->require(selecting::scope_of(*context.transport, context.hosts.get()));
}

std::vector<std::uint64_t> State::gathered(std::uint64_t own) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(context.size));
  std::byte* const bases[] = {reinterpret_cast<std::byte*>(&own),
                              reinterpret_cast<std::byte*>(all.data())};
  launcher.run({&planner.internal(Collective::all_gather, "bruck", sizeof own),
                {},
                bases,
                "gathering of a number from each rank"});
  return all;
}

}  // namespace baton::communicator
