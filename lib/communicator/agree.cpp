#include <fmt/core.h>

#include <array>
#include <cstring>

#include "state.hpp"

namespace baton {
namespace {

/// The options that all ranks share, as text: a line each, then the table.
std::string written(const Options& options) {
  std::string text = options.check ? "1\n" : "0\n";
  for (const Choice& choice : options.choices) {
    text += fmt::format("{}\n{}\n", choice.algorithm, choice.segment);
  }
  text += fmt::format("{}\n{}\n", options.trace, options.trace_events);
  text += options.table + "\n";
  if (!options.table.empty()) text += table_text(options.table);
  return text;
}

}  // namespace

void Communicator::State::broadcast_internal(std::span<std::byte> bytes) {
  std::byte* const bases[] = {nullptr, bytes.data()};
  blocking.execution() =
      internal(Collective::broadcast, "binomial", static_cast<std::int64_t>(bytes.size()), bases);
  const int tag = next_tag();
  blocking.begin("agreement on options", sequence, tag);
  run_blocking();
}

std::string Communicator::State::agreed(const std::function<std::string()>& write) {
  struct Head {
    std::int64_t length = 0;
    std::int64_t failed = 0;
  } head;
  std::string text;
  if (rank == 0) {
    try {
      text = write();
    } catch (const Error& error) {
      text = error.what();
      head.failed = 1;
    }
    head.length = static_cast<std::int64_t>(text.size());
  }
  // Of usual length: one message. What is longer follows.
  std::array<std::byte, 2048> record{};
  constexpr std::size_t room = record.size() - sizeof head;
  std::memcpy(record.data(), &head, sizeof head);
  std::memcpy(record.data() + sizeof head, text.data(), std::min(text.size(), room));
  broadcast_internal(record);
  std::memcpy(&head, record.data(), sizeof head);
  text.resize(static_cast<std::size_t>(head.length));
  std::memcpy(text.data(), record.data() + sizeof head, std::min(text.size(), room));
  if (text.size() > room) {
    broadcast_internal(std::as_writable_bytes(std::span(text).subspan(room)));
  }
  if (head.failed != 0) throw Error(ErrorCode::invalid_argument, text);
  return text;
}

void Communicator::State::agree_options() {
  const std::string text = agreed([&] {
    if (!options.trace.empty()) {
      options.trace = next_trace_name(options.trace);
      write_trace(options.trace, {});  // so that what cannot be written is said before
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
    choice.segment = std::stoll(line());
  }
  options.trace = line();
  options.trace_events = std::stoll(line());
  options.table = line();
  if (options.table.empty()) return;
  table = std::make_shared<const Table>(parse_table(text.substr(at), options.table, *registry));
  section = &table->require(scope_of(*transport, hosts.get()));
}

}  // namespace baton
