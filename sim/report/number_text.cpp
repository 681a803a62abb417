#include "report/number_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/utf8.hpp"

namespace windtunnel {

std::string fixed_text(double number, int decimals) {
  std::array<char, 400> buffer;  // the largest double has 309 digits
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                    std::chars_format::fixed, decimals);
  return {buffer.data(), result.ptr};
}

std::string grouped_text(double number) {
  constexpr std::size_t group = 3;
  std::string text = fixed_text(number, 0);
  if (!std::isfinite(number)) return text;
  const std::size_t first_digit = text.front() == '-' ? 1 : 0;
  for (std::size_t at = text.size(); at > first_digit + group;) text.insert(at -= group, 1, ',');
  return text;
}

std::string parameter_text(double parameters) {
  constexpr double trillion = 1e12, billion = 1e9, million = 1e6;
  if (parameters >= trillion) return fixed_text(parameters / trillion, 2) + " T";
  if (parameters >= billion) return fixed_text(parameters / billion, 1) + " B";
  if (parameters < million) return grouped_text(parameters);
  return fixed_text(parameters / million, 0) + " M";
}

std::string percent_text(double share) { return fixed_text(share * 100, 1) + " %"; }

std::string signed_percent_text(double share) {
  const double rounded = std::round(share * 1000) / 10 + 0.0;  // + 0.0: no "-0.0"
  return (rounded >= 0 ? "+" : "") + fixed_text(rounded, 1) + " %";
}

std::string signed_text(double number, int decimals) {
  std::string text = fixed_text(number, decimals);
  if (text.find_first_not_of("-0.") == std::string::npos) return "=";
  return (number > 0 ? "+" : "") + text;
}

std::string relative_change(double from, double to) {
  constexpr double many = 10, most_ungrouped = 999;
  if (from == to) return "=";
  if (from == 0) return "new";
  if (const double ratio = rounded_to(to / from, 3); ratio >= many)
    return "x " + (ratio <= most_ungrouped ? significant_text(ratio, 3) : grouped_text(ratio));
  const std::string text = signed_text((to / from - 1) * 100, 1);
  return text == "=" ? text : text + " %";
}

std::string run_letter(std::size_t run) {
  constexpr std::size_t letters = 26;
  return run < letters ? std::string(1, static_cast<char>('A' + run)) : std::to_string(run + 1);
}

std::string right_aligned(std::string_view text, int width) {
  const int missing = std::max(0, width - utf8_count(text));
  return std::string(static_cast<std::size_t>(missing), ' ').append(text);
}

std::string left_aligned(std::string_view text, int width) {
  const int missing = std::max(0, width - utf8_count(text));
  return std::string(text).append(static_cast<std::size_t>(missing), ' ');
}

std::string bar_text(double share, int width) {
  constexpr std::array eighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  constexpr int per_character = 8;
  if (!(share > 0)) return "";
  // Something is never shown as nothing.
  const long filled = std::max(1L, std::lround(std::min(share, 1.0) * width * per_character));
  std::string text;
  for (long i = 0; i < filled / per_character; ++i) text += "█";
  return text + eighths[static_cast<std::size_t>(filled % per_character)];
}

std::string significant_text(double number, int digits) {
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                 std::chars_format::general, digits)
                       .ptr;
  return {buffer.data(), end};
}

double rounded_to(double number, int digits) {
  const std::string text = significant_text(number, digits);
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace windtunnel
