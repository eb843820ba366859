#include "section.hpp"

#include <algorithm>
#include <array>

namespace baton::tracing {
namespace {

constexpr std::string_view section_marker = "\xb5\x0aTS";
constexpr std::size_t section_head = 4 + 1 + 4 + 4;  // bytes

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    table[byte] = crc;
  }
  return table;
}

std::string four_bytes(std::uint32_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

std::uint32_t four_bytes(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << 8 * i;
  }
  return value;
}

/// CRC-32 of IEEE 802.3, over kind and content.
std::uint32_t checksum(SectionKind kind, std::string_view content) {
  static constexpr auto table = crc_table();
  std::uint32_t crc = ~std::uint32_t{0};
  const auto add = [&](unsigned char byte) { crc = crc >> 8 ^ table[(crc ^ byte) & 0xff]; };
  add(static_cast<unsigned char>(kind));
  for (const char byte : content) add(static_cast<unsigned char>(byte));
  return ~crc;
}

}  // namespace

std::string section(SectionKind kind, std::string_view content) {
  std::string bytes(section_marker);
  bytes += static_cast<char>(kind);
  bytes += four_bytes(static_cast<std::uint32_t>(content.size()));
  bytes += four_bytes(checksum(kind, content));
  return bytes.append(content);
}

bool Sections::whole_at(std::size_t at) {
  const std::string_view rest = bytes_.substr(at);
  if (rest.size() < section_head || !rest.starts_with(section_marker)) return false;
  const std::size_t length = four_bytes(rest.substr(5));
  if (length > rest.size() - section_head || length > in_vain_) return false;
  kind_ = static_cast<SectionKind>(rest[4]);
  content_ = rest.substr(section_head, length);
  if (checksum(kind_, content_) == four_bytes(rest.substr(9))) return true;
  in_vain_ -= length;
  return false;
}

bool Sections::next() {
  skipped_from_ = at_;
  while (at_ < bytes_.size()) {
    if (whole_at(at_)) {
      skipped_to_ = offset_ = at_;
      at_ += section_head + content_.size();
      return true;
    }
    at_ = std::min(bytes_.find(section_marker, at_ + 1), bytes_.size());
  }
  skipped_to_ = at_;
  return false;
}

}  // namespace baton::tracing
