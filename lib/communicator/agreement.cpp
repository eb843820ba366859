// Agreement of the ranks: rank 0 sends its values, all others take them over.

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string_view>
#include <utility>

#include "../base/utf8.hpp"
#include "baton/error.hpp"
#include "baton/output_file.hpp"
#include "state.hpp"

namespace baton::communicator {
namespace {

/// The communicator's name for watches and the shared options as text: one line each, then the
/// table.
std::string written(const Options& options) {
  std::random_device random;
  std::string text =
      fmt::format("{}\n{}\n", std::uint64_t{random()} << 32 | random(), options.check);
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
      const OutputFile try_now(options.trace);  // throws if the file cannot be written
    }
    return written(options);
  });
  std::size_t at = 0;
  const auto line = [&] {
    const std::size_t begin = at, end = text.find('\n', begin);
    at = end + 1;
    return text.substr(begin, end - begin);
  };
  const std::uint64_t name = std::stoull(line());
  if (launcher.family().name == 0) launcher.family().name = name;
  options.check = std::stoi(line());
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

void State::gather(std::span<std::byte> own, std::span<std::byte> all, const char* what) {
  std::byte* const bases[] = {own.data(), all.data()};
  launcher.run(
      {&planner.internal(Collective::all_gather, "bruck", static_cast<std::int64_t>(own.size())),
       {},
       bases,
       what});
}

std::vector<std::uint64_t> State::gathered(std::uint64_t own, const char* what) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(context.size));
  gather(std::as_writable_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)), what);
  return all;
}

// A page is there before its rank's part of the gathering is sent. So whoever has gathered sees all
// pages, until their ranks leave.
void State::open_watch() {
  if (context.rank == 0) status::remove_abandoned();
  Family& family = launcher.family();
  Watch& watch = launcher.watch();
  const std::string& name = context.options.name;
  watch.open(family.name, launcher.sequence(), name.empty() ? "world" : name);
  family_rank_ = context.rank;
  const bool door = context.options.timeout.count() > 0 || status::door_wanted();
  struct Rank {
    status::ProcessId process;
    std::uint64_t shows, door;
  } own{status::own_process(), watch.shows() ? 1u : 0u, door ? 1u : 0u};
  std::vector<Rank> all(static_cast<std::size_t>(context.size));
  gather(std::as_writable_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)));
  std::vector<bool> shown;
  std::vector<int> ranks;
  bool far = false, any_door = false;
  for (const Rank& rank : all) {
    far = far || rank.process.machine != all[0].process.machine;
    any_door = any_door || rank.door != 0;
    family.processes.push_back(rank.process);
    shown.push_back(rank.shows != 0);
    ranks.push_back(static_cast<int>(ranks.size()));
  }
  if (far && any_door) {
    status::Door own_door = door ? status::own_door() : status::Door{};
    std::vector<status::Door> doors(all.size());
    gather(std::as_writable_bytes(std::span(&own_door, 1)),
           std::as_writable_bytes(std::span(doors)));
    family.doors = std::make_shared<const std::vector<status::Door>>(std::move(doors));
  }
  meet(ranks, std::move(shown));
}

void State::meet(const std::vector<int>& ranks, std::vector<bool> shown) {
  Watch& watch = launcher.watch();
  const std::vector<status::ProcessId> processes = processes_of(ranks);
  if (const auto& doors = launcher.family().doors)
    watch.reach(std::make_unique<status::Elsewhere>(doors, processes, ranks));
  watch.meet(processes, std::move(shown));
}

namespace {

std::uint64_t mixed(std::uint64_t name, std::uint64_t with) {
  name = (name ^ with) * 0xff51afd7ed558ccdull;
  return name ^ name >> 32;
}

}  // namespace

std::uint64_t State::name_of_part(std::uint64_t split, int color) const {
  return mixed(mixed(launcher.watch().communicator(), split), static_cast<std::uint64_t>(color));
}

std::uint64_t State::name_of_survivors(std::uint32_t shrunk) const {
  constexpr std::uint64_t survivors = std::uint64_t{1} << 32;  // apart from splits
  return mixed(launcher.watch().communicator(), survivors + shrunk);
}

namespace {

/// The name of what has been made from a communicator: where that is too long for a page, the
/// middle of it is left out, so that the names of all parts differ.
std::string name_from(const std::string& whole, const std::string& part) {
  constexpr std::size_t longest = status::longest_label, first = 16;  // leaves room for any part
  constexpr std::string_view left_out = "…";
  if (whole.size() + part.size() <= longest) return whole + part;
  return fmt::format("{}{}{}{}", base::beginning_of(whole, first), left_out,
                     base::end_of(whole, longest - first - left_out.size() - part.size()), part);
}

/// "/survivors 2"; of survivors, ".2".
std::string survivors_part(std::string_view whole, std::uint32_t shrunk) {
  constexpr std::string_view word = "/survivors ";
  const std::size_t last = whole.rfind('/');
  const bool again = last != whole.npos && whole.substr(last).starts_with(word);
  return fmt::format("{}{}", again ? "." : word, shrunk);
}

}  // namespace

void State::open_watch(State& whole, std::uint64_t split, int color,
                       const std::vector<int>& members) {
  const std::string &own = context.options.name, &its = whole.context.options.name;
  const std::string number =
      name_from(whole.launcher.watch().label(), fmt::format("/{}:{}", split, color));
  open_watch(whole, whole.name_of_part(split, color), own.empty() || own == its ? number : own,
             whole.launcher.sequence(), members);
}

void State::open_watch(State& whole, std::uint32_t shrunk, const std::vector<int>& members) {
  const std::string& label = whole.launcher.watch().label();
  open_watch(whole, whole.name_of_survivors(shrunk),
             name_from(label, survivors_part(label, shrunk)), 0, members);
}

void State::open_watch(State& whole, std::uint64_t communicator, const std::string& label,
                       std::uint64_t making, const std::vector<int>& members) {
  Watch& watch = launcher.watch();
  watch.rename(label);
  if (whole.family_rank_ < 0) return;  // nobody knows whose pages its ranks would look at
  watch.open(communicator, launcher.sequence(), label);
  family_rank_ = whole.family_rank_;
  // Who is missing already in the gathering is named, too.
  watch.made_from(whole.launcher.watch(), making, members);
  if (!members.empty()) {
    watch.reach(whole.launcher.watch().elsewhere_of(members));
    watch.meet(whole.launcher.watch().processes_of(members), std::vector<bool>(members.size()));
  }
  std::vector<int> ranks;
  std::vector<bool> shown;
  for (const std::uint64_t rank :
       gathered(static_cast<std::uint64_t>(family_rank_) * 2 + (watch.shows() ? 1 : 0))) {
    ranks.push_back(static_cast<int>(rank / 2));
    shown.push_back(rank % 2 != 0);
  }
  meet(ranks, std::move(shown));
}

void State::open_watch(const std::vector<int>& members) {
  if (members.empty()) return;
  Family& family = launcher.family();
  std::uint64_t turn = 0;
  {
    const std::lock_guard lock(family.making);
    turn = ++family.made[members];
  }
  std::uint64_t name = mixed(family.name, turn);
  for (const int member : members) name = mixed(name, static_cast<std::uint64_t>(member));
  std::string label = "world";
  if (members.size() < family.processes.size())
    label = fmt::format(
        "ranks {}{} of world",
        fmt::join(std::span(members).first(std::min<std::size_t>(members.size(), 4)), ", "),
        members.size() > 4 ? ", …" : "");
  launcher.watch().open(name, launcher.sequence(), fmt::format("{} {}", label, turn));
  family_rank_ = members[static_cast<std::size_t>(context.rank)];
  meet(members, {});
}

std::vector<status::ProcessId> State::processes_of(const std::vector<int>& members) const {
  std::vector<status::ProcessId> processes;
  for (const int member : members)
    processes.push_back(launcher.family().processes.at(static_cast<std::size_t>(member)));
  return processes;
}

}  // namespace baton::communicator
