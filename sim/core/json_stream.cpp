#include "core/json_stream.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "core/json_reader.hpp"
#include "core/problem.hpp"

namespace windtunnel {
namespace {

using detail::JsonEvent;
using detail::JsonReader;
using detail::JsonSyntaxError;

void tell(JsonListener& listener, JsonEvent event, std::string& text) {
  switch (event) {
    case JsonEvent::object_begin:
      return listener.on_object_begin();
    case JsonEvent::object_end:
      return listener.on_object_end();
    case JsonEvent::array_begin:
      return listener.on_array_begin();
    case JsonEvent::array_end:
      return listener.on_array_end();
    case JsonEvent::key:
      return listener.on_key(text);
    case JsonEvent::string:
      return listener.on_string(text);
    case JsonEvent::number:
      return listener.on_number(text);
    case JsonEvent::boolean:
    case JsonEvent::null:
      return listener.on_word();
    case JsonEvent::end:
      return;
  }
}

InputError problem_at(const std::string& name, const detail::TextPosition& place,
                      std::string message, std::string suggestion) {
  std::vector<Problem> problems(1);
  Problem& problem = problems.front();
  problem.origin.kind = OriginKind::file;
  problem.origin.source = std::make_shared<const SourceText>(SourceText{name, {}});
  problem.origin.line = place.line;
  problem.origin.column = place.column;
  problem.message = std::move(message);
  problem.suggestion = std::move(suggestion);
  return InputError(std::move(problems));
}

}  // namespace

void stream_json(TextInput& input, JsonListener& listener) {
  JsonReader reader(input, detail::Comments::refused);
  try {
    for (JsonEvent event = reader.next(); event != JsonEvent::end; event = reader.next())
      tell(listener, event, reader.token().text);
  } catch (const JsonSyntaxError& error) {
    if (reader.is_cut_off())
      throw problem_at(input.name(), reader.position(),
                       "the text ends after " + std::to_string(reader.position().byte) +
                           " bytes, in the middle of its JSON",
                       "it was cut off, or the program that wrote it was stopped");
    throw problem_at(input.name(), error.place,
                     "no JSON at byte " + std::to_string(error.place.byte) + ": " + error.message,
                     error.suggestion);
  }
}

}  // namespace windtunnel
