#include "core/json_stream.hpp"

#include <charconv>
#include <istream>
#include <nlohmann/json.hpp>
#include <utility>

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

/// The parser's reason without its own position: "unexpected end of input; expected ']'".
std::string reason_in(const std::string& error) {
  const std::size_t dash = error.find("- ");
  return dash == std::string::npos ? error : error.substr(dash + 2);
}

}  // namespace

void stream_json(TextInput& input, JsonListener& listener) {
  Events events(listener);
  std::istream stream(&input);
  if (json::sax_parse(stream, &events)) return;
  if (stream.bad()) throw EnvironmentError("cannot read " + input.name());
  const TextInput::Position at = input.position();
  Problem problem;
  problem.origin.kind = OriginKind::file;
  problem.origin.source = std::make_shared<const SourceText>(SourceText{input.name(), {}});
  problem.origin.line = at.line;
  problem.origin.column = at.column;
  const bool ended = input.sgetc() == std::streambuf::traits_type::eof() &&
                     events.error.find("; expected end of input") == std::string::npos;
  problem.message =
      ended ? "the text ends after " + std::to_string(at.byte) + " bytes, in the middle of its JSON"
            : "no JSON at byte " + std::to_string(at.byte) + ": " + reason_in(events.error);
  if (ended) problem.suggestion = "it was cut off, or the program that wrote it was stopped";
  throw InputError(std::vector<Problem>(1, std::move(problem)));
}

}  // namespace windtunnel
