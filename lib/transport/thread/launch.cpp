#include <fmt/core.h>

#include <exception>
#include <latch>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "baton/error.hpp"
#include "baton/thread.hpp"

namespace baton {

void run_threads(int size, const std::function<void(std::unique_ptr<Transport>)>& body,
                 const ThreadOptions& options) {
  auto transports = thread_transports(size, options);
  std::vector<std::exception_ptr> thrown(transports.size());
  std::latch all_started(1);  // ranks start only if all threads exist
  bool complete = true;

  std::vector<std::thread> threads;
  threads.reserve(transports.size());
  std::string failure;
  try {
    for (std::size_t rank = 0; rank < transports.size(); ++rank)
      threads.emplace_back([&, rank] {
        all_started.wait();
        if (!complete) return;
        try {
          body(std::move(transports[rank]));
        } catch (...) {
          thrown[rank] = std::current_exception();
        }
      });
  } catch (const std::system_error& error) {
    complete = false;
    failure = error.what();
  }
  all_started.count_down();
  for (std::thread& thread : threads) thread.join();
  if (!complete)
    throw Error(ErrorCode::transport,
                fmt::format("expected to start {} threads, but the system allowed {}: {}", size,
                            threads.size(), failure));
  for (const auto& exception : thrown)
    if (exception) std::rethrow_exception(exception);
}

}  // namespace baton
