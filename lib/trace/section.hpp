#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace baton::tracing {

/// A trace file is a head and sections: marker, kind, length, checksum, content. A reader notices
/// damage and continues behind it.
enum class SectionKind : std::uint8_t { rank = 1, group = 2, plan = 3, events = 4, end = 5 };

std::string section(SectionKind kind, std::string_view content);

/// The intact sections of a file, one after the other. The time is linear in the bytes: where
/// markers with long lengths but without a section abound, the sections behind them count as
/// damaged.
class Sections {
 public:
  explicit Sections(std::string_view bytes) : bytes_(bytes), in_vain_(16 * bytes.size()) {}

  /// Goes to the next intact section; false at the end. skipped_from() to skipped_to() are the
  /// offsets of the damaged bytes before it or before the end; they are equal if there are none.
  bool next();
  SectionKind kind() const { return kind_; }
  std::string_view content() const { return content_; }
  std::size_t offset() const { return offset_; }  ///< start of the section
  std::size_t skipped_from() const { return skipped_from_; }
  std::size_t skipped_to() const { return skipped_to_; }

 private:
  bool whole_at(std::size_t at);

  std::string_view bytes_;
  std::size_t in_vain_;  // bytes that may yet be checked without finding a section
  std::size_t at_ = 0;
  SectionKind kind_ = SectionKind::end;
  std::string_view content_;
  std::size_t offset_ = 0, skipped_from_ = 0, skipped_to_ = 0;
};

}  // namespace baton::tracing
