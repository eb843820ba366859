#include "table.hpp"

#include <algorithm>

#include "../base/utf8.hpp"

namespace baton::explaining {
namespace {

/// The number of characters that UTF-8 text shows.
std::size_t width(const std::string& text) {
  return text.size() -
         static_cast<std::size_t>(std::ranges::count_if(text, base::continues_character));
}

bool divides(const std::string& word) { return word == "|" || word.starts_with('('); }

std::string padded_left(const std::string& text, std::size_t to) {
  return std::string(to - std::min(to, width(text)), ' ') + text;
}

std::string padded_right(const std::string& text, std::size_t to) {
  return text + std::string(to - std::min(to, width(text)), ' ');
}

std::string line(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text + '\n';
}

}  // namespace

std::string table(const std::vector<std::string>& heads, const std::vector<TableRow>& rows) {
  std::size_t label_width = 0;
  std::vector<std::size_t> word_width(heads.size()), cell_width;
  for (const std::string& head : heads) cell_width.push_back(width(head));
  for (const TableRow& row : rows) {
    label_width = std::max(label_width, width(row.label));
    for (std::size_t c = 0; c < heads.size(); ++c) {
      for (const std::string& word : row.cells[c]) {
        if (!divides(word)) word_width[c] = std::max(word_width[c], width(word));
      }
    }
  }
  const auto joined = [&](const TableCell& cell, std::size_t c) {
    std::string text;
    for (const std::string& word : cell) {
      text += (text.empty() ? "" : " ") + (divides(word) ? word : padded_left(word, word_width[c]));
    }
    return text;
  };
  for (const TableRow& row : rows) {
    for (std::size_t c = 0; c < heads.size(); ++c) {
      cell_width[c] = std::max(cell_width[c], width(joined(row.cells[c], c)));
    }
  }

  std::string text = padded_right("", label_width);
  for (std::size_t c = 0; c < heads.size(); ++c)
    text += "   " + padded_right(heads[c], cell_width[c]);
  text = line(std::move(text));
  for (const TableRow& row : rows) {
    std::string next = padded_right(row.label, label_width);
    for (std::size_t c = 0; c < heads.size(); ++c) {
      next += "   " + padded_right(joined(row.cells[c], c), cell_width[c]);
    }
    text += line(std::move(next));
  }
  return text;
}

}  // namespace baton::explaining
