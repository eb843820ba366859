/// A process of meeting_test.py: meets the others, reduces with them, and says how it went.
///
/// Usage: meeting ucx|shm|any RANK SIZE HOST:PORT|FOLDER/ MILLISECONDS
/// In a folder, processes exchange their addresses by files named by ranks and, after the
/// first, by the number of the exchange. A file that is there
/// beforehand is kept; a file "one-more" adds an empty block. With KILLED=RANK in the environment,
/// that rank is killed in the end, and the others would wait an hour for it. With UNREADABLE,
/// others may not look at this process. With NAMED, it says how they are connected.

#include <sys/prctl.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "baton/communicator.hpp"
#include "baton/error.hpp"
#include "baton/processes.hpp"
#include "baton/shm.hpp"
#ifdef WITH_UCX
#include "baton/ucx.hpp"
#endif

namespace {

using Block = std::vector<std::byte>;

std::vector<Block> exchange_by_files(const std::filesystem::path& folder, int rank, int size,
                                     const Block& own) {
  static int times = 0;
  const std::string number = times == 0 ? "" : "." + std::to_string(times);
  ++times;
  const auto name = [&](int r) { return folder / (std::to_string(r) + number); };
  {
    std::ofstream file(folder / "part" += std::to_string(rank), std::ios::binary);
    file.write(reinterpret_cast<const char*>(own.data()), static_cast<std::streamsize>(own.size()));
  }
  if (!std::filesystem::exists(name(rank)))
    std::filesystem::rename(folder / "part" += std::to_string(rank), name(rank));
  std::vector<Block> blocks;
  for (int r = 0; r < size; ++r) {
    while (!std::filesystem::exists(name(r)))
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::ifstream file(name(r), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const auto* begin = reinterpret_cast<const std::byte*>(text.data());
    blocks.emplace_back(begin, begin + text.size());
  }
  if (std::filesystem::exists(folder / "one-more")) blocks.emplace_back();
  return blocks;
}

/// A transport made by `make(rank, size, place, options)`, whose place is an address or an
/// exchange.
template <class Make, class Options>
std::unique_ptr<baton::Transport> met(const Make& make, int rank, int size,
                                      const std::string& where, const Options& options) {
  if (!where.ends_with('/')) return make(rank, size, where, options);
  const baton::Exchange exchange = [&](const Block& own) {
    return exchange_by_files(where, rank, size, own);
  };
  return make(rank, size, exchange, options);
}

std::unique_ptr<baton::Transport> transport(const std::string& kind, int rank, int size,
                                            const std::string& where,
                                            std::chrono::milliseconds meeting) {
  if (kind == "any")
    return met([](auto&&... all) { return baton::process_transport(all...); }, rank, size, where,
               baton::ProcessOptions{.meeting = meeting, .farewell = std::chrono::hours(1)});
  if (kind == "shm")
    return met([](auto&&... all) { return baton::shm_transport(all...); }, rank, size, where,
               baton::ShmOptions{.meeting = meeting});
#ifdef WITH_UCX
  baton::UcxOptions options{.meeting = meeting};
  if (std::getenv("KILLED") != nullptr) options.farewell = std::chrono::hours(1);
  return met([](auto&&... all) { return baton::ucx_transport(all...); }, rank, size, where,
             options);
#endif
  throw baton::Error(baton::ErrorCode::unsupported, "no transport " + kind);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const char* const killed = std::getenv("KILLED");
  if (std::getenv("UNREADABLE") != nullptr) prctl(PR_SET_DUMPABLE, 0);
  try {
    baton::Communicator c(transport(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), argv[4],
                                    std::chrono::milliseconds(std::atoi(argv[5]))));
    std::vector<std::int64_t> ranks(100'000, c.rank() + 1);
    c.all_reduce(ranks, baton::sum);
    baton::Communicator last = c.split(c.rank() / 2);
    last.barrier();
    if (killed != nullptr && std::atoi(killed) == c.rank()) std::raise(SIGKILL);
    if (std::getenv("NAMED") != nullptr)
      std::printf("%s ", c.transport().capabilities().name.c_str());
    std::printf("%lld\n", static_cast<long long>(ranks.back()));
    return 0;
  } catch (const baton::Error& error) {
    std::printf("%s: %s\n", std::string(baton::name(error.code)).c_str(), error.what());
    return 1;
  }
}
