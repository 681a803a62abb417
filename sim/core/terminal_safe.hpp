#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// Makes text safe to print. Names and texts come from files that strangers wrote, and a terminal obeys more than it shows.
namespace windtunnel {

/// A control sequence that this program sends itself (colours, a line written over itself), on its way to for_terminal(): "[1m" stands
/// behind a mark in place of ESC. The mark holds a number drawn when the program starts, so that no text from elsewhere, be it the
/// name of a file, can hold such a sequence.
std::string own_sequence(std::string_view code);

/// True if the character at `text[at]` does something to a terminal or to the order of a line instead of being shown: control
/// characters (C0 without line end and tab, DEL, C1), marks of direction and of line ends, and bytes that are not UTF-8.
bool acts_on_terminal(std::string_view text, std::size_t at);

/// `text` with such characters spelt out (ESC is \u001b, as JSON writes it; a byte 0x9b that is not UTF-8 is \x9b) and our
/// own sequences made real.
std::string for_terminal(std::string_view text);

}  // namespace windtunnel
