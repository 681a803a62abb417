#include "core/json_stream.hpp"

#include <utility>

#include "core/contracts.hpp"
#include "core/json_sax.hpp"
#include "core/problem.hpp"

namespace windtunnel {
namespace {

InputError problem_at(const std::string& name, const TextInput::Position& place,
                      std::string message, std::string suggestion) {
  const auto source = std::make_shared<const SourceText>(SourceText{name, {}});
  return InputError({{{OriginKind::file, source, place.line, place.column, 0},
                      {},
                      std::move(message),
                      std::move(suggestion)}});
}

/// Tells a listener what nlohmann_json reads.
class JsonStreamReader final : public detail::JsonSax {
 public:
  JsonStreamReader(TextInput& input, JsonListener& listener)
      : JsonSax(input, detail::Comments::refused), listener_(listener) {}

  void read() {
    // A byte 0 ends the text for nlohmann_json.
    if (parse(*this) && text_.next() > text_.kept().data() && text_.next()[-1] == '\0') refuse();
  }

  bool start_object(std::size_t) {
    take_open('{');
    expect_room();
    listener_.on_object_begin();
    return true;
  }
  bool end_object() {
    take_close();
    listener_.on_object_end();
    return true;
  }
  bool start_array(std::size_t) {
    take_open('[');
    expect_room();
    listener_.on_array_begin();
    return true;
  }
  bool end_array() {
    take_close();
    listener_.on_array_end();
    return true;
  }
  bool key(std::string& key) {
    take_key(text_.next());
    last_text_ = text_.byte();
    listener_.on_key(key);
    return true;
  }
  bool string(std::string& value) {
    take_string(text_.next());
    last_text_ = text_.byte();
    listener_.on_string(value);
    return true;
  }
  bool number_integer(std::int64_t) {
    take_integer();
    return number();
  }
  bool number_unsigned(std::uint64_t) { return number_integer({}); }
  bool number_float(double, const std::string& text) {
    take_word(text.size());
    return number();
  }
  bool boolean(bool value) { return word(value ? "true" : "false"); }
  bool null() { return word("null"); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) { refuse(); }

 private:
  bool number() {
    last_text_ = text_.byte();
    number_.assign(token());
    listener_.on_number(number_);
    return true;
  }
  bool word(std::string_view word) {
    take_word(word.size());
    expect_room();
    listener_.on_word();
    return true;
  }

  /// nlohmann_json holds the bytes since the last string or number.
  void expect_room() {
    if (text_.byte() - last_text_ > TextInput::most_kept)
      throw problem_at(text_.name(), text_.position(), TextInput::too_much_kept, {});
  }

  [[noreturn]] void refuse() {
    const detail::JsonSyntaxError error = syntax_error();
    if (is_cut_off(error)) {
      const auto end = text_.position(text_.kept().data() + text_.kept().size());
      throw problem_at(
          text_.name(), end,
          "the text ends after " + std::to_string(end.byte) + " bytes, in the middle of its JSON",
          "it was cut off, or the program that wrote it was stopped");
    }
    WT_EXPECT(error.begin != detail::JsonSyntaxError::at_open_bracket);
    const auto place = text_.position(text_.kept().data() + error.begin);
    throw problem_at(text_.name(), place,
                     "no JSON at byte " + std::to_string(place.byte) + ": " + error.message,
                     error.suggestion);
  }

  JsonListener& listener_;
  std::string number_;
  std::uint64_t last_text_ = 0;  ///< byte behind the last string or number
};

}  // namespace

void stream_json(TextInput& input, JsonListener& listener) {
  JsonStreamReader(input, listener).read();
}

}  // namespace windtunnel
