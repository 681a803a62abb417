#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace windtunnel::detail {

/// A piece of JSON text: [begin, end) in bytes.
struct Token {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// The first offset from `from` that is neither white space nor within a comment.
std::size_t skip_blanks(std::string_view text, std::size_t from);

/// The string, word (a number, true, nan, …) or single character that follows `from` and blanks;
/// empty at the end. A string without closing quote ends with its line, a comment without end is a
/// token up to the end of the text.
Token token_after(std::string_view text, std::size_t from);

/// The text of `token`, shortened for a message.
std::string shown(std::string_view text, Token token);

/// The innermost array or object that is open where a syntax error stands.
struct OpenContainer {
  std::size_t begin = 0;
  char bracket = '{';
};

/// A syntax error in the user's terms.
struct SyntaxError {
  Token place;
  std::string message;
  std::string suggestion;
};

/// What the parser knows of a syntax error.
struct SyntaxErrorSite {
  std::string_view text;
  std::size_t begin = 0;         ///< past the byte order mark
  std::size_t accepted_end = 0;  ///< end of the last key, value or bracket that was accepted
  std::size_t consumed = 0;      ///< characters read, past the end when the end was the surprise
  /// The parser's own words: "invalid …" for a bad token, "unexpected …" for a misplaced one.
  std::string reason;
  std::optional<OpenContainer> open;
};

SyntaxError explain_syntax_error(const SyntaxErrorSite& site);

}  // namespace windtunnel::detail
