#include "core/markup_text.hpp"

#include <algorithm>

#include "core/terminal_safe.hpp"
#include "core/utf8.hpp"

namespace windtunnel {
namespace {

/// Production [2] of XML 1.0, Char, of a valid UTF-8 character that is no control character.
bool is_xml(std::string_view character) {
  return character != "\xEF\xBF\xBE" && character != "\xEF\xBF\xBF";  // U+FFFE, U+FFFF
}

std::string_view entity_of(char letter) {
  switch (letter) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

}  // namespace

std::string markup_text(std::string_view text) {
  constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD
  std::string safe;
  safe.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length_at(text, at);
    const std::string_view character = text.substr(at, length);
    if (length == 0 || !is_xml(character))
      safe += replacement;
    else if (character != "\r" && acts_on_terminal(character, 0))
      safe += for_terminal(character);
    else if (const std::string_view entity = entity_of(character.front()); !entity.empty())
      safe += entity;
    else
      safe += character;
    at += std::max<std::size_t>(1, length);
  }
  return safe;
}

}  // namespace windtunnel
