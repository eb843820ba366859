#include "transformer/state/gpt2_weights.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/temporary_folder.hpp"
#include "transformer/golden.hpp"
#include "transformer/language_cases.hpp"
#include "transformer/training/data_parallel.hpp"
#include "transformer/worlds.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

void refused(const std::function<void()>& call, const std::vector<std::string>& parts) {
  const Error error = error_of(call);
  CHECK(error.code == ErrorCode::invalid_argument);
  CHECK_MESSAGE(holds(error.what(), parts), std::string(error.what()));
}

std::string content_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

Gpt2Config config() {
  return {.vocabulary = 24, .context = 12, .layers = 2, .heads = 12, .d_model = 24, .dropout = 0};
}

/// The tensors of a file under way.
struct Tensors {
  std::vector<FileTensor> tensors;
  std::vector<Array<double>> values;
  void add(const std::string& name, const Array<double>& value) {
    tensors.push_back({name, Datatype::f64, value.shape()});
    values.push_back(value);
  }
  void write(const std::string& file, const Metadata& metadata = {}) const {
    SafetensorsWriter writer(file, tensors, metadata);
    for (std::size_t t = 0; t < values.size(); ++t)
      writer.write({values[t].data(), tensors[t].type, tensors[t].shape});
    writer.commit();
  }
};

/// [out, in] as [in, out].
Array<double> turned(const Array<double>& x) {
  return Array<double>::copy_of(x.view().transposed(0, 1));
}
/// Tensors side by side along the last dimension, q, k and v for example.
Array<double> beside(const std::vector<Array<double>>& parts) {
  const std::int64_t width = parts[0].extent(-1);
  Array<double> all(parts[0].shape().with(parts[0].shape().rank() - 1, 3 * width));
  for (std::int64_t p = 0; p < 3; ++p)
    assign<double>(parts[std::size_t(p)], all.view().slice(-1, p * width, (p + 1) * width));
  return all;
}

/// PyTorch's GPT-2 of golden/ by Hugging Face's names and layouts, which the head comment of
/// gpt2_weights.hpp has.
Tensors golden_weights(const Golden& golden, const std::string& prefix) {
  Tensors file;
  const auto add = [&](const std::string& name, const Array<double>& value) {
    file.add(prefix + name, value);
  };
  for (int layer = 0; layer < static_cast<int>(golden.number("layers")); ++layer) {
    const std::string from = fmt::format("blocks.{}.", layer), to = fmt::format("h.{}.", layer);
    const auto of = [&](const char* name) { return golden(from + name); };
    const auto linear = [&](const std::string& name, const std::string& source) {
      add(to + name + ".weight", turned(golden(from + source + ".weight")));
      add(to + name + ".bias", golden(from + source + ".bias"));
    };
    add(to + "ln_1.weight", of("norm1.weight"));
    add(to + "ln_1.bias", of("norm1.bias"));
    add(to + "attn.bias", Array<double>({1, 1, 8, 8}));
    add(to + "attn.c_attn.weight", beside({turned(of("q_proj.weight")), turned(of("k_proj.weight")),
                                           turned(of("v_proj.weight"))}));
    add(to + "attn.c_attn.bias", beside({of("q_proj.bias"), of("k_proj.bias"), of("v_proj.bias")}));
    linear("attn.c_proj", "o_proj");
    add(to + "ln_2.weight", of("norm2.weight"));
    add(to + "ln_2.bias", of("norm2.bias"));
    linear("mlp.c_fc", "fc1");
    linear("mlp.c_proj", "fc2");
  }
  add("ln_f.weight", golden("norm.weight"));
  add("ln_f.bias", golden("norm.bias"));
  add("wte.weight", golden("embedding.weight"));
  add("wpe.weight", golden("positions.weight"));
  return file;
}

}  // namespace

TEST_CASE("weights of PyTorch's GPT-2 by Hugging Face's names give its logits") {
  const Golden golden("gpt2");
  const TemporaryFolder folder;
  const std::string plain = folder / "plain", prefixed = folder / "prefixed";
  golden_weights(golden, "").write(plain, {{"heads", "4"}});
  Tensors headed = golden_weights(golden, "transformer.");
  headed.add("lm_head.weight", golden("embedding.weight"));
  headed.write(prefixed, {{"heads", "4"}, {"format", "pt"}});
  const Array<double> tokens = golden("ids");
  std::vector<std::int32_t> ids;
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t s = 0; s < 8; ++s)
      ids.push_back(static_cast<std::int32_t>(tokens.view()(b, s)));
  for (const int ranks : {1, 2, 4}) {
    on_ranks(ranks, [&](Communicator& world) {
      const Mesh mesh(world, {{Axis::tp, ranks}});
      for (const std::string& file : {plain, prefixed}) {
        Gpt2Config config = read_gpt2_config(file, mesh);
        CHECK(config.vocabulary == 24);
        CHECK(config.context == 8);
        CHECK(config.layers == 2);
        CHECK(config.heads == 4);
        CHECK(config.d_model == 16);
        Gpt2<double> model(config, {1}, mesh);
        load_gpt2(model, file);
        CHECK(equal(model.logits({ids.data(), {2, 8}}), golden("logits")));
      }
    });
  }
}

TEST_CASE_TEMPLATE(
    "a model on any mesh writes one file, which models on all meshes read, bit by bit", T, float,
    double, bf16) {
  const TemporaryFolder folder;
  const std::string first = folder / "first";
  const Mesh alone;
  Gpt2<T> whole(config(), {3}, alone);
  save_gpt2(whole, first);
  const std::string expected = content_of(first);
  CHECK(SafetensorsFile(first).tensors().size() == 4 + 2 * 12);
  for (const int ranks : {1, 2, 3, 4}) {
    on_ranks(ranks, [&](Communicator& world) {
      for (const Cut& cut : cuts_of(ranks)) {
        CAPTURE(cut.text());
        const Mesh mesh = cut.mesh(world);
        const std::string written = folder / "written";
        const auto is_first = [&] {  // on the rank that writes
          return world.rank() > 0 || content_of(written) == expected;
        };
        Gpt2<T> same(config(), {3}, mesh, cut.sequence_parallel);
        save_gpt2(same, written);
        CHECK(is_first());
        Gpt2<T> other(config(), {4}, mesh, cut.sequence_parallel);
        save_gpt2(other, written);
        if (world.rank() == 0) CHECK_FALSE(is_first());
        load_gpt2(other, first);
        save_gpt2(other, written);
        CHECK(is_first());
        const Params<T> params = other.params(), wanted = same.params();
        for (std::size_t p = 0; p < params.size(); ++p)
          CHECK(equal(params[p]->value, wanted[p]->value, 0));
      }
    });
  }
}

TEST_CASE("a model that is divided at any stage is written while its values are there") {
  const TemporaryFolder folder;
  const std::string first = folder / "first", written = folder / "written";
  const Mesh alone;
  Gpt2<float> whole(config(), {3}, alone);
  save_gpt2(whole, first);
  on_ranks(3, [&](Communicator& world) {
    const Mesh mesh(world, {{Axis::dp, 3}});
    for (const auto stage :
         {ShardingStage::optimizer, ShardingStage::gradients, ShardingStage::parameters}) {
      Gpt2<float> model(config(), {4}, mesh);
      load_gpt2(model, first);
      FullyShardedDataParallel<float> replicas(model, mesh, stage);
      if (stage == ShardingStage::parameters) {
        refused([&] { save_gpt2(model, written); },
                {"weights: expected all values of embedding, found them divided among ranks"});
      }
      replicas.with_values([&] { save_gpt2(model, written); });
      CHECK(content_of(written) == content_of(first));
      world.barrier();
    }
  });
}

TEST_CASE("weights of another type are read as the nearest") {
  const TemporaryFolder folder;
  const std::string wide = folder / "wide", short_one = folder / "short";
  const Mesh alone;
  Gpt2<double> from(config(), {3}, alone);
  save_gpt2(from, wide);
  Gpt2<bf16> to(config(), {4}, alone);
  load_gpt2(to, wide);
  for (std::size_t p = 0; p < to.params().size(); ++p)
    for (std::int64_t i = 0; i < to.params()[p]->value.size(); ++i)
      REQUIRE(to.params()[p]->value.data()[i] ==
              to_bf16(static_cast<float>(from.params()[p]->value.data()[i])));
  save_gpt2(to, short_one);
  load_gpt2(from, short_one);
  CHECK(from.params()[0]->value.data()[0] == to_float(to.params()[0]->value.data()[0]));
}

TEST_CASE("a file that is not the model's is refused on all ranks, and nothing changes") {
  const TemporaryFolder folder;
  const Golden golden("gpt2");
  const std::string file = folder / "model";
  for (const int ranks : {1, 2}) {
    on_ranks(ranks, [&](Communicator& world) {
      const Mesh mesh(world, {{Axis::tp, ranks}});
      const Gpt2Config config{24, 8, 2, 4, 16, 0};
      Gpt2<double> model(config, {1}, mesh);
      std::vector<Array<double>> before;
      for (const Param<double>* param : model.params()) before.push_back(param->value.copy());
      const auto wrong = [&](const std::function<void(Tensors&)>& change,
                             const std::vector<std::string>& parts, const Metadata& metadata = {}) {
        world.barrier();
        if (world.rank() == 0) {
          Tensors tensors = golden_weights(golden, "");
          change(tensors);
          tensors.write(file, metadata);
        }
        world.barrier();
        refused([&] { load_gpt2(model, file); }, parts);
      };
      const auto find = [](Tensors& tensors, const std::string& name) {
        const auto is = [&](const FileTensor& tensor) { return tensor.name == name; };
        return std::size_t(std::find_if(tensors.tensors.begin(), tensors.tensors.end(), is) -
                           tensors.tensors.begin());
      };
      wrong(
          [&](Tensors& tensors) {
            tensors.tensors[find(tensors, "h.1.ln_2.weight")].name = "h.1.ln_3.weight";
          },
          {file, "expected a tensor \"h.1.ln_2.weight\", found none"});
      wrong([&](Tensors& tensors) { tensors.add("h.2.ln_1.weight", Array<double>({16})); },
            {file, "expected 28 tensors of the model, found also \"h.2.ln_1.weight\""});
      wrong(
          [&](Tensors& tensors) {
            const std::size_t at = find(tensors, "h.0.attn.c_attn.weight");
            tensors.values[at] = turned(tensors.values[at]);
            tensors.tensors[at].shape = {48, 16};
          },
          {file, "tensor \"h.0.attn.c_attn.weight\": expected shape [16, 48], found [48, 16]"});
      wrong(
          [&](Tensors& tensors) {
            tensors.add("lm_head.weight", Array<double>({24, 16}));
          },
          {file, "\"lm_head.weight\": expected the elements of \"wte.weight\", found others"});
      wrong(
          [&](Tensors& tensors) {
            tensors.tensors[find(tensors, "ln_f.bias")].type = Datatype::i64;
          },
          {file, "\"ln_f.bias\": expected elements of f16, bf16, f32 or f64, found i64"});
      wrong([](Tensors&) {}, {file, "__metadata__: heads: expected 4, found 8"}, {{"heads", "8"}});
      wrong([](Tensors&) {}, {file, "heads: expected a number"}, {{"heads", "many"}});
      world.barrier();
      if (world.rank() == 0) {
        golden_weights(golden, "").write(file);
        refused([&] { read_gpt2_config(file); },
                {file, "d_model: expected a multiple of 64 (elements of a head), found 16"});
        std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
      }
      world.barrier();
      refused([&] { load_gpt2(model, file); }, {file, "within the", "bytes of elements"});
      refused([&] { read_gpt2_config(file, mesh); }, {file, "within the", "bytes of elements"});
      refused([&] { load_gpt2(model, folder / "none"); }, {"none: expected a file to read"});
      refused([&] { save_gpt2(model, folder / "no/folder"); },
              {"no/folder: expected a file to write, found No such file"});
      const Params<double> params = model.params();
      for (std::size_t p = 0; p < params.size(); ++p) CHECK(equal(params[p]->value, before[p], 0));
    });
  }
}
