#include "report/terminal_text.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "core/terminal_safe.hpp"
#include "core/utf8.hpp"
#include "report/number_text.hpp"

namespace windtunnel::detail {
namespace {

constexpr int widest_text = 100;
int width_of_text = widest_text, width_of_table = std::numeric_limits<int>::max();

/// Select Graphic Rendition parameters (ECMA-48, 8.3.117).
const char* code_of(Tone tone) {
  switch (tone) {
    case Tone::plain:
      break;
    case Tone::headline:
    case Tone::heading:
      return "1";
    case Tone::quiet:
      return "2";
    case Tone::bar:
      return "36";
    case Tone::good:
      return "32";
    case Tone::doubtful:
      return "33";
    case Tone::bad:
      return "1;31";
  }
  return "0";
}

}  // namespace

int text_width() { return width_of_text; }

int table_width() { return width_of_table; }

void set_text_width(int terminal) {
  width_of_text = std::min(widest_text, terminal);
  width_of_table = terminal;
}

std::vector<std::string> wrapped(std::string_view text, int width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    std::string& line = lines.back();
    if (line.empty())
      line = word;
    else if (utf8_count(line) + 1 + utf8_count(word) <= width)
      (line += ' ') += word;
    else
      lines.emplace_back(word);
  }
  return lines;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::size_t end = 0;
  while ((end = text.find('\n')) != std::string_view::npos) {
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  lines.emplace_back(text);
  return lines;
}

std::string Painter::operator()(Tone tone, std::string_view text) const {
  if (colour_ == Colour::never || tone == Tone::plain || text.empty()) return std::string(text);
  return own_sequence("[" + std::string(code_of(tone)) + "m") + std::string(text) +
         own_sequence("[0m");
}

std::string paragraph(std::string_view text) {
  std::string result;
  for (const std::string& line : wrapped(text, text_width() - utf8_count(indent)))
    result += std::string(indent) + line + "\n";
  return result;
}

std::string marked(std::string_view mark, std::string_view text, Tone tone, const Painter& paint,
                   int width) {
  const int mark_width = utf8_count(mark);
  std::string result;
  for (const std::string& line : wrapped(text, width - utf8_count(indent) - mark_width - 1)) {
    const std::string lead = result.empty() ? std::string(mark) : right_aligned("", mark_width);
    result += std::string(indent) + paint(tone, lead + " " + line) + "\n";
  }
  return result;
}

std::string listed(const std::vector<std::string>& items) {
  std::string result, line;
  for (const std::string& item : items) {
    const std::string longer = line.empty() ? item : line + " · " + item;
    if (!line.empty() && utf8_count(indent) + utf8_count(longer) > text_width()) {
      result += std::string(indent) + line + "\n";
      line = item;
    } else {
      line = longer;
    }
  }
  return result + std::string(indent) + line + "\n";
}

std::string with_spaces(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

std::string time_text(Seconds time, Seconds whole) {
  if (whole >= 1_s) return fixed_text(time / 1_s, 3) + " s";
  if (whole >= 1_ms) return fixed_text(time / 1_ms, 3) + " ms";
  return fixed_text(time / 1_us, 3) + " us";
}

}  // namespace windtunnel::detail
