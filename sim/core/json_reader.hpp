#pragma once

#include <streambuf>
#include <string>
#include <vector>

#include "core/json_lexer.hpp"
#include "core/json_syntax.hpp"

namespace windtunnel::detail {

/// The steps of reading a JSON text.
enum class JsonEvent {
  object_begin,
  object_end,
  array_begin,
  array_end,
  key,
  string,
  number,
  boolean,
  null,
  end,  ///< of the text
};

/// Whether NaN and Infinity are errors, or read as null: Python's json module writes them.
enum class Numbers { finite, of_python };

/// Reads a JSON text (RFC 8259) step by step: each byte once, however deep it is nested without recursion, and no step
/// before it is asked for.
class JsonReader {
 public:
  JsonReader(std::streambuf& input, Comments comments, Numbers numbers = Numbers::finite)
      : lexer_(input, comments), numbers_(numbers) {}

  /// Takes the next step. JsonSyntaxError where the text is not JSON.
  JsonEvent next();
  /// Of the last step: its text may be moved from.
  JsonToken& token() { return *token_; }
  const JsonToken& token() const { return *token_; }
  /// Whether the text ended before its value did.
  bool is_cut_off() { return expected_ != Expected::nothing && lexer_.at_end(); }
  const TextPosition& position() const { return lexer_.position(); }

 private:
  void read_token();
  bool closes() const;
  JsonEvent close();
  JsonEvent value();
  JsonEvent word();
  /// The value that the innermost array, object or the text waited for has been read.
  void value_is_done() { expected_ = open_.empty() ? Expected::nothing : Expected::comma; }
  JsonSyntaxError misplaced() const;

  JsonLexer lexer_;
  Numbers numbers_;
  JsonToken* token_ = nullptr;
  TokenKind before_ = TokenKind::end;  ///< the token before token_
  TextPosition begin_of_before_;
  Expected expected_ = Expected::value;
  std::vector<OpenContainer> open_;  ///< innermost last
};

}  // namespace windtunnel::detail
