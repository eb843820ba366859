#include "bootstrap.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "../../base/raise.hpp"
#include "../letters.hpp"
#include "../place.hpp"

namespace baton::nccl {
namespace {

using transport::Letter, transport::wait;

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
  ErrorCode code = ErrorCode::unsupported;
  Text<512> wrong;  ///< empty: no error
  Identifier identifier{};
};

double seconds(std::chrono::milliseconds time) { return static_cast<double>(time.count()) / 1000; }

/// Rank 0's verdict on the ranks' records.
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

/// Rank 0 collects the records and answers the ranks that came.
Answer preside(Transport& host, const Record& own, const std::function<Identifier()>& make,
               std::chrono::milliseconds limit) {
  const auto others = static_cast<std::size_t>(host.size() - 1);
  std::vector<Record> records(others);
  std::deque<Letter> letters;
  for (std::size_t i = 0; i < others; ++i)
    letters.emplace_back(host).receive(static_cast<int>(i) + 1, records[i]);
  Answer answer;
  if (wait(host, letters, limit)) {
    Judge judge;
    judge.hear(0, own);
    for (std::size_t i = 0; i < others; ++i) judge.hear(static_cast<int>(i) + 1, records[i]);
    answer.wrong = Text<512>(judge.verdict());
    if (judge.verdict().empty()) {
      try {
        answer.identifier = make();
      } catch (const Error& error) {
        answer.wrong = Text<512>(fmt::format("on rank 0: {}", error.what()));
      }
    }
  } else {
    std::string missing;
    for (std::size_t i = 0; i < others; ++i)
      if (!letters[i].arrived()) missing += fmt::format(" {}", i + 1);
    answer.code = ErrorCode::timeout;
    answer.wrong = Text<512>(fmt::format(
        "expected all {} ranks to make a transport of NCCL's within {} s, but these did "
        "not come:{}",
        host.size(), seconds(limit), missing));
  }
  std::deque<Letter> answers;
  for (std::size_t i = 0; i < others; ++i)
    if (letters[i].arrived()) answers.emplace_back(host).send(static_cast<int>(i) + 1, answer);
  wait(host, answers, limit);  // a rank that has left reports its own error
  return answer;
}

Answer attend(Transport& host, const Record& own, std::chrono::milliseconds limit) {
  Answer answer;
  std::deque<Letter> letters;
  letters.emplace_back(host).send(0, own);
  letters.emplace_back(host).receive(0, answer);
  if (wait(host, letters, 2 * limit)) return answer;
  answer.code = ErrorCode::timeout;
  answer.wrong = Text<512>(
      fmt::format("expected rank 0 to make a transport of NCCL's within {} s, found it silent",
                  seconds(2 * limit)));
  return answer;
}

}  // namespace

std::string own_host() {
  if (const char* const given = std::getenv("NCCL_HOSTID"))
    return fmt::format("NCCL_HOSTID {}", given);
  return fmt::format("{:x}", transport::own_place().host);
}

Identifier agree(Transport& host, const Seat& own, const std::function<Identifier()>& make,
                 std::chrono::milliseconds limit) {
  const Record record{Text<128>(own.host), Text<64>(own.gpu), Text<256>(own.wrong)};
  const Answer found =
      host.rank() == 0 ? preside(host, record, make, limit) : attend(host, record, limit);
  if (const std::string wrong = found.wrong.string(); !wrong.empty())
    base::raise(found.code, wrong, {.rank = host.rank()});
  return found.identifier;
}

}  // namespace baton::nccl
