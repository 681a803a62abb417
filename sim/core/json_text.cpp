#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/contracts.hpp"
#include "core/json_value.hpp"
#include "core/terminal_safe.hpp"
#include "core/utf8.hpp"

namespace windtunnel {
namespace {

/// Doubles up to here hold every whole number exactly (2^53).
constexpr double whole_number_limit = 9007199254740992.0;
constexpr std::size_t max_line_width = 100;
constexpr std::size_t max_message_width = 60;

template <class Number>
std::string shortest(Number number) {
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  return {buffer.data(), end};
}

bool is_whole(double number) {
  return std::abs(number) <= whole_number_limit && std::trunc(number) == number;
}

/// 8.0 is "8": equal numbers have equal canonical texts, however they were written.
std::string canonical_number(double number) {
  WT_EXPECT(std::isfinite(number));
  return is_whole(number) ? shortest(static_cast<std::int64_t>(number)) : shortest(number);
}

/// 8.0 is "8.0": what is read back is a double again.
std::string pretty_number(double number) {
  WT_EXPECT(std::isfinite(number));
  if (!is_whole(number)) return shortest(number);
  return (std::signbit(number) && number == 0 ? "-0"
                                              : shortest(static_cast<std::int64_t>(number))) +
         ".0";
}

/// True if JSON writes a character as it is, and a terminal only shows it.
bool is_plain(char c) { return c >= ' ' && c < '\x7F' && c != '"' && c != '\\'; }

/// `text` in double quotes; bytes that are not UTF-8 become U+FFFD, for JSON cannot say them. What would act on a terminal is escaped.
std::string quoted(const std::string& text) {
  if (std::all_of(text.begin(), text.end(), is_plain)) return '"' + text + '"';
  constexpr int on_one_line = -1;
  // Spells control characters beyond ASCII as JSON does.
  return for_terminal(
      nlohmann::json(text).dump(on_one_line, ' ', false, nlohmann::json::error_handler_t::replace));
}

enum class NumberStyle { canonical, pretty };

/// The text of anything but a filled array or object.
std::string scalar_text(const JsonValue& value, NumberStyle style) {
  if (value.is_null()) return "null";
  if (const bool* boolean = std::get_if<bool>(&value.content)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value.content)) return shortest(*integer);
  if (const double* number = std::get_if<double>(&value.content))
    return style == NumberStyle::canonical ? canonical_number(*number) : pretty_number(*number);
  if (value.is_string()) return quoted(value.string());
  return value.is_array() ? "[]" : "{}";
}

void append_canonical(const JsonValue& value, const LeftOut& left_out, std::string& text) {
  if (value.is_array()) {
    text += '[';
    for (const JsonValue& element : value.array()) {
      append_canonical(element, left_out, text);
      text += ',';
    }
    if (!value.array().empty()) text.pop_back();
    text += ']';
  } else if (value.is_object()) {
    std::vector<const JsonValue::Member*> members;
    members.reserve(value.object().size());
    for (const JsonValue::Member& member : value.object())
      if (left_out.empty() || !left_out.contains(&member.value)) members.push_back(&member);
    std::sort(members.begin(), members.end(),
              [](const auto* a, const auto* b) { return a->key < b->key; });
    text += '{';
    for (const JsonValue::Member* member : members) {
      text += quoted(member->key) + ':';
      append_canonical(member->value, left_out, text);
      text += ',';
    }
    if (!members.empty()) text.pop_back();
    text += '}';
  } else {
    text += scalar_text(value, NumberStyle::canonical);
  }
}

/// "[1, 2, 3]", or nothing when an element is a filled container or the line would be too long.
std::string one_line(const JsonValue::Array& array) {
  std::string line = "[";
  for (const JsonValue& element : array) {
    if (element.is_array() && !element.array().empty()) return {};
    if (element.is_object() && !element.object().empty()) return {};
    line += (line.size() == 1 ? "" : ", ") + scalar_text(element, NumberStyle::pretty);
    if (line.size() > max_line_width) return {};
  }
  return line + "]";
}

void append_pretty(const JsonValue& value, std::size_t indent, std::string& text) {
  const std::string line = value.is_array() ? one_line(value.array()) : std::string();
  const auto begin_line = [&](const char* before, std::size_t width) {
    ((text += before) += '\n').append(width, ' ');
  };
  if (!line.empty()) {
    text += line;
  } else if (value.is_array()) {
    text += '[';
    for (const JsonValue& element : value.array()) {
      begin_line(&element == &value.array().front() ? "" : ",", indent + 2);
      append_pretty(element, indent + 2, text);
    }
    begin_line("", indent);
    text += ']';
  } else if (value.is_object() && !value.object().empty()) {
    text += '{';
    for (const JsonValue::Member& member : value.object()) {
      begin_line(&member == &value.object().front() ? "" : ",", indent + 2);
      text += quoted(member.key) + ": ";
      append_pretty(member.value, indent + 2, text);
    }
    begin_line("", indent);
    text += '}';
  } else {
    text += scalar_text(value, NumberStyle::pretty);
  }
}

}  // namespace

std::string canonical_text(const JsonValue& value) { return canonical_text(value, {}); }

std::string canonical_text(const JsonValue& value, const LeftOut& left_out) {
  std::string text;
  append_canonical(value, left_out, text);
  return text;
}

std::string exact_number(double number) { return canonical_text(JsonValue(number)); }

std::string pretty_text(const JsonValue& value) {
  std::string text;
  append_pretty(value, 0, text);
  return text;
}

std::string text_for_message(const JsonValue& value) {
  if (value.is_array() || value.is_object()) return value.kind_name();
  std::string text = scalar_text(value, NumberStyle::pretty);
  if (utf8_count(text) <= static_cast<int>(max_message_width)) return text;
  std::size_t end = 0;
  for (std::size_t i = 0; i < max_message_width - 3; ++i) end += utf8_length_at(text, end);
  return text.substr(0, end) + "...";
}

}  // namespace windtunnel
