#include "core/edit_distance.hpp"

#include <algorithm>

namespace windtunnel {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string digits_of(std::string text) {
  std::erase_if(text, [](char c) { return c < '0' || c > '9'; });
  return text;
}

std::string misspelt_match(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t least_letters = 6, letters_for_two = 12;
  if (word.size() < least_letters) return {};
  const std::size_t most = word.size() < letters_for_two ? 1 : 2;
  const auto found = std::ranges::find_if(candidates, [&](const std::string& candidate) {
    return edit_distance(word, candidate) <= most &&
           digits_of(std::string(word)) == digits_of(candidate);
  });
  return found == candidates.end() ? "" : *found;
}

}  // namespace windtunnel
