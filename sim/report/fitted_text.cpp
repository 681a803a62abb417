#include "report/fitted_text.hpp"

#include <algorithm>
#include <vector>

#include "core/utf8.hpp"

namespace windtunnel {
namespace {

/// A character as it is shown, behind the colours that begin with it.
struct Cell {
  std::string colours, letter;
  bool is_blank() const { return letter == " "; }
};

struct TextLine {
  std::vector<Cell> cells;
  std::string tail;  ///< colours behind the last character

  int width() const { return static_cast<int>(cells.size()); }
  bool is_blank_at(std::size_t column) const {
    return column >= cells.size() || cells[column].is_blank();
  }
  std::size_t indent() const {
    const auto first =
        std::ranges::find_if(cells, [](const Cell& cell) { return !cell.is_blank(); });
    return static_cast<std::size_t>(first - cells.begin());
  }
  /// Where the last column begins: behind two blanks or more. The indent where there is one column.
  std::size_t last_column() const {
    for (std::size_t column = cells.size(); column > indent() + 2; --column)
      if (!is_blank_at(column - 1) && is_blank_at(column - 2) && is_blank_at(column - 3))
        return column - 1;
    return indent();
  }
  std::string text() const {
    std::string result;
    for (const Cell& cell : cells) result += cell.colours + cell.letter;
    return result + tail;
  }
};

TextLine line_of(std::string_view text) {
  TextLine line;
  std::string colours;
  while (!text.empty()) {
    if (text.starts_with("\033[")) {
      const std::size_t end = std::min(text.find('m'), text.size() - 1) + 1;
      colours += text.substr(0, end);
      text.remove_prefix(end);
      continue;
    }
    const std::size_t length = std::max(utf8_length_at(text, 0), std::size_t{1});
    line.cells.push_back({std::move(colours), std::string(text.substr(0, length))});
    colours.clear();
    text.remove_prefix(length);
  }
  line.tail = std::move(colours);
  return line;
}

/// How far to the right a last column may begin that goes on below itself.
std::size_t breakable_from(int width) { return static_cast<std::size_t>(width) * 2 / 3; }

/// The line in as many as it takes.
std::string broken(TextLine line, int width) {
  std::string result;
  const auto limit = static_cast<std::size_t>(width);
  if (line.width() > width && line.indent() > breakable_from(width))  // the rest of a column
    line.cells.erase(line.cells.begin(),
                     line.cells.begin() + static_cast<std::ptrdiff_t>(line.indent() - 2));
  std::size_t below = line.last_column();
  if (below > breakable_from(width)) below = line.indent();
  constexpr std::size_t deep = 8;  // what begins that far in is the rest of a column
  if (below == line.indent() && below < deep) below += 2;
  const bool is_command = line.text().find("windtunnel ") == line.indent();
  while (line.cells.size() > limit) {
    std::size_t end = is_command ? limit - 2 : limit;
    while (end > below && !line.cells[end].is_blank()) --end;
    if (end <= below) {  // a word of more than a line: to its end
      end = limit;
      while (end < line.cells.size() && !line.cells[end].is_blank()) ++end;
    }
    TextLine rest;
    rest.tail = line.tail;
    std::size_t next = end;
    while (next < line.cells.size() && line.cells[next].is_blank()) ++next;
    if (next == line.cells.size()) break;
    rest.cells.assign(below, {"", " "});
    rest.cells.insert(rest.cells.end(), line.cells.begin() + static_cast<std::ptrdiff_t>(next),
                      line.cells.end());
    line.cells.resize(end);
    line.tail.clear();
    result += line.text() + (is_command ? " \\\n" : "\n");
    line = std::move(rest);
  }
  return result + line.text();
}

}  // namespace

std::string fitted_text(std::string_view text, int width) {
  std::string result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    result += broken(line_of(text.substr(0, end)), width) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

}  // namespace windtunnel
