#pragma once

#include <string>
#include <string_view>

namespace windtunnel {

/// `text` with no line wider than `width` characters, where a word allows it. Columns that stand further apart than they must move together,
/// the same way in all rows of a table; what is still too wide goes on in the next line, below the last column where that leaves it
/// a third of the width, and indented otherwise. A command goes on behind a backslash, so that it can be pasted. Colours (ESC [ … m) take no room, and a line that was narrow enough is as it was.
std::string fitted_text(std::string_view text, int width);

}  // namespace windtunnel
