#include "core/json_syntax.hpp"

#include <algorithm>
#include <cctype>

#include "core/utf8.hpp"

namespace windtunnel::detail {
namespace {

constexpr int max_shown = 40;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '+' || c == '-' ||
         c == '.';
}

bool is_structural(char c) { return std::string_view("{}[],:").find(c) != std::string_view::npos; }

bool one_of(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

/// End of the comment that starts at `begin`; npos when it is none or has no end.
std::size_t comment_end(std::string_view text, std::size_t begin) {
  const std::string_view rest = text.substr(begin);
  if (rest.starts_with("//")) return std::min(text.find_first_of("\r\n", begin), text.size());
  if (!rest.starts_with("/*")) return std::string_view::npos;
  const std::size_t end = text.find("*/", begin + 2);
  return end == std::string_view::npos ? end : end + 2;
}

std::size_t string_end(std::string_view text, std::size_t begin) {
  for (std::size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == '"') return i + 1;
    if (text[i] == '\n' || text[i] == '\r') return i;
    if (text[i] == '\\' && i + 1 < text.size() && !one_of(text[i + 1], "\r\n")) ++i;
  }
  return text.size();
}

std::string_view piece(std::string_view text, Token token) {
  return text.substr(token.begin, token.end - token.begin);
}

std::string lower_case(std::string_view word) {
  std::string lower(word);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

bool is_bad_token(const SyntaxErrorSite& site) { return site.reason.starts_with("invalid"); }

/// The tokens around the surprise: the one to blame and the one before it (empty when there is
/// none).
struct Culprit {
  Token before;
  Token token;
};

/// Lengthens a word to the left, for the parser takes 01 as 0 and then 1.
Token whole_word(std::string_view text, Token token) {
  if (token.begin >= text.size() || !is_word_character(text[token.begin])) return token;
  while (token.begin > 0 && is_word_character(text[token.begin - 1])) --token.begin;
  return token;
}

/// What was accepted lies behind; from there on, a bad token is the first that is no bracket, comma
/// or colon, and a misplaced one ends where the parser stopped reading.
Culprit find_culprit(const SyntaxErrorSite& site) {
  const std::string_view text = site.text;
  const bool bad_token = is_bad_token(site);
  Culprit culprit{{}, token_after(text, site.accepted_end)};
  if (site.accepted_end > site.begin) culprit.before = {site.accepted_end - 1, site.accepted_end};
  while (culprit.token.begin < text.size() &&
         (bad_token ? is_structural(text[culprit.token.begin]) : culprit.token.end < site.consumed))
    culprit = {culprit.token, token_after(text, culprit.token.end)};
  culprit.token = whole_word(text, culprit.token);
  return culprit;
}

SyntaxError explain_end(const SyntaxErrorSite& site, Token end) {
  if (!site.open) {
    return {end, "there is no JSON value here", {}};
  }
  const bool object = site.open->bracket == '{';
  return {{site.open->begin, site.open->begin + 1},
          std::string("this ") + (object ? "object" : "array") + " is never closed",
          std::string("add ") + (object ? "}" : "]") + " at its end"};
}

SyntaxError explain_number(Token token, const std::string& word) {
  const std::string message = word + " is not a JSON number";
  const bool letters = std::any_of(word.begin(), word.end(), [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0 && c != 'e' && c != 'E';
  });
  if (lower_case(word).starts_with("0x")) return {token, message, "write it in decimal"};
  if (letters) return {token, word + " needs double quotes", "write \"" + word + "\""};
  if (word.front() == '+') return {token, message, "leave out the +"};
  if (word.front() == '.') return {token, message, "write 0" + word};
  if (word.back() == '.') return {token, message, "write " + word + "0"};
  if (word.size() > 1 && word[0] == '0') return {token, message, "leave out the leading zero"};
  return {token, message, {}};
}

SyntaxError explain_word(Token token, const std::string& word) {
  const std::string lower = lower_case(word);
  const std::string bare = one_of(lower.front(), "+-") ? lower.substr(1) : lower;
  if (bare == "nan" || bare == "inf" || bare == "infinity")
    return {token, word + " is not a JSON number", "write a finite number"};
  if (lower == "true" || lower == "false" || lower == "null")
    return {token, word + " is not a JSON word", "write " + lower};
  if (lower == "none") return {token, word + " is not a JSON word", "write null"};
  if (std::isalpha(static_cast<unsigned char>(word.front())) != 0 || word.front() == '_')
    return {token, word + " needs double quotes", "write \"" + word + "\""};
  return explain_number(token, word);
}

SyntaxError explain_string(const std::string& reason, Token token) {
  for (const char* open_end : {"missing closing quote", "U+000A", "U+000D"})
    if (reason.find(open_end) != std::string::npos)
      return {token, "this string is never closed", "add \" at its end"};
  const std::string_view prefix = "invalid string: ";
  return {token, "this string is not valid JSON",
          reason.substr(std::min(prefix.size(), reason.size()))};
}

SyntaxError explain_bad_token(const SyntaxErrorSite& site, Token token) {
  const std::string_view text = piece(site.text, token);
  if (text.starts_with('"')) return explain_string(site.reason, token);
  if (text.starts_with("/*")) {
    token.end = token.begin + 2;
    return {token, "this comment is never closed", "add */ at its end"};
  }
  if (text.starts_with('\''))
    return {token, "' does not open a string", "strings need double quotes"};
  if (text.starts_with('#')) return {token, "# does not open a comment", "write // instead"};
  if (!text.empty() && is_word_character(text.front()))
    return explain_word(token, shown(site.text, token));
  return {token, shown(site.text, token) + " is not expected here", {}};
}

SyntaxError explain_misplaced(const SyntaxErrorSite& site, const Culprit& culprit) {
  const std::string_view text = site.text;
  const Token token = culprit.token;
  const char first = text[token.begin];
  const char before = culprit.before.end > 0 ? text[culprit.before.end - 1] : '\0';
  const std::string what = shown(text, token);
  const bool closes = one_of(first, "}]");
  if (is_word_character(first) && token.begin < culprit.before.end)
    return explain_word(token, what);
  if (closes && before == ',')
    return {culprit.before, std::string("JSON allows no comma before ") + first,
            "remove the comma"};
  if (one_of(first, ",}]") && (before == ':' || (first == ',' && one_of(before, ",[{"))))
    return {token, std::string("a value is missing before ") + first, {}};
  if (site.reason.find("; expected ':'") != std::string::npos)
    return {token, "a colon is missing before " + what, "write \"key\": value"};
  if (closes && site.open) {
    const bool object = site.open->bracket == '{';
    return {token, std::string(object ? "an object" : "an array") + " cannot end with " + first,
            std::string("write ") + (object ? "}" : "]")};
  }
  if (!closes && first != ':' && site.open && !one_of(before, ",:[{"))
    return {token, "a comma is missing before " + what, "write , between values"};
  if (site.reason.find("object key") != std::string::npos && is_word_character(first))
    return {token, "key " + what + " needs double quotes", "write \"" + what + "\""};
  return {token, what + " is not expected here", {}};
}

}  // namespace

std::string shown(std::string_view text, Token token) {
  const std::string_view whole = piece(text, token);
  if (utf8_count(whole) <= max_shown) return std::string(whole);
  std::size_t end = 0;
  for (int i = 0; i < max_shown - 3; ++i)
    end += std::max<std::size_t>(1, utf8_length_at(whole, end));
  return std::string(whole.substr(0, end)) + "...";
}

std::size_t skip_blanks(std::string_view text, std::size_t from) {
  while (from < text.size()) {
    if (is_blank(text[from])) {
      ++from;
      continue;
    }
    const std::size_t end = comment_end(text, from);
    if (end == std::string_view::npos) break;
    from = end;
  }
  return std::min(from, text.size());
}

Token token_after(std::string_view text, std::size_t from) {
  const std::size_t begin = skip_blanks(text, from);
  if (begin >= text.size()) return {text.size(), text.size()};
  if (text[begin] == '"') return {begin, string_end(text, begin)};
  if (text.substr(begin).starts_with("/*")) return {begin, text.size()};
  std::size_t end = begin;
  while (end < text.size() && is_word_character(text[end])) ++end;
  if (end > begin) return {begin, end};
  return {begin, begin + std::max<std::size_t>(1, utf8_length_at(text, begin))};
}

SyntaxError explain_syntax_error(const SyntaxErrorSite& site) {
  const Culprit culprit = find_culprit(site);
  if (culprit.token.begin >= site.text.size()) return explain_end(site, culprit.token);
  const bool value_is_done =
      !site.open && site.accepted_end > site.begin && culprit.token.begin >= site.accepted_end;
  if (value_is_done)
    return {culprit.token,
            "nothing may follow the JSON value, but here is " + shown(site.text, culprit.token),
            {}};
  if (is_bad_token(site)) return explain_bad_token(site, culprit.token);
  return explain_misplaced(site, culprit);
}

}  // namespace windtunnel::detail
