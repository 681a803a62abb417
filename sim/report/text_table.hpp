#pragma once

#include <string>
#include <vector>

namespace windtunnel {

using TextRow = std::vector<std::string>;

/// Indented lines of columns two blanks apart, as wide as their longest cell. `columns` has a letter for each: l left-aligned, r
/// right-aligned, with the least width of the column behind it where it has one ("l20r10"); the last one holds for all further columns. A
/// row may be shorter than others.
///
///   text_table("lr", {{"point", "error"}, {"a", "10.0 %"}})
///     point   error
///     a      10.0 %
std::string text_table(const std::string& columns, const std::vector<TextRow>& rows);

/// The lines of that table, neither indented nor ended.
std::vector<std::string> table_lines(const std::string& columns, const std::vector<TextRow>& rows);

/// One line of a CSV table, with its line end: fields with commas, quotes or line ends stand in quotes (RFC 4180).
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace windtunnel
