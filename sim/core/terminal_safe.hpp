#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// What may be printed. Names and texts come from files that strangers wrote, and a terminal obeys more than it shows.
namespace windtunnel {

/// Stands for ESC in the control sequences that this program sends itself (colours, a line written over itself). The byte
/// occurs in no UTF-8 text, so no text from elsewhere can hold such a sequence.
inline constexpr char own_escape = '\xFF';

/// Whether the character at `text[at]` does something to a terminal or to the order of a line instead of being shown: control
/// characters (C0 without line end and tab, DEL, C1), marks of direction and of line ends, and bytes that are not UTF-8.
bool acts_on_terminal(std::string_view text, std::size_t at);

/// `text` with such characters spelt out (ESC is \u001b, as JSON writes it; a byte 0x9b that is not UTF-8 is \x9b) and our
/// own sequences made real.
std::string for_terminal(std::string_view text);

}  // namespace windtunnel
