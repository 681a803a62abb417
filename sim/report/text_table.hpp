#pragma once

#include <string>
#include <vector>

namespace windtunnel {

using TextRow = std::vector<std::string>;

/// Indented lines of columns two blanks apart, as wide as their longest cell. `columns` has a letter for each: l left-aligned, r
/// right-aligned; the last letter holds for all further ones. A row may be shorter than others.
///
///   text_table("lr", {{"point", "error"}, {"a", "10.0 %"}})
///     point   error
///     a      10.0 %
std::string text_table(const std::string& columns, const std::vector<TextRow>& rows);

}  // namespace windtunnel
