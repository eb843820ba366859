#pragma once

#include <memory>
#include <vector>

#include "../block.hpp"
#include "../training/batch.hpp"
#include "../training/sequential.hpp"
#include "options.hpp"

namespace baton::transformer::program {

/// All samples of the run.
template <class T>
Batch<T> make_data(const TrainOptions& options);
/// Other samples of the same kind.
template <class T>
Batch<T> make_validation(const TrainOptions& options);

/// The blocks of ModelKind::block, each with a name of its own.
template <class T>
std::vector<std::shared_ptr<TransformerBlock<T>>> make_blocks(const TrainOptions& options);

/// The model on one rank, its weights as the seed says.
template <class T>
std::unique_ptr<Sequential<T>> make_model(const TrainOptions& options);

/// The same in its parallel form. The mesh must outlive it.
template <class T>
std::unique_ptr<Sequential<T>> make_model(const TrainOptions& options, const Mesh& mesh);

}  // namespace baton::transformer::program
