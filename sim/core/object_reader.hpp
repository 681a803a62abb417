#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/enum_names.hpp"
#include "core/json_value.hpp"

namespace windtunnel {

/// Reads one JSON object strictly: wrong types, values out of range, missing and unknown keys each
/// become a Problem at the place where they stand; reading goes on with a stand-in so that every
/// problem is found at once. A check of several values asks are_sound() first: a stand-in is
/// nobody's mistake. A missing optional key is written back into the object with Origin
/// `defaulted`, which is what `show --resolved` prints. A key whose value is null counts as
/// missing. Members stay where they are in memory while they are read.
///
///   ObjectReader reader(value, "/model", problems);
///   model.layers = reader.required_int("layers", 1, 100000);
///   model.rotary = reader.optional_bool("rotary", false);
///   reader.reject_unknown_keys();
class ObjectReader {
 public:
  /// `value` that is no object becomes a problem, and all keys read as missing without further
  /// problems.
  ObjectReader(JsonValue& value, std::string pointer, Problems& problems);

  bool has(
      std::string_view key);  ///< present and not null; either way the key is known from here on
  /// The member, or a null pointer when it is absent or null. The key may stay unknown.
  JsonValue* written(std::string_view key) const;
  /// The rest: a problem makes the stand-in `fallback` or, for required keys, `min`, "" or the
  /// first name.
  int required_int(std::string_view key, std::int64_t min, std::int64_t max);
  int optional_int(std::string_view key, int fallback, std::int64_t min, std::int64_t max);
  double required_number(std::string_view key, double min, double max);
  double optional_number(std::string_view key, double fallback, double min, double max);
  bool optional_bool(std::string_view key, bool fallback);
  /// A line of text: a name, which must not look like several lines where it is printed.
  std::string required_string(std::string_view key);
  std::string optional_string(std::string_view key, std::string_view fallback);
  /// Prose of any number of lines.
  std::string required_text(std::string_view key);
  std::string optional_text(std::string_view key, std::string_view fallback);
  /// Absent: empty, and nothing is written back.
  std::vector<int> optional_int_list(std::string_view key, std::int64_t min, std::int64_t max);

  /// One of `names`; the problem names the nearest and lists them all.
  template <class Enum>
  Enum required_enum(std::string_view key, const Names<Enum>& names = all_names<Enum>()) {
    return names[choose(key, name_list(names), std::nullopt)].second;
  }
  template <class Enum>
  Enum optional_enum(std::string_view key, Enum fallback,
                     const Names<Enum>& names = all_names<Enum>()) {
    std::size_t fallback_index = 0;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i].second == fallback) fallback_index = i;
    return names[choose(key, name_list(names), fallback_index)].second;
  }

  /// The raw member (ticked as known), or a null pointer when absent or null. For values with their
  /// own reader (quantities, unions).
  JsonValue* take(std::string_view key);
  /// As take(), but absence is a problem, which asks for `wanted` ("an amount such as …").
  JsonValue* require(std::string_view key, const std::string& wanted = {});
  /// A reader for member object `key`; an absent one is inserted empty, as defaulted.
  ObjectReader child(std::string_view key);
  /// A reader for member object `key`, or nothing when it is absent or null.
  std::optional<ObjectReader> optional_child(std::string_view key);
  /// Readers for the objects of list `key`; none where it is absent. A value that is no list, or a shorter one than `least`, is the
  /// problem `complaint`.
  std::vector<ObjectReader> entries(std::string_view key, const std::string& complaint,
                                    std::size_t least = 1);

  /// Writes a default for `key` so that the resolved file shows it; a key that is there stays as it
  /// is.
  void set_default(std::string_view key, JsonValue::Content content);
  /// True if no problem has been found so far with these members, all of which have been read.
  bool are_sound(std::initializer_list<std::string_view> keys) const;
  /// Reports a problem at member `key` (or at the object itself when the key is absent); nothing
  /// when the object was none in the first place, or when something is wrong with the member already.
  void problem(std::string_view key, std::string message, std::string suggestion = {});

  /// Reports that the object is of another kind than the reader's: nothing else is said of it, and all keys read as missing.
  void reject_kind(std::string message, std::string suggestion);

  /// Every key that was never asked for is a problem, with the nearest known key as suggestion. Where
  /// that one is absent, it is what was meant: nothing else is said of its absence, before or after.
  /// "$schema" is allowed only where the reader takes it.
  void reject_unknown_keys();

  JsonValue& value() { return *value_; }
  const std::string& pointer() const { return pointer_; }
  Problems& problems() { return *problems_; }

 private:
  /// Defaults that each reader has room for in addition to the keys written. One more would move the members
  /// that others point at, and is a broken contract instead.
  static constexpr std::size_t max_defaults = 48;

  ObjectReader(JsonValue& value, std::string pointer, Problems& problems, Origin place,
               bool silent);

  template <class Enum>
  static std::vector<std::string> name_list(const Names<Enum>& names) {
    std::vector<std::string> list;
    list.reserve(names.size());
    for (const auto& [name, unused] : names) list.push_back(name);
    return list;
  }
  std::size_t choose(std::string_view key, const std::vector<std::string>& names,
                     std::optional<std::size_t> fallback);

  /// `text` of member `key`; a problem where it has a line break.
  std::string one_line(std::string_view key, std::string text);
  /// A key was wanted and is not there; `wanted` says what to write.
  void report_missing(std::string_view key, const std::string& wanted);
  /// A reader for `member`, which stands at `key` of this object.
  ObjectReader reader_of(JsonValue& member, std::string_view key);
  const Origin& origin_of(const JsonValue& value) const;
  void report(const Origin& origin, std::string pointer, std::string message,
              std::string suggestion, std::vector<std::string> spoils);
  /// A problem of the value at `pointer`, unless it has one.
  void report_value(const Origin& origin, const std::string& pointer, std::string message,
                    std::string suggestion);
  /// True if the member is not in the file: absent, null, or defaulted.
  bool is_absent(std::string_view key) const;
  std::optional<int> int_from(const JsonValue& value, const std::string& pointer,
                              std::string_view name, std::int64_t min, std::int64_t max);
  std::optional<double> number_from(std::string_view key, const JsonValue& value, double min,
                                    double max);
  std::optional<std::string> string_from(std::string_view key, const JsonValue& value,
                                         const std::string& wanted);

  JsonValue* value_;
  std::string pointer_;
  Problems* problems_;
  Origin place_;  ///< of this object, or of the nearest one around it that was written
  bool silent_ =
      false;  ///< no object in the first place: everything is missing, and that has been said
  std::vector<std::string> known_;
};

}  // namespace windtunnel
