#include "core/json_lexer.hpp"

#include <array>
#include <cctype>
#include <string_view>

#include "core/utf8.hpp"

namespace windtunnel::detail {
namespace {

bool is_continuation(int byte) { return (byte & 0xC0) == 0x80; }
bool is_line_end(int c) { return c == '\n' || c == '\r'; }
constexpr bool is_between(int c, char first, char last) { return c >= first && c <= last; }
// Objects and not functions, so that take_run() is compiled for each.
constexpr auto is_word_character = [](int c) {
  return is_between(c, 'a', 'z') || is_between(c, '0', '9') || is_between(c, 'A', 'Z') ||
         c == '.' || c == '_' || c == '-' || c == '+';
};
/// Whether a string holds the character as it is, in one byte.
constexpr auto is_plain = [](int c) { return is_between(c, ' ', '\x7F') && c != '"' && c != '\\'; };

std::string hexadecimal(int value, int digits) {
  std::string text;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    text += "0123456789ABCDEF"[(value >> shift) & 15];
  return text;
}

/// UTF-8 (RFC 3629, section 3).
void append_utf8(std::string& text, unsigned code) {
  const auto append = [&](unsigned byte) { text += static_cast<char>(byte); };
  const auto append_low_bits = [&](unsigned shift) { append(0x80U | ((code >> shift) & 0x3FU)); };
  if (code < 0x80) return append(code);
  if (code < 0x800) {
    append(0xC0U | (code >> 6U));
  } else if (code < 0x10000) {
    append(0xE0U | (code >> 12U));
    append_low_bits(6);
  } else {
    append(0xF0U | (code >> 18U));
    append_low_bits(12);
    append_low_bits(6);
  }
  append_low_bits(0);
}

/// What a backslash before `letter` means; 0: nothing.
char unescaped(const std::string& letter) {
  constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
  const std::size_t found = letters.find(letter);
  return found == std::string_view::npos ? '\0' : meanings[found];
}

bool is_high_surrogate(unsigned code) { return code >= 0xD800 && code <= 0xDBFF; }
bool is_low_surrogate(unsigned code) { return code >= 0xDC00 && code <= 0xDFFF; }

}  // namespace

JsonToken& JsonLexer::next() {
  constexpr std::string_view marks = "{}[],:";  // in the order of TokenKind
  skip_blanks();
  token_.begin = at_;
  token_.length = 1;
  token_.text.clear();
  const int first = peek();
  if (first == end_of_text) {
    token_.kind = TokenKind::end;
  } else if (first == '"') {
    read_string();
  } else if (is_word_character(first)) {
    read_word();
  } else if (const std::size_t mark = marks.find(static_cast<char>(first)); mark != marks.npos) {
    token_.kind = static_cast<TokenKind>(mark);
    token_.text.assign(1, take());
  } else {
    read_other();
  }
  return token_;
}

char JsonLexer::take() {
  const int byte = input_.sbumpc();
  ++at_.byte;
  if (byte == '\n') {
    ++at_.line;
    at_.column = 1;
  } else if (!is_continuation(byte)) {
    ++at_.column;
  }
  return static_cast<char>(byte);
}

template <class Belongs>
void JsonLexer::take_run(Belongs belongs) {
  constexpr std::size_t longest = 256;  // appended at once
  std::array<char, longest> run;
  std::size_t length = 0;
  const auto append = [&] {
    token_.text.append(run.data(), length);
    at_.byte += length;
    at_.column += static_cast<std::int64_t>(length);
    length = 0;
    expect_room();
  };
  for (int next = peek(); belongs(next); next = input_.snextc()) {
    if (length == longest) append();
    run[length++] = static_cast<char>(next);
  }
  append();
}

void JsonLexer::take_character(std::string& text) {
  constexpr std::size_t longest = 4;  // bytes
  const TextPosition begin = at_;
  std::string character(1, take());
  while (character.size() < longest && utf8_length_at(character, 0) == 0 && is_continuation(peek()))
    character += take();
  if (utf8_length_at(character, 0) != character.size() || character.front() == '\0')
    throw JsonSyntaxError{begin, 1,
                          "byte 0x" +
                              hexadecimal(static_cast<unsigned char>(character.front()), 2) +
                              " is not UTF-8 text",
                          "save the file as UTF-8"};
  text += character;
}

void JsonLexer::skip_blanks() {
  int next = peek();
  for (;;) {
    if (next == ' ' || next == '\r' || next == '\t') {
      ++at_.byte;
      ++at_.column;
      next = input_.snextc();
    } else if (next == '\n') {
      take();
      next = peek();
    } else if (next == '/' && comments_ == Comments::skipped) {
      skip_comment();
      next = peek();
    } else {
      return;
    }
  }
}

void JsonLexer::skip_comment() {
  const TextPosition begin = at_;
  take();
  const int kind = peek();
  if (kind != '/' && kind != '*') throw JsonSyntaxError{begin, 1, "/ is not expected here", {}};
  take();
  std::string last, character;
  while (kind == '*' || !is_line_end(peek())) {
    if (at_end() && kind == '/') return;
    if (at_end())
      throw JsonSyntaxError{begin, 2, "this comment is never closed", "add */ at its end"};
    last.swap(character);
    character.clear();
    take_character(character);
    if (kind == '*' && last == "*" && character == "/") return;
  }
}

void JsonLexer::read_word() {
  token_.kind = TokenKind::word;
  take_run(is_word_character);
  token_.length = characters_since(token_.begin);
}

void JsonLexer::read_other() {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  token_.kind = TokenKind::other;
  take_character(token_.text);
  if (token_.begin.byte > 0 || token_.text != byte_order_mark) return;
  at_.column = 1;
  next();
}

void JsonLexer::read_string() {
  token_.kind = TokenKind::string;
  take();
  for (int c = peek(); c != '"'; c = peek()) {
    if (c == end_of_text || is_line_end(c))
      throw JsonSyntaxError{token_.begin, characters_since(token_.begin),
                            "this string is never closed", "add \" at its end"};
    if (c == '\\')
      read_escape();
    else if (c > 0 && c < ' ')
      throw JsonSyntaxError{
          at_, 1, "control character U+" + hexadecimal(c, 4) + " is not allowed in a string",
          c == '\t' ? "write \\t" : "write \\u" + hexadecimal(c, 4)};
    else if (is_plain(c))
      take_run(is_plain);
    else
      take_character(token_.text);
    expect_room();
  }
  take();
  token_.length = characters_since(token_.begin);
}

void JsonLexer::read_escape() {
  const TextPosition begin = at_;
  take();
  if (at_end() || is_line_end(peek())) return;  // which read_string() reports
  if (peek() == 'u') return append_utf8(token_.text, read_code_point(begin));
  std::string letter;
  take_character(letter);
  const char meaning = unescaped(letter);
  if (meaning == '\0')
    throw JsonSyntaxError{begin, characters_since(begin),
                          "\\" + letter + " means nothing in a JSON string",
                          "a backslash is written \\\\"};
  token_.text += meaning;
}

unsigned JsonLexer::read_code_point(const TextPosition& escape) {
  const unsigned first = read_hexadecimal(escape);
  if (!is_high_surrogate(first) && !is_low_surrogate(first)) return first;
  unsigned second = 0;
  if (is_high_surrogate(first) && peek() == '\\') {
    take();
    if (peek() == 'u') second = read_hexadecimal(escape);
  }
  if (!is_low_surrogate(second))
    throw JsonSyntaxError{
        escape, characters_since(escape), "half a surrogate pair is not a character",
        R"(a pair is \uD800 to \uDBFF, then \uDC00 to \uDFFF (RFC 8259, section 7))"};
  constexpr unsigned first_of_pairs = 0x10000, bits_of_half = 10;
  return first_of_pairs + ((first & 0x3FFU) << bits_of_half) + (second & 0x3FFU);
}

unsigned JsonLexer::read_hexadecimal(const TextPosition& escape) {
  constexpr int digits = 4;
  take();  // the u
  unsigned value = 0;
  for (int i = 0; i < digits; ++i) {
    const int c = peek();
    if (c < 0 || std::isxdigit(c) == 0)
      throw JsonSyntaxError{
          escape, characters_since(escape), "\\u needs four hexadecimal digits", {}};
    const int digit = std::isdigit(c) != 0 ? c - '0' : std::tolower(c) - 'a' + 10;
    value = 16 * value + static_cast<unsigned>(digit);
    take();
  }
  return value;
}

void JsonLexer::expect_room() const {
  if (token_.text.size() > max_json_token)
    throw JsonSyntaxError{token_.begin, 1, "a text of more than 16 MiB", {}};
}

}  // namespace windtunnel::detail
