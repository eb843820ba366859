/// A process of ucx_meeting_test.py: meets the others, reduces with them, and says how it went.
///
/// Usage: ucx_meeting RANK SIZE HOST:PORT|FOLDER/ MILLISECONDS
/// In a folder, processes exchange their addresses by files named by ranks. A file that is there
/// beforehand is kept; a file "one-more" adds an empty block. With KILLED=RANK in the environment,
/// that rank is killed in the end, and the others would wait an hour for it.

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
#include "baton/ucx.hpp"

namespace {

using Block = std::vector<std::byte>;

std::vector<Block> exchange_by_files(const std::filesystem::path& folder, int rank, int size,
                                     const Block& own) {
  const auto name = [&](int r) { return folder / std::to_string(r); };
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

std::unique_ptr<baton::Transport> transport(int rank, int size, const std::string& where,
                                            const baton::UcxOptions& options) {
  if (!where.ends_with('/')) return baton::ucx_transport(rank, size, where, options);
  return baton::ucx_transport(
      rank, size, [&](const Block& own) { return exchange_by_files(where, rank, size, own); },
      options);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const char* const killed = std::getenv("KILLED");
  baton::UcxOptions options{.meeting = std::chrono::milliseconds(std::atoi(argv[4]))};
  if (killed != nullptr) options.farewell = std::chrono::hours(1);
  try {
    baton::Communicator c(transport(std::atoi(argv[1]), std::atoi(argv[2]), argv[3], options));
    std::vector<std::int64_t> ranks(100'000, c.rank() + 1);
    c.all_reduce(ranks, baton::sum);
    baton::Communicator last = c.split(c.rank() / 2);
    last.barrier();
    if (killed != nullptr && std::atoi(killed) == c.rank()) std::raise(SIGKILL);
    std::printf("%lld\n", static_cast<long long>(ranks.back()));
    return 0;
  } catch (const baton::Error& error) {
    std::printf("%s: %s\n", std::string(baton::name(error.code)).c_str(), error.what());
    return 1;
  }
}
