#pragma once
/// Weights of GPT-2 by the names and in the layouts of Hugging Face's GPT2Model: wte.weight,
/// wpe.weight, h.N.ln_1, h.N.attn.c_attn, h.N.attn.c_proj, h.N.ln_2, h.N.mlp.c_fc, h.N.mlp.c_proj,
/// ln_f, each with weight and bias. Weights of linear layers are [in, out] there; c_attn has q, k
/// and v side by side.

#include <filesystem>

#include "../models/gpt2.hpp"
#include "weights.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// The format of a GPT-2 of so many layers. A file that is read may have "transformer." before its
/// names, lm_head.weight if its elements are those of wte.weight, and the masks of attention that
/// older files have.
WeightsFormat gpt2_format(std::int64_t layers);

/// save_weights() of a model. The string "heads" beside the tensors is their number, which shapes
/// do not tell; "format" is "pt", as transformers expects it.
template <class T>
void save_gpt2(Gpt2<T>& model, const std::filesystem::path& file);

/// The same of a model of this `config`, of which this rank has `params`: of a pipeline those of
/// its stages.
template <class T>
void save_gpt2(const Params<T>& params, const Gpt2Config& config, const std::filesystem::path& file,
               const Mesh& mesh);

/// load_weights() of a model. Throws likewise if the file's string "heads" is another number than
/// the model's.
template <class T>
void load_gpt2(Gpt2<T>& model, const std::filesystem::path& file);

/// The same of a model of this `config`, of which this rank has `params`.
template <class T>
void load_gpt2(const Params<T>& params, const Gpt2Config& config, const std::filesystem::path& file,
               const Mesh& mesh);

/// The sizes of a file's model, by the shapes of its tensors; dropout and other settings are those
/// of Gpt2Config. Without the string "heads", a head has 64 elements, as in all sizes that were
/// published. The first rank of the mesh reads; collective. Throws Error(invalid_argument) on all
/// ranks that names the file if it is torn, or is not of a GPT-2.
Gpt2Config read_gpt2_config(const std::filesystem::path& file, const Mesh& mesh = {});

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
