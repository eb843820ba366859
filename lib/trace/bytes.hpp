#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace baton::tracing {

/// Writes numbers in the fewest bytes: seven bits each, lowest first. Signed numbers are folded so
/// that small magnitudes give small numbers.
class ByteWriter {
 public:
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void signed_number(std::int64_t value) {
    number(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
  }
  void text(std::string_view text) {
    number(text.size());
    bytes_ += text;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// A reader expected a number or text and found something else.
struct Malformed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Reads the same format. Throws Malformed if bytes end too early or a number is too large.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  bool done() const { return at_ == bytes_.size(); }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (done()) throw Malformed("a number that ends too early");
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw Malformed("a number of more than 64 bits");
  }
  /// A number of at most `most`.
  std::uint64_t number(std::uint64_t most) {
    const std::uint64_t value = number();
    if (value > most) throw Malformed("a number that is too large");
    return value;
  }
  std::int64_t signed_number() {
    const std::uint64_t folded = number();
    return static_cast<std::int64_t>(folded >> 1 ^ (0 - (folded & 1)));
  }
  /// The number of items that follow, each of at least so many bytes.
  std::size_t count(std::size_t least_bytes = 1) {
    const std::uint64_t items = number();
    if (items > (bytes_.size() - at_) / least_bytes) throw Malformed("a number that is too large");
    return static_cast<std::size_t>(items);
  }
  std::string text() {
    const std::size_t length = count();
    std::string text(bytes_.substr(at_, length));
    at_ += length;
    return text;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

}  // namespace baton::tracing
