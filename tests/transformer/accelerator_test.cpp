#include "transformer/accelerator.hpp"

#include <doctest/doctest.h>

#include "accelerator_cases.hpp"
#include "stand_in_accelerator.hpp"
#include "support/ranks.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;
using namespace accelerator_cases;

namespace {

/// `seed`: not 0 if the device does its work late.
Card stand_in(std::uint64_t seed = 0) {
  StandInOptions options;
  options.seed = seed;
  const auto device = std::make_shared<StandInDevice>(options);
  return {device, [device] { return std::make_unique<StandInAccelerator>(device); }};
}

}  // namespace

TEST_CASE("on 1, 2 and 4 ranks, every form of a block gives what the host's whole block gives") {
  for (const int ranks : {1, 2, 4}) {
    blocks<float>(ranks, stand_in());
    blocks<bf16>(ranks, stand_in());
  }
}

TEST_CASE("the same where messages come late and streams take their time") {
  blocks<float>(2, stand_in(3), 5);
}

TEST_CASE("steps of training in every form leave the host's losses and weights") {
  for (const int ranks : {1, 2, 4}) {
    training<float>(ranks, stand_in());
    training<bf16>(ranks, stand_in());
  }
}

TEST_CASE("linear layers and vocabularies give what the host's give") {
  for (const int ranks : {1, 2, 4}) {
    linear_layers<float>(ranks, stand_in());
    linear_layers<bf16>(ranks, stand_in());
    vocabulary<float>(ranks, stand_in());
    vocabulary<bf16>(ranks, stand_in());
  }
}
