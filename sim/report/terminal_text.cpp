#include "report/terminal_text.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <limits>
#include <utility>

#include "core/enum_array.hpp"
#include "core/terminal_safe.hpp"
#include "core/utf8.hpp"
#include "report/number_text.hpp"

namespace windtunnel::detail {
namespace {

constexpr int widest_text = 100;
int width_of_text = widest_text, width_of_table = std::numeric_limits<int>::max();

/// Select Graphic Rendition parameters (ECMA-48, 8.3.117), by tone.
constexpr EnumArray<Tone, const char*> codes{{{"0", "1", "1", "2", "36", "32", "33", "1;31"}}};

/// Takes the text to its first blank off its beginning.
std::string_view next_word(std::string_view& text) {
  const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

/// True if a line may not break between these words: "200 Gbps", "8 x b200", "16 %".
bool belongs_to(std::string_view word, std::string_view next) {
  constexpr std::size_t longest_unit = 5;
  const auto is_times = [](std::string_view text) { return text == "x" || text == "×"; };
  if (is_times(word)) return true;
  if (word.empty() || std::isdigit(static_cast<unsigned char>(word.back())) == 0) return false;
  const std::string_view unit = next.substr(0, next.find_last_not_of(".,;:)") + 1);
  const bool is_upper = !unit.empty() && std::isupper(static_cast<unsigned char>(unit[0])) != 0;
  return is_times(unit) || unit == "%" || unit == "s" || unit == "ms" || unit == "us" ||
         unit == "h" || unit == "min" || (is_upper && unit.size() <= longest_unit);
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
    std::string_view last = next_word(text);
    if (last.empty()) continue;
    std::string word(last);
    for (std::string_view rest = text, next = next_word(rest);
         !next.empty() && belongs_to(last, next); next = next_word(rest)) {
      (word += ' ') += last = next;
      text = rest;
    }
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
  return own_sequence("[" + std::string(codes[tone]) + "m") + std::string(text) +
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
  /// Position of the last column, which follows two blanks or more; the indent if there is one column.
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

/// Rightmost position at which a last column may begin that is continued below itself.
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
    while (end > below && line.cells[end - 1].is_blank()) --end;
    if (next == line.cells.size()) {
      line.cells.resize(end);
      break;
    }
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

/// A table while room is made for it. Columns that are left out stay in `columns`, with no width.
class TableFitter {
 public:
  TableFitter(std::vector<TextColumn> columns, const std::vector<TextRow>& rows)
      : columns_(std::move(columns)), rows_(rows) {
    const TextColumn further = columns_.back();
    std::size_t count = 0;
    for (const TextRow& row : rows) count = std::max(count, row.size());
    columns_.resize(count, further);
    is_shown_.assign(count, true);
    room_ = detail::table_width() - utf8_count(detail::indent);
  }

  TableLines lines() {
    lay_out(true);
    if (width() > room_) lay_out(false);
    while (width() > room_ && leave_one_out(2)) lay_out(false);
    if (width() > room_) {
      may_stick_out_ = true;
      lay_out(false);
    }
    if (width() > room_) {
      gap_ = 1;
      lay_out(false);
    }
    if (width() > room_ && has_headings()) {
      breaks_headings_ = true;
      lay_out(false);
    }
    while (width() > room_ && leave_one_out(1)) lay_out(false);
    if (width() > room_ && is_text(last_shown())) {
      below_ = last_shown();
      is_shown_[below_] = false;
      lay_out(false);
    }
    if (width() > room_) {
      breaks_all_ = true;
      lay_out(false);
    }
    TableLines result;
    for (const TextRow& row : rows_) {
      result.rows.push_back(text_of(row));
      for (const std::string& line : detail::lines_of(result.rows.back()))
        result.width = std::max(result.width, utf8_count(line));
    }
    if (!left_out_.empty())
      result.left_out = "no room for: " + left_out_ + " (a wider terminal or --json shows " +
                        (num_left_out_ == 1 ? "it)" : "them)");
    result.shared = shared_;
    return result;
  }

 private:
  int width() const {
    int sum = -gap_;
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (is_shown_[i]) sum += widths_[i] + gap_;
    return sum;
  }

  /// Each column as wide as its cells; text narrower, the widest first, as far as there is no room.
  void lay_out(bool with_least_widths) {
    // Narrower, a sentence is hard to read; a longer word is a path, which may be wider than its column.
    constexpr int least_text = 16, longest_word = 30;
    std::vector<int> least(columns_.size());
    const std::size_t last = last_shown();
    widths_.assign(columns_.size(), 0);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (with_least_widths) widths_[i] = columns_[i].width;
      for (const TextRow& row : rows_) {
        if (i >= row.size()) continue;
        const bool breaks = breaks_headings_ && std::addressof(row) == rows_.data();
        for (const std::string& line : breaks ? detail::wrapped(row[i], 1) : std::vector{row[i]})
          widths_[i] = std::max(widths_[i], utf8_count(line));
        for (const std::string& word : detail::wrapped(row[i], 1))
          least[i] = std::max(
              {least[i], breaks_all_ ? 1 : least_text, std::min(utf8_count(word), longest_word)});
      }
    }
    if (may_stick_out_ && !breaks_all_ && last < columns_.size()) least[last] = least_text;
    while (!with_least_widths && width() > room_) {
      int* widest = nullptr;
      for (std::size_t i = 0; i < columns_.size(); ++i)
        if (is_shown_[i] && (is_text(i) || breaks_all_) && widths_[i] > least[i] &&
            (widest == nullptr || widths_[i] > *widest))
          widest = &widths_[i];
      if (widest == nullptr) return;
      --*widest;
    }
  }

  /// A column that all of several rows share, then the one with most marks, at least so many; the last of several.
  bool leave_one_out(int marks) {
    std::size_t least_wanted = columns_.size();
    std::pair most{false, marks};
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (is_shown_[i] && columns_[i].marks > 0)
        if (const std::pair wanted{is_shared(i), columns_[i].marks}; wanted >= most) {
          least_wanted = i;
          most = wanted;
        }
    if (least_wanted == columns_.size()) return false;
    is_shown_[least_wanted] = false;
    if (least_wanted >= rows_.front().size()) return true;
    const std::string& heading = rows_.front()[least_wanted];
    if (is_shared(least_wanted)) {
      shared_ = heading + " " + rows_[1][least_wanted] + (shared_.empty() ? "" : " · ") + shared_;
      return true;
    }
    ++num_left_out_;
    const bool can_be_said = rows_.size() == 2 && rows_[1].size() > least_wanted;
    left_out_ = heading + (can_be_said ? " (" + rows_[1][least_wanted] + ")" : "") +
                (left_out_.empty() ? "" : "; ") + left_out_;
    return true;
  }
  /// True if several rows all have the same in the column, which one line can say of them all.
  bool is_shared(std::size_t column) const {
    const auto has_it = [&](const TextRow& row) {
      return row.size() > column && !row[column].empty() && row[column] == rows_[1][column];
    };
    return rows_.size() > 2 && std::all_of(rows_.begin() + 1, rows_.end(), has_it);
  }
  bool is_text(std::size_t column) const { return columns_[column].letter == 'w'; }
  std::size_t last_shown() const {
    std::size_t last = columns_.size();
    while (last > 0 && !is_shown_[--last]) continue;
    return last;
  }
  bool has_headings() const {  // of tables without, all columns are always shown
    return std::ranges::any_of(columns_, [](const TextColumn& each) { return each.marks > 0; });
  }
  /// The cell's lines, as wide as its column allows.
  std::vector<std::string> lines_in(const TextRow& row, std::size_t column) const {
    const std::string& cell = row[column];
    if ((is_text(column) || breaks_all_) && utf8_count(cell) > widths_[column])
      return detail::wrapped(cell, widths_[column]);
    return breaks_headings_ && &row == &rows_.front() ? detail::wrapped(cell, 1)
                                                      : std::vector{cell};
  }

  std::string text_of(const TextRow& row) const {
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 1;
    for (std::size_t i = 0; i < row.size(); ++i) {
      cells.push_back(lines_in(row, i));
      if (is_shown_[i]) height = std::max(height, cells.back().size());
    }
    std::string text;
    for (std::size_t part = 0; part < height; ++part) {
      std::string line;
      bool is_first = true;
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (!is_shown_[i]) continue;
        if (!is_first) line.append(static_cast<std::size_t>(gap_), ' ');
        is_first = false;
        const std::string cell = part < cells[i].size() ? cells[i][part] : "";
        line += columns_[i].letter == 'r' ? right_aligned(cell, widths_[i])
                                          : left_aligned(cell, widths_[i]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += (part == 0 ? "" : "\n") + line;
    }
    if (below_ < row.size() && !row[below_].empty())
      for (const std::string& line :
           detail::wrapped(row[below_], room_ - utf8_count(detail::indent)))
        text += "\n" + std::string(detail::indent) + line;
    return text;
  }

  std::vector<TextColumn> columns_;
  const std::vector<TextRow>& rows_;
  std::vector<int> widths_;
  std::vector<bool> is_shown_;
  int room_, gap_ = 2;
  bool may_stick_out_ = false;  // a long word of the last column, from its row alone
  bool breaks_headings_ = false;
  std::size_t below_ = std::numeric_limits<std::size_t>::max();  // column below its row
  bool breaks_all_ = false;
  std::string left_out_, shared_;
  int num_left_out_ = 0;
};

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

std::vector<TextColumn> text_columns(const std::string& columns) {
  constexpr int ten = 10;
  std::vector<TextColumn> result;
  for (const char each : columns)
    if (each == '?')
      ++result.back().marks;
    else if (std::isdigit(static_cast<unsigned char>(each)) != 0)
      result.back().width = ten * result.back().width + (each - '0');
    else
      result.push_back({each});
  return result;
}

TableLines table_lines(std::vector<TextColumn> columns, const std::vector<TextRow>& rows) {
  return TableFitter(std::move(columns), rows).lines();
}

std::string text_table(const std::string& columns, const std::vector<TextRow>& rows,
                       const std::string& also_shared) {
  const TableLines table = table_lines(text_columns(columns), rows);
  std::string text;
  for (const std::string& row : table.rows)
    for (const std::string& line : detail::lines_of(row))
      text += (line.empty() ? "" : std::string(detail::indent)) + line + "\n";
  return text + table.notes(also_shared);
}

std::string TableLines::notes(const std::string& also_shared) const {
  const std::string all =
      shared + (shared.empty() || also_shared.empty() ? "" : " · ") + also_shared;
  return (left_out.empty() ? "" : detail::paragraph(left_out)) +
         (all.empty() ? "" : detail::paragraph("all of them: " + all));
}

int bar_room(int table, int most) {
  constexpr int least = 8;
  const int room = std::min(most, detail::table_width() - utf8_count(detail::indent) - table - 2);
  return room < least ? 0 : room;
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    if (&field != &fields.front()) line += ',';
    if (field.find_first_of(",\"\r\n") == std::string::npos) {
      line += field;
      continue;
    }
    line += '"';
    for (const char letter : field) line += letter == '"' ? "\"\"" : std::string(1, letter);
    line += '"';
  }
  return line + "\n";
}

}  // namespace windtunnel
