#include "bootstrap.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "../place.hpp"
#include "baton/error.hpp"

namespace baton::nccl {
namespace {

constexpr int tag = 0;

/// Text of bounded length, as messages carry it.
template <std::size_t room>
struct Text {
  char at[room] = {};
  Text() = default;
  explicit Text(const std::string& text) { text.copy(at, room - 1); }
  std::string string() const { return at; }
};

struct Record {
  Text<128> host;
  Text<64> gpu;
  Text<256> wrong;
};
struct Answer {
  Text<512> wrong;
  Identifier identifier{};
};

template <class Part>
Part received(Transport& host, int from) {
  Part part;
  const std::size_t found = host.recv(from, tag, &part, sizeof part);
  if (found != sizeof part)
    throw Error(ErrorCode::truncated,
                fmt::format("expected {} bytes of rank {} to set NCCL up, found {}", sizeof part,
                            from, found));
  return part;
}

/// Rank 0's verdict on one rank after another.
class Judge {
 public:
  void hear(int rank, const Record& record) {
    if (!verdict_.empty()) return;
    if (const std::string wrong = record.wrong.string(); !wrong.empty()) {
      verdict_ = fmt::format("on rank {}: {}", rank, wrong);
      return;
    }
    const auto [seat, free] =
        seats_.emplace(std::pair(record.host.string(), record.gpu.string()), rank);
    if (!free)
      verdict_ = fmt::format(
          "expected a GPU for each rank, as NCCL does, found ranks {} and {} on one, {} (processes "
          "that differ in NCCL_HOSTID may share it)",
          seat->second, rank, seat->first.second);
  }
  const std::string& verdict() const { return verdict_; }

 private:
  std::map<std::pair<std::string, std::string>, int> seats_;
  std::string verdict_;
};

Answer answer(Transport& host, const Record& own, const std::function<Identifier()>& make) {
  Judge judge;
  judge.hear(0, own);
  for (int rank = 1; rank < host.size(); ++rank) judge.hear(rank, received<Record>(host, rank));
  Answer answer{Text<512>(judge.verdict())};
  if (!judge.verdict().empty()) return answer;
  try {
    answer.identifier = make();
  } catch (const Error& error) {
    answer.wrong = Text<512>(fmt::format("on rank 0: {}", error.what()));
  }
  return answer;
}

}  // namespace

std::string own_host() {
  if (const char* const given = std::getenv("NCCL_HOSTID"))
    return fmt::format("NCCL_HOSTID {}", given);
  return fmt::format("{:x}", own_place().host);
}

Identifier agree(Transport& host, const Seat& own, const std::function<Identifier()>& make) {
  const Record record{Text<128>(own.host), Text<64>(own.gpu), Text<256>(own.wrong)};
  Answer found;
  if (host.rank() == 0) {
    found = answer(host, record, make);
    for (int rank = 1; rank < host.size(); ++rank) host.send(rank, tag, &found, sizeof found);
  } else {
    host.send(0, tag, &record, sizeof record);
    found = received<Answer>(host, 0);
  }
  if (const std::string wrong = found.wrong.string(); !wrong.empty()) {
    Error error(ErrorCode::unsupported, wrong);
    error.rank = host.rank();
    throw error;
  }
  return found.identifier;
}

}  // namespace baton::nccl
