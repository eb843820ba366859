#pragma once
/// Single operations on an accelerator against the host's, of shapes that kernels cut: more rows,
/// columns, queries and keys than a thread block takes at once.

#include "transformer/accelerator_cases.hpp"

namespace accelerator_cases {

/// Every operation gives what the host's gives, and the same bits a second time.
template <class T>
void operations(const TestDevice& test_device);
/// The same of tensors without elements: nothing but zeros where sums are empty.
template <class T>
void without_elements(const TestDevice& test_device);
/// What cannot be done is refused in a sentence.
void refusals(const TestDevice& test_device);

}  // namespace accelerator_cases
