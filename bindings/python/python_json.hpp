#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "core/json_value.hpp"

namespace windtunnel::python {

/// None, bool, int, float, str, list, tuple and dict (and NumPy's numbers) as a JSON value. InputError names the pointer of anything else.
JsonValue to_json_value(pybind11::handle value, const std::string& pointer);

/// The text of a str; InputError at `pointer`, which calls it `what`, for anything else.
std::string text_of(pybind11::handle value, const std::string& pointer, const std::string& what);

}  // namespace windtunnel::python
