#include "baton/error.hpp"
#include "card.hpp"

namespace baton::cli {

int cuda_cards() {
  throw Error(ErrorCode::unsupported, "expected a build with CUDA, found one without");
}

Card cuda_card(int) { return {}; }

}  // namespace baton::cli
