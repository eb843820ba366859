#include <fmt/core.h>

#ifdef BATON_HAS_SENTENCEPIECE
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>
#endif

#include <algorithm>
#include <utility>

#include "baton/error.hpp"
#include "baton/output_file.hpp"
#include "file.hpp"
#include "text.hpp"
#include "utf8.hpp"

namespace baton::transformer {

#ifdef BATON_HAS_SENTENCEPIECE

struct Tokenizer::Model {
  std::string serialized;
  sentencepiece::SentencePieceProcessor processor;
};

namespace {

/// Cuts off the first line with its end, or the begin of a long one: the time that SentencePiece
/// takes grows faster than a line's length.
std::string_view take_line(std::string_view& text) {
  constexpr std::size_t longest = 4000;
  std::size_t size = std::min(text.find('\n'), text.size() - 1) + 1;
  if (size > longest) {
    const std::size_t blank = text.rfind(' ', longest);
    size = blank == std::string_view::npos || blank == 0 ? data::character_begin(text, longest)
                                                         : blank;
  }
  const std::string_view line = text.substr(0, size);
  text.remove_prefix(size);
  return line;
}

/// The lines of a text without their ends, as the trainer asks for them.
class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(std::string_view text) : rest_(text) { Next(); }
  bool done() const override { return done_; }
  void Next() override {
    done_ = rest_.empty();
    if (done_) return;
    line_ = take_line(rest_);
    if (line_.ends_with('\n')) line_.pop_back();
  }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::string_view rest_;
  std::string line_;
  bool done_ = false;
};

}  // namespace

Tokenizer::Tokenizer(std::string serialized) {
  auto model = std::make_shared<Model>();
  model->serialized = std::move(serialized);
  if (const auto status = model->processor.LoadFromSerializedProto(model->serialized);
      !status.ok()) {
    throw Error(ErrorCode::invalid_argument, status.message());
  }
  model_ = std::move(model);
}

Tokenizer Tokenizer::train(std::string_view text, int vocabulary) {
  Lines lines(text);
  std::string serialized;
  const auto status =
      sentencepiece::SentencePieceTrainer::Train({{"model_type", "bpe"},
                                                  {"vocab_size", std::to_string(vocabulary)},
                                                  {"byte_fallback", "true"},
                                                  {"character_coverage", "0.9999"},
                                                  {"normalization_rule_name", "identity"},
                                                  {"remove_extra_whitespaces", "false"},
                                                  {"add_dummy_prefix", "false"},
                                                  {"user_defined_symbols", "\n"},
                                                  {"bos_id", "-1"},
                                                  {"eos_id", "-1"},
                                                  {"num_threads", "1"},
                                                  {"minloglevel", "3"}},
                                                 &lines, &serialized);
  if (!status.ok()) {
    std::string why = status.message();  // "…/file.cc(1) [condition] sentence"
    why.erase(0, why.rfind("] ") == std::string::npos ? 0 : why.rfind("] ") + 2);
    throw Error(ErrorCode::invalid_argument,
                fmt::format("text: expected one of which SentencePiece learns {} tokens, found: {}",
                            vocabulary, why));
  }
  return Tokenizer(std::move(serialized));
}

Tokenizer Tokenizer::read(const std::filesystem::path& file) {
  try {
    return Tokenizer(data::read_file(file));
  } catch (const Error& error) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected a model of SentencePiece, found: {}", file.string(),
                            error.what()));
  }
}

void Tokenizer::write(const std::filesystem::path& file) const {
  write_file(file.string(), model_->serialized);
}

int Tokenizer::vocabulary() const { return model_->processor.GetPieceSize(); }

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> tokens;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const std::vector<int> more = model_->processor.EncodeAsIds({line.data(), line.size()});
    tokens.insert(tokens.end(), more.begin(), more.end());
  }
  return tokens;
}

std::string Tokenizer::decode(std::span<const std::int32_t> tokens) const {
  for (const std::int32_t token : tokens) {
    if (token >= 0 && token < vocabulary()) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("text: expected tokens within [0, {}), found {}", vocabulary(), token));
  }
  return model_->processor.DecodeIds(std::vector<int>(tokens.begin(), tokens.end()));
}

#else

struct Tokenizer::Model {};

namespace {
[[noreturn]] void refuse() {
  throw Error(ErrorCode::unsupported,
              "text: expected a build with SentencePiece, found one without");
}
}  // namespace

Tokenizer Tokenizer::train(std::string_view, int) { refuse(); }
Tokenizer Tokenizer::read(const std::filesystem::path&) { refuse(); }
void Tokenizer::write(const std::filesystem::path&) const { refuse(); }
int Tokenizer::vocabulary() const { refuse(); }
std::vector<std::int32_t> Tokenizer::encode(std::string_view) const { refuse(); }
std::string Tokenizer::decode(std::span<const std::int32_t>) const { refuse(); }

#endif

}  // namespace baton::transformer
