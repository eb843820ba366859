/// The kernels on a device, against the host's reference. Exit code 77 where there is none.

#define DOCTEST_CONFIG_IMPLEMENT
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <cstdio>

#include "baton/cuda_runtime.hpp"
#include "baton/error.hpp"
#include "cuda_cases.hpp"

using namespace baton;
using namespace cuda_cases;

namespace {

class OnDevice : public Backend {
 public:
  OnDevice() {
    cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  }
  ~OnDevice() override {
    cudaFree(memory_);
    cudaStreamDestroy(stream_);
  }

  Image fold(OpKind op, Datatype type, Pieces pieces, const Image& image) override {
    return run(image, pieces, [&](const Pieces& here) { cuda::fold(op, type, here, stream_); });
  }
  Image divide(Datatype type, int ranks, Pieces pieces, const Image& image) override {
    return run(image, pieces,
               [&](const Pieces& here) { cuda::divide(type, ranks, here, stream_); });
  }
  Image copy(std::size_t element_bytes, Pieces pieces, const Image& image) override {
    return run(image, pieces,
               [&](const Pieces& here) { cuda::copy(element_bytes, here, stream_); });
  }

 private:
  template <class Work>
  Image run(const Image& image, const Pieces& pieces, Work work) {
    // As large as the image, for compute-sanitizer to see what goes beyond.
    if (size_ != image.size()) {
      cuda::check(cudaFree(memory_), "freeing memory");
      cuda::check(cudaMalloc(&memory_, image.size()), "taking memory");
      size_ = image.size();
    }
    cuda::check(cudaMemcpyAsync(memory_, image.data(), size_, cudaMemcpyHostToDevice, stream_),
                "copying there");
    work(placed(pieces, static_cast<std::byte*>(memory_)));
    Image result(size_);
    cuda::check(cudaMemcpyAsync(result.data(), memory_, size_, cudaMemcpyDeviceToHost, stream_),
                "copying back");
    cuda::check(cudaStreamSynchronize(stream_), "waiting for the stream");
    return result;
  }

  cudaStream_t stream_ = nullptr;
  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace

TEST_CASE("folds of every count and alignment") {
  OnDevice device;
  folds_of_every_count_and_alignment(device);
}
TEST_CASE("folds in place") {
  OnDevice device;
  folds_in_place(device);
}
TEST_CASE("folds of strided pieces") {
  OnDevice device;
  folds_of_strided_pieces(device);
}
TEST_CASE("all pairs of special values") {
  OnDevice device;
  all_pairs_of_special_values(device);
}
TEST_CASE("divisions") {
  OnDevice device;
  divisions(device);
}
TEST_CASE("all 16-bit floats divided") {
  OnDevice device;
  all_16_bit_floats_divided(device);
}
TEST_CASE("strided copies") {
  OnDevice device;
  strided_copies(device);
}
TEST_CASE("random lists of copies") {
  OnDevice device;
  random_lists_of_copies(device);
}
TEST_CASE("transpositions") {
  OnDevice device;
  transpositions(device);
  transpositions_of_every_width(device);
}

int main(int argc, char** argv) {
  int devices = 0;
  const cudaError_t found = cudaGetDeviceCount(&devices);
  if (found != cudaSuccess || devices == 0) {
    std::printf("skipped: expected a CUDA device, found none (%s)\n", cudaGetErrorString(found));
    return 77;
  }
  cuda::load_kernels();
  return doctest::Context(argc, argv).run();
}
