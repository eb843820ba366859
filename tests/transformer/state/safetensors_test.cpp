#include "transformer/state/safetensors.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

void refused(const std::function<void()>& call, const std::vector<std::string>& parts) {
  const Error error = error_of(call);
  CHECK(error.code == ErrorCode::invalid_argument);
  CHECK_MESSAGE(holds(error.what(), parts), std::string(error.what()));
}

std::string little_endian(std::uint64_t value) {
  std::string bytes;
  for (int b = 0; b < 8; ++b) bytes += static_cast<char>(value >> 8 * b & 0xff);
  return bytes;
}
/// A file as the format's description has it.
std::string file_of(const std::string& header, const std::string& elements) {
  return little_endian(header.size()) + header + elements;
}
std::string content_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}
template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
template <class T>
std::vector<T> values_of(const Array<T>& array) {
  return {array.data(), array.data() + array.size()};
}
std::vector<std::string> names_in(const TemporaryFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    names.push_back(entry.path().filename());
  return names;
}

/// Runs `body` in a process of its own; how that ended (waitpid()).
int status_of_child(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

void write_one(const std::string& file, std::int64_t elements, float value) {
  const std::vector<float> values(static_cast<std::size_t>(elements), value);
  SafetensorsWriter writer(file, {{"x", Datatype::f32, {elements}}});
  writer.write({values.data(), Shape{elements}});
  writer.commit();
}

}  // namespace

// The bytes that safetensors.numpy.save() of version 0.8.0 gives.
TEST_CASE("a file that Python's safetensors has written") {
  const std::string header =
      R"({"__metadata__":{"format":"np"},)"
      R"("counts":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
      R"("none":{"dtype":"F32","shape":[0,7],"data_offsets":[16,16]},)"
      R"("weight":{"dtype":"F32","shape":[2,3],"data_offsets":[16,40]},)"
      R"("half":{"dtype":"F16","shape":[],"data_offsets":[40,42]},)"
      R"("mask":{"dtype":"BOOL","shape":[1,3],"data_offsets":[42,45]}}     )";
  const std::vector<std::int64_t> counts = {-1, 1ll << 40};
  const std::vector<float> weight = {0.5f, -1, 2, 3, HUGE_VALF, -0.0f};
  const std::string elements =
      bytes_of(counts) + bytes_of(weight) + std::string("\x00\xbe\x01\x00\x01", 5);
  const TemporaryFolder folder;
  const SafetensorsFile file(folder.write("a.safetensors", file_of(header, elements)));
  CHECK(file.metadata() == Metadata{{"format", "np"}});
  CHECK(file.metadata("format") == "np");
  REQUIRE(file.tensors().size() == 5);
  CHECK(file.tensors()[2].name == "weight");
  CHECK(file.tensors()[2].type == Datatype::f32);
  CHECK(file.tensors()[2].shape == Shape{2, 3});
  CHECK(values_of(file.read<std::int64_t>(*file.find("counts"))) == counts);
  const Array<float> read = file.read<float>(*file.find("weight"));
  CHECK(read.shape() == Shape{2, 3});
  CHECK(std::memcmp(read.data(), weight.data(), read.bytes()) == 0);
  CHECK(values_of(file.read<double>(*file.find("half"))) == std::vector<double>{-1.5});
  CHECK(values_of(file.read<std::uint8_t>(*file.find("mask"))) ==
        std::vector<std::uint8_t>{1, 0, 1});
  CHECK(file.read<float>(*file.find("none")).size() == 0);
  CHECK(file.find("bias") == nullptr);
  refused([&] { file.expect<float>("bias", {2}); },
          {"a.safetensors: expected a tensor \"bias\", found none"});
  refused(
      [&] {
        file.expect<float>("weight", {3, 2});
      },
      {"a.safetensors: tensor \"weight\": expected shape [3, 2], found [2, 3]"});
  refused(
      [&] { file.read<float>(*file.find("counts")); },
      {"a.safetensors: tensor \"counts\": expected elements of f16, bf16, f32 or f64, found i64"});
  refused([&] { file.read<std::int64_t>(*file.find("weight")); },
          {"\"weight\": expected elements of i64, found f32"});
  refused([&] { file.metadata("step"); },
          {"a.safetensors: __metadata__: expected step, found none"});
}

TEST_CASE("a file that is written has the bytes of the format's description") {
  const TemporaryFolder folder;
  const std::string name = folder / "b.safetensors";
  const std::vector<double> first = {1, -2};
  const std::vector<bf16> second = {to_bf16(1), to_bf16(0.5f), to_bf16(-3)};
  const std::vector<FileTensor> tensors = {{"first", Datatype::f64, {1, 2}},
                                           {"sec\"ond", Datatype::bf16, {3}}};
  {
    SafetensorsWriter writer(name, tensors, {{"format", "pt"}, {"a", "ä\n"}});
    writer.write({first.data(), Shape{1, 2}});
    writer.write({second.data(), Shape{3}});
    CHECK(!std::filesystem::exists(name));
    writer.commit();
  }
  CHECK(names_in(folder) == std::vector<std::string>{"b.safetensors"});
  std::string header = R"({"__metadata__":{"a":"ä\n","format":"pt"},)"
                       R"("first":{"dtype":"F64","shape":[1,2],"data_offsets":[0,16]},)"
                       R"("sec\"ond":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]}})";
  while (header.size() % 8 != 0) header += ' ';
  CHECK(content_of(name) == file_of(header, bytes_of(first) + bytes_of(second)));

  const SafetensorsFile file(name);
  CHECK(file.metadata("a") == "ä\n");
  CHECK(values_of(file.read<bf16>(*file.find("sec\"ond"))) == second);
  SafetensorsWriter nothing(name, {});
  nothing.commit();
  CHECK(content_of(name) == file_of("{}      ", ""));
  CHECK(SafetensorsFile(name).tensors().empty());
}

TEST_CASE("a header of values within values is refused, however deep it goes") {
  const TemporaryFolder folder;
  constexpr std::size_t depth = 1'000'000;
  std::string objects;
  for (std::size_t i = 0; i < depth; ++i) objects += "{\"a\":";
  for (const std::string& header :
       {std::string(depth, '[') + std::string(depth, ']'), objects + "1" + std::string(depth, '}')})
    refused([&] { const SafetensorsFile file(folder.write("deep", file_of(header, ""))); },
            {"deep: header: expected values within at most 8 others, found more"});
}

TEST_CASE("a writer refuses other elements than those it was made for, and leaves nothing behind") {
  const TemporaryFolder folder;
  const std::string name = folder / "c.safetensors";
  const std::vector<float> values(6);
  const FileTensor x{"x", Datatype::f32, {2, 3}};
  {
    SafetensorsWriter writer(name, {x});
    refused(
        [&] {
          writer.write({values.data(), Shape{3, 2}});
        },
        {"c.safetensors: tensor \"x\": expected f32 [2, 3], found f32 [3, 2]"});
    refused(
        [&] {
          writer.write({values.data(), Datatype::i32, {2, 3}});
        },
        {"expected f32 [2, 3], found i32 [2, 3]"});
    refused([&] { writer.commit(); }, {"expected 1 tensors, found 0"});
    writer.write({values.data(), Shape{2, 3}});
    refused(
        [&] {
          writer.write({values.data(), Shape{2, 3}});
        },
        {"expected 1 tensors, found another"});
  }
  refused([&] { SafetensorsWriter(name, {x, x}); }, {"tensor \"x\"", "one tensor only", "again"});
  refused(
      [&] {
        SafetensorsWriter(name, {{"__metadata__", Datatype::f32, {}}});
      },
      {"__metadata__"});
  refused([&] { SafetensorsWriter(name, {{"\xff", Datatype::f32, {}}}); }, {"header", "UTF-8"});
  refused([&] { SafetensorsWriter(name, {{"x", Datatype::user, {}}}); }, {"\"x\"", "a type"});
  refused([&] { SafetensorsWriter(folder / "no/folder", {x}); },
          {"no/folder: expected a file to write, found No such file"});
  CHECK(names_in(folder).empty());
}

TEST_CASE("floats of one type are read as another: exactly, or as the nearest") {
  const TemporaryFolder folder;
  const std::string name = folder / "d.safetensors";
  const std::vector<double> wide = {1, 1 + 0x1p-24, 1 + 0x3p-24, 0x1p-130, 1e300};
  const std::vector<float> narrow_ones = {1, 1 + 0x1p-8f, 1 + 0x3p-8f, 0x1p-130f, HUGE_VALF};
  const std::vector<bf16> short_ones = {to_bf16(3), to_bf16(-0x1p-130f)};
  {
    SafetensorsWriter writer(
        name,
        {{"f64", Datatype::f64, {5}}, {"f32", Datatype::f32, {5}}, {"bf16", Datatype::bf16, {2}}});
    writer.write({wide.data(), Shape{5}});
    writer.write({narrow_ones.data(), Shape{5}});
    writer.write({short_ones.data(), Shape{2}});
    writer.commit();
  }
  const SafetensorsFile file(name);
  const FileTensor &f64 = file.expect<double>("f64", {5}), &f32 = file.expect<float>("f32", {5});
  CHECK(values_of(file.read<double>(f64)) == wide);
  CHECK(values_of(file.read<float>(f64)) ==
        std::vector<float>{1, 1, 1 + 0x1p-22f, 0x1p-130f, HUGE_VALF});
  CHECK(values_of(file.read<double>(f32)) ==
        std::vector<double>(narrow_ones.begin(), narrow_ones.end()));
  CHECK(values_of(file.read<bf16>(f32)) ==
        std::vector<bf16>{to_bf16(1), to_bf16(1), to_bf16(1 + 0x1p-6f), to_bf16(0x1p-130f),
                          to_bf16(HUGE_VALF)});
  CHECK(values_of(file.read<float>(*file.find("bf16"))) == std::vector<float>{3, -0x1p-130f});
}

TEST_CASE("torn and wrong files are refused by a sentence with file, place, expected and found") {
  const TemporaryFolder folder;
  const auto wrong = [&](const std::string& content, const std::vector<std::string>& parts) {
    std::vector<std::string> all{"e.safetensors"};
    all.insert(all.end(), parts.begin(), parts.end());
    refused([&] { SafetensorsFile(folder.write("e.safetensors", content)); }, all);
  };
  const auto header = [&](const std::string& text, const std::vector<std::string>& parts,
                          std::size_t elements = 8) {
    wrong(file_of(text, std::string(elements, '\0')), parts);
  };
  const auto tensor = [&](const std::string& value, const std::vector<std::string>& parts) {
    header(R"({"x":)" + value + "}", parts);
  };
  refused([&] { SafetensorsFile(folder / "none"); },
          {"none: expected a file to read, found No such file"});
  refused([&] { SafetensorsFile{folder.path()}; }, {"expected a file to read, found a folder"});
  refused([&] { SafetensorsFile("/dev/null"); }, {"/dev/null", "found a device"});
  wrong("", {"byte 0: expected 8 bytes with the length of a header, found the end after 0 bytes"});
  wrong("1234567", {"byte 7", "found the end after 7 bytes"});
  wrong(little_endian(3) + "{}", {"byte 0: expected a length of at most 2", "found 3"});
  wrong(little_endian(~0ull) + "{}", {"at most 2", "found 18446744073709551615"});
  header("", {"byte 8: expected JSON, found the end of the header"});
  header("{\"x\": nil}", {"byte 15: expected JSON, found \"i\""});
  header("{\"\xff\":1}", {"byte 10: expected JSON"});
  header("{} {}", {"byte 11: expected JSON, found \"{\""});
  header("{\"x\":1e999}", {"expected JSON, found a number"});
  header("[1]", {"header: expected an object, found [1]"});
  header(std::string(100000, '['), {"expected values within at most 8 others, found more"});
  header("[[[", {"expected JSON, found the end of the header"});
  const std::string good = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  header("{\"x\":" + good + ",\"x\":" + good + "}",
         {"header: expected each name once, found \"x\" twice"});
  header(R"({"__metadata__":{"a":1}})", {"__metadata__: \"a\": expected a string, found 1"}, 0);
  header(R"({"__metadata__":"a"})", {"__metadata__: expected an object of strings, found \"a\""},
         0);
  tensor("7", {"tensor \"x\": expected dtype, shape and data_offsets, found 7"});
  tensor(R"({"dtype":"F32","shape":[2]})", {"expected dtype, shape and data_offsets, found {"});
  tensor(R"({"dtype":"F31","shape":[2],"data_offsets":[0,8]})",
         {"tensor \"x\": dtype: expected F64, F32, BF16", "found \"F31\""});
  tensor(R"({"dtype":32,"shape":[2],"data_offsets":[0,8]})", {"dtype: expected", "found 32"});
  for (const char* shape :
       {"[-2]", "[2.0]", "2", "[\"2\"]", "[1,1,1,1,1,1,1,1,2]", "[9223372036854775808]",
        "[4294967296,4294967296]", "[4294967296,4294967296,0]"}) {
    tensor(fmt::format(R"({{"dtype":"F32","shape":{},"data_offsets":[0,8]}})", shape),
           {"tensor \"x\": shape: expected at most 8 extents", "found " + std::string(shape)});
  }
  for (const char* offsets : {"[8,0]", "[0,9]", "[-8,0]", "[0]", "[0,8,8]", "8", "[0,8.0]"}) {
    tensor(fmt::format(R"({{"dtype":"F32","shape":[2],"data_offsets":{}}})", offsets),
           {"tensor \"x\": data_offsets: expected begin and end within the 8 bytes of elements",
            "found " + std::string(offsets)});
  }
  tensor(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})",
         {"data_offsets: expected 12 bytes, those of F32 [3], found 8"});
  tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})",
         {"tensor \"x\": data_offsets: expected to begin at 0", "found 4"});
  const auto two = [](int first, int second) {
    return fmt::format(R"({{"a":{{"dtype":"U8","shape":[4],"data_offsets":[{},{}]}},)"
                       R"("b":{{"dtype":"U8","shape":[4],"data_offsets":[{},{}]}}}})",
                       first, first + 4, second, second + 4);
  };
  header(two(0, 2), {"tensor \"b\": data_offsets: expected to begin at 4", "found 2"});
  header(two(5, 0), {"tensor \"a\": data_offsets: expected to begin at 4", "found 5"}, 9);
  header(two(0, 0), {"data_offsets: expected to begin at 4", "found 0"});
  const std::string right = two(4, 0);
  header(right,
         {fmt::format("byte {}: expected the end of the file, after the last tensor, found 3 "
                      "bytes more",
                      8 + right.size() + 8)},
         11);
  const SafetensorsFile file(folder.write("f", file_of(right, "abcdefgh")));
  CHECK(values_of(file.read<std::uint8_t>(*file.find("a"))) ==
        std::vector<std::uint8_t>{'e', 'f', 'g', 'h'});
  std::filesystem::resize_file(file.name(), 8 + right.size() + 6);
  refused([&] { file.read<std::uint8_t>(*file.find("a")); },
          {fmt::format("byte {}: expected 2 bytes more, found the end of the file",
                       14 + right.size())});
}

TEST_CASE("whatever a file's bytes are, it is refused by a sentence or its tensors can be read") {
  const TemporaryFolder folder;
  const std::string name = folder / "g.safetensors";
  const std::vector<double> doubles = {1, 2, 3};
  const std::vector<std::int64_t> integers = {4, 5};
  {
    SafetensorsWriter writer(name, {{"a", Datatype::f64, {3}}, {"b", Datatype::i64, {2, 1}}},
                             {{"k", "v"}});
    writer.write({doubles.data(), Shape{3}});
    writer.write({integers.data(), Shape{2, 1}});
    writer.commit();
  }
  const std::string content = content_of(name);
  int read = 0, torn = 0;
  const auto attempt = [&](const std::string& bytes) {
    folder.write("g.safetensors", bytes);
    try {
      const SafetensorsFile file(name);
      for (const FileTensor& tensor : file.tensors()) {
        if (tensor.type == Datatype::f64) file.read<double>(tensor);
        if (tensor.type == Datatype::i64) file.read<std::int64_t>(tensor);
      }
      ++read;
    } catch (const Error& error) {
      const std::string sentence = error.what();
      CHECK_MESSAGE(holds(sentence, {name, "expected ", "found "}), sentence);
      CHECK_MESSAGE(sentence.find('\n') == std::string::npos, sentence);
      CHECK(sentence.size() < 500);
      ++torn;
    }
  };
  for (std::size_t size = 0; size < content.size(); ++size) attempt(content.substr(0, size));
  CHECK(read == 0);
  CHECK(torn == static_cast<int>(content.size()));
  for (std::size_t at = 0; at < content.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = content;
      flipped[at] = static_cast<char>(flipped[at] ^ 1 << bit);
      attempt(flipped);
    }
    for (const char other : std::string("\0\"\\}],-0e", 9)) {
      std::string replaced = content;
      replaced[at] = other;
      attempt(replaced);
      attempt(content.substr(0, at) + other + content.substr(at));
    }
    attempt(content.substr(0, at) + content.substr(at + 1));
  }
  CHECK(read > 0);
}

TEST_CASE("where writing is interrupted, the file that was there stays") {
  const TemporaryFolder folder;
  const std::string name = folder / "h.safetensors";
  write_one(name, 1000, 1);
  const std::string before = content_of(name);
  const auto begin = [&] {
    const std::vector<float> values(1000, 2);
    SafetensorsWriter writer(name, {{"x", Datatype::f32, {1000}}, {"y", Datatype::f32, {1000}}});
    writer.write({values.data(), Shape{1000}});
    return writer;
  };
  const int killed = status_of_child([&] {
    const SafetensorsWriter writer = begin();
    raise(SIGKILL);
  });
  CHECK(WIFSIGNALED(killed));
  CHECK(content_of(name) == before);
  CHECK(names_in(folder).size() == 2);  // what a killed process has begun
  begin();                              // and not committed
  CHECK(content_of(name) == before);
  CHECK(names_in(folder).size() == 2);

  const int failed = status_of_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{6000, 6000};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_one(name, 5000, 2);
    } catch (const Error& error) {
      _exit(holds(error.what(), {name, "expected a file to write, found File too large"}) ? 7 : 8);
    }
  });
  CHECK(WEXITSTATUS(failed) == 7);
  CHECK(content_of(name) == before);
  CHECK(names_in(folder).size() == 2);
  write_one(name, 500, 3);
  CHECK(SafetensorsFile(name).expect<float>("x", {500}).bytes() == 2000);
}
