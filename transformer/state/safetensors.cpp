#include "safetensors.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "../accelerator.hpp"
#include "../data/file.hpp"
#include "../instantiation.hpp"
#include "../shape_guard.hpp"
#include "baton/error.hpp"
#include "baton/output_file.hpp"

namespace baton::transformer {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are written as they lie");

using Json = nlohmann::json;

constexpr std::int64_t length_bytes = 8;
constexpr std::string_view metadata_key = "__metadata__";
// An array within a tensor's description lies within two. What prints a value is recursive.
constexpr int most_depth = 8;

struct TypeName {
  std::string_view name;
  Datatype type;
};
// The first name of a type is the one that is written.
constexpr TypeName type_names[] = {
    {"F64", Datatype::f64},        {"F32", Datatype::f32}, {"BF16", Datatype::bf16},
    {"F16", Datatype::f16},        {"I64", Datatype::i64}, {"U64", Datatype::u64},
    {"I32", Datatype::i32},        {"U32", Datatype::u32}, {"I8", Datatype::i8},
    {"U8", Datatype::u8},          {"BOOL", Datatype::u8}, {"F8_E4M3", Datatype::f8e4m3},
    {"F8_E5M2", Datatype::f8e5m2},
};

std::string all_type_names() {
  std::string all;
  for (const TypeName& row : type_names) {
    const bool last = &row == std::end(type_names) - 1;
    all += fmt::format("{}{}", all.empty() ? "" : last ? " or " : ", ", row.name);
  }
  return all;
}

/// A value in a sentence: one line, not too long, of any bytes.
std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  constexpr std::size_t most = 80;
  if (text.size() > most) text = text.substr(0, most) + "…";
  return text;
}

[[noreturn]] void refuse(const std::filesystem::path& file, std::string_view what,
                         std::string_view expected, std::string_view found) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: {}: expected {}, found {}", file.string(), what, expected, found));
}

/// What a file has beside its elements.
struct Header {
  std::vector<FileTensor> tensors;  // in the order of their elements
  Metadata metadata;
};

/// Reads and checks headers.
class HeaderReader {
 public:
  explicit HeaderReader(const data::InputFile& input) : input_(input), file_(input.name()) {}

  Header read() {
    const Json json = parsed(text());
    if (!json.is_object()) refuse(file_, "header", "an object", shown(json));
    Header header;
    for (const auto& [name, value] : json.items()) {
      if (name == metadata_key) {
        header.metadata = metadata(value);
      } else {
        header.tensors.push_back(tensor(name, value));
      }
    }
    std::stable_sort(header.tensors.begin(), header.tensors.end(),
                     [](const FileTensor& a, const FileTensor& b) {
                       return std::pair(a.first, a.bytes()) < std::pair(b.first, b.bytes());
                     });
    check_gaps(header.tensors);
    return header;
  }

 private:
  std::string text() {
    if (input_.size() < length_bytes) {
      data::refuse(file_, input_.size(), "8 bytes with the length of a header",
                   fmt::format("the end after {} bytes", input_.size()));
    }
    std::uint64_t length = 0;
    input_.read(0, &length, length_bytes);
    const auto rest = static_cast<std::uint64_t>(input_.size() - length_bytes);
    if (length > rest) {
      data::refuse(
          file_, 0,
          fmt::format("a length of at most {}, the rest of the file, for the header", rest),
          std::to_string(length));
    }
    elements_ = length_bytes + static_cast<std::int64_t>(length);
    std::string text(length, '\0');
    input_.read(length_bytes, text.data(), text.size());
    return text;
  }

  Json parsed(const std::string& text) const {
    std::vector<std::set<std::string>> open;  // keys of the objects that are under way
    const auto check = [&](int depth, Json::parse_event_t event, Json& value) {
      if (depth > most_depth)
        refuse(file_, "header", fmt::format("values within at most {} others", most_depth), "more");
      if (event == Json::parse_event_t::object_start) open.emplace_back();
      if (event == Json::parse_event_t::object_end) open.pop_back();
      if (event == Json::parse_event_t::key && !open.back().insert(value).second)
        refuse(file_, "header", "each name once", shown(value) + " twice");
      return true;
    };
    try {
      return Json::parse(text, check);
    } catch (const nlohmann::json::parse_error& error) {
      const std::size_t at = std::clamp<std::size_t>(error.byte, 1, text.size() + 1) - 1;
      data::refuse(file_, length_bytes + static_cast<std::int64_t>(at), "JSON",
                   at < text.size() ? shown(text.substr(at, 1)) : "the end of the header");
    } catch (const nlohmann::json::exception&) {
      data::refuse(file_, length_bytes, "JSON", "a number that no double holds");
    }
  }

  Metadata metadata(const Json& value) const {
    if (!value.is_object()) refuse(file_, metadata_key, "an object of strings", shown(value));
    Metadata metadata;
    for (const auto& [name, text] : value.items()) {
      if (!text.is_string())
        refuse(file_, fmt::format("{}: {}", metadata_key, shown(name)), "a string", shown(text));
      metadata[name] = text.get<std::string>();
    }
    return metadata;
  }

  FileTensor tensor(const std::string& name, const Json& value) const {
    const std::string what = fmt::format("tensor {}", shown(name));
    const bool whole = value.is_object() && value.size() == 3 && value.contains("dtype") &&
                       value.contains("shape") && value.contains("data_offsets");
    if (!whole) refuse(file_, what, "dtype, shape and data_offsets", shown(value));
    FileTensor tensor;
    tensor.name = name;
    const Json& dtype = value["dtype"];
    const auto is = [&](const TypeName& row) {
      return dtype.is_string() && row.name == dtype.get_ref<const std::string&>();
    };
    const auto type = std::find_if(std::begin(type_names), std::end(type_names), is);
    if (type == std::end(type_names))
      refuse(file_, what + ": dtype", all_type_names(), shown(dtype));
    tensor.type = type->type;

    const std::vector<std::int64_t> extents = numbers(value["shape"]);
    std::int64_t bytes = static_cast<std::int64_t>(size_of(tensor.type));
    bool fits = value["shape"].size() == extents.size() && extents.size() <= Shape::max_rank;
    for (const std::int64_t extent : extents)
      fits = fits && !__builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes);
    if (!fits) {
      refuse(file_, what + ": shape",
             fmt::format("at most {} extents, and less than 2^63 bytes", int(Shape::max_rank)),
             shown(value["shape"]));
    }
    tensor.shape = Shape(std::span(extents));

    const std::vector<std::int64_t> offsets = numbers(value["data_offsets"]);
    const std::int64_t rest = input_.size() - elements_;
    if (value["data_offsets"].size() != 2 || offsets.size() != 2 || offsets[1] < offsets[0] ||
        offsets[1] > rest) {
      refuse(file_, what + ": data_offsets",
             fmt::format("begin and end within the {} bytes of elements", rest),
             shown(value["data_offsets"]));
    }
    if (offsets[1] - offsets[0] != tensor.bytes()) {
      refuse(
          file_, what + ": data_offsets",
          fmt::format("{} bytes, those of {} {}", tensor.bytes(), type->name, tensor.shape.text()),
          fmt::format("{}", offsets[1] - offsets[0]));
    }
    tensor.first = elements_ + offsets[0];
    return tensor;
  }

  /// Those elements of an array that are numbers from 0 to 2^63 - 1.
  static std::vector<std::int64_t> numbers(const Json& array) {
    std::vector<std::int64_t> numbers;
    if (!array.is_array()) return numbers;
    for (const Json& element : array) {
      constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
      if (element.is_number_unsigned() && element.get<std::uint64_t>() <= most)
        numbers.push_back(element.get<std::int64_t>());
    }
    return numbers;
  }

  /// Throws unless the tensors are the rest of the file, each byte in one.
  void check_gaps(const std::vector<FileTensor>& tensors) const {
    std::int64_t end = elements_;
    for (const FileTensor& tensor : tensors) {
      if (tensor.first != end) {
        refuse(file_, fmt::format("tensor {}: data_offsets", shown(tensor.name)),
               fmt::format("to begin at {}, where the tensor before ends", end - elements_),
               fmt::format("{}", tensor.first - elements_));
      }
      end += tensor.bytes();
    }
    if (end != input_.size()) {
      data::refuse(file_, end, "the end of the file, after the last tensor",
                   fmt::format("{} bytes more", input_.size() - end));
    }
  }

  const data::InputFile& input_;
  const std::filesystem::path& file_;
  std::int64_t elements_ = 0;  // their first byte
};

/// The value of one element, for T float, double or bf16.
template <class T, class From>
T converted(From value) {
  Wide<T> wide = 0;
  if constexpr (std::is_same_v<From, f16> || std::is_same_v<From, bf16>) {
    wide = static_cast<Wide<T>>(to_float(value));
  } else {
    wide = static_cast<Wide<T>>(value);
  }
  return narrow<T>(wide);
}

/// Throws unless elements of the tensor are, or convert to, elements of T.
template <class T>
void expect_elements(const SafetensorsFile& file, const FileTensor& tensor) {
  constexpr Datatype floats[] = {Datatype::f16, Datatype::bf16, Datatype::f32, Datatype::f64};
  const bool is_one =
      std::find(std::begin(floats), std::end(floats), tensor.type) != std::end(floats);
  if (Real<T> ? is_one : tensor.type == datatype_of<T>) return;
  refuse(file.name(), fmt::format("tensor {}", shown(tensor.name)),
         Real<T> ? "elements of f16, bf16, f32 or f64"
                 : fmt::format("elements of {}", name(datatype_of<T>)),
         name(tensor.type));
}

}  // namespace

struct SafetensorsFile::State {
  explicit State(const std::filesystem::path& file)
      : input(file), header(HeaderReader(input).read()) {
    for (const FileTensor& tensor : header.tensors) by_name[tensor.name] = &tensor;
  }

  data::InputFile input;
  Header header;
  std::map<std::string, const FileTensor*, std::less<>> by_name;
};

SafetensorsFile::SafetensorsFile(const std::filesystem::path& file)
    : state_(std::make_shared<State>(file)) {}

const std::filesystem::path& SafetensorsFile::name() const { return state_->input.name(); }
const std::vector<FileTensor>& SafetensorsFile::tensors() const { return state_->header.tensors; }
const Metadata& SafetensorsFile::metadata() const { return state_->header.metadata; }

const FileTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = state_->by_name.find(name);
  return found == state_->by_name.end() ? nullptr : found->second;
}

template <class T>
const FileTensor& SafetensorsFile::expect(std::string_view name, const Shape& shape) const {
  const FileTensor* const tensor = find(name);
  if (!tensor) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: expected a tensor {}, found none",
                                                         this->name().string(), shown(name)));
  }
  expect_shape(fmt::format("{}: tensor {}", this->name().string(), shown(name)), tensor->shape,
               shape);
  expect_elements<T>(*this, *tensor);
  return *tensor;
}

const std::string& SafetensorsFile::metadata(std::string_view name) const {
  const auto found = metadata().find(name);
  if (found != metadata().end()) return found->second;
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}: expected {}, found none",
                                                       this->name().string(), metadata_key, name));
}

template <class T>
Array<T> SafetensorsFile::read(const FileTensor& tensor) const {
  expect_elements<T>(*this, tensor);
  const AcceleratorScope on_host(nullptr);
  const auto read_as = [&]<class From>(From) {
    auto array = Array<From>::uninitialized(tensor.shape);
    state_->input.read(tensor.first, array.data(), array.bytes());
    return array;
  };
  if (tensor.type == datatype_of<T>) return read_as(T{});
  if constexpr (Real<T>) {
    const auto convert_from = [&]<class From>(From zero) {
      const Array<From> from = read_as(zero);
      auto to = Array<T>::uninitialized(tensor.shape);
      std::transform(from.data(), from.data() + from.size(), to.data(), converted<T, From>);
      return to;
    };
    if (tensor.type == Datatype::f64) return convert_from(double{});
    if (tensor.type == Datatype::f32) return convert_from(float{});
    if (tensor.type == Datatype::bf16) return convert_from(bf16{});
    if (tensor.type == Datatype::f16) return convert_from(f16{});
  }
  return {};
}

struct SafetensorsWriter::State {
  State(const std::filesystem::path& file, const std::vector<FileTensor>& tensors)
      : file(file), tensors(tensors), output(file.string()) {}

  std::filesystem::path file;
  std::vector<FileTensor> tensors;
  std::size_t written = 0;
  OutputFile output;
};

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& file,
                                     const std::vector<FileTensor>& tensors,
                                     const Metadata& metadata)
    : state_(std::make_unique<State>(file, tensors)) {
  auto json = nlohmann::ordered_json::object();
  if (!metadata.empty()) json[metadata_key] = metadata;
  std::int64_t end = 0;
  for (const FileTensor& tensor : tensors) {
    const auto is = [&](const TypeName& row) { return row.type == tensor.type; };
    const auto type = std::find_if(std::begin(type_names), std::end(type_names), is);
    const std::string what = fmt::format("tensor {}", shown(tensor.name));
    if (type == std::end(type_names))
      refuse(file, what, "a type of the library", baton::name(tensor.type));
    if (json.contains(tensor.name) || tensor.name == metadata_key)
      refuse(file, what, "a name for one tensor only", "it again");
    auto extents = nlohmann::ordered_json::array();
    for (int d = 0; d < tensor.shape.rank(); ++d) extents.push_back(tensor.shape[d]);
    json[tensor.name] = {{"dtype", type->name},
                         {"shape", std::move(extents)},
                         {"data_offsets", {end, end + tensor.bytes()}}};
    end += tensor.bytes();
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const nlohmann::json::type_error&) {
    refuse(file, "header", "names and strings in UTF-8", "others");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');  // elements are aligned
  const std::uint64_t length = text.size();
  state_->output.write(&length, length_bytes);
  state_->output.write(text.data(), text.size());
}

SafetensorsWriter::~SafetensorsWriter() = default;
SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&&) noexcept = default;

void SafetensorsWriter::write(const ConstTensor& elements) {
  State& state = *state_;
  if (state.written == state.tensors.size())
    refuse(state.file, "elements", fmt::format("{} tensors", state.written), "another");
  const FileTensor& tensor = state.tensors[state.written];
  if (elements.type != tensor.type || elements.shape != tensor.shape) {
    refuse(state.file, fmt::format("tensor {}", shown(tensor.name)),
           fmt::format("{} {}", baton::name(tensor.type), tensor.shape.text()),
           fmt::format("{} {}", baton::name(elements.type), elements.shape.text()));
  }
  state.output.write(elements.data, static_cast<std::size_t>(tensor.bytes()));
  ++state.written;
}

void SafetensorsWriter::commit() {
  State& state = *state_;
  if (state.written < state.tensors.size()) {
    refuse(state.file, "elements", fmt::format("{} tensors", state.tensors.size()),
           fmt::format("{}", state.written));
  }
  state.output.commit();
}

#define BATON_INSTANTIATE(T)                                                                  \
  template BATON_INSTANTIATION Array<T> SafetensorsFile::read(const FileTensor&) const;       \
  template BATON_INSTANTIATION const FileTensor& SafetensorsFile::expect<T>(std::string_view, \
                                                                            const Shape&) const;
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
BATON_INSTANTIATE(std::uint8_t)
BATON_INSTANTIATE(std::int64_t)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
