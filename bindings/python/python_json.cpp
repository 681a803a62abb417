#include "python_json.hpp"

#include <pybind11/stl.h>

#include <cmath>
#include <utility>

namespace py = pybind11;

namespace windtunnel::python {
namespace {

[[noreturn]] void refuse(const std::string& pointer, const std::string& what) {
  throw InputError({{{}, pointer, what, {}}});
}

JsonValue value_of(py::handle value, const std::string& pointer, std::size_t depth);

JsonValue array_of(py::handle sequence, const std::string& pointer, std::size_t depth) {
  JsonValue::Array array;
  for (const py::handle item : sequence)
    array.push_back(value_of(item, pointer_join(pointer, std::to_string(array.size())), depth));
  return JsonValue(std::move(array));
}

JsonValue object_of(const py::dict& dict, const std::string& pointer, std::size_t depth) {
  JsonValue object(JsonValue::Object{});
  for (const auto& [key, value] : dict) {
    const std::string name = text_of(key, pointer, "a key");
    object.set(name, value_of(value, pointer_join(pointer, name), depth));
  }
  return object;
}

std::string name_of_type(py::handle value) {
  return py::cast<std::string>(py::str(py::type::handle_of(value).attr("__name__")));
}

JsonValue integer_of(py::handle value, const std::string& pointer) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow != 0) refuse(pointer, "the integer is beyond 64 bits");
  return JsonValue(std::int64_t{number});
}

JsonValue real_of(double number, const std::string& pointer) {
  if (!std::isfinite(number)) refuse(pointer, "the number is not finite");
  return JsonValue(number);
}

/// `depth`: of the arrays and objects around it.
JsonValue value_of(py::handle value, const std::string& pointer, std::size_t depth) {
  // A list that holds itself has no end.
  if (depth > max_json_depth)
    refuse(pointer, "nested deeper than " + std::to_string(max_json_depth) + " levels");
  if (value.is_none()) return JsonValue();
  if (py::isinstance<py::bool_>(value)) return JsonValue(py::cast<bool>(value));
  if (py::isinstance<py::int_>(value)) return integer_of(value, pointer);
  if (py::isinstance<py::float_>(value)) return real_of(py::cast<double>(value), pointer);
  if (py::isinstance<py::str>(value)) return JsonValue(text_of(value, pointer, "the text"));
  if (py::isinstance<py::dict>(value))
    return object_of(py::reinterpret_borrow<py::dict>(value), pointer, depth + 1);
  if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value))
    return array_of(value, pointer, depth + 1);
  if (py::hasattr(value, "tolist"))  // NumPy
    return value_of(value.attr("tolist")(), pointer, depth + 1);
  refuse(pointer,
         "a " + name_of_type(value) +
             " cannot stand in a scenario (write a dict, list, str, number, bool or None)");
}

}  // namespace

std::string text_of(py::handle value, const std::string& pointer, const std::string& what) {
  if (!py::isinstance<py::str>(value))
    refuse(pointer, what + " is no str, but a " + name_of_type(value));
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (text != nullptr) return {text, static_cast<std::size_t>(size)};
  PyErr_Clear();
  refuse(pointer, what + " has characters that are no Unicode text");
}

JsonValue to_json_value(py::handle value, const std::string& pointer) {
  return value_of(value, pointer, 0);
}

}  // namespace windtunnel::python
