#include "core/json_syntax.hpp"

#include <algorithm>
#include <cctype>

#include "core/json_value.hpp"
#include "core/utf8.hpp"

namespace windtunnel::detail {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

JsonSyntaxError at(const JsonToken& token, std::string message, std::string suggestion = {}) {
  return {token.begin, token.length, std::move(message), std::move(suggestion)};
}

bool is_container(TokenKind bracket) {
  return bracket == TokenKind::object_begin || bracket == TokenKind::array_begin;
}
bool is_object(const OpenContainer& open) { return open.bracket == TokenKind::object_begin; }

JsonSyntaxError explain_end(const Misplaced& misplaced) {
  if (!misplaced.open) return at(misplaced.token, "there is no JSON value here");
  const bool object = is_object(*misplaced.open);
  return {misplaced.open->begin, 1,
          std::string("this ") + (object ? "object" : "array") + " is never closed",
          std::string("add ") + (object ? "}" : "]") + " at its end"};
}

JsonSyntaxError explain_number(const JsonToken& token) {
  const std::string word = shown(token), message = word + " is not a JSON number";
  const bool letters = std::any_of(word.begin(), word.end(),
                                   [](char c) { return is_letter(c) && c != 'e' && c != 'E'; });
  if (lower_case(word).starts_with("0x")) return at(token, message, "write it in decimal");
  if (letters) return at(token, word + " needs double quotes", "write \"" + word + "\"");
  if (word.front() == '+') return at(token, message, "leave out the +");
  if (word.front() == '.') return at(token, message, "write 0" + word);
  if (word.back() == '.') return at(token, message, "write " + word + "0");
  if (word.size() > 1 && word[0] == '0') return at(token, message, "leave out the leading zero");
  return at(token, message);
}

JsonSyntaxError explain_word(const JsonToken& token) {
  const std::string word = shown(token), lower = lower_case(word);
  const std::string bare = lower.front() == '+' || lower.front() == '-' ? lower.substr(1) : lower;
  if (bare == "nan" || bare == "inf" || bare == "infinity")
    return at(token, word + " is not a JSON number", "write a finite number");
  if (lower == "true" || lower == "false" || lower == "null")
    return at(token, word + " is not a JSON word", "write " + lower);
  if (lower == "none") return at(token, word + " is not a JSON word", "write null");
  if (is_letter(word.front()) || word.front() == '_')
    return at(token, word + " needs double quotes", "write \"" + word + "\"");
  return explain_number(token);
}

JsonSyntaxError explain_other(const JsonToken& token) {
  if (token.text == "'") return at(token, "' does not open a string", "strings need double quotes");
  if (token.text == "#") return at(token, "# does not open a comment", "write // instead");
  return at(token, shown(token) + " is not expected here");
}

/// A bracket, comma or colon.
JsonSyntaxError explain_mark(const Misplaced& misplaced) {
  const JsonToken& token = misplaced.token;
  const TokenKind before = misplaced.before;
  const bool closes = token.kind == TokenKind::object_end || token.kind == TokenKind::array_end;
  const bool separates = closes || token.kind == TokenKind::comma;
  if (closes && before == TokenKind::comma)
    return {misplaced.begin_of_before, 1, "JSON allows no comma before " + token.text,
            "remove the comma"};
  if ((separates && before == TokenKind::colon) ||
      (token.kind == TokenKind::comma && (before == TokenKind::comma || is_container(before))))
    return at(token, "a value is missing before " + token.text);
  if (misplaced.expected == Expected::colon)
    return at(token, "a colon is missing before " + token.text, "write \"key\": value");
  if (closes && misplaced.open) {
    const bool object = is_object(*misplaced.open);
    return at(token,
              std::string(object ? "an object" : "an array") + " cannot end with " + token.text,
              std::string("write ") + (object ? "}" : "]"));
  }
  if (misplaced.expected == Expected::comma && token.kind != TokenKind::colon)
    return at(token, "a comma is missing before " + token.text, "write , between values");
  return at(token, token.text + " is not expected here");
}

/// A string, number, true, false or null.
JsonSyntaxError explain_value(const Misplaced& misplaced) {
  const JsonToken& token = misplaced.token;
  const std::string what = shown(token);
  if (misplaced.expected == Expected::colon)
    return at(token, "a colon is missing before " + what, "write \"key\": value");
  if (misplaced.expected == Expected::comma)
    return at(token, "a comma is missing before " + what, "write , between values");
  return at(token, "key " + what + " needs double quotes", "write \"" + what + "\"");
}

}  // namespace

std::string shown(const JsonToken& token) {
  constexpr int max_shown = 40;
  std::string whole =
      token.kind == TokenKind::string ? text_for_message(JsonValue(token.text)) : token.text;
  if (utf8_count(whole) <= max_shown) return whole;
  std::size_t end = 0;
  for (int i = 0; i < max_shown - 3; ++i) end += utf8_length_at(whole, end);
  return whole.substr(0, end) + "...";
}

bool is_json_number(const std::string& word) {
  const char* at = word.c_str();  // ends with NUL, which is no digit
  const auto skip_digits = [&at] {
    const char* const begin = at;
    while (is_digit(*at)) ++at;
    return at > begin;
  };
  if (*at == '-') ++at;
  const bool zero = *at == '0';
  if (zero)
    ++at;
  else if (!skip_digits())
    return false;
  if (*at == '.' && (++at, !skip_digits())) return false;
  if (*at == 'e' || *at == 'E') {
    ++at;
    if (*at == '+' || *at == '-') ++at;
    if (!skip_digits()) return false;
  }
  return *at == '\0';
}

bool is_json_word(const std::string& word) {
  return word == "true" || word == "false" || word == "null" || is_json_number(word);
}

JsonSyntaxError explain(const Misplaced& misplaced) {
  const JsonToken& token = misplaced.token;
  if (misplaced.expected == Expected::nothing)
    return at(token, "nothing may follow the JSON value, but here is " + shown(token));
  switch (token.kind) {
    case TokenKind::end:
      return explain_end(misplaced);
    case TokenKind::other:
      return explain_other(token);
    case TokenKind::word:
      return is_json_word(token.text) ? explain_value(misplaced) : explain_word(token);
    case TokenKind::string:
      return explain_value(misplaced);
    default:
      return explain_mark(misplaced);
  }
}

}  // namespace windtunnel::detail
