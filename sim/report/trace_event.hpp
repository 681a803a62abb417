#pragma once

#include <charconv>
#include <string>
#include <string_view>

#include "core/json_value.hpp"
#include "report/trace_slices.hpp"

namespace windtunnel::detail {

/// Writes one JSON object as text, member by member.
class ObjectText {
 public:
  ObjectText& text(std::string_view key, std::string_view value) {
    return raw(key, canonical_text(JsonValue(std::string(value))));
  }
  ObjectText& number(std::string_view key, std::int64_t value) {
    return raw(key, std::to_string(value));
  }
  ObjectText& number(std::string_view key, double value) {
    return raw(key, canonical_text(JsonValue(value)));
  }
  /// Nanoseconds as microseconds with three decimals: 1234567 -> 1234.567
  ObjectText& microseconds(std::string_view key, Nanoseconds value) {
    constexpr Nanoseconds per_microsecond = 1000;
    const std::string rest = std::to_string(value % per_microsecond + per_microsecond);
    return raw(key, std::to_string(value / per_microsecond) + "." + rest.substr(1));
  }
  ObjectText& object(std::string_view key, const ObjectText& value) {
    return raw(key, value.str());
  }
  /// `json` is written as it is.
  ObjectText& raw(std::string_view key, std::string_view json) {
    text_ += text_.empty() ? "{\"" : ",\"";
    (text_ += key) += "\":";
    text_ += json;
    return *this;
  }
  std::string str() const { return text_.empty() ? "{}" : text_ + "}"; }

 private:
  std::string text_;
};

}  // namespace windtunnel::detail
