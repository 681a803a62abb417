#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace windtunnel::detail {

/// Treatment of // and /* */: skipped like blanks, or errors.
enum class Comments { skipped, refused };

/// Token that may come next in a JSON text, besides the end of an array or object.
enum class Expected { value, key, colon, comma, nothing };

/// Position at which nlohmann_json stopped reading. Its own message would not be in our words.
struct JsonStop {
  /// The text behind the last token that it took; where that is a number, true, false or null, the text from its beginning,
  /// for 80GB is a number to it, and a mistake behind it.
  std::string_view rest;
  bool begins_with_word = false;
  Expected expected = Expected::value;
  std::optional<char> open = {};  ///< bracket of the innermost array or object that is open
  bool is_empty = false;          ///< nothing stands in that yet
  Comments comments = Comments::skipped;
};

/// Why a text is not JSON, in the user's terms.
struct JsonSyntaxError {
  static constexpr std::size_t at_open_bracket = std::string_view::npos;
  std::size_t begin = 0;  ///< in JsonStop::rest
  int length = 1;         ///< in characters
  std::string message;
  std::string suggestion;  ///< what to write instead
  std::size_t end = 0;     ///< of what was looked at
};
JsonSyntaxError explain(const JsonStop& stop);

/// A token in a message, shortened.
std::string shown(std::string_view token);

/// Letters, digits, + - . and _, of which true, -1.5e3, nan and 80GB are made.
constexpr bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '.' ||
         c == '_' || c == '-' || c == '+';
}

}  // namespace windtunnel::detail
