#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <variant>
#include <vector>

#include "core/problem.hpp"

namespace windtunnel {

/// A JSON value that remembers where it was written, through merges and overrides.
/// Objects keep the order of their keys. Numbers keep whether they were written as integers.
class JsonValue {
 public:
  struct Member;
  using Array = std::vector<JsonValue>;
  using Object = std::vector<Member>;
  /// null, boolean, integer, other number, string, array, object
  using Content =
      std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Array, Object>;

  JsonValue() = default;
  explicit JsonValue(Content content, Origin origin = {});

  Content content;
  Origin origin;

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(content); }
  bool is_object() const { return std::holds_alternative<Object>(content); }
  bool is_array() const { return std::holds_alternative<Array>(content); }
  bool is_string() const { return std::holds_alternative<std::string>(content); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(content); }
  bool is_number() const { return is_integer() || std::holds_alternative<double>(content); }
  bool is_bool() const { return std::holds_alternative<bool>(content); }

  Object& object();
  const Object& object() const;
  Array& array();
  const Array& array() const;
  const std::string& string() const;

  /// Member `key` of this object, or null when there is none (or this is no object).
  JsonValue* find(std::string_view key);
  const JsonValue* find(std::string_view key) const;
  /// Sets or replaces member `key`; this must be an object.
  JsonValue& set(std::string_view key, JsonValue value, Origin key_origin = {});
  bool erase(std::string_view key);

  /// "an integer", "a string", … for messages.
  std::string kind_name() const;
};

struct JsonValue::Member {
  std::string key;
  Origin key_origin;
  JsonValue value;
};

/// Deepest nesting of arrays and objects that is read, so that no input exhausts the stack.
inline constexpr std::size_t max_json_depth = 200;

/// Most values in one JSON text, some 100 bytes of memory each, and most keys of one object: more are a file that is none of ours.
inline constexpr std::size_t max_json_values = 4'000'000;
inline constexpr std::size_t max_json_keys = 10'000;

/// Parses JSON with // and /* */ comments. Duplicate keys, NaN, integers beyond 64 bits and
/// trailing commas are problems with positions; the value is null when the text cannot be parsed at
/// all. Of duplicate keys the first is kept. Columns count characters, not bytes. `kind` is given
/// to every origin: the text may stem from --set.
JsonValue parse_json(std::shared_ptr<const SourceText> source, Problems& problems,
                     OriginKind kind = OriginKind::file);

/// Merges `overlay` into `base`: objects merge key by key, null deletes, everything else replaces
/// (RFC 7396).
void merge_json(JsonValue& base, const JsonValue& overlay);

/// Canonical text: sorted keys, no white space, shortest round-trip numbers (8.0 as 8). Input to
/// the scenario hash. Infinite numbers and NaN are our bug, here and in pretty_text.
std::string canonical_text(const JsonValue& value);

/// The shortest text that reads back as the number.
std::string exact_number(double number);

/// Indented text as a person would write it, without a last line end. Doubles are printed as their
/// shortest round-trip text (8.0 as 8.0); arrays of scalars stand on one line where they fit.
std::string pretty_text(const JsonValue& value);

/// A value in a message: scalars as JSON, shortened; "an array", "an object".
std::string text_for_message(const JsonValue& value);

/// Appends `key` to a JSON pointer, escaped (RFC 6901).
std::string pointer_join(std::string_view pointer, std::string_view key);

/// The value at `pointer`, or null when the path does not exist.
JsonValue* find_at(JsonValue& root, std::string_view pointer);
const JsonValue* find_at(const JsonValue& root, std::string_view pointer);

/// Sets the value at `pointer`, making the objects on the way; false when a non-object or a bad
/// array index is in the way.
bool set_at(JsonValue& root, std::string_view pointer, JsonValue value);
/// Takes away the member of an object at `pointer`. False: there is none.
bool erase_at(JsonValue& root, std::string_view pointer);

/// The number of a value, whole or not; none where there is no value or it is no number.
std::optional<double> number_of(const JsonValue* value);

/// Members of objects that a text leaves out, by the place of their value.
using LeftOut = std::unordered_set<const JsonValue*>;

/// canonical_text() of the value without some of its members: what a copy without them would give.
std::string canonical_text(const JsonValue& value, const LeftOut& left_out);

/// Parses JSON that other programs wrote. parse_json() guards our own files against mistakes and against what would take for ever to merge;
/// here an object may have any number of keys, and NaN and Infinity, which Python's json module writes, are read as null.
JsonValue parse_foreign_json(std::shared_ptr<const SourceText> source, Problems& problems);

}  // namespace windtunnel
