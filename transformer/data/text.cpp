#include "text.hpp"

#include <fmt/core.h>
#include <iconv.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "baton/error.hpp"
#include "file.hpp"
#include "utf8.hpp"

namespace baton::transformer {
namespace {

/// The first byte that is not part of a character of UTF-8; the size if there is none.
std::size_t first_invalid(const std::string& text) {
  const iconv_t to_points = iconv_open("UTF-32LE", "UTF-8");
  std::array<char, 4096> points;
  char* in = const_cast<char*>(text.data());  // NOLINT: iconv reads it only
  std::size_t left = text.size();
  for (bool more = true; left > 0 && more;) {
    char* out = points.data();
    std::size_t room = points.size();
    const bool whole = iconv(to_points, &in, &left, &out, &room) != static_cast<std::size_t>(-1);
    more = !whole && errno == E2BIG;
  }
  iconv_close(to_points);
  return text.size() - left;
}

/// Where the last `share` of a text begins: at a line's begin, if that adds at most a tenth of it.
std::size_t validation_begin(const std::string& text, double share) {
  const double bytes = static_cast<double>(text.size()) * share;
  const std::size_t wanted = text.size() - static_cast<std::size_t>(std::ceil(bytes));
  const std::size_t line = std::string_view(text).substr(0, wanted).rfind('\n') + 1;  // 0: none
  return line > 0 && static_cast<double>(wanted - line) <= bytes / 10
             ? line
             : data::character_begin(text, wanted);
}

/// Fowler, Noll, Vo: FNV-1a of 64 bits.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace

std::string read_text(const std::vector<std::filesystem::path>& files) {
  std::string text;
  for (const auto& file : files) {
    const std::string content = data::read_file(file);
    if (content.empty()) data::refuse(file, 0, "text", "an empty file");
    if (const std::size_t at = first_invalid(content); at < content.size()) {
      data::refuse(file, static_cast<std::int64_t>(at), "UTF-8",
                   fmt::format("the byte 0x{:02x}", static_cast<unsigned char>(content[at])));
    }
    text += content;
  }
  return text;
}

Tokenizer tokenizer_beside(const std::filesystem::path& file, std::string_view text,
                           int vocabulary) {
  std::filesystem::path kept = file;
  kept += fmt::format(".bpe-{}-{:016x}.model", vocabulary, hash_of(text));
  if (std::filesystem::exists(kept)) return Tokenizer::read(kept);
  try {
    Tokenizer tokenizer = Tokenizer::train(text, vocabulary);
    tokenizer.write(kept);
    return tokenizer;
  } catch (const Error& error) {
    throw Error(error.code, fmt::format("{}: {}", file.string(), error.what()));
  }
}

Sequences::Sequences(std::vector<std::int32_t> tokens, std::int64_t length, std::string_view what)
    : tokens_(std::move(tokens)), length_(length) {
  if (length < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected sequences of at least 1 token, found {}", what, length));
  }
  if (static_cast<std::int64_t>(tokens_.size()) <= length) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("{}: expected at least {} tokens, a sequence of {} and the next, found {}",
                    what, length + 1, length, tokens_.size()));
  }
}

TokenBatch Sequences::batch(std::span<const std::int64_t> samples) const {
  TokenBatch batch;
  batch.shape = {static_cast<std::int64_t>(samples.size()), length_};
  for (const std::int64_t sample : samples) {
    if (sample < 0 || sample >= size()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("text: expected a sample within [0, {}), found {}", size(), sample));
    }
    const auto first = tokens_.begin() + sample * length_;
    batch.ids.insert(batch.ids.end(), first, first + length_);
    batch.targets.insert(batch.targets.end(), first + 1, first + length_ + 1);
  }
  return batch;
}

TextData read_text_data(const std::vector<std::filesystem::path>& files, int vocabulary,
                        std::int64_t length, double share) {
  if (files.empty()) throw Error(ErrorCode::invalid_argument, "text: expected files, found none");
  if (!(share > 0 && share < 1)) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("text: expected a share for validation within (0, 1), found {}", share));
  }
  const std::string text = read_text(files);
  const std::size_t cut = validation_begin(text, share);
  const std::string_view training = std::string_view(text).substr(0, cut);
  const Tokenizer tokenizer = tokenizer_beside(files.front(), training, vocabulary);
  const std::string name = files.front().string();
  return {tokenizer, Sequences(tokenizer.encode(training), length, name + ", to train on"),
          Sequences(tokenizer.encode(std::string_view(text).substr(cut)), length,
                    name + ", for validation")};
}

}  // namespace baton::transformer
