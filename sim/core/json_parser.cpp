#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <streambuf>
#include <unordered_set>
#include <utility>

#include "core/foreign_json.hpp"
#include "core/json_reader.hpp"
#include "core/json_value.hpp"
#include "core/work_note.hpp"

namespace windtunnel {
namespace {

using detail::JsonEvent;
using detail::JsonSyntaxError;
using detail::JsonToken;

/// A text in memory, not copied.
class TextBuffer final : public std::streambuf {
 public:
  explicit TextBuffer(const std::string& text) {
    char* const begin = const_cast<char*>(text.data());  // streambuf reads only
    setg(begin, begin, begin + text.size());
  }
};

/// The keys of an object that is being read. Small objects are searched, large ones get an index.
class KeyIndex {
 public:
  /// The member that has this key already, or null.
  const JsonValue::Member* find(const JsonValue::Object& members, const std::string& key) {
    if (members.size() >= least_indexed) {
      for (; num_indexed_ < members.size(); ++num_indexed_) keys_.insert(members[num_indexed_].key);
      if (!keys_.contains(key)) return nullptr;
    }
    const auto found = std::find_if(members.begin(), members.end(),
                                    [&](const auto& member) { return member.key == key; });
    return found == members.end() ? nullptr : &*found;
  }

 private:
  static constexpr std::size_t least_indexed = 16;
  std::unordered_set<std::string> keys_;
  std::size_t num_indexed_ = 0;
};

/// Builds the value of a text from the steps of its reader.
class ValueBuilder {
 public:
  ValueBuilder(std::shared_ptr<const SourceText> source, OriginKind kind, Problems& problems,
               detail::Numbers numbers, std::size_t most_keys)
      : source_(std::move(source)),
        kind_(kind),
        problems_(problems),
        input_(source_->text),
        reader_(input_, detail::Comments::skipped, numbers),
        most_keys_(most_keys) {}

  /// Null where the text cannot be read; why is among the problems.
  JsonValue build();

 private:
  /// An array or object that is not closed yet.
  struct Frame {
    JsonValue value;
    std::string key;  ///< of the member that is being read
    Origin key_origin;
    bool duplicate_key = false;
    KeyIndex keys;
  };

  /// False: reading ends here.
  bool take(JsonEvent event);
  bool open(JsonValue::Content content);
  void close();
  bool take_key();
  bool scalar(JsonValue::Content content);
  bool number();
  void place(JsonValue value);
  /// False, with a problem: there are more values than are read.
  bool expect_room();
  /// JSON pointer of the value that is being read in the `depth`th open array or object.
  std::string pointer(std::size_t depth) const;
  Origin origin() const { return origin_of(reader_.token().begin, reader_.token().length); }
  Origin origin_of(const detail::TextPosition& place, int length) const {
    return {kind_, source_, place.line, place.column, std::max(1, length)};
  }
  /// A problem with the token, and with the value at `pointer`.
  void report(const std::string& pointer, std::string message, std::string suggestion = {}) {
    report(origin(), pointer, std::move(message), std::move(suggestion), pointer);
  }
  void report(Origin origin, std::string pointer, std::string message, std::string suggestion,
              std::string spoiled);
  void report(const JsonSyntaxError& error);
  /// A number as it is written, unless the file is not to be quoted.
  std::string shown_number() const {
    const bool quotable = source_->quoting == Quoting::allowed;
    return quotable ? detail::shown(reader_.token()) : "the number";
  }

  std::shared_ptr<const SourceText> source_;
  OriginKind kind_;
  Problems& problems_;
  TextBuffer input_;
  detail::JsonReader reader_;
  std::size_t most_keys_;
  std::vector<Frame> open_;
  JsonValue root_;
  std::size_t num_values_ = 0;
};

JsonValue ValueBuilder::build() {
  try {
    for (JsonEvent event = reader_.next(); event != JsonEvent::end; event = reader_.next())
      if (!take(event)) return {};
    return std::move(root_);
  } catch (const JsonSyntaxError& error) {
    report(error);
    return {};
  }
}

bool ValueBuilder::take(JsonEvent event) {
  switch (event) {
    case JsonEvent::object_begin:
      return open(JsonValue::Object{});
    case JsonEvent::array_begin:
      return open(JsonValue::Array{});
    case JsonEvent::object_end:
    case JsonEvent::array_end:
      close();
      return true;
    case JsonEvent::key:
      return take_key();
    case JsonEvent::string:
      return scalar(std::move(reader_.token().text));
    case JsonEvent::number:
      return number();
    case JsonEvent::boolean:
      return scalar(reader_.token().text == "true");
    case JsonEvent::null:
      return scalar(nullptr);
    case JsonEvent::end:
      break;
  }
  return true;
}

bool ValueBuilder::expect_room() {
  count_done(++num_values_);
  if (num_values_ <= max_json_values) return true;
  report({}, "more than " + std::to_string(max_json_values) + " values in one file");
  return false;
}

bool ValueBuilder::scalar(JsonValue::Content content) {
  if (!expect_room()) return false;
  place(JsonValue(std::move(content), origin()));
  return true;
}

bool ValueBuilder::number() {
  const std::string& text = reader_.token().text;
  const char* const end = text.data() + text.size();
  const bool is_integer = text.find_first_of(".eE") == std::string::npos;
  std::int64_t integer = 0;
  if (is_integer && std::from_chars(text.data(), end, integer).ec == std::errc{})
    return scalar(integer);
  double value = 0;
  if (std::from_chars(text.data(), end, value).ec == std::errc::result_out_of_range)
    value = std::strtod(text.c_str(), nullptr);  // tells what is too small from what is too large
  if (std::isinf(value)) {
    report(pointer(open_.size()), shown_number() + " is too large for a number",
           "the largest is about 1.8e308");
    value = std::copysign(std::numeric_limits<double>::max(), value);
  } else if (is_integer) {
    report(pointer(open_.size()), shown_number() + " is beyond the 64-bit integers",
           "the largest is 9223372036854775807");
  }
  return scalar(value);
}

bool ValueBuilder::take_key() {
  Frame& frame = open_.back();
  const JsonValue::Object& members = frame.value.object();
  frame.key = std::move(reader_.token().text);
  frame.key_origin = origin();
  const JsonValue::Member* const first = frame.keys.find(members, frame.key);
  frame.duplicate_key = first != nullptr;
  if (first == nullptr && members.size() == most_keys_) {
    report(pointer(open_.size() - 1),
           "more than " + std::to_string(most_keys_) + " keys in one object");
    return false;
  }
  if (first != nullptr)
    report(origin(), pointer(open_.size() - 1),
           "duplicate key " + text_for_message(JsonValue(frame.key)),
           "first at " + std::to_string(first->key_origin.line) + ":" +
               std::to_string(first->key_origin.column),
           pointer(open_.size()));
  return true;
}

bool ValueBuilder::open(JsonValue::Content content) {
  if (!expect_room()) return false;
  if (open_.size() == max_json_depth) {
    report({}, "nested deeper than " + std::to_string(max_json_depth) + " levels");
    return false;
  }
  open_.emplace_back().value = JsonValue(std::move(content), origin());
  return true;
}

void ValueBuilder::close() {
  JsonValue value = std::move(open_.back().value);
  open_.pop_back();
  place(std::move(value));
}

void ValueBuilder::place(JsonValue value) {
  if (open_.empty()) {
    root_ = std::move(value);
    return;
  }
  Frame& frame = open_.back();
  if (frame.value.is_array())
    frame.value.array().push_back(std::move(value));
  else if (!frame.duplicate_key)
    frame.value.object().push_back(
        {std::move(frame.key), std::move(frame.key_origin), std::move(value)});
}

std::string ValueBuilder::pointer(std::size_t depth) const {
  std::string pointer;
  for (std::size_t i = 0; i < depth; ++i) {
    const JsonValue& value = open_[i].value;
    pointer = pointer_join(pointer,
                           value.is_array() ? std::to_string(value.array().size()) : open_[i].key);
  }
  return pointer;
}

void ValueBuilder::report(const JsonSyntaxError& error) {
  Origin place = origin_of(error.place, error.length);
  const std::string pointer = open_.empty() ? "" : this->pointer(open_.size() - 1);
  if (source_->quoting == Quoting::allowed)
    return report(std::move(place), pointer, error.message, error.suggestion, pointer);
  report(std::move(place), {}, "from here on, the file is not JSON",
         source_->quoting == Quoting::link_elsewhere
             ? "windtunnel check says more of the file that the link leads to"
             : "windtunnel check says more of a file that it is given itself",
         {});
}

void ValueBuilder::report(Origin origin, std::string pointer, std::string message,
                          std::string suggestion, std::string spoiled) {
  if (source_->quoting != Quoting::allowed) pointer.clear();  // it is made of keys
  problems_.add({std::move(origin), std::move(pointer), std::move(message), std::move(suggestion)},
                {std::move(spoiled)});
}

}  // namespace

JsonValue parse_json(std::shared_ptr<const SourceText> source, Problems& problems,
                     OriginKind kind) {
  const Doing reading("reading JSON", "values");
  return ValueBuilder(std::move(source), kind, problems, detail::Numbers::finite, max_json_keys)
      .build();
}

JsonValue parse_foreign_json(std::shared_ptr<const SourceText> source, Problems& problems) {
  const Doing reading("reading JSON", "values");
  return ValueBuilder(std::move(source), OriginKind::file, problems, detail::Numbers::of_python,
                      max_json_values)
      .build();
}

}  // namespace windtunnel
