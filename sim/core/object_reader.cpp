#include "core/object_reader.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/contracts.hpp"
#include "core/number_in.hpp"
#include "core/text_list.hpp"

namespace windtunnel {
namespace {

std::string in_quotes(std::string_view word) {
  return text_for_message(JsonValue(std::string(word)));
}

constexpr double no_limit = std::numeric_limits<double>::max();

/// "a whole number from 1 to 8", "a number of 0 or more", "1" where nothing else will do; `limit` and beyond is no limit worth
/// telling.
std::string range_text(std::string_view kind, double min, double max, double limit) {
  std::string text(kind);
  if (min == max) return exact_number(min);
  if (max < limit && min > -limit)
    return text + " from " + exact_number(min) + " to " + exact_number(max);
  if (min > -limit) return text + " of " + exact_number(min) + " or more";
  return max < limit ? text + " of " + exact_number(max) + " or less" : text;
}

std::string whole_range(std::int64_t min, std::int64_t max) {
  return range_text("a whole number", static_cast<double>(min), static_cast<double>(max),
                    std::numeric_limits<int>::max());
}

std::string number_range(double min, double max) {
  return range_text("a number", min, max, no_limit);
}

std::string whole_number_complaint(const JsonValue& value) {
  const double* number = std::get_if<double>(&value.content);
  const bool whole = number != nullptr && std::trunc(*number) == *number;
  return whole ? ", which is not written as a whole number" : ", which is not a whole number";
}

/// The advice where a whole number is wanted and `value` stands.
std::string whole_number_suggestion(const JsonValue& value, std::int64_t min, std::int64_t max) {
  const auto allowed = [&](double number) {
    return number >= static_cast<double>(min) && number <= static_cast<double>(max);
  };
  std::string general = "write " + whole_range(min, max);
  if (const double* number = std::get_if<double>(&value.content)) {
    const double below = std::floor(*number);
    const double above = std::ceil(*number);
    if (!allowed(below) && !allowed(above)) return general;
    if (!allowed(above) || below == above) return "write " + exact_number(below);
    return "write " + (allowed(below) ? exact_number(below) + " or " : "") + exact_number(above);
  }
  if (!value.is_string()) return general;
  const auto number = number_in<std::int64_t>(value.string());
  return number >= min && number <= max ? "write " + std::to_string(*number) + " without quotes"
                                        : general;
}

std::string number_suggestion(const JsonValue& value, double min, double max) {
  const auto number = value.is_string() ? number_in(value.string()) : std::nullopt;
  return number >= min && number <= max ? "write " + exact_number(*number) + " without quotes"
                                        : "write " + number_range(min, max);
}

std::string bool_suggestion(const JsonValue& value) {
  if (value.is_string() && (value.string() == "true" || value.string() == "false"))
    return "write " + value.string() + " without quotes";
  const auto* integer = std::get_if<std::int64_t>(&value.content);
  if (integer != nullptr && (*integer == 0 || *integer == 1))
    return *integer == 0 ? "write false" : "write true";
  return "write true or false";
}

}  // namespace

ObjectReader::ObjectReader(JsonValue& value, std::string pointer, Problems& problems)
    : ObjectReader(value, std::move(pointer), problems, value.origin, false) {}

ObjectReader::ObjectReader(JsonValue& value, std::string pointer, Problems& problems, Origin place,
                           bool silent)
    : value_(&value),
      pointer_(std::move(pointer)),
      problems_(&problems),
      place_(std::move(place)),
      silent_(silent) {
  if (!value.is_object()) {
    const std::string name = pointer_.substr(pointer_.rfind('/') + 1);
    const bool is_entry =
        !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    report_value(place_, pointer_,
                 (name.empty() ? "this"
                  : is_entry   ? "entry " + name
                               : name) +
                     " is " + text_for_message(value) + ", which is not an object",
                 "write { ... }");
    silent_ = true;
    value.content = JsonValue::Object{};
  }
  JsonValue::Object& members = value.object();
  // Twice the room, so that a second reader of this object need not move what the first handed out.
  if (members.capacity() < members.size() + max_defaults)
    members.reserve(members.size() + 2 * max_defaults);
}

void ObjectReader::reject_kind(std::string message, std::string suggestion) {
  report_value(place_, pointer_, std::move(message), std::move(suggestion));
  silent_ = true;
  value_->object().clear();
}

bool ObjectReader::has(std::string_view key) { return take(key) != nullptr; }

JsonValue* ObjectReader::written(std::string_view key) const {
  JsonValue* member = value_->find(key);
  return member == nullptr || member->is_null() ? nullptr : member;
}

int ObjectReader::required_int(std::string_view key, std::int64_t min, std::int64_t max) {
  const JsonValue* member = take(key);
  if (member == nullptr) report_missing(key, whole_range(min, max));
  return member == nullptr ? static_cast<int>(min)
                           : int_from(*member, pointer_join(pointer_, key), key, min, max)
                                 .value_or(static_cast<int>(min));
}

int ObjectReader::optional_int(std::string_view key, int fallback, std::int64_t min,
                               std::int64_t max) {
  if (const JsonValue* member = take(key))
    return int_from(*member, pointer_join(pointer_, key), key, min, max).value_or(fallback);
  set_default(key, std::int64_t{fallback});
  return fallback;
}

double ObjectReader::required_number(std::string_view key, double min, double max) {
  const JsonValue* member = take(key);
  if (member == nullptr) report_missing(key, number_range(min, max));
  return member == nullptr ? min : number_from(key, *member, min, max).value_or(min);
}

double ObjectReader::optional_number(std::string_view key, double fallback, double min,
                                     double max) {
  if (const JsonValue* member = take(key))
    return number_from(key, *member, min, max).value_or(fallback);
  set_default(key, fallback);
  return fallback;
}

bool ObjectReader::optional_bool(std::string_view key, bool fallback) {
  const JsonValue* member = take(key);
  if (member == nullptr) {
    set_default(key, fallback);
    return fallback;
  }
  if (const bool* boolean = std::get_if<bool>(&member->content)) return *boolean;
  problem(
      key,
      std::string(key) + " is " + text_for_message(*member) + ", which is neither true nor false",
      bool_suggestion(*member));
  return fallback;
}

std::string ObjectReader::required_string(std::string_view key) {
  return one_line(key, required_text(key));
}

std::string ObjectReader::optional_string(std::string_view key, std::string_view fallback) {
  return one_line(key, optional_text(key, fallback));
}

std::string ObjectReader::required_text(std::string_view key) {
  const JsonValue* member = require(key, "a string");
  return member == nullptr ? "" : string_from(key, *member, {}).value_or("");
}

std::string ObjectReader::optional_text(std::string_view key, std::string_view fallback) {
  if (const JsonValue* member = take(key))
    return string_from(key, *member, {}).value_or(std::string(fallback));
  set_default(key, std::string(fallback));
  return std::string(fallback);
}

std::string ObjectReader::one_line(std::string_view key, std::string text) {
  if (text.find_first_of("\n\r") != std::string::npos)
    problem(key, std::string(key) + " has a line break in it", "write it on one line");
  return text;
}

std::vector<int> ObjectReader::optional_int_list(std::string_view key, std::int64_t min,
                                                 std::int64_t max) {
  const JsonValue* member = take(key);
  if (member == nullptr) return {};
  if (!member->is_array()) {
    problem(key, std::string(key) + " is " + text_for_message(*member) + ", which is not a list",
            "write [ ... ] with whole numbers");
    return {};
  }
  std::vector<int> list;
  for (std::size_t i = 0; i < member->array().size(); ++i) {
    const std::string index = std::to_string(i);
    const std::string pointer = pointer_join(pointer_join(pointer_, key), index);
    const std::string name = std::string(key) + "[" + index + "]";
    list.push_back(
        int_from(member->array()[i], pointer, name, min, max).value_or(static_cast<int>(min)));
  }
  return list;
}

std::size_t ObjectReader::choose(std::string_view key, const std::vector<std::string>& names,
                                 std::optional<std::size_t> fallback) {
  WT_EXPECT(!names.empty());
  const JsonValue* member = take(key);
  const std::string wanted = "one of " + listed(names, in_quotes);
  if (member == nullptr && fallback) set_default(key, names[*fallback]);
  if (member == nullptr && !fallback) report_missing(key, wanted);
  const std::size_t stand_in = fallback.value_or(0);
  if (member == nullptr) return stand_in;
  const std::optional<std::string> name = string_from(key, *member, wanted);
  if (!name) return stand_in;
  const auto found = std::find(names.begin(), names.end(), *name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const std::string nearest = closest_match(*name, names);
  problem(key, std::string(key) + " is " + in_quotes(*name) + ", which is none of " + listed(names),
          nearest.empty() ? "" : "did you mean " + in_quotes(nearest) + "?");
  return stand_in;
}

JsonValue* ObjectReader::take(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  return written(key);
}

JsonValue* ObjectReader::require(std::string_view key, const std::string& wanted) {
  JsonValue* member = take(key);
  if (member == nullptr) report_missing(key, wanted);
  return member;
}

ObjectReader ObjectReader::child(std::string_view key) {
  if (take(key) == nullptr) set_default(key, JsonValue::Object{});
  return reader_of(*value_->find(key), key);
}

std::optional<ObjectReader> ObjectReader::optional_child(std::string_view key) {
  JsonValue* member = take(key);
  if (member == nullptr) return std::nullopt;
  return reader_of(*member, key);
}

std::vector<ObjectReader> ObjectReader::entries(std::string_view key, const std::string& complaint,
                                                std::size_t least) {
  std::vector<ObjectReader> readers;
  JsonValue* list = take(key);
  if (list == nullptr) return readers;
  if (!list->is_array() || list->array().size() < least) {
    problem(key, complaint);
    return readers;
  }
  for (std::size_t i = 0; i < list->array().size(); ++i)
    readers.emplace_back(list->array()[i],
                         pointer_join(pointer_join(pointer_, key), std::to_string(i)), *problems_);
  return readers;
}

ObjectReader ObjectReader::reader_of(JsonValue& member, std::string_view key) {
  return {member, pointer_join(pointer_, key), *problems_, origin_of(member), silent_};
}

void ObjectReader::set_default(std::string_view key, JsonValue::Content content) {
  if (take(key) != nullptr) return;
  const JsonValue::Object& members = value_->object();
  WT_EXPECT(value_->find(key) != nullptr || members.size() < members.capacity());
  value_->set(key, JsonValue(std::move(content)));
}

void ObjectReader::problem(std::string_view key, std::string message, std::string suggestion) {
  const JsonValue* member = written(key);
  std::string pointer = key.empty() ? pointer_ : pointer_join(pointer_, key);
  if (member != nullptr)
    report_value(origin_of(*member), pointer, std::move(message), std::move(suggestion));
  else if (key.empty() || !problems_->is_spoiled(pointer))
    report(place_, pointer_, std::move(message), std::move(suggestion), {std::move(pointer)});
}

bool ObjectReader::are_sound(std::initializer_list<std::string_view> keys) const {
  return std::all_of(keys.begin(), keys.end(), [this](std::string_view key) {
    return problems_->is_sound(pointer_join(pointer_, key));
  });
}

bool ObjectReader::is_absent(std::string_view key) const {
  const JsonValue* member = value_->find(key);
  return member == nullptr || member->is_null() ||
         (member->origin.kind == OriginKind::defaulted && !member->origin.source);
}

void ObjectReader::reject_unknown_keys() {
  for (const JsonValue::Member& member : value_->object()) {
    if (std::find(known_.begin(), known_.end(), member.key) != known_.end()) continue;
    const std::string nearest = closest_match(member.key, known_);
    const std::string meant = pointer_join(pointer_, nearest);
    const bool is_misspelling = !nearest.empty() && is_absent(nearest);
    if (!silent_) problems_->withdraw(pointer_join(pointer_, member.key));
    if (!silent_ && is_misspelling) problems_->withdraw(meant);
    report(member.key_origin, pointer_, "unknown key " + in_quotes(member.key),
           !nearest.empty()  ? "did you mean " + in_quotes(nearest) + "?"
           : !known_.empty() ? "keys allowed: " + listed(known_)
                             : "no keys are allowed here",
           is_misspelling ? std::vector{meant} : std::vector<std::string>{});
  }
}

void ObjectReader::report_missing(std::string_view key, const std::string& wanted) {
  const std::string name = in_quotes(key);
  const std::string pointer = pointer_join(pointer_, key);
  // It may stand in a part of the file that could not be read, or be misspelt, which has been said.
  if (problems_->is_spoiled(pointer) || problems_->is_spoiled({})) return;
  report(place_, pointer_, "missing key " + name,
         wanted.empty() ? "" : "add " + name + ": " + wanted, {pointer});
}

const Origin& ObjectReader::origin_of(const JsonValue& value) const {
  return value.origin.source ? value.origin : place_;
}

void ObjectReader::report(const Origin& origin, std::string pointer, std::string message,
                          std::string suggestion, std::vector<std::string> spoils) {
  if (!silent_)
    problems_->add({origin, std::move(pointer), std::move(message), std::move(suggestion)},
                   std::move(spoils));
}

void ObjectReader::report_value(const Origin& origin, const std::string& pointer,
                                std::string message, std::string suggestion) {
  if (!problems_->is_spoiled(pointer, origin))
    report(origin, pointer, std::move(message), std::move(suggestion), {pointer});
}

std::optional<int> ObjectReader::int_from(const JsonValue& value, const std::string& pointer,
                                          std::string_view name, std::int64_t min,
                                          std::int64_t max) {
  WT_EXPECT(min >= std::numeric_limits<int>::min() && max <= std::numeric_limits<int>::max());
  const std::string subject = std::string(name) + " is " + text_for_message(value);
  const auto* integer = std::get_if<std::int64_t>(&value.content);
  if (integer == nullptr) {
    report_value(origin_of(value), pointer, subject + whole_number_complaint(value),
                 whole_number_suggestion(value, min, max));
    return std::nullopt;
  }
  if (*integer >= min && *integer <= max) return static_cast<int>(*integer);
  report_value(origin_of(value), pointer,
               subject + ", which is too " + (*integer < min ? "small" : "large"),
               "write " + range_text("a whole number", static_cast<double>(min),
                                     static_cast<double>(max), no_limit));
  return std::nullopt;
}

std::optional<double> ObjectReader::number_from(std::string_view key, const JsonValue& value,
                                                double min, double max) {
  const std::string subject = std::string(key) + " is " + text_for_message(value);
  if (!value.is_number()) {
    problem(key, subject + ", which is not a number", number_suggestion(value, min, max));
    return std::nullopt;
  }
  const double number = *number_of(&value);
  if (number >= min && number <= max) return number;
  problem(key, subject + ", which is too " + (number < min ? "small" : "large"),
          "write " + number_range(min, max));
  return std::nullopt;
}

std::optional<std::string> ObjectReader::string_from(std::string_view key, const JsonValue& value,
                                                     const std::string& wanted) {
  if (value.is_string()) return value.string();
  const std::string subject = std::string(key) + " is " + text_for_message(value);
  std::string suggestion = "write a string in double quotes";
  if (!wanted.empty())
    suggestion = "write " + wanted;
  else if (value.is_number())
    suggestion = "write " + in_quotes(text_for_message(value));
  problem(key, subject + ", which is not a string", suggestion);
  return std::nullopt;
}

}  // namespace windtunnel
