#include "core/utf8.hpp"

#include <cctype>

namespace windtunnel {
namespace {

unsigned byte_or_zero(std::string_view text, std::size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
}

bool is_continuation(unsigned byte) { return (byte & 0xC0U) == 0x80U; }

/// Lowest and highest second byte allowed after `lead` (Unicode 15, table 3-7).
bool second_byte_fits(unsigned lead, unsigned second) {
  if (lead == 0xE0) return second >= 0xA0 && second <= 0xBF;
  if (lead == 0xED) return second >= 0x80 && second <= 0x9F;
  if (lead == 0xF0) return second >= 0x90 && second <= 0xBF;
  if (lead == 0xF4) return second >= 0x80 && second <= 0x8F;
  return is_continuation(second);
}

std::size_t length_promised(unsigned lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

}  // namespace

std::size_t utf8_length_at(std::string_view text, std::size_t at) {
  if (at >= text.size()) return 0;
  const unsigned lead = byte_or_zero(text, at);
  const std::size_t length = length_promised(lead);
  if (length >= 2 && !second_byte_fits(lead, byte_or_zero(text, at + 1))) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if (!is_continuation(byte_or_zero(text, at + i))) return 0;
  return length;
}

int utf8_count(std::string_view text) {
  int count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) {
    const std::size_t length = utf8_length_at(text, at);
    at += length == 0 ? 1 : length;
  }
  return count;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

}  // namespace windtunnel
