#pragma once

#include <string>
#include <vector>

namespace windtunnel {

using TextRow = std::vector<std::string>;

/// A column of a text table, as its letter and what stands behind it say.
struct TextColumn {
  char
      letter;  ///< l left-aligned, r right-aligned, w left-aligned text that may take several lines
  int width = 0;  ///< at least, while there is room
  int marks =
      0;  ///< of columns that may be left out, those with most marks go first; 0: always shown
};
/// "l20r??" as {{'l', 20, 0}, {'r', 0, 2}}.
std::vector<TextColumn> text_columns(const std::string& columns);

/// A table laid out for a terminal.
struct TableLines {
  std::vector<std::string>
      rows;              ///< of a row that takes several lines, these with line ends between
  int width = 0;         ///< of the widest line
  std::string left_out;  ///< a sentence that names the columns without room; else empty
};
/// Columns two blanks apart, as wide as their longest cell. `columns` has a letter for each (TextColumn); the last one holds for all further
/// columns, and a row may be shorter than others. Where table_width() has no room for that, least widths give way, then columns of text are
/// broken at blanks, but not between a number and its unit, then columns with two marks or more are left out, then a last column of text gets
/// narrower than its longest words, which stick out, then one blank stands between columns, then those with one mark are left out. What is
/// left out is named by the headings, the first row. No other cell is ever broken.
TableLines table_lines(const std::string& columns, const std::vector<TextRow>& rows);

/// The lines of that table, indented, and what was left out.
///
///   text_table("lr", {{"point", "error"}, {"a", "10.0 %"}})
///     point   error
///     a      10.0 %
std::string text_table(const std::string& columns, const std::vector<TextRow>& rows);

/// How wide bars beside a table of that width can be: at most `most`, 0 where there is no room for any.
int bar_room(int table, int most);

/// One line of a CSV table, with its line end: fields with commas, quotes or line ends stand in quotes (RFC 4180).
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace windtunnel
