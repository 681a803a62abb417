#pragma once

#include <optional>

#include "core/json_value.hpp"

namespace windtunnel {

/// The number of a value, whole or not; none where there is no value or it is no number.
std::optional<double> number_of(const JsonValue* value);

}  // namespace windtunnel
