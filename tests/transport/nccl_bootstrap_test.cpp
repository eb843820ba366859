/// What ranks tell each other before NCCL is asked; needs neither NCCL nor a GPU.

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "baton/error.hpp"
#include "support/ranks.hpp"
#include "transport/nccl/bootstrap.hpp"

using namespace baton;
using nccl::Identifier;
using nccl::Seat;
using support::holds;

namespace {

Identifier made() {
  Identifier identifier{};
  for (std::size_t i = 0; i < identifier.size(); ++i) identifier[i] = std::byte(7 * i + 1);
  return identifier;
}

/// What each rank throws when ranks have these seats; "" where it gets the identifier, or does not
/// come.
std::vector<std::string> sentences(const std::vector<Seat>& seats,
                                   const std::function<Identifier()>& make = made,
                                   std::chrono::milliseconds limit = {}, int absent = -1) {
  const int size = static_cast<int>(seats.size());
  std::vector<std::string> found(seats.size());
  support::Watchdog watchdog(size, std::chrono::seconds(60));
  run_threads(size, [&](std::unique_ptr<Transport> transport) {
    const auto rank = static_cast<std::size_t>(transport->rank());
    try {
      if (transport->rank() != absent) {
        const Identifier got = nccl::agree(*transport, seats[rank], make, limit);
        CHECK(got == made());
      }
    } catch (const Error& error) {
      CHECK(error.code == (absent < 0 ? ErrorCode::unsupported : ErrorCode::timeout));
      CHECK(error.rank == transport->rank());
      found[rank] = error.what();
    }
    watchdog.returned(transport->rank());
  });
  return found;
}

}  // namespace

TEST_CASE("nccl: rank 0's identifier comes to all that have GPUs of their own") {
  const std::vector<std::string> fine(3);
  CHECK(sentences({{"a", "0000:01:00.0", ""}}) == std::vector<std::string>(1));
  CHECK(sentences({{"a", "01", ""}, {"a", "02", ""}, {"a", "03", ""}}) == fine);
  CHECK(sentences({{"a", "01", ""}, {"b", "01", ""}, {"a", "02", ""}}) == fine);
}

TEST_CASE("nccl: two ranks on one GPU are told before NCCL is asked, all by one sentence") {
  int asked = 0;
  const auto found =
      sentences({{"a", "01", ""}, {"a", "02", ""}, {"b", "02", ""}, {"a", "02", ""}}, [&] {
        ++asked;
        return made();
      });
  CHECK(asked == 0);
  for (const std::string& sentence : found) {
    CHECK(sentence == found[0]);
    CHECK_MESSAGE(
        holds(sentence, {"a GPU for each rank", "ranks 1 and 3 on one, 02", "NCCL_HOSTID"}),
        sentence);
  }
}

TEST_CASE("nccl: what is wrong on one rank is told to all") {
  for (const std::string& sentence : sentences({{"a", "01", ""}, {"a", "", "no CUDA device"}}))
    CHECK(sentence == "on rank 1: no CUDA device");
  const auto fails = []() -> Identifier { throw Error(ErrorCode::transport, "no network"); };
  for (const std::string& sentence : sentences({{"a", "01", ""}, {"a", "02", ""}}, fails))
    CHECK(sentence == "on rank 0: no network");
}

TEST_CASE("nccl: who does not come is named to all that have come") {
  using namespace std::chrono_literals;
  const std::vector<Seat> seats{{"a", "01", ""}, {"a", "02", ""}, {"a", "03", ""}};
  CHECK(sentences(seats, made, 60s) == std::vector<std::string>(3));
  const auto without = [&](int absent) { return sentences(seats, made, 100ms, absent); };
  const std::string missing =
      "expected all 3 ranks to make a transport of NCCL's within 0.1 s, but these did not come: ";
  CHECK(without(1) == std::vector{missing + "1", std::string(), missing + "1"});
  CHECK(without(2) == std::vector{missing + "2", missing + "2", std::string()});
  const std::string silent =
      "expected rank 0 to make a transport of NCCL's within 0.2 s, found it silent";
  CHECK(without(0) == std::vector{std::string(), silent, silent});
}

TEST_CASE("nccl: the host is the machine's, or what NCCL_HOSTID says") {
  unsetenv("NCCL_HOSTID");
  const std::string own = nccl::own_host();
  CHECK(own == nccl::own_host());
  setenv("NCCL_HOSTID", "1", 1);
  const std::string first = nccl::own_host();
  setenv("NCCL_HOSTID", "2", 1);
  CHECK(first != own);
  CHECK(first != nccl::own_host());
  unsetenv("NCCL_HOSTID");
}
