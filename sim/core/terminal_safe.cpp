#include "core/terminal_safe.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "core/utf8.hpp"

namespace windtunnel {
namespace {

/// Set a colour, go to the start of the line, erase to its end (ECMA-48: SGR, CHA, EL).
constexpr std::array<std::string_view, 9> own_sequences{"[0m",  "[1m",    "[2m", "[32m", "[33m",
                                                        "[36m", "[1;31m", "[G",  "[K"};

/// First and last of each range of code points that act.
constexpr std::array<std::pair<char32_t, char32_t>, 9> acting{{
    {0x00, 0x08},
    {0x0B, 0x1F},
    {0x7F, 0x9F},      // DEL, C1
    {0x061C, 0x061C},  // Arabic letter mark
    {0x200E, 0x200F},  // left-to-right and right-to-left mark
    {0x2028, 0x2029},  // line and paragraph separator
    {0x202A, 0x202E},  // embeddings and overrides of direction
    {0x2066, 0x2069},  // isolates of direction
    {0xFEFF, 0xFEFF},  // byte order mark
}};

unsigned byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

/// The code point of the `length` bytes at `at`, which are valid.
char32_t code_point(std::string_view text, std::size_t at, std::size_t length) {
  constexpr std::array<unsigned, 5> lead_bits{0, 0x7F, 0x1F, 0x0F, 0x07};
  constexpr unsigned bits_of_continuation = 6;
  char32_t code = byte_at(text, at) & lead_bits[length];
  for (std::size_t i = 1; i < length; ++i)
    code = code << bits_of_continuation | (byte_at(text, at + i) & 0x3FU);
  return code;
}

bool acts(char32_t code) {
  return std::any_of(acting.begin(), acting.end(), [code](const auto& range) {
    return code >= range.first && code <= range.second;
  });
}

/// The last `count` hexadecimal digits of `code`.
std::string hexadecimal(char32_t code, unsigned count) {
  constexpr std::string_view digits = "0123456789abcdef";
  constexpr unsigned bits_of_digit = 4;
  std::string text;
  while (count-- > 0) text += digits[code >> (count * bits_of_digit) & 0xFU];
  return text;
}

/// Marker that stands in for ESC. It begins with a byte that never occurs in UTF-8.
const std::string& own_mark() {
  static const std::string mark = [] {
    std::random_device random;
    constexpr unsigned digits = 8;
    return "\xFF" + hexadecimal(random(), digits) + hexadecimal(random(), digits);
  }();
  return mark;
}

/// The sequence of our own whose mark stands at `at`; empty: there is none.
std::string_view own_sequence_at(std::string_view text, std::size_t at) {
  if (text[at] != own_mark().front() || !text.substr(at).starts_with(own_mark())) return {};
  for (const std::string_view sequence : own_sequences)
    if (text.substr(at + own_mark().size()).starts_with(sequence)) return sequence;
  return {};
}

}  // namespace

std::string own_sequence(std::string_view code) { return own_mark() + std::string(code); }

bool acts_on_terminal(std::string_view text, std::size_t at) {
  const std::size_t length = utf8_length_at(text, at);
  return length == 0 || acts(code_point(text, at, length));
}

std::string for_terminal(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length_at(text, at);
    const std::string_view own = own_sequence_at(text, at);
    if (!own.empty())
      (safe += '\x1b') += own;
    else if (length == 0)
      safe += "\\x" + hexadecimal(byte_at(text, at), 2);
    else if (const char32_t code = code_point(text, at, length); acts(code))
      safe += "\\u" + hexadecimal(code, 4);
    else
      safe += text.substr(at, length);
    at += own.empty() ? std::max<std::size_t>(1, length) : own_mark().size() + own.size();
  }
  return safe;
}

}  // namespace windtunnel
