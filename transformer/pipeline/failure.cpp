#include "failure.hpp"

#include <fmt/core.h>

#include <cstdint>
#include <new>

#include "../exchange.hpp"
#include "../watch.hpp"

namespace baton::transformer {
Failure Failure::of(const std::exception& error, const std::string& place) {
  Failure failure;
  if (const auto* const own = dynamic_cast<const Error*>(&error)) {
    failure.code = own->code;
  } else if (dynamic_cast<const std::bad_alloc*>(&error)) {
    failure.code = ErrorCode::memory;
  }
  failure.sentence = fmt::format("{}: {}", place, error.what());
  return failure;
}

std::string broadcast_text(Communicator& ranks, std::string text, int root) {
  auto size = static_cast<std::int64_t>(text.size());
  ranks.broadcast(std::span(&size, 1), root);
  std::vector<std::uint8_t> bytes(text.begin(), text.end());
  bytes.resize(static_cast<std::size_t>(size));
  ranks.broadcast(Data(bytes), root);
  text.assign(bytes.begin(), bytes.end());
  return text;
}

bool any_failed(const Mesh& mesh, const std::optional<Failure>& failure) {
  Communicator* const ranks = mesh.along(all_axes);
  std::int64_t failed = failure.has_value();
  const ExchangeTimer timer;
  if (ranks) {
    Request request = ranks->start_all_reduce(std::span(&failed, 1), max);
    if (ExchangeWatch* const watch = exchange_watch()) {
      watch->wait(request);
    } else {
      request.wait();
    }
  }
  return failed != 0;
}

void raise_first(const Mesh& mesh, const std::optional<Failure>& failure) {
  Communicator* const ranks = mesh.along(all_axes);
  if (!ranks) failure->raise();
  std::int64_t first = failure ? ranks->rank() : ranks->size();
  ranks->all_reduce(std::span(&first, 1), min);
  const int root = static_cast<int>(first);
  auto code = static_cast<std::int64_t>(failure ? failure->code : ErrorCode::invalid_argument);
  ranks->broadcast(std::span(&code, 1), root);
  const std::string sentence =
      broadcast_text(*ranks, failure ? failure->sentence : std::string(), root);
  throw Error(static_cast<ErrorCode>(code), sentence);
}

}  // namespace baton::transformer
