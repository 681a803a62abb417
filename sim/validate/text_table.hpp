#pragma once

#include <string>
#include <vector>

namespace windtunnel {

using TextRow = std::vector<std::string>;

/// Rows with the first and the last column left-aligned and the others right-aligned, indented by two blanks and with two blanks in
/// between.
std::string text_table(const std::vector<TextRow>& rows);

}  // namespace windtunnel
