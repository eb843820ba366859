#pragma once
/// Collectives as numbers, from which a rank that does not know them takes part.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "baton/communicator.hpp"

namespace baton::transformer {

/// Numbers that describe a rank's call to the other ranks, without its elements; appended to
/// `words`.
void describe(const Call& call, std::vector<std::int64_t>& words);

/// A described call of other ranks, in which this one takes part with zeros, in memory of its own.
class Joined {
 public:
  /// Starts it. Throws Error(unsupported) if ranks have other counts than those in a description:
  /// gather, scatter, and all_to_all of uneven counts; Error(memory) or std::bad_alloc.
  Joined(Communicator& ranks, std::span<const std::int64_t> words);
  /// The call's request.
  Request& request() { return request_; }

 private:
  std::vector<std::int64_t> words_;  // the call's lists are in these
  std::vector<ConstData> inputs_;
  std::vector<Data> outputs_;
  std::vector<std::byte> input_, output_;
  Request request_;  // is destroyed before the memory
};

}  // namespace baton::transformer
