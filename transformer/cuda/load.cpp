/// All kernels there are.

#include "kernels.hpp"

namespace baton::transformer::cuda {

void load_kernels() {
  load_element_kernels();
  load_row_kernels();
  load_loss_kernels();
  load_attention_kernels();
  load_attention_backward_kernels();
  load_attention_warpgroup_kernels();
}

}  // namespace baton::transformer::cuda
