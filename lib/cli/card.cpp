#include "card.hpp"

#include <cuda_runtime_api.h>

#include "baton/cuda.hpp"
#include "baton/cuda_runtime.hpp"

namespace baton::cli {

int cuda_cards() { return cuda_devices(); }

Card cuda_card(int ordinal) {
  return {cuda_device(ordinal),
          [ordinal] {
            const cuda::CurrentDevice current(ordinal);
            cudaStream_t stream = nullptr;
            cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                        "making a stream");
            return static_cast<Stream>(stream);
          },
          [](Stream stream) { cudaStreamDestroy(static_cast<cudaStream_t>(stream)); }};
}

}  // namespace baton::cli
