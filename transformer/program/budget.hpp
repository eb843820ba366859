#pragma once

#include "baton/communicator.hpp"
#include "options.hpp"

namespace baton::transformer::program {

/// Prints, on rank 0, what it sends in a step of training: a line for each exchange of each layer
/// and direction, one for the gradients, and one for the loss. Other ranks may send more or less.
/// Nothing of it is sent. Collective.
template <class T>
void print_budget(Communicator& world, const TrainOptions& options);

}  // namespace baton::transformer::program
