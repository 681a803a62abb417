#include <algorithm>
#include <cctype>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <utility>

#include "core/json_syntax.hpp"
#include "core/json_value.hpp"
#include "core/utf8.hpp"
#include "core/work_note.hpp"

namespace windtunnel {
namespace {

using detail::Token;

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// Turns byte offsets into lines and columns; fast when the offsets ascend.
class PositionFinder {
 public:
  PositionFinder(std::shared_ptr<const SourceText> source, OriginKind kind)
      : source_(std::move(source)), kind_(kind) {
    rewind();
  }

  Origin origin_of(Token token) {
    if (token.begin < offset_) rewind();
    const std::string_view text = source_->text;
    while (offset_ < std::min(token.begin, text.size())) advance(text);
    const int length =
        utf8_count(text.substr(std::min(token.begin, text.size()), token.end - token.begin));
    return {kind_, source_, line_, column_, std::max(1, length)};
  }

 private:
  void rewind() {
    offset_ =
        std::string_view(source_->text).starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
    line_ = 1;
    column_ = 1;
  }

  void advance(std::string_view text) {
    const bool line_end = text[offset_] == '\n';
    line_ += line_end ? 1 : 0;
    column_ = line_end ? 1 : column_ + 1;
    offset_ += std::max<std::size_t>(1, utf8_length_at(text, offset_));
  }

  std::shared_ptr<const SourceText> source_;
  OriginKind kind_;
  std::size_t offset_ = 0;
  std::int64_t line_ = 1;
  std::int64_t column_ = 1;
};

/// Receives nlohmann's events and builds the value. nlohmann says nothing of positions, but its
/// events come in the order of the text: each token begins after the one before, past blanks,
/// commas and colons.
class ValueBuilder {
 public:
  ValueBuilder(std::shared_ptr<const SourceText> source, OriginKind kind, Problems& problems)
      : text_(source->text),
        quoting_(source->quoting),
        positions_(std::move(source), kind),
        problems_(problems) {
    if (text_.starts_with(byte_order_mark)) text_begin_ = accepted_end_ = byte_order_mark.size();
  }

  JsonValue take_root() { return std::move(root_); }
  /// Reports the first byte that is NUL or not UTF-8.
  bool check_encoding();

  // The interface that nlohmann::json::sax_parse calls; false ends the parse.
  bool null() { return scalar(nullptr, word()); }
  bool boolean(bool value) { return scalar(value, word()); }
  bool number_integer(std::int64_t value);
  bool number_unsigned(std::uint64_t value);
  bool number_float(double value, const std::string& written);
  bool string(std::string& value) { return scalar(std::move(value), word()); }
  bool binary(nlohmann::json::binary_t& /*value*/) { return false; }
  bool start_object(std::size_t /*size*/) { return open(JsonValue::Object{}); }
  bool start_array(std::size_t /*size*/) { return open(JsonValue::Array{}); }
  bool key(std::string& key);
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t consumed, const std::string& last_token,
                   const nlohmann::detail::exception& error);

 private:
  struct Frame {
    JsonValue value;
    std::size_t begin = 0;
    std::string key;
    Origin key_origin;
    bool duplicate_key = false;
    std::unordered_set<std::string> keys;
  };

  /// Where the token of this event begins.
  std::size_t next_begin() const;
  Token word() const { return detail::token_after(text_, next_begin()); }
  bool scalar(JsonValue::Content content, Token token);
  bool integer_out_of_range(double stand_in, Token token);
  bool open(JsonValue::Content content);
  bool close();
  void place(JsonValue value);
  /// False, with a problem at `token`: there are more values than are read.
  bool expect_room(Token token);
  /// JSON pointer of the value that is being read in the `depth`th open array or object.
  std::string pointer(std::size_t depth) const;
  void report(Token token, const std::string& pointer, std::string message,
              std::string suggestion) {
    report(token, pointer, std::move(message), std::move(suggestion), pointer);
  }
  void report(Token token, std::string pointer, std::string message, std::string suggestion,
              std::string spoiled);
  /// A number as it is written, unless the file is not to be quoted.
  std::string shown(Token token) const {
    return quoting_ == Quoting::allowed ? detail::shown(text_, token) : "the number";
  }

  std::string_view text_;
  Quoting quoting_;
  PositionFinder positions_;
  Problems& problems_;
  std::vector<Frame> open_;
  JsonValue root_;
  std::size_t num_values_ = 0;
  std::size_t text_begin_ = 0;
  std::size_t accepted_end_ = 0;  ///< of the last key, value or bracket
};

bool ValueBuilder::check_encoding() {
  for (std::size_t at = 0; at < text_.size();) {
    const std::size_t length = utf8_length_at(text_, at);
    if (length == 0 || text_[at] == '\0') {
      constexpr std::string_view digits = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(text_[at]);
      report(
          {at, at + 1}, {},
          std::string("byte 0x") + digits[byte >> 4U] + digits[byte & 15U] + " is not UTF-8 text",
          "save the file as UTF-8");
      return false;
    }
    at += length;
  }
  return true;
}

std::size_t ValueBuilder::next_begin() const {
  std::size_t begin = detail::skip_blanks(text_, accepted_end_);
  while (begin < text_.size() && (text_[begin] == ',' || text_[begin] == ':'))
    begin = detail::skip_blanks(text_, begin + 1);
  return begin;
}

bool ValueBuilder::expect_room(Token token) {
  count_done(++num_values_);
  if (num_values_ <= max_json_values) return true;
  report(token, {}, "more than " + std::to_string(max_json_values) + " values in one file", {});
  return false;
}

bool ValueBuilder::scalar(JsonValue::Content content, Token token) {
  if (!expect_room(token)) return false;
  accepted_end_ = token.end;
  place(JsonValue(std::move(content), positions_.origin_of(token)));
  return true;
}

bool ValueBuilder::number_integer(std::int64_t value) {
  const std::size_t begin = next_begin();
  const std::size_t minus_of_zero = value == 0 && text_[begin] == '-' ? 1 : 0;
  return scalar(value, {begin, begin + std::to_string(value).size() + minus_of_zero});
}

bool ValueBuilder::number_unsigned(std::uint64_t value) {
  const std::size_t begin = next_begin();
  const Token token{begin, begin + std::to_string(value).size()};
  if (value <= std::uint64_t{std::numeric_limits<std::int64_t>::max()})
    return scalar(static_cast<std::int64_t>(value), token);
  return integer_out_of_range(static_cast<double>(value), token);
}

bool ValueBuilder::number_float(double value, const std::string& written) {
  const std::size_t begin = next_begin();
  const Token token{begin, begin + written.size()};
  if (written.find_first_of(".eE") == std::string::npos) return integer_out_of_range(value, token);
  return scalar(value, token);
}

bool ValueBuilder::integer_out_of_range(double stand_in, Token token) {
  report(token, pointer(open_.size()), shown(token) + " is beyond the 64-bit integers",
         "the largest is 9223372036854775807");
  return scalar(stand_in, token);
}

bool ValueBuilder::key(std::string& key) {
  const Token token = word();
  accepted_end_ = token.end;
  Frame& frame = open_.back();
  frame.key_origin = positions_.origin_of(token);
  frame.key = std::move(key);
  frame.duplicate_key = !frame.keys.insert(frame.key).second;
  if (frame.keys.size() > max_json_keys) {
    report(token, pointer(open_.size() - 1),
           "more than " + std::to_string(max_json_keys) + " keys in one object", {});
    return false;
  }
  if (!frame.duplicate_key) return true;
  const JsonValue::Object& members = frame.value.object();
  const auto first = std::find_if(members.begin(), members.end(),
                                  [&](const auto& member) { return member.key == frame.key; });
  const std::string name = text_for_message(JsonValue(frame.key));
  report(token, pointer(open_.size() - 1), "duplicate key " + name,
         "first at " + std::to_string(first->key_origin.line) + ":" +
             std::to_string(first->key_origin.column),
         pointer(open_.size()));
  return true;
}

bool ValueBuilder::open(JsonValue::Content content) {
  const Token token = word();
  if (!expect_room(token)) return false;
  accepted_end_ = token.end;
  if (open_.size() == max_json_depth) {
    report(token, {}, "nested deeper than " + std::to_string(max_json_depth) + " levels", {});
    return false;
  }
  Frame frame;
  frame.value = JsonValue(std::move(content), positions_.origin_of(token));
  frame.begin = token.begin;
  open_.push_back(std::move(frame));
  return true;
}

bool ValueBuilder::close() {
  accepted_end_ = word().end;
  JsonValue value = std::move(open_.back().value);
  open_.pop_back();
  place(std::move(value));
  return true;
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
    frame.value.object().push_back({frame.key, frame.key_origin, std::move(value)});
}

bool ValueBuilder::parse_error(std::size_t consumed, const std::string& /*last_token*/,
                               const nlohmann::detail::exception& error) {
  constexpr int number_overflow = 406;  // nlohmann's json.exception.out_of_range.406
  if (error.id == number_overflow) {
    const Token token = word();
    report(token, pointer(open_.size()), shown(token) + " is too large for a number",
           "the largest is about 1.8e308");
    return false;
  }
  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing
  // object key - REASON"
  const std::string all = error.what();
  const std::size_t dash = all.find(" - ");
  std::string reason = dash == std::string::npos ? all : all.substr(dash + 3);
  reason = reason.substr(0, reason.find("; last read"));
  if (all.find("while parsing object key") < dash) reason += " (object key)";
  std::optional<detail::OpenContainer> open;
  if (!open_.empty()) open = {open_.back().begin, text_[open_.back().begin]};
  const detail::SyntaxError explained =
      detail::explain_syntax_error({text_, text_begin_, accepted_end_, consumed, reason, open});
  if (quoting_ != Quoting::allowed) {
    report(explained.place, {}, "from here on, the file is not JSON",
           quoting_ == Quoting::link_elsewhere
               ? "windtunnel check says more of the file that the link leads to"
               : "windtunnel check says more of a file that it is given itself");
    return false;
  }
  report(explained.place, open_.empty() ? "" : pointer(open_.size() - 1), explained.message,
         explained.suggestion);
  return false;
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

void ValueBuilder::report(Token token, std::string pointer, std::string message,
                          std::string suggestion, std::string spoiled) {
  if (quoting_ != Quoting::allowed) pointer.clear();  // it is made of keys
  problems_.add(
      {positions_.origin_of(token), std::move(pointer), std::move(message), std::move(suggestion)},
      {std::move(spoiled)});
}

}  // namespace

JsonValue parse_json(std::shared_ptr<const SourceText> source, Problems& problems,
                     OriginKind kind) {
  const Doing reading("reading JSON", "values");
  const std::string& text = source->text;  // which the builder keeps alive
  ValueBuilder builder(std::move(source), kind, problems);
  if (!builder.check_encoding()) return {};
  constexpr bool nothing_may_follow = true;
  constexpr bool ignore_comments = true;
  const bool parsed = nlohmann::json::sax_parse(
      text, &builder, nlohmann::json::input_format_t::json, nothing_may_follow, ignore_comments);
  return parsed ? builder.take_root() : JsonValue{};
}

}  // namespace windtunnel
