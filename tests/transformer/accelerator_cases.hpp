#pragma once
/// A transformer on accelerators, whatever they are, against the host: checks that stand-ins and
/// GPUs share.

#include <functional>
#include <memory>

#include "equivalence.hpp"

namespace accelerator_cases {

/// A device, and what makes accelerators on it, each with a stream of its own.
struct TestDevice {
  std::shared_ptr<baton::Device> device;
  std::function<std::unique_ptr<baton::transformer::Accelerator>()> make;
  bool groups = false;  ///< messages go in groups of threads' own
};

/// Runs `body` on ranks as threads, which share the device. `seed`: as ThreadOptions::seed.
void on_one_device(
    int size, const TestDevice& test_device,
    const std::function<void(baton::Communicator& world, const support::Place& place)>& body,
    std::uint64_t seed = 0);

/// What elements of T may differ by, relative to the largest of a tensor.
template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 1e-4 : 1.6e-2;

/// Every form of the block, of f32 or bf16, gives forward and backward of the whole one on the
/// host.
template <class T>
void blocks(int ranks, const TestDevice& test_device, std::uint64_t seed = 0);
/// Steps of training in every form leave the losses and the weights that one rank's on the host do.
template <class T>
void training(int ranks, const TestDevice& test_device);
/// Values of bf16 follow a master in f32: steps that each would be rounded away add up.
void masters(const TestDevice& test_device);
/// Linear layers, column- and row-parallel, with what is gathered and split between them.
template <class T>
void linear_layers(int ranks, const TestDevice& test_device);
/// GPT-2 on every mesh gives the loss and the gradients that it gives on one rank's host.
template <class T>
void language_model(int ranks, const TestDevice& test_device);
/// GPT-2 divided at every stage trains on every mesh as on one rank's host.
template <class T>
void sharded_language_model(int ranks, const TestDevice& test_device);
/// Weights and checkpoints that were written on the host are read, and written anew bit for bit.
template <class T>
void files(int ranks, const TestDevice& test_device);
/// An embedding and a cross-entropy, whole and of a vocabulary that is cut.
template <class T>
void vocabulary(int ranks, const TestDevice& test_device);

}  // namespace accelerator_cases
