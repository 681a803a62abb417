#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_syntax.hpp"
#include "core/text_input.hpp"

namespace windtunnel::detail {

/// The bytes of a text for nlohmann_json. It copies its iterators and shows them to nobody: where it stands, the text knows.
struct ByteIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  TextInput* text;
  char operator*() const { return *text->next(); }
  ByteIterator& operator++() {
    text->take();
    return *this;
  }
  bool operator!=(const ByteIterator&) const { return !text->at_end(); }
};

/// Common base of our JSON readers: nlohmann_json calls them with values, and this class finds the tokens of those values in the text. When
/// it calls it has read that token, and of a number one byte more unless the text ends there.
class JsonSax {
 public:
  bool binary(nlohmann::json::binary_t&) { return false; }  // which no text holds

 protected:
  JsonSax(TextInput& text, Comments comments) : text_(text), comments_(comments) {}

  bool parse(auto& reader) {
    return nlohmann::json::sax_parse(ByteIterator{&text_}, ByteIterator{&text_}, &reader,
                                     nlohmann::json::input_format_t::json, true,
                                     comments_ == Comments::skipped);
  }
  /// The last token as it is written, if it was kept.
  std::string_view token() const { return text_.kept().substr(0, token_size_); }

  void take_open(char bracket) {
    take_token(text_.next() - 1);
    open_.push_back(bracket);
    expected_ = bracket == '{' ? Expected::key : Expected::value;
    is_empty_ = true;
  }
  void take_close() {
    take_token(text_.next() - 1);
    open_.pop_back();
    expect_after_value();
  }
  void take_key(const char* begin) {
    take_token(begin);
    expected_ = Expected::colon;
    is_empty_ = false;
  }
  void take_string(const char* begin) {
    take_token(begin);
    expect_after_value();
  }
  /// A number, true, false or null of `length` bytes.
  void take_word(std::size_t length) {
    const char* begin = text_.next() - 1;
    while (begin > text_.kept().data() && is_word_character(begin[-1])) --begin;
    take_token(begin);
    token_size_ = length;
    expect_after_value();
  }
  void take_integer() {
    take_word(0);
    token_size_ = std::min(text_.kept().find_first_not_of("0123456789", 1), text_.kept().size());
  }
  /// The opening quote of the string that has just been read. Every quote inside it is escaped, and no string is preceded by a backslash.
  const char* opening_quote() const {
    const char* quote = text_.next() - 2;
    const auto is_escaped = [&] {
      const char* first = quote;
      while (first > text_.kept().data() && first[-1] == '\\') --first;
      return (quote - first) % 2 == 1;
    };
    while (*quote != '"' || is_escaped()) --quote;
    return quote;
  }

  /// Why nlohmann_json has stopped.
  JsonSyntaxError syntax_error() {
    text_.read_on();
    const std::string_view last = token();
    JsonStop stop;
    stop.begins_with_word = !last.empty() && is_word_character(last.front());
    const std::size_t skipped = stop.begins_with_word ? 0 : last.size();
    stop.rest = text_.kept().substr(skipped);
    stop.expected = expected_;
    if (!open_.empty()) stop.open = open_.back();
    stop.is_empty = is_empty_;
    stop.comments = comments_;
    JsonSyntaxError error = explain(stop);
    for (std::size_t* place : {&error.begin, &error.end})
      if (*place != JsonSyntaxError::at_open_bracket) *place += skipped;
    return error;
  }
  /// True if the text ended before its value did.
  bool is_cut_off(const JsonSyntaxError& error) {
    return expected_ != Expected::nothing && error.end == text_.kept().size() && !text_.read_on();
  }

  TextInput& text_;

 private:
  void take_token(const char* begin) {
    token_size_ = static_cast<std::size_t>(text_.next() - begin);
    text_.keep(begin);
  }
  void expect_after_value() {
    expected_ = open_.empty() ? Expected::nothing : Expected::comma;
    is_empty_ = false;
  }

  Comments comments_;
  Expected expected_ = Expected::value;
  bool is_empty_ = false;   ///< nothing stands in the innermost array or object yet
  std::vector<char> open_;  ///< brackets, innermost last
  std::size_t token_size_ = 0;
};

}  // namespace windtunnel::detail
