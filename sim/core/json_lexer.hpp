#pragma once

#include <cstddef>
#include <cstdint>
#include <streambuf>
#include <string>

namespace windtunnel::detail {

/// A place in a text that is read from front to end.
struct TextPosition {
  std::uint64_t byte = 0;   ///< from 0
  std::int64_t line = 1;    ///< from 1
  std::int64_t column = 1;  ///< from 1, in characters; a byte order mark has no width
};

/// Kinds of JSON tokens.
enum class TokenKind {
  object_begin,
  object_end,
  array_begin,
  array_end,
  comma,
  colon,
  string,
  word,   ///< letters, digits, + - . and _ up to the first other character: true, -1.5e3, nan, 80GB
  other,  ///< a character that begins none of these
  end,
};

struct JsonToken {
  TokenKind kind = TokenKind::end;
  TextPosition begin;
  int length = 1;    ///< in characters, with its quotes
  std::string text;  ///< as written; of a string, without its quotes and escapes
};

/// Why a text is not JSON: where, how many characters long, and what to write instead. Thrown by the lexer and the reader.
struct JsonSyntaxError {
  TextPosition place;
  int length = 1;
  std::string message;
  std::string suggestion;
};

/// Whether // and /* */ are skipped like blanks, or are errors.
enum class Comments { skipped, refused };

/// Most bytes of one string or word, so that a text that is not held whole stays that way.
inline constexpr std::size_t max_json_token = std::size_t{16} << 20;

/// Cuts a text into tokens, reading each byte once and none before it is needed.
class JsonLexer {
 public:
  JsonLexer(std::streambuf& input, Comments comments) : input_(input), comments_(comments) {}

  /// The next token, until the next call. JsonSyntaxError at bytes that are not UTF-8, and at strings and comments that
  /// are malformed or not closed.
  JsonToken& next();
  /// Of the next byte to read.
  const TextPosition& position() const { return at_; }
  bool at_end() { return peek() == end_of_text; }

 private:
  static constexpr int end_of_text = std::streambuf::traits_type::eof();

  int peek() { return input_.sgetc(); }
  char take();
  /// Takes characters of one byte for as long as they belong, none of which ends a line, and appends them to the token.
  template <class Belongs>
  void take_run(Belongs belongs);
  /// Takes a whole character and appends it to `text`.
  void take_character(std::string& text);
  void skip_blanks();
  void skip_comment();
  void read_word();
  void read_string();
  void read_escape();
  unsigned read_code_point(const TextPosition& escape);
  unsigned read_hexadecimal(const TextPosition& escape);
  void read_other();
  void expect_room() const;
  int characters_since(const TextPosition& begin) const {
    return static_cast<int>(at_.column - begin.column);
  }

  std::streambuf& input_;
  Comments comments_;
  TextPosition at_;
  JsonToken token_;
};

}  // namespace windtunnel::detail
