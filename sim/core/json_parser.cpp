#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "core/json_sax.hpp"
#include "core/json_value.hpp"
#include "core/utf8.hpp"
#include "core/work_note.hpp"

namespace windtunnel {
namespace {

/// The keys of an object that is being read. Small objects are searched, large ones get an index.
class KeyIndex {
 public:
  /// The member that has this key already, or null.
  const JsonValue::Member* find(const JsonValue::Object& members, const std::string& key) {
    if (members.size() >= least_indexed) {
      for (; num_indexed_ < members.size(); ++num_indexed_)
        places_.emplace(members[num_indexed_].key, num_indexed_);
      const auto found = places_.find(key);
      return found == places_.end() ? nullptr : &members[found->second];
    }
    const auto found = std::find_if(members.begin(), members.end(),
                                    [&](const auto& member) { return member.key == key; });
    return found == members.end() ? nullptr : &*found;
  }

 private:
  static constexpr std::size_t least_indexed = 16;
  std::unordered_map<std::string, std::size_t> places_;
  std::size_t num_indexed_ = 0;
};

/// The place of the first byte that is no text, which a byte 0 is not either; the text's size where there is none.
std::size_t first_not_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length =
        static_cast<unsigned char>(text[at]) < 0x80 ? 1 : utf8_length_at(text, at);
    if (length == 0 || text[at] == '\0') break;
    at += length;
  }
  return at;
}

/// Builds the value of a text from what nlohmann_json reads.
class ValueBuilder final : public detail::JsonSax {
 public:
  /// `text`: the source's, or one of equal length with 0 in place of each number that is read as null.
  ValueBuilder(TextInput& text, std::shared_ptr<const SourceText> source, OriginKind kind,
               Problems& problems, std::size_t most_keys, detail::Comments comments)
      : JsonSax(text, comments),
        source_(std::move(source)),
        kind_(kind),
        problems_(problems),
        most_keys_(most_keys) {}

  /// Null where the text cannot be read; why is among the problems.
  JsonValue build() {
    // nlohmann_json takes any byte of a comment for text, and a byte 0 for the end.
    const std::size_t bad = first_not_utf8(text_.kept());
    if (bad == text_.kept().size()) return parse(*this) ? std::move(root_) : JsonValue();
    detail::JsonSyntaxError error = detail::explain({text_.kept().substr(bad)});
    error.begin = bad;
    refuse(error, {});
    return {};
  }

  bool start_object(std::size_t) {
    take_open('{');
    return open(JsonValue::Object{});
  }

  bool start_array(std::size_t) {
    take_open('[');
    return open(JsonValue::Array{});
  }

  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& key) {
    take_key(opening_quote());
    Frame& frame = open_.back();
    const JsonValue::Object& members = frame.value.object();
    frame.key = std::move(key);
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

  bool string(std::string& value) {
    take_string(opening_quote());
    return scalar(std::move(value));
  }

  bool number_integer(std::int64_t value) {
    take_integer();
    return scalar(value);
  }

  bool number_unsigned(std::uint64_t value) {
    take_integer();
    const std::string& text = source_->text;
    const bool is_null = text[text.size() - text_.kept().size()] != token().front();
    if (is_null) return scalar(nullptr);
    if (value <= INT64_MAX) return scalar(static_cast<std::int64_t>(value));
    return beyond_integers(static_cast<double>(value));
  }

  bool number_float(double value, const std::string& text) {
    take_word(text.size());
    if (text.find_first_of(".eE") != std::string::npos) return scalar(value);
    return beyond_integers(value);
  }

  bool boolean(bool value) {
    take_word(value ? 4 : 5);
    return scalar(value);
  }

  bool null() {
    take_word(4);
    return scalar(nullptr);
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& stopped) {
    constexpr int number_too_large = 406;  // which spoils a value, and not what it stands in
    const std::size_t depth = open_.size();
    return refuse(syntax_error(),
                  pointer(stopped.id == number_too_large || depth == 0 ? depth : depth - 1));
  }

 private:
  /// An array or object that is not closed yet.
  struct Frame {
    JsonValue value;
    std::string key;  ///< of the member that is being read
    Origin key_origin;
    bool duplicate_key = false;
    KeyIndex keys;
  };

  // False: reading ends here.
  bool refuse(const detail::JsonSyntaxError& error, const std::string& pointer) {
    const bool shows_bracket = error.begin == detail::JsonSyntaxError::at_open_bracket;
    Origin place = shows_bracket ? open_.back().value.origin
                                 : origin_at(text_.kept().data() + error.begin, error.length);
    if (source_->quoting == Quoting::allowed) {
      report(std::move(place), pointer, error.message, error.suggestion, pointer);
      return false;
    }
    report(std::move(place), {}, "from here on, the file is not JSON",
           source_->quoting == Quoting::link_elsewhere
               ? "windtunnel check says more of the file that the link leads to"
               : "windtunnel check says more of a file that it is given itself",
           {});
    return false;
  }

  bool open(JsonValue::Content content) {
    if (!expect_room()) return false;
    if (open_.size() == max_json_depth) {
      report({}, "nested deeper than " + std::to_string(max_json_depth) + " levels");
      return false;
    }
    open_.emplace_back().value = JsonValue(std::move(content), origin());
    return true;
  }

  bool close() {
    take_close();
    JsonValue value = std::move(open_.back().value);
    open_.pop_back();
    place(std::move(value));
    return true;
  }

  bool scalar(JsonValue::Content content) {
    if (!expect_room()) return false;
    place(JsonValue(std::move(content), origin()));
    return true;
  }

  bool beyond_integers(double value) {
    const bool quotable = source_->quoting == Quoting::allowed;
    report(pointer(open_.size()),
           (quotable ? detail::shown(token()) : "the number") + " is beyond the 64-bit integers",
           "the largest is 9223372036854775807");
    return scalar(value);
  }

  void place(JsonValue value) {
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

  /// False, with a problem: there are more values than are read.
  bool expect_room() {
    count_done(++num_values_);
    if (num_values_ <= max_json_values) return true;
    report({}, "more than " + std::to_string(max_json_values) + " values in one file");
    return false;
  }

  /// JSON pointer of the value that is being read in the `depth`th open array or object.
  std::string pointer(std::size_t depth) const {
    std::string pointer;
    for (std::size_t i = 0; i < depth; ++i) {
      const JsonValue& value = open_[i].value;
      pointer = pointer_join(
          pointer, value.is_array() ? std::to_string(value.array().size()) : open_[i].key);
    }
    return pointer;
  }

  Origin origin() { return origin_at(token().data(), utf8_count(token())); }
  Origin origin_at(const char* begin, int length) {
    const TextInput::Position place = text_.position(begin);
    return {kind_, source_, place.line, place.column, std::max(1, length)};
  }

  /// A problem with the token, and with the value at `pointer`.
  void report(const std::string& pointer, std::string message, std::string suggestion = {}) {
    report(origin(), pointer, std::move(message), std::move(suggestion), pointer);
  }

  void report(Origin origin, std::string pointer, std::string message, std::string suggestion,
              std::string spoiled) {
    if (source_->quoting != Quoting::allowed) pointer.clear();  // it is made of keys
    problems_.add(
        {std::move(origin), std::move(pointer), std::move(message), std::move(suggestion)},
        {std::move(spoiled)});
  }

  std::shared_ptr<const SourceText> source_;
  OriginKind kind_;
  Problems& problems_;
  std::size_t most_keys_;
  std::vector<Frame> open_;
  JsonValue root_;
  std::size_t num_values_ = 0;
};

JsonValue built(std::string_view text, std::shared_ptr<const SourceText> source, OriginKind kind,
                Problems& problems, std::size_t most_keys, detail::Comments comments) {
  const WorkNoteScope reading("reading JSON", "values");
  TextInput input(source->name, text);
  return ValueBuilder(input, std::move(source), kind, problems, most_keys, comments).build();
}

/// `text` with 0 and blanks in place of NaN and Infinity, which Python's json module writes behind a blank, comma or bracket.
std::string without_python_numbers(std::string text) {
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') in_string = !in_string;
    if (text[i] == '\\') ++i;
    if (in_string || (i > 0 && detail::is_word_character(text[i - 1]))) continue;
    for (const std::string_view number : {"NaN", "Infinity", "-Infinity"})
      if (text.compare(i, number.size(), number) == 0 &&
          (i + number.size() == text.size() ||
           !detail::is_word_character(text[i + number.size()]))) {
        text.replace(i, number.size(), number.size(), ' ');
        text[i] = '0';
      }
  }
  return text;
}

}  // namespace

JsonValue parse_json(std::shared_ptr<const SourceText> source, Problems& problems,
                     OriginKind kind) {
  const std::string_view text = source->text;
  return built(text, std::move(source), kind, problems, max_json_keys, detail::Comments::skipped);
}

JsonValue parse_foreign_json(std::shared_ptr<const SourceText> source, Problems& problems) {
  const std::string text = without_python_numbers(source->text);
  return built(text, std::move(source), OriginKind::file, problems, max_json_values,
               detail::Comments::refused);
}

}  // namespace windtunnel
