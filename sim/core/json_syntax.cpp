#include "core/json_syntax.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/utf8.hpp"

namespace windtunnel::detail {
namespace {

constexpr std::string_view marks = "{}[],:", byte_order_mark = "\xEF\xBB\xBF";

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_line_end(char c) { return c == '\n' || c == '\r'; }
bool is_mark(std::string_view token) {
  return token.size() == 1 && marks.find(token.front()) != std::string_view::npos;
}

std::string hexadecimal(char value, int digits) {
  std::string text;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    text += "0123456789ABCDEF"[(static_cast<unsigned char>(value) >> shift) & 15];
  return text;
}

/// A bracket, comma or colon, a string as it is written, a word, or a character that begins none of these; empty: the end.
struct Token {
  std::size_t begin = 0;
  std::string_view text;
};

/// Cuts the text where a reader stopped into tokens once more.
class Scanner {
 public:
  Scanner(std::string_view text, Comments comments) : text_(text), comments_(comments) {}

  /// JsonSyntaxError at bytes that are not UTF-8, and at strings and comments that are malformed or not closed.
  Token next() {
    skip_blanks();
    const std::size_t begin = at_;
    if (!at_end() && is_word_character(peek()))
      while (!at_end() && is_word_character(peek())) ++at_;
    else if (peek() == '"')
      skip_string();
    else if (!at_end())
      skip_character();
    return {begin, text_.substr(begin, at_ - begin)};
  }

  std::size_t position() const { return at_; }

 private:
  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  void skip_blanks() {
    while (!at_end() && (peek() == ' ' || peek() == '\t' || is_line_end(peek()) ||
                         (peek() == '/' && comments_ == Comments::skipped))) {
      if (peek() == '/')
        skip_comment();
      else
        ++at_;
    }
  }

  void skip_comment() {
    const std::string_view comment = text_.substr(at_);
    if (comment.starts_with("//")) {
      at_ += std::min(comment.find_first_of("\r\n"), comment.size());
    } else if (!comment.starts_with("/*")) {
      throw JsonSyntaxError{at_, 1, "/ is not expected here", {}};
    } else {
      const std::size_t end = comment.find("*/", 2);
      if (end == std::string_view::npos)
        throw JsonSyntaxError{at_, 2, "this comment is never closed", "add */ at its end"};
      at_ += end + 2;
    }
  }

  void skip_string() {
    const std::size_t begin = at_++;
    for (; at_end() || peek() != '"';) {
      if (at_end() || is_line_end(peek()))
        throw JsonSyntaxError{begin, characters_since(begin), "this string is never closed",
                              "add \" at its end"};
      if (peek() == '\\')
        skip_escape();
      else if (peek() > 0 && peek() < ' ')
        throw JsonSyntaxError{
            at_, 1, "control character U+" + hexadecimal(peek(), 4) + " is not allowed in a string",
            peek() == '\t' ? "write \\t" : "write \\u" + hexadecimal(peek(), 4)};
      else
        skip_character();
    }
    ++at_;
  }

  void skip_escape() {
    const std::size_t begin = at_++;
    if (at_end() || is_line_end(peek())) return;  // which skip_string() reports
    if (peek() != 'u') {
      const bool has_meaning =
          std::string_view("\"\\/bfnrt").find(peek()) != std::string_view::npos;
      skip_character();
      if (has_meaning) return;
      throw JsonSyntaxError{
          begin, characters_since(begin),
          std::string(text_.substr(begin, at_ - begin)) + " means nothing in a JSON string",
          "a backslash is written \\\\"};
    }
    const auto is_half = [](unsigned code, unsigned first) {
      return code >= first && code < first + 0x400;
    };
    constexpr unsigned high = 0xD800, low = 0xDC00;
    const unsigned first = skip_hexadecimal(begin);
    if (!is_half(first, high) && !is_half(first, low)) return;
    const bool is_pair = is_half(first, high) && text_.substr(at_).starts_with("\\u");
    if (is_pair) ++at_;
    if (!is_pair || !is_half(skip_hexadecimal(begin), low))
      throw JsonSyntaxError{
          begin, characters_since(begin), "half a surrogate pair is not a character",
          R"(a pair is \uD800 to \uDBFF, then \uDC00 to \uDFFF (RFC 8259, section 7))"};
  }

  unsigned skip_hexadecimal(std::size_t escape) {
    constexpr std::size_t digits = 4;
    ++at_;  // the u
    const std::size_t first = at_;
    while (at_ < first + digits && std::isxdigit(static_cast<unsigned char>(peek())) != 0) ++at_;
    if (at_ < first + digits)
      throw JsonSyntaxError{
          escape, characters_since(escape), "\\u needs four hexadecimal digits", {}};
    return static_cast<unsigned>(std::stoul(std::string(text_.substr(first, digits)), nullptr, 16));
  }

  void skip_character() {
    const std::size_t length = utf8_length_at(text_, at_);
    if (length == 0 || peek() == '\0')
      throw JsonSyntaxError{at_, 1, "byte 0x" + hexadecimal(peek(), 2) + " is not UTF-8 text",
                            "save the file as UTF-8"};
    at_ += length;
  }

  int characters_since(std::size_t begin) const {
    return utf8_count(text_.substr(begin, at_ - begin));
  }

  std::string_view text_;
  Comments comments_;
  std::size_t at_ = 0;
};

JsonSyntaxError at(const Token& token, std::string message, std::string suggestion = {}) {
  return {token.begin, std::max(1, utf8_count(token.text)), std::move(message),
          std::move(suggestion)};
}

/// True if `word` is true, false, null or a number as RFC 8259 writes it.
bool is_json_word(std::string_view word) {
  if (word == "true" || word == "false" || word == "null") return true;
  const auto skip_digits = [&word] {
    const std::size_t digits = std::min(word.find_first_not_of("0123456789"), word.size());
    word.remove_prefix(digits);
    return digits > 0;
  };
  if (word.starts_with('-')) word.remove_prefix(1);
  if (word.starts_with('0'))
    word.remove_prefix(1);
  else if (!skip_digits())
    return false;
  if (word.starts_with('.') && (word.remove_prefix(1), !skip_digits())) return false;
  if (word.starts_with('e') || word.starts_with('E')) {
    word.remove_prefix(1);
    if (word.starts_with('+') || word.starts_with('-')) word.remove_prefix(1);
    if (!skip_digits()) return false;
  }
  return word.empty();
}

JsonSyntaxError explain_end(const Token& token, std::optional<char> open) {
  if (!open) return at(token, "there is no JSON value here");
  const bool object = *open == '{';
  return {JsonSyntaxError::at_open_bracket, 1,
          std::string("this ") + (object ? "object" : "array") + " is never closed",
          std::string("add ") + (object ? "}" : "]") + " at its end"};
}

JsonSyntaxError explain_number(const Token& token) {
  const std::string word = shown(token.text), message = word + " is not a JSON number";
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

/// A word that is none of JSON's.
JsonSyntaxError explain_word(const Token& token) {
  const std::string word = shown(token.text), lower = lower_case(word);
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

/// A bracket, comma or colon.
JsonSyntaxError explain_mark(const Token& token, const Token& before, Expected expected,
                             std::optional<char> open) {
  const std::string mark(token.text);
  const bool closes = mark == "}" || mark == "]", separates = closes || mark == ",";
  if (closes && before.text == ",")
    return {before.begin, 1, "JSON allows no comma before " + mark, "remove the comma"};
  if ((separates && before.text == ":") ||
      (mark == "," && (before.text == "," || before.text == "{" || before.text == "[")))
    return at(token, "a value is missing before " + mark);
  if (expected == Expected::colon)
    return at(token, "a colon is missing before " + mark, "write \"key\": value");
  if (closes && open)
    return at(token,
              std::string(*open == '{' ? "an object" : "an array") + " cannot end with " + mark,
              std::string("write ") + (*open == '{' ? "}" : "]"));
  if (expected == Expected::comma && mark != ":")
    return at(token, "a comma is missing before " + mark, "write , between values");
  return at(token, mark + " is not expected here");
}

/// A string, number, true, false or null.
JsonSyntaxError explain_value(const Token& token, Expected expected) {
  const std::string what = shown(token.text);
  if (expected == Expected::colon)
    return at(token, "a colon is missing before " + what, "write \"key\": value");
  if (expected == Expected::comma)
    return at(token, "a comma is missing before " + what, "write , between values");
  if (expected == Expected::key)
    return at(token, "key " + what + " needs double quotes", "write \"" + what + "\"");
  return at(token, what + " is too large for a number", "the largest is about 1.8e308");
}

JsonSyntaxError explain_other(const Token& token) {
  if (token.text == "'") return at(token, "' does not open a string", "strings need double quotes");
  if (token.text == "#") return at(token, "# does not open a comment", "write // instead");
  return at(token, std::string(token.text) + " is not expected here");
}

constexpr const char* yaml_hint =
    "convert it to JSON; settings of NeMo or Megatron-LM: windtunnel import nemo or megatron";

JsonSyntaxError explain_tokens(Scanner& scanner, const JsonStop& stop) {
  const auto explain_word_here = [&](const Token& word) {
    if (stop.open) return explain_word(word);
    const Token behind = scanner.next();
    if (word.text == "---" || behind.text == ":")
      return at(word, "this is YAML, and only JSON is read here", yaml_hint);
    return behind.text == ","
               ? at(word, "this is CSV, and only JSON is read here", "a file of JSON begins with {")
               : explain_word(word);
  };
  if (stop.begins_with_word)
    if (const Token word = scanner.next(); !is_json_word(word.text)) return explain_word_here(word);
  Token before, token = scanner.next();
  const bool begins_text = stop.expected == Expected::value && !stop.open && token.begin == 0;
  if (begins_text && token.text == byte_order_mark) token = scanner.next();
  if (stop.is_empty) before.text = *stop.open == '{' ? "{" : "[";
  Expected expected = stop.expected;
  if ((expected == Expected::comma && token.text == ",") ||
      (expected == Expected::colon && token.text == ":")) {
    const bool is_key = expected == Expected::comma && stop.open == '{';
    expected = is_key ? Expected::key : Expected::value;
    before = token;
    token = scanner.next();
  }
  if (expected == Expected::nothing)
    return at(token, "nothing may follow the JSON value, but here is " + shown(token.text));
  if (token.text.empty()) return explain_end(token, stop.open);
  if (begins_text && token.text == "#")
    return at(token, "# opens no comment in JSON, but // does",
              "is it YAML? " + std::string(yaml_hint));
  if (is_mark(token.text)) return explain_mark(token, before, expected, stop.open);
  if (token.text.front() == '"' || is_json_word(token.text)) return explain_value(token, expected);
  return is_word_character(token.text.front()) ? explain_word_here(token) : explain_other(token);
}

}  // namespace

JsonSyntaxError explain(const JsonStop& stop) {
  Scanner scanner(stop.rest, stop.comments);
  JsonSyntaxError error;
  try {
    error = explain_tokens(scanner, stop);
  } catch (const JsonSyntaxError& in_token) {
    error = in_token;
  }
  error.end = scanner.position();
  return error;
}

std::string shown(std::string_view token) {
  constexpr int max_shown = 40;
  if (utf8_count(token) <= max_shown) return std::string(token);
  std::size_t end = 0;
  for (int i = 0; i < max_shown - 3; ++i)
    end += std::max<std::size_t>(1, utf8_length_at(token, end));
  return std::string(token.substr(0, end)) + "...";
}

}  // namespace windtunnel::detail
