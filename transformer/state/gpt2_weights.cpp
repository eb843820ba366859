#include "gpt2_weights.hpp"

#include <fmt/core.h>

#include <charconv>
#include <cstring>
#include <optional>

#include "../instantiation.hpp"
#include "../shape_guard.hpp"
#include "baton/error.hpp"
#include "whole.hpp"

namespace baton::transformer {
namespace {

constexpr const char* prefix = "transformer.";
constexpr const char* heads_key = "heads";

/// The number of heads that a file says; none if it does not.
std::optional<std::int64_t> heads_of(const SafetensorsFile& file) {
  const auto found = file.metadata().find(heads_key);
  if (found == file.metadata().end()) return {};
  const std::string& text = found->second;
  std::int64_t heads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), heads);
  if (error == std::errc() && end == text.data() + text.size() && heads > 0) return heads;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("{}: __metadata__: heads: expected a number of at least 1, found {} bytes "
                  "of other text",
                  file.name().string(), text.size()));
}

Gpt2Config config_of(const SafetensorsFile& file) {
  const std::string before = file.find(std::string(prefix) + "wte.weight") ? prefix : "";
  const Shape& table = file.expect<float>(before + "wte.weight", {any, any}).shape;
  const Shape& positions = file.expect<float>(before + "wpe.weight", {any, table[1]}).shape;
  Gpt2Config config{.vocabulary = table[0], .context = positions[0], .layers = 0};
  config.d_model = table[1];
  file.expect<float>(before + "h.0.ln_1.weight", {config.d_model});
  while (file.find(fmt::format("{}h.{}.ln_1.weight", before, config.layers))) ++config.layers;
  constexpr std::int64_t published = 64;
  const std::string what = file.name().string() + ": d_model";
  if (const std::optional<std::int64_t> heads = heads_of(file)) {
    expect_multiple(what, config.d_model, *heads, "heads");
    config.heads = *heads;
  } else {
    expect_multiple(what, config.d_model, published, "elements of a head");
    config.heads = config.d_model / published;
  }
  return config;
}

}  // namespace

WeightsFormat gpt2_format(std::int64_t layers) {
  WeightsFormat format;
  format.prefix = prefix;
  format.copies = {{"lm_head.weight", "wte.weight"}};
  const auto add = [&](std::string name, std::vector<std::string> params, bool transposed = false) {
    format.tensors.push_back({std::move(name), std::move(params), transposed});
  };
  add("wte.weight", {"embedding"});
  add("wpe.weight", {"positions"});
  for (std::int64_t l = 0; l < layers; ++l) {
    const std::string layer = fmt::format("h.{}.", l), block = fmt::format("block{}.", l);
    const auto norm = [&](const char* name, const char* param) {
      add(layer + name + ".weight", {block + param + "_weight"});
      add(layer + name + ".bias", {block + param + "_bias"});
    };
    const auto linear = [&](const char* name, const std::vector<std::string>& params) {
      std::vector<std::string> weights, biases;
      for (const std::string& param : params) {
        weights.push_back(block + param);
        biases.push_back(block + param + "_bias");
      }
      add(layer + name + ".weight", weights, true);
      add(layer + name + ".bias", biases);
    };
    norm("ln_1", "norm1");
    linear("attn.c_attn", {"q_proj", "k_proj", "v_proj"});
    linear("attn.c_proj", {"o_proj"});
    norm("ln_2", "norm2");
    linear("mlp.c_fc", {"fc1"});
    linear("mlp.c_proj", {"fc2"});
    for (const char* mask : {"attn.bias", "attn.masked_bias"})
      format.ignored.push_back(layer + mask);
  }
  add("ln_f.weight", {"norm_weight"});
  add("ln_f.bias", {"norm_bias"});
  return format;
}

template <class T>
void save_gpt2(const Params<T>& params, const Gpt2Config& config, const std::filesystem::path& file,
               const Mesh& mesh) {
  save_weights(params, gpt2_format(config.layers), file, mesh,
               {{"format", "pt"}, {heads_key, std::to_string(config.heads)}});
}

template <class T>
void save_gpt2(Gpt2<T>& model, const std::filesystem::path& file) {
  save_gpt2(model.params(), model.config(), file, model.mesh());
}

template <class T>
void load_gpt2(const Params<T>& params, const Gpt2Config& config, const std::filesystem::path& file,
               const Mesh& mesh) {
  state::on_first_rank(mesh, [&] {
    const std::int64_t heads = heads_of(SafetensorsFile(file)).value_or(config.heads);
    if (heads == config.heads) return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: __metadata__: heads: expected {}, found {}", file.string(),
                            config.heads, heads));
  });
  load_weights(params, gpt2_format(config.layers), file, mesh);
}

template <class T>
void load_gpt2(Gpt2<T>& model, const std::filesystem::path& file) {
  load_gpt2(model.params(), model.config(), file, model.mesh());
}

Gpt2Config read_gpt2_config(const std::filesystem::path& file, const Mesh& mesh) {
  static_assert(std::is_trivially_copyable_v<Gpt2Config>);
  Gpt2Config config;
  const std::string bytes = state::from_first_rank(mesh, [&] {
    config = config_of(SafetensorsFile(file));
    return std::string(reinterpret_cast<const char*>(&config), sizeof config);
  });
  std::memcpy(&config, bytes.data(), sizeof config);
  return config;
}

#define BATON_INSTANTIATE(T)                                                              \
  template BATON_INSTANTIATION void save_gpt2(const Params<T>&, const Gpt2Config&,        \
                                              const std::filesystem::path&, const Mesh&); \
  template BATON_INSTANTIATION void load_gpt2(const Params<T>&, const Gpt2Config&,        \
                                              const std::filesystem::path&, const Mesh&); \
  template BATON_INSTANTIATION void save_gpt2(Gpt2<T>&, const std::filesystem::path&);    \
  template BATON_INSTANTIATION void load_gpt2(Gpt2<T>&, const std::filesystem::path&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
