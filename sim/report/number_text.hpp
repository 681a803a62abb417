#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace windtunnel {

/// `number` with so many decimals: 62.64, 2 -> "62.64". Never in scientific notation.
std::string fixed_text(double number, int decimals);
/// `number` with so many significant digits, in scientific notation where that is shorter: 0.82345, 4 -> "0.8235".
std::string significant_text(double number, int digits);
/// The number that significant_text() writes.
double rounded_to(double number, int digits);
/// Rounded to whole units, with thousands apart: 192872.3 -> "192,872".
std::string grouped_text(double number);
/// A number of parameters as models are called: "39.1 B", "760 M".
std::string parameter_text(double parameters);
/// A share of one as percent: 0.4417 -> "44.2 %".
std::string percent_text(double share);
/// A difference as percent, with its sign: 0.0534 -> "+5.3 %". What rounds to nothing is "+0.0 %".
std::string signed_percent_text(double share);
/// "+0.208", "-0.335"; "=" for what rounds to nothing.
std::string signed_text(double number, int decimals);
/// "-7.6 %", or from ten times on "x 12.5"; "=" when it is the same to the last digit shown, "new" where there was nothing.
std::string relative_change(double from, double to);
/// The letter of one of several runs: "A", "B", …, "Z", "27", …
std::string run_letter(std::size_t run);
/// Blanks before or after `text` until it is `width` characters (not bytes) wide.
std::string right_aligned(std::string_view text, int width);
std::string left_aligned(std::string_view text, int width);
/// A bar of up to `width` characters, in eighths of one, that `share` of one fills: "██████▌".
std::string bar_text(double share, int width);

}  // namespace windtunnel
