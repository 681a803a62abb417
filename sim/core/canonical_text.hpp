#pragma once

#include <string>
#include <unordered_set>

#include "core/json_value.hpp"

namespace windtunnel {

/// Members of objects that a text leaves out, by the place of their value.
using LeftOut = std::unordered_set<const JsonValue*>;

/// canonical_text() of the value without some of its members: what a copy without them would give.
std::string canonical_text(const JsonValue& value, const LeftOut& left_out);

}  // namespace windtunnel
