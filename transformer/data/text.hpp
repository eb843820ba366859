#pragma once
/// Text as tokens.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../tensor.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Cuts text into byte-pair tokens: Sennrich, Haddow, Birch, Neural machine translation of rare
/// words with subword units (2016), by SentencePiece (Kudo, Richardson, 2018). A character that the
/// training text lacks becomes the bytes of its UTF-8, so every text has tokens, and decode() of
/// encode() is the text, but for U+2581, which becomes a blank.
class Tokenizer {
 public:
  /// Learns `vocabulary` tokens from a text in UTF-8. The same text gives the same tokens. Throws
  /// Error(invalid_argument) where the text has too few or too many different characters or words
  /// for that number, and Error(unsupported) in a build without SentencePiece.
  static Tokenizer train(std::string_view text, int vocabulary);
  /// Reads what write() has written. Throws Error(invalid_argument) if the file is none of these.
  static Tokenizer read(const std::filesystem::path& file);
  /// Writes a model of SentencePiece. Where it fails, a file that was there stays as it was; throws
  /// Error(invalid_argument).
  void write(const std::filesystem::path& file) const;

  /// The number of tokens; their ids are below it.
  int vocabulary() const;
  /// The tokens of a text in UTF-8.
  std::vector<std::int32_t> encode(std::string_view text) const;
  /// The text of tokens. Throws Error(invalid_argument) unless all are within the vocabulary.
  std::string decode(std::span<const std::int32_t> tokens) const;

 private:
  struct Model;
  explicit Tokenizer(std::string serialized);
  std::shared_ptr<const Model> model_;
};

/// The content of text files, one after the other. Throws Error(invalid_argument) that names the
/// file and the byte where one is not UTF-8, and where one is empty or cannot be read.
std::string read_text(const std::vector<std::filesystem::path>& files);

/// The tokenizer of a text, which is kept beside its first file as
/// FILE.bpe-VOCABULARY-HASH.model: read if it is there, otherwise trained and written. Throws as
/// Tokenizer's functions.
Tokenizer tokenizer_beside(const std::filesystem::path& file, std::string_view text,
                           int vocabulary);

/// Some sequences of tokens, and the token that follows each: both [n, s], on the host.
struct TokenBatch {
  Shape shape;
  std::vector<std::int32_t> ids, targets;
  /// Positions at the end of the whole sequences that are there only to make ranks' parts equal.
  std::int64_t padding = 0;
  /// The ids as a tensor.
  View<const std::int32_t> ids_view() const { return {ids.data(), shape}; }
  /// The targets in one row, as losses take them.
  View<const std::int32_t> targets_view() const { return {targets.data(), {shape.elements()}}; }
};

/// Tokens as samples of equal length: sample i has the tokens from i · length on, and as its
/// targets those one further on. What does not fill a sample at the end is left out.
class Sequences {
 public:
  /// `length` tokens each. Throws Error(invalid_argument) that begins with `what` unless the tokens
  /// fill a sample with its targets.
  Sequences(std::vector<std::int32_t> tokens, std::int64_t length, std::string_view what);

  /// The number of samples.
  std::int64_t size() const { return (static_cast<std::int64_t>(tokens_.size()) - 1) / length_; }
  /// Tokens of a sample.
  std::int64_t length() const { return length_; }
  /// Some samples. Throws Error(invalid_argument) unless they are within [0, size()).
  TokenBatch batch(std::span<const std::int64_t> samples) const;

 private:
  std::vector<std::int32_t> tokens_;
  std::int64_t length_;
};

/// A text to train on and a text to compare with.
struct TextData {
  Tokenizer tokenizer;
  Sequences training, validation;
};
/// Reads text files as sequences of `length` tokens, of which the last `share` of the text is for
/// validation. Throws as read_text(), tokenizer_beside() and Sequences.
TextData read_text_data(const std::vector<std::filesystem::path>& files, int vocabulary,
                        std::int64_t length, double share = 0.1);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
