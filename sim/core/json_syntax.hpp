#pragma once

#include <optional>

#include "core/json_lexer.hpp"

namespace windtunnel::detail {

/// Token that may come next in a JSON text, beside the end of an array or object.
enum class Expected { value, key, colon, comma, nothing };

/// An array or object that is not closed yet.
struct OpenContainer {
  TokenKind bracket = TokenKind::object_begin;
  TextPosition begin;
};

/// A token that cannot stand where it stands.
struct Misplaced {
  const JsonToken& token;
  Expected expected = Expected::value;
  std::optional<OpenContainer> open;  ///< the innermost
  TokenKind before = TokenKind::end;  ///< the token before it; end: there is none
  TextPosition begin_of_before;
};

/// A token in a message, shortened.
std::string shown(const JsonToken& token);

/// Whether `word` is true, false, null or a number as RFC 8259 writes it.
bool is_json_word(const std::string& word);
bool is_json_number(const std::string& word);

/// The mistake in the user's terms.
JsonSyntaxError explain(const Misplaced& misplaced);

}  // namespace windtunnel::detail
