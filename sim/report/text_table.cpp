#include "report/text_table.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "core/utf8.hpp"
#include "report/number_text.hpp"
#include "report/terminal_text.hpp"

namespace windtunnel {
namespace {

constexpr std::string_view no_break = "\u00a0";

/// Whether a line may not begin with the word that follows another: "200 Gbps", "8 x b200", "16 %".
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

/// The cell with no-break spaces between numbers and their units.
std::string unbroken(const std::string& cell) {
  std::string text, last;
  for (const std::string& word : detail::wrapped(cell, 1)) {
    if (!text.empty()) text += belongs_to(last, word) ? no_break : std::string_view(" ");
    text += last = word;
  }
  return text;
}

/// The cell in lines of at most `width`, where its words allow it.
std::vector<std::string> lines_of_cell(const std::string& cell, int width) {
  std::vector<std::string> lines = detail::wrapped(unbroken(cell), width);
  for (std::string& line : lines)
    for (std::size_t at = 0; (at = line.find(no_break, at)) != std::string::npos;)
      line.replace(at, no_break.size(), " ");
  return lines;
}

/// A table while room is made for it. Columns that are left out stay in `columns`, with no width.
class TableFitter {
 public:
  TableFitter(const std::string& columns, const std::vector<TextRow>& rows)
      : columns_(text_columns(columns)), rows_(rows) {
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
    while (width() > room_ && leave_one_out(1)) lay_out(false);
    TableLines result;
    for (const TextRow& row : rows_) {
      result.rows.push_back(text_of(row));
      for (const std::string& line : detail::lines_of(result.rows.back()))
        result.width = std::max(result.width, utf8_count(line));
    }
    if (!left_out_.empty())
      result.left_out = "no room for: " + left_out_ + " (a wider terminal or --json shows " +
                        (left_out_.find(", ") == std::string::npos ? "it)" : "them)");
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
    std::size_t last = columns_.size();  // of those shown
    while (last > 0 && !is_shown_[--last]) continue;
    widths_.assign(columns_.size(), 0);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (with_least_widths) widths_[i] = columns_[i].width;
      for (const TextRow& row : rows_) {
        if (i >= row.size()) continue;
        widths_[i] = std::max(widths_[i], utf8_count(row[i]));
        for (const std::string& word : detail::wrapped(unbroken(row[i]), 1))
          least[i] = std::max({least[i], least_text, std::min(utf8_count(word), longest_word)});
      }
    }
    if (may_stick_out_ && last < columns_.size()) least[last] = least_text;
    while (!with_least_widths && width() > room_) {
      int* widest = nullptr;
      for (std::size_t i = 0; i < columns_.size(); ++i)
        if (is_shown_[i] && columns_[i].letter == 'w' && widths_[i] > least[i] &&
            (widest == nullptr || widths_[i] > *widest))
          widest = &widths_[i];
      if (widest == nullptr) return;
      --*widest;
    }
  }

  /// The column with most marks, at least so many; the last of several.
  bool leave_one_out(int marks) {
    std::size_t least_wanted = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (is_shown_[i] && columns_[i].marks >= marks) {
        least_wanted = i;
        marks = columns_[i].marks;
      }
    if (least_wanted == columns_.size()) return false;
    is_shown_[least_wanted] = false;
    if (least_wanted < rows_.front().size())
      left_out_ = rows_.front()[least_wanted] + (left_out_.empty() ? "" : ", ") + left_out_;
    return true;
  }

  std::string text_of(const TextRow& row) const {
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 1;
    for (std::size_t i = 0; i < row.size(); ++i) {
      cells.push_back(columns_[i].letter == 'w' && utf8_count(row[i]) > widths_[i]
                          ? lines_of_cell(row[i], widths_[i])
                          : std::vector{row[i]});
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
    return text;
  }

  std::vector<TextColumn> columns_;
  const std::vector<TextRow>& rows_;
  std::vector<int> widths_;
  std::vector<bool> is_shown_;
  int room_, gap_ = 2;
  bool may_stick_out_ = false;  // a long word of the last column, from its row alone
  std::string left_out_;
};

}  // namespace

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

TableLines table_lines(const std::string& columns, const std::vector<TextRow>& rows) {
  return TableFitter(columns, rows).lines();
}

std::string text_table(const std::string& columns, const std::vector<TextRow>& rows) {
  const TableLines table = table_lines(columns, rows);
  std::string text;
  for (const std::string& row : table.rows)
    for (const std::string& line : detail::lines_of(row))
      text += (line.empty() ? "" : std::string(detail::indent)) + line + "\n";
  return text + (table.left_out.empty() ? "" : detail::paragraph(table.left_out));
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
