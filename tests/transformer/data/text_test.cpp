#include "transformer/data/text.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

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

}  // namespace

TEST_CASE("files of text are read in turn, and must be UTF-8") {
  const TemporaryFolder folder;
  const std::string first = folder.write("first", "one ä\n"),
                    second = folder.write("second", "波🙂");
  CHECK(read_text({first, second}) == "one ä\n波🙂");
  refused([&] { read_text({folder / "none"}); }, {"none: expected a file to read", "No such file"});
  refused(
      [&] {
        read_text({first, folder.write("empty", "")});
      },
      {"empty, byte 0: expected text, found an empty file"});
  const auto wrong = [&](const std::string& content, int at, const std::string& byte) {
    refused([&] { read_text({folder.write("wrong", content)}); },
            {"wrong, byte " + std::to_string(at) + ": expected UTF-8, found the byte " + byte});
  };
  wrong("ab\xff", 2, "0xff");
  wrong("ab\xc3", 2, "0xc3");        // ends within a character
  wrong("ä\xc0\x80 b", 2, "0xc0");   // longer than need be
  wrong("\xed\xa0\x80", 0, "0xed");  // half of a pair of UTF-16
  wrong(std::string(70000, 'x') + "\x80", 70000, "0x80");
}

TEST_CASE("sequences: each token is the target of the one before") {
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < 23; ++i) tokens.push_back(100 + i);
  const Sequences sequences(tokens, 5, "numbers");
  CHECK(sequences.size() == 4);
  CHECK(Sequences(tokens, 22, "numbers").size() == 1);
  const std::vector<std::int64_t> samples = {3, 0};
  const TokenBatch batch = sequences.batch(samples);
  CHECK(batch.shape == Shape{2, 5});
  CHECK(batch.ids_view().shape() == Shape{2, 5});
  CHECK(batch.targets_view().shape() == Shape{10});
  for (int i = 0; i < 5; ++i) {
    CHECK(batch.ids_view()(0, i) == 115 + i);
    CHECK(batch.ids_view()(1, i) == 100 + i);
    CHECK(batch.targets_view()(i) == 116 + i);
    CHECK(batch.targets_view()(5 + i) == 101 + i);
  }
  refused([&] { Sequences(tokens, 23, "numbers"); },
          {"numbers: expected at least 24 tokens", "found 23"});
  refused([&] { Sequences(tokens, 0, "numbers"); }, {"numbers", "at least 1 token", "0"});
  const std::vector<std::int64_t> beyond = {4};
  refused([&] { static_cast<void>(sequences.batch(beyond)); }, {"[0, 4)", "4"});
}

#ifdef BATON_HAS_SENTENCEPIECE

namespace {

/// Some hundred lines of words, of an alphabet with characters of one to four bytes.
std::string corpus(int lines = 400) {
  const char* const words[] = {"ring",  "tree",   "send",  "receive", "the",  "of",
                               "naïve", "größer", "числа", "波",      "🙂", "a"};
  std::string text;
  std::uint32_t state = 1;
  for (int line = 0; line < lines; ++line) {
    for (int word = 0; word < 9; ++word) {
      state = state * 1664525 + 1013904223;
      text += (word > 0 ? " " : "") + std::string(words[(state >> 16) % 12]);
    }
    text += ".\n";
  }
  return text;
}

}  // namespace

TEST_CASE("tokens give back their text, also text that they were not learned from") {
  const std::string text = corpus();
  const Tokenizer tokenizer = Tokenizer::train(text, 330);
  CHECK(tokenizer.vocabulary() == 330);
  for (const std::string& some :
       {text, std::string("  two  blanks\tand a tab \n\n\nthree lines\r\n "), std::string(),
        std::string("€ ж \U0001F600 unseen"), std::string(9001, 'x'), std::string("\n"),
        "w" + std::string(5000, ' ')}) {
    const auto tokens = tokenizer.encode(some);
    CHECK(tokenizer.decode(tokens) == some);
    for (const std::int32_t token : tokens) REQUIRE((token >= 0 && token < 330));
  }
  std::string wide;  // one line, whose cuts must not fall within characters
  for (int i = 0; i < 3000; ++i) wide += i % 7 == 0 ? "x" : "波";
  CHECK(tokenizer.decode(tokenizer.encode(wide)) == wide);
  CHECK(tokenizer.encode(text).size() < text.size() / 3);  // words are tokens
  const std::vector<std::int32_t> foreign = {1, 330};
  refused([&] { static_cast<void>(tokenizer.decode(foreign)); }, {"[0, 330)", "330"});
}

TEST_CASE("a tokenizer depends on its text only, and is kept beside it") {
  const TemporaryFolder folder;
  const std::string text = corpus(), file = folder.write("corpus.txt", text);
  const auto kept = [&] {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      if (entry.path().extension() == ".model") files.push_back(entry.path());
    return files;
  };
  const Tokenizer first = tokenizer_beside(file, text, 330);
  REQUIRE(kept().size() == 1);
  const auto written = std::filesystem::last_write_time(kept()[0]);
  const Tokenizer second = tokenizer_beside(file, text, 330), third = Tokenizer::train(text, 330);
  CHECK(std::filesystem::last_write_time(kept()[0]) == written);
  CHECK(first.encode(text) == second.encode(text));
  CHECK(first.encode(text) == third.encode(text));
  tokenizer_beside(file, text, 340);        // of another vocabulary
  tokenizer_beside(file, text + "b", 330);  // of another text
  CHECK(kept().size() == 3);

  std::ofstream(kept()[0], std::ios::binary) << "torn";
  const std::string name = kept()[0].string();
  refused([&] { Tokenizer::read(name); }, {name, "expected a model of SentencePiece"});
  refused([&] { Tokenizer::train(text, 20000); }, {"learns 20000 tokens", "too high"});
  refused([&] { Tokenizer::train(text, 20); }, {"learns 20 tokens", "smaller"});
  refused([&] { tokenizer_beside(folder / "no/folder", text, 330); },
          {"no/folder", "expected a file to write", "No such file"});
}

TEST_CASE("ranks that are threads may make the same tokenizer at once") {
  for (int round = 0; round < 5; ++round) {
    const TemporaryFolder folder;
    const std::string text = corpus(40), file = folder.write("corpus.txt", text);
    on_ranks(8,
             [&](Communicator&) { CHECK(tokenizer_beside(file, text, 320).decode({}).empty()); });
    int files = 0;  // the text and the tokenizer
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path()))
      ++files;
    CHECK(files == 2);
  }
}

TEST_CASE("read_text_data: the end of the text is for validation, and nothing is in both") {
  const TemporaryFolder folder;
  const std::string text = corpus(), file = folder.write("corpus.txt", text);
  const TextData data = read_text_data({file}, 330, 16, 0.2);
  const auto text_of = [](const Sequences& sequences, const Tokenizer& tokenizer) {
    std::string whole;
    for (std::int64_t i = 0; i < sequences.size(); ++i)
      whole += tokenizer.decode(sequences.batch(std::vector<std::int64_t>{i}).ids);
    return whole;
  };
  const std::string training = text_of(data.training, data.tokenizer),
                    validation = text_of(data.validation, data.tokenizer);
  CHECK(text.starts_with(training));
  CHECK(training.size() > text.size() / 2);
  const std::size_t begin = text.find(validation, training.size());
  REQUIRE(begin != std::string::npos);
  CHECK(text[begin - 1] == '\n');
  CHECK(std::abs(static_cast<double>(begin) / static_cast<double>(text.size()) - 0.8) < 0.01);

  // Without a line's end nearby it is cut between characters, in the share that was asked for.
  std::string line = "A title\n" + text;
  std::ranges::replace(line.begin() + 8, line.end(), '\n', ' ');
  for (const double share : {0.1, 0.1001, 0.1002, 0.1003, 0.3}) {
    const TextData cut = read_text_data({folder.write("line.txt", line)}, 330, 16, share);
    const double bytes = static_cast<double>(text_of(cut.validation, cut.tokenizer).size());
    CHECK(std::abs(bytes / static_cast<double>(line.size()) - share) < 0.02);
  }

  const std::string small = folder.write("small.txt", corpus(12));
  refused([&] { read_text_data({small}, 320, 100, 0.1); },
          {"small.txt, for validation: expected at least 101 tokens", "found"});
  refused([&] { read_text_data({}, 330, 16); }, {"expected files, found none"});
  refused([&] { read_text_data({file}, 330, 16, 1); }, {"within (0, 1)", "1"});
}

#endif
