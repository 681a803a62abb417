#include "core/json_stream.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "core/problem.hpp"

namespace windtunnel {
namespace {

using nlohmann::json;

/// nlohmann's events, passed on; the first error is kept.
class Events final : public nlohmann::json_sax<json> {
 public:
  explicit Events(JsonListener& listener) : listener_(listener) {}

  std::string error;

  bool null() override { return word(); }
  bool boolean(bool) override { return word(); }
  bool number_integer(json::number_integer_t value) override { return number(value); }
  bool number_unsigned(json::number_unsigned_t value) override { return number(value); }
  bool number_float(json::number_float_t, const json::string_t& text) override {
    listener_.on_number(text);
    return true;
  }
  bool string(json::string_t& value) override {
    listener_.on_string(value);
    return true;
  }
  bool binary(json::binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    listener_.on_object_begin();
    return true;
  }
  bool key(json::string_t& value) override {
    listener_.on_key(value);
    return true;
  }
  bool end_object() override {
    listener_.on_object_end();
    return true;
  }
  bool start_array(std::size_t) override {
    listener_.on_array_begin();
    return true;
  }
  bool end_array() override {
    listener_.on_array_end();
    return true;
  }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::detail::exception& exception) override {
    error = exception.what();
    return false;
  }

 private:
  bool word() {
    listener_.on_word();
    return true;
  }
  template <typename Integer>
  bool number(Integer value) {
    listener_.on_number(std::to_string(value));
    return true;
  }

  JsonListener& listener_;
};

InputError problem_at(TextInput& input, std::string message, std::string suggestion = {}) {
  const TextInput::Position at = input.position();
  Problem problem;
  problem.origin.kind = OriginKind::file;
  problem.origin.source = std::make_shared<const SourceText>(SourceText{input.name(), {}});
  problem.origin.line = at.line;
  problem.origin.column = at.column;
  problem.message = std::move(message);
  problem.suggestion = std::move(suggestion);
  return InputError(std::vector<Problem>(1, std::move(problem)));
}

/// The text of a TextInput for the parser, a character at a time. The parser remembers all that it reads from one token to the next:
/// of blanks between tokens it is given the first, and tokens have a largest length. Nothing is taken before it is asked for, so
/// that the input's position is the parser's.
class Letters {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  Letters() = default;
  explicit Letters(TextInput& input) : input_(&input) {}

  char operator*() const { return Traits::to_char_type(input_->sgetc()); }
  Letters& operator++() {
    follow(Traits::to_char_type(input_->sbumpc()));
    return *this;
  }
  /// Only with the end.
  bool operator==(const Letters&) const {
    while (is_blank_ && is_blank(input_->sgetc())) input_->sbumpc();
    return Traits::eq_int_type(input_->sgetc(), Traits::eof());
  }
  bool operator!=(const Letters& end) const { return !(*this == end); }

 private:
  using Traits = std::streambuf::traits_type;
  static constexpr std::size_t max_token = std::size_t{16} << 20;

  static bool is_blank(Traits::int_type letter) {
    return letter == ' ' || letter == '\n' || letter == '\t' || letter == '\r';
  }

  /// Blanks count in strings, and end words.
  void follow(char letter) {
    is_blank_ = !in_string_ && is_blank(Traits::to_int_type(letter));
    const bool is_mark = std::string_view("{}[],:").find(letter) != std::string_view::npos;
    length_ = in_string_ || !(is_blank_ || is_mark) ? length_ + 1 : 0;
    if (length_ > max_token)
      throw problem_at(*input_, "a text of more than 16 MiB before byte " +
                                    std::to_string(input_->position().byte));
    if (!in_string_)
      in_string_ = letter == '"';
    else if (is_escaped_)
      is_escaped_ = false;
    else if (letter == '\\')
      is_escaped_ = true;
    else
      in_string_ = letter != '"';
  }

  TextInput* input_ = nullptr;
  bool in_string_ = false, is_escaped_ = false;
  bool is_blank_ = false;   ///< the last letter
  std::size_t length_ = 0;  ///< of the string or word so far
};

/// The parser's reason without its own position: "unexpected end of input; expected ']'".
std::string reason_in(const std::string& error) {
  const std::size_t dash = error.find("- ");
  return dash == std::string::npos ? error : error.substr(dash + 2);
}

}  // namespace

void stream_json(TextInput& input, JsonListener& listener) {
  Events events(listener);
  if (json::sax_parse(Letters(input), Letters(), &events)) return;
  const std::uint64_t byte = input.position().byte;
  const bool ended = input.sgetc() == std::streambuf::traits_type::eof() &&
                     events.error.find("; expected end of input") == std::string::npos;
  if (ended)
    throw problem_at(
        input, "the text ends after " + std::to_string(byte) + " bytes, in the middle of its JSON",
        "it was cut off, or the program that wrote it was stopped");
  throw problem_at(input,
                   "no JSON at byte " + std::to_string(byte) + ": " + reason_in(events.error));
}

}  // namespace windtunnel
