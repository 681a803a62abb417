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
/// Of tables: what the terminal has; where text goes into a file or a pipe, there is no limit.
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

/// Breaks `text` at blanks into lines of at most `width` characters. A longer word has its own line.
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
