#include "core/json_number.hpp"

#include <cstdint>
#include <variant>

namespace windtunnel {

std::optional<double> number_of(const JsonValue* value) {
  if (value == nullptr || !value->is_number()) return std::nullopt;
  if (value->is_integer()) return static_cast<double>(std::get<std::int64_t>(value->content));
  return std::get<double>(value->content);
}

}  // namespace windtunnel
