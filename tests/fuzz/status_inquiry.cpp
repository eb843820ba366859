/// Questions and answers of other machines about ranks, and the file that says where these are,
/// whatever bytes they have. The first byte chooses; what is accepted packs to the same bytes
/// again, or is judged.

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "status/diagnosis.hpp"
#include "status/inquiry.hpp"
#include "status/service.hpp"
#include "target.hpp"

using namespace baton;
using namespace baton::status;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  if (data[0] == 0) {
    const auto inquiry = inquiry_of(bytes);
    if (!inquiry) return 0;
    const std::vector<std::byte> again = packed(*inquiry);
    fuzz::require(again.size() == bytes.size(), "a question has one form");
    fuzz::require(inquiry->members.size() <= size, "a question asks about no more than it says");
    return 0;
  }
  if (data[0] == 2) {
    const auto elsewhere = Elsewhere::read(bytes);
    if (!elsewhere) return 0;
    fuzz::require(std::ranges::equal(elsewhere->written(), bytes), "doors have one form");
    fuzz::require(elsewhere->ranks().size() <= size, "there are no more ranks than it says");
    return 0;
  }
  const auto finding = finding_of(bytes);
  if (!finding) return 0;
  fuzz::require(finding_of(packed(*finding)).has_value(), "an answer can be packed again");
  std::vector<Witness> ranks(2);
  ranks[1] = finding->witness;
  const Complaint complaint{.label = "world", .number = first_pending(ranks), .name = "all_reduce"};
  fuzz::require(!diagnosis(complaint, ranks).empty(), "a hang has a sentence");
  return 0;
}
