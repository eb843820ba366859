#include "identifier.hpp"

#include <fmt/core.h>

#include <charconv>
#include <random>

#include "../../base/raise.hpp"

namespace baton::nccl_abi {
namespace {

constexpr std::string_view head = "baton-nccl-1";

/// Takes a word from the front of a text; empty: there is none.
std::string_view take_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  if (!text.empty()) text.remove_prefix(1);
  return word;
}

template <class Number>
bool is_number(std::string_view word, Number& number, int base) {
  const char* const end = word.data() + word.size();
  const auto [at, error] = std::from_chars(word.data(), end, number, base);
  return error == std::errc() && at == end;
}

}  // namespace

Origin Origin::with(std::uint64_t what) const {
  Origin other = *this;
  std::seed_seq mixed{meeting >> 32, meeting & 0xffffffff, what >> 32, what & 0xffffffff};
  std::uint32_t words[2];
  mixed.generate(words, words + 2);
  other.meeting = std::uint64_t{words[0]} << 32 | words[1];
  return other;
}

std::string identifier_text(std::uint64_t key, std::uint64_t meeting, int port,
                            const std::vector<std::string>& addresses, std::size_t room) {
  std::string text = fmt::format("{} {:x} {:x} {}", head, key, meeting, port);
  for (const std::string& address : addresses)
    if (text.size() + 1 + address.size() < room) text += " " + address;
  return text;
}

Origin parse_identifier(std::string_view text) {
  Origin origin;
  std::uint16_t port = 0;
  const bool ours = take_word(text) == head && is_number(take_word(text), origin.key, 16) &&
                    is_number(take_word(text), origin.meeting, 16) &&
                    is_number(take_word(text), port, 10) && port > 0;
  if (!ours)
    base::refuse(
        "expected an identifier that ncclGetUniqueId of this library made, found another one (is "
        "the library loaded in all processes?)");
  while (!text.empty())
    if (const std::string_view address = take_word(text); !address.empty())
      origin.addresses.push_back(fmt::format("{}:{}", address, port));
  return origin;
}

}  // namespace baton::nccl_abi
