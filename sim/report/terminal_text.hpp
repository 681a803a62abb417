#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/summary_text.hpp"
#include "units/quantity.hpp"

/// Lines of text for a terminal, at most text_width() characters wide.
namespace windtunnel::detail {

/// 100, or less where a terminal is narrower: wider lines are hard to read.
int text_width();
/// Width of tables: that of the terminal; no limit if text goes into a file or a pipe.
int table_width();
/// Once, before any text is made.
void set_text_width(int terminal);
inline constexpr std::string_view indent = "  ";

/// Roles that text can have; the terminal shows each in its own way.
enum class Tone { plain, headline, heading, quiet, bar, good, doubtful, bad };

/// Wraps text in codes that for_terminal turns into the terminal's, or leaves it as it is.
class Painter {
 public:
  explicit Painter(Colour colour) : colour_(colour) {}
  std::string operator()(Tone tone, std::string_view text) const;

 private:
  Colour colour_;
};

/// Breaks `text` at blanks into lines of at most `width` characters, but not between a number and its unit. A longer word has its own line.
std::vector<std::string> wrapped(std::string_view text, int width);
/// `text` broken at its line ends: one line where there are none.
std::vector<std::string> lines_of(std::string_view text);
/// `text` in as many indented lines as it takes.
std::string paragraph(std::string_view text);
/// The same after a mark, further lines below the first:  ✗ DOES NOT FIT: stage 0 needs …
std::string marked(std::string_view mark, std::string_view text, Tone tone, const Painter& paint,
                   int width = text_width());
/// Items side by side with dots between them; none is broken.
std::string listed(const std::vector<std::string>& items);

/// "tensor comm" for tensor_comm.
std::string with_spaces(std::string name);
/// `time` in the unit that suits the whole it is part of.
std::string time_text(Seconds time, Seconds whole);

}  // namespace windtunnel::detail

namespace windtunnel {

/// `text` with no line wider than `width` characters, where a word allows it. What is too wide goes on in the next line, below the last column
/// where that leaves it a third of the width, and indented otherwise: tables make their own room (table_lines()). A command goes on behind a
/// backslash, so that it can be pasted. Colours (ESC [ … m) take no room, and a line that was narrow enough is as it was.
std::string fitted_text(std::string_view text, int width);

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
      rows;                 ///< of a row that takes several lines, these with line ends between
  int width = 0;            ///< of the widest line
  std::string left_out;     ///< a sentence that names the columns without room; else empty
  std::string shared = {};  ///< left out too, as all rows have the same there: "tensor 4 · data 8"

  /// The lines below the table: both, and `also_shared` of all rows.
  std::string notes(const std::string& also_shared = "") const;
};
/// Columns two blanks apart, as wide as their longest cell. The last of `columns` holds for all further
/// columns, and a row may be shorter than others. Where table_width() has no room for that, least widths give way, then columns of text are
/// broken at blanks, but not between a number and its unit, then columns with two marks or more are left out, then a last column of text gets
/// narrower than its longest words, which stick out, then one blank stands between columns, then headings of several words take several
/// lines, then columns with one mark are left out. Those that all of several rows share go first, whatever their marks. The headings, the
/// first row, name what is left out. Then a last column of text goes below its rows, and only then are all cells broken at blanks.
TableLines table_lines(std::vector<TextColumn> columns, const std::vector<TextRow>& rows);

/// The lines of that table, indented, and what was left out.
///
///   text_table("lr", {{"point", "error"}, {"a", "10.0 %"}})
///     point   error
///     a      10.0 %
std::string text_table(const std::string& columns, const std::vector<TextRow>& rows,
                       const std::string& also_shared = "");

/// Width of bars next to a table of width `table`: at most `most`, 0 if there is no room.
int bar_room(int table, int most);

/// One line of a CSV table, with its line end: fields with commas, quotes or line ends stand in quotes (RFC 4180).
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace windtunnel
