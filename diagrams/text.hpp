#pragma once
/// Words and numbers of pictures.

#include <cstdint>
#include <string>
#include <string_view>

#include "baton/timeline.hpp"

namespace baton::diagrams {

/// For text and attributes of XML; U+FFFD in place of bytes that are no characters of it.
std::string escaped(std::string_view text);
/// Text as JSON, also within a page. What is not text is written by hand: a JSON library prints no
/// decimal number exactly, and there may be millions of events.
std::string json_text(const std::string& text);
/// "740 ns", "3.20 µs", "14.1 ms": three digits at least.
std::string time_text(std::int64_t ns);
/// "1.0 MiB"
std::string bytes_text(std::int64_t bytes);
/// "1 message", "2 messages"
std::string counted(std::int64_t n, std::string_view what);

/// "all_reduce by ring"
std::string heading(const Timeline& timeline);
/// "8 ranks on 2 hosts · 1.0 MiB · f32 sum · pieces of 64.0 KiB"
std::string what_text(const Timeline& timeline);
/// Where its times come from, and how good they are.
std::string source_text(const Timeline& timeline);
/// "c3 +=", or "" where an event has no name.
std::string chunk_text(const Timeline& timeline, const Event& event);
/// The name of a host in a length of so many pixels: where there is no room for all of it, without
/// its domain; then its end, which tells hosts apart.
std::string host_text(const std::string& name, double room);
/// The key by which an event is coloured.
int origin_of(const Timeline& timeline, const Event& event);

}  // namespace baton::diagrams
