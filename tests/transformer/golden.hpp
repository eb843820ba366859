#pragma once
/// What PyTorch computes: see golden/README.md.

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "transformer/tensor.hpp"

namespace support {

/// The tensors of a file of golden/, without its ending.
class Golden {
 public:
  explicit Golden(const std::string& name) : name_(name) {
    std::ifstream file(std::string(BATON_GOLDEN_FOLDER "/") + name + ".txt");
    if (!file) throw std::runtime_error("golden: expected a file " + name + ".txt, found none");
    for (std::string head, elements; std::getline(file, head);) {
      if (head.starts_with('#')) continue;
      std::getline(file, elements);
      put(head, elements);
    }
  }

  bool has(const std::string& tensor) const { return tensors_.contains(tensor); }
  /// A copy.
  template <class T = double>
  baton::transformer::Array<T> operator()(const std::string& tensor) const {
    const auto found = tensors_.find(tensor);
    if (found == tensors_.end())
      throw std::runtime_error(name_ + ": expected a tensor " + tensor + ", found none");
    auto array = baton::transformer::Array<T>::uninitialized(found->second.shape);
    for (std::size_t i = 0; i < found->second.elements.size(); ++i)
      array.data()[i] = static_cast<T>(found->second.elements[i]);
    return array;
  }
  double number(const std::string& tensor) const { return *(*this)(tensor).data(); }

 private:
  struct Tensor {
    baton::Shape shape;
    std::vector<double> elements;
  };

  void put(const std::string& head, const std::string& elements) {
    std::istringstream words(head);
    std::string tensor;
    words >> tensor;
    std::vector<std::int64_t> extents;
    for (std::int64_t extent; words >> extent;) extents.push_back(extent);
    std::vector<double> values;
    const char* at = elements.c_str();
    for (char* end; *at != '\0'; at = end) {
      values.push_back(std::strtod(at, &end));
      if (end == at) throw std::runtime_error(name_ + ": expected numbers, found " + at);
    }
    const baton::Shape shape{std::span<const std::int64_t>(extents)};
    if (shape.elements() != static_cast<std::int64_t>(values.size()))
      throw std::runtime_error(name_ + ": expected " + head + ", found other elements");
    tensors_[tensor] = {shape, std::move(values)};
  }

  std::string name_;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace support
