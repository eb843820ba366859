#include "replace_to_tp.hpp"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "../instantiation.hpp"
#include "../linear_layers.hpp"
#include "baton/error.hpp"

namespace baton::transformer {
namespace {

template <class T>
using Layers = std::vector<typename Sequential<T>::Layer>;

template <class T>
void expect_linear_layers(const Layers<T>& layers, const std::map<std::string, Cut>& cuts) {
  std::string names;
  for (const auto& layer : layers) {
    if (!dynamic_cast<const Linear<T>*>(layer.module.get())) continue;
    names += (names.empty() ? "" : ", ") + layer.name;
  }
  for (const auto& [name, cut] : cuts) {
    bool found = false;
    for (const auto& layer : layers)
      found |= layer.name == name && dynamic_cast<const Linear<T>*>(layer.module.get());
    if (found) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("replace_to_tp: expected names of linear layers ({}), found \"{}\"",
                            names.empty() ? "there are none" : names, name));
  }
}

/// Whether what layer `at` gives goes to a row-parallel layer through activation functions only.
template <class T>
bool feeds_row(const Layers<T>& layers, std::size_t at, const std::map<std::string, Cut>& cuts) {
  for (std::size_t next = at + 1; next < layers.size(); ++next) {
    if (dynamic_cast<const Activate<T>*>(layers[next].module.get())) continue;
    const auto found = cuts.find(layers[next].name);
    return found != cuts.end() && found->second == Cut::row;
  }
  return false;
}

}  // namespace

template <class T>
void replace_to_tp(Sequential<T>& model, const std::map<std::string, Cut>& cuts, const Mesh& mesh) {
  Layers<T>& layers = model.layers();
  expect_linear_layers<T>(layers, cuts);
  std::vector<std::pair<std::size_t, std::unique_ptr<Module<T>>>> made;
  bool is_cut = false;  // what the next layer takes
  for (std::size_t at = 0; at < layers.size(); ++at) {
    const auto found = cuts.find(layers[at].name);
    if (found == cuts.end()) continue;
    const auto& whole = static_cast<const Linear<T>&>(*layers[at].module);
    if (found->second == Cut::column) {
      is_cut = feeds_row<T>(layers, at, cuts);
      made.emplace_back(at, std::make_unique<ColumnParallelLinear<T>>(whole, mesh, !is_cut));
    } else {
      made.emplace_back(at, std::make_unique<RowParallelLinear<T>>(whole, mesh, is_cut));
      is_cut = false;
    }
  }
  for (auto& [at, module] : made) layers[at].module = std::move(module);
}

#define BATON_INSTANTIATE(T)                                      \
  template BATON_INSTANTIATION void replace_to_tp(Sequential<T>&, \
                                                  const std::map<std::string, Cut>&, const Mesh&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
