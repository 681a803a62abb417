#pragma once

#include <string>
#include <string_view>

namespace windtunnel {

/// `text` with no line wider than `width` characters, where a word allows it. What is too wide goes on in the next line, below the last column
/// where that leaves it a third of the width, and indented otherwise: tables make their own room (text_table.hpp). A command goes on behind a
/// backslash, so that it can be pasted. Colours (ESC [ … m) take no room, and a line that was narrow enough is as it was.
std::string fitted_text(std::string_view text, int width);

}  // namespace windtunnel
