#include "checkpoint.hpp"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <type_traits>

#include "../instantiation.hpp"
#include "baton/error.hpp"
#include "whole.hpp"

namespace baton::transformer {
namespace {

using state::Held;
using state::WholeParam;

constexpr std::string_view format = "baton checkpoint 1";
constexpr std::string_view note = "note.";

/// The tensors of a checkpoint, of all stages of a model, and this rank's parts of them.
template <class T>
class Tensors {
 public:
  template <class E>
  struct Entry {
    FileTensor file;
    WholeParam param;
    std::vector<Held<E>> held;
  };

  /// Collective. Throws on all ranks.
  Tensors(Model<T>& model, DataParallel<T>& replicas, Optimizer<T>& optimizer, const Mesh& mesh)
      : mesh_(mesh) {
    // Two stages of a rank may share a parameter.
    std::map<std::pair<std::string, bool>, Param<T>*> stepped;
    for (Param<T>* param : replicas.params()) stepped[{param->name, param->copy}] = param;
    const std::vector<Kept<T>> kept = optimizer.kept();
    std::map<std::string, std::vector<Own>> own;
    for (const Param<T>* param : model.params()) {
      const auto found = stepped.find({param->name, param->copy});
      own[whole_name(*param)].push_back({param, found == stepped.end() ? nullptr : found->second});
    }
    const std::vector<WholeParam> params = state::whole_params(model.params(), mesh);
    state::on_every_rank(mesh, [&] {
      for (const auto& [name, parts] : own)
        for (const Own& part : parts)
          for (const Kept<T>& some : kept)
            if (part.stepped && !some.of.contains(part.stepped))
              refuse("an optimizer of the model's parameters", "none of " + name);
    });
    for (const WholeParam& param : params) {
      const std::vector<Own>& parts = own[param.name];
      add(values_, "parameters." + param.name, param, parts,
          [](Param<T>* stepped) { return stepped->value; });
      for (const Kept<T>& some : kept) {
        add(kept_, fmt::format("optimizer.{}.{}", some.name, param.name), param, parts,
            [&](Param<T>* stepped) { return some.of.at(stepped); });
      }
    }
  }

  /// The widest first, so that all are aligned.
  std::vector<FileTensor> files() const {
    std::vector<FileTensor> files;
    for (const auto& entry : kept_) files.push_back(entry.file);
    for (const auto& entry : values_) files.push_back(entry.file);
    return files;
  }
  void write(state::WholeWriter& writer) const {
    const auto write_one = [&](const auto& entry) {
      writer.write(state::gather_whole(entry.held, entry.param, mesh_));
    };
    for (const auto& entry : kept_) write_one(entry);
    for (const auto& entry : values_) write_one(entry);
  }
  /// `file` is the first rank's alone.
  void read(const std::optional<SafetensorsFile>& file) const {
    const auto read_one = [&]<class E>(const Entry<E>& entry) {
      const auto from_file = [&] { return file->read<E>(*file->find(entry.file.name)); };
      state::take_part(state::from_first_rank<E>(mesh_, entry.file.shape, from_file), entry.held,
                       mesh_);
    };
    for (const auto& entry : kept_) read_one(entry);
    for (const auto& entry : values_) read_one(entry);
  }
  /// Throws unless a file has these tensors and no others.
  void check(const SafetensorsFile& file) const {
    std::set<std::string> known;
    for (const FileTensor& tensor : files()) {
      const FileTensor& found = file.expect<T>(tensor.name, tensor.shape);
      if (found.type != tensor.type)
        refuse(fmt::format("{} of {}", tensor.name, name(tensor.type)),
               std::string(name(found.type)), &file);
      known.insert(tensor.name);
    }
    for (const FileTensor& tensor : file.tensors())
      if (!known.contains(tensor.name))
        refuse(fmt::format("{} tensors of model and optimizer", known.size()),
               "also " + tensor.name, &file);
  }

 private:
  /// A parameter of the model on this rank, and its elements that the optimizer steps here; null if
  /// there are none.
  struct Own {
    const Param<T>* param;
    Param<T>* stepped;
  };
  template <class E, class ElementsOf>
  static void add(std::vector<Entry<E>>& entries, const std::string& name, const WholeParam& param,
                  const std::vector<Own>& parts, const ElementsOf& elements_of) {
    Entry<E>& entry = entries.emplace_back();
    entry.file.name = name;
    entry.file.type = datatype_of<E>;
    entry.file.shape = param.shape;
    entry.param = param;
    for (const Own& part : parts) {
      const Param<T>& whole = *part.param;
      entry.held.push_back({part.stepped ? elements_of(part.stepped) : Array<E>::uninitialized({0}),
                            whole.value.shape(), whole.placement,
                            part.stepped ? part.stepped->sharded : whole.partial});
    }
  }
  [[noreturn]] static void refuse(const std::string& expected, const std::string& found,
                                  const SafetensorsFile* file = nullptr) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected {}, found {}",
                            file ? file->name().string() : "checkpoint", expected, found));
  }

  const Mesh& mesh_;
  std::vector<Entry<Wide<T>>> kept_;
  std::vector<Entry<T>> values_;
};

/// The numbers of a checkpoint: position, and the optimizer's.
struct Numbers {
  TrainingPosition position;
  std::int64_t steps = 0;
  double learning_rate = 0;
};

/// Calls visit(name, number) for each number.
template <class N, class Visit>
void visit_numbers(N& numbers, const Visit& visit) {
  visit("step", numbers.position.step);
  visit("random.seed", numbers.position.random.seed);
  visit("random.stream", numbers.position.random.stream);
  visit("optimizer.steps", numbers.steps);
  visit("optimizer.learning_rate", numbers.learning_rate);
  if (!numbers.position.rate) return;
  visit("rate.peak", numbers.position.rate->peak);
  visit("rate.least", numbers.position.rate->least);
  visit("rate.warmup", numbers.position.rate->warmup);
  visit("rate.steps", numbers.position.rate->steps);
}

Metadata metadata_of(const Numbers& numbers, std::string_view type, std::string_view optimizer) {
  Metadata metadata{{"format", std::string(format)},
                    {"type", std::string(type)},
                    {"optimizer", std::string(optimizer)}};
  visit_numbers(numbers, [&](const char* name, auto number) {
    metadata[name] = fmt::format("{}", number);  // that reads back to the same bits
  });
  for (const auto& [name, text] : numbers.position.notes) metadata[std::string(note) + name] = text;
  return metadata;
}

/// Far more than anybody makes; computing with them cannot overflow.
constexpr std::int64_t most_steps = 1'000'000'000'000'000;

/// Throws unless the file is a checkpoint of this type and optimizer, and has all numbers.
Numbers numbers_of(const std::string& file, const Metadata& metadata, std::string_view type,
                   std::string_view optimizer) {
  const auto refuse = [&](std::string_view name, std::string_view expected,
                          const std::string* found) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: __metadata__: {}: expected {}, found {}", file, name, expected,
                            found ? nlohmann::json(*found).dump(-1, ' ', true) : "none"));
  };
  const auto find = [&](std::string_view name) {
    const auto found = metadata.find(name);
    return found == metadata.end() ? nullptr : &found->second;
  };
  const auto expect = [&](std::string_view name, std::string_view expected) {
    const std::string* const found = find(name);
    if (!found || *found != expected) refuse(name, expected, found);
  };
  expect("format", format);
  expect("type", type);
  expect("optimizer", optimizer);
  Numbers numbers;
  if (find("rate.peak")) numbers.position.rate.emplace();
  visit_numbers(numbers, [&](const char* name, auto& number) {
    const std::string* const text = find(name);
    if (!text) return refuse(name, "a number", text);
    const char* const end = text->data() + text->size();
    const auto [at, error] = std::from_chars(text->data(), end, number);
    if (error != std::errc() || at != end) refuse(name, "a number", text);
    if constexpr (std::is_same_v<decltype(+number), double>) {
      if (!std::isfinite(number)) refuse(name, "a finite number", text);
    } else if constexpr (std::is_signed_v<decltype(+number)>) {
      if (number < 0 || number > most_steps)
        refuse(name, fmt::format("a number from 0 to {}", most_steps), text);
    }
  });
  if (const auto& rate = numbers.position.rate; rate && rate->warmup > rate->steps)
    refuse("rate.warmup", fmt::format("a number from 0 to {}", rate->steps), find("rate.warmup"));
  for (const auto& [name, text] : metadata)
    if (name.starts_with(note)) numbers.position.notes[name.substr(note.size())] = text;
  return numbers;
}

}  // namespace

template <class T>
void save_checkpoint(const std::filesystem::path& file, Model<T>& model, DataParallel<T>& replicas,
                     Optimizer<T>& optimizer, const Mesh& mesh, const TrainingPosition& position) {
  const Tensors<T> tensors(model, replicas, optimizer, mesh);
  const Numbers numbers{position, optimizer.steps(), optimizer.learning_rate()};
  state::WholeWriter writer(file, tensors.files(),
                            metadata_of(numbers, name(datatype_of<T>), optimizer.name()), mesh);
  tensors.write(writer);
  writer.commit();
}

template <class T>
TrainingPosition load_checkpoint(const std::filesystem::path& file, Model<T>& model,
                                 DataParallel<T>& replicas, Optimizer<T>& optimizer,
                                 const Mesh& mesh) {
  const Tensors<T> tensors(model, replicas, optimizer, mesh);
  const auto parsed = [&](const Metadata& metadata) {
    return numbers_of(file.string(), metadata, name(datatype_of<T>), optimizer.name());
  };
  std::optional<SafetensorsFile> opened;  // by the first rank
  const std::string metadata = state::from_first_rank(mesh, [&] {
    opened.emplace(file);
    parsed(opened->metadata());
    tensors.check(*opened);
    return nlohmann::json(opened->metadata()).dump();
  });
  const Numbers numbers = parsed(nlohmann::json::parse(metadata).get<Metadata>());
  tensors.read(opened);
  optimizer.set_steps(numbers.steps);
  optimizer.set_learning_rate(numbers.learning_rate);
  replicas.finish_step();
  return numbers.position;
}

#define BATON_INSTANTIATE(T)                                                                      \
  template BATON_INSTANTIATION void save_checkpoint(const std::filesystem::path&, Model<T>&,      \
                                                    DataParallel<T>&, Optimizer<T>&, const Mesh&, \
                                                    const TrainingPosition&);                     \
  template BATON_INSTANTIATION TrainingPosition load_checkpoint(                                  \
      const std::filesystem::path&, Model<T>&, DataParallel<T>&, Optimizer<T>&, const Mesh&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
