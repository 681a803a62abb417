#include "python_json.hpp"

#include <pybind11/stl.h>

#include <cmath>
#include <utility>

namespace py = pybind11;

namespace windtunnel::python {
namespace {

[[noreturn]] void refuse(const std::string& pointer, const std::string& what) {
  Problem problem;
  problem.pointer = pointer;
  problem.message = what;
  throw InputError({problem});
}

JsonValue array_of(py::handle sequence, const std::string& pointer) {
  JsonValue::Array array;
  for (const py::handle item : sequence)
    array.push_back(to_json_value(item, pointer_join(pointer, std::to_string(array.size()))));
  return JsonValue(std::move(array));
}

JsonValue object_of(const py::dict& dict, const std::string& pointer) {
  JsonValue object(JsonValue::Object{});
  for (const auto& [key, value] : dict) {
    if (!py::isinstance<py::str>(key)) refuse(pointer, "a key is no string");
    const auto name = py::cast<std::string>(key);
    object.set(name, to_json_value(value, pointer_join(pointer, name)));
  }
  return object;
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

}  // namespace

JsonValue to_json_value(py::handle value, const std::string& pointer) {
  if (value.is_none()) return JsonValue();
  if (py::isinstance<py::bool_>(value)) return JsonValue(py::cast<bool>(value));
  if (py::isinstance<py::int_>(value)) return integer_of(value, pointer);
  if (py::isinstance<py::float_>(value)) return real_of(py::cast<double>(value), pointer);
  if (py::isinstance<py::str>(value)) return JsonValue(py::cast<std::string>(value));
  if (py::isinstance<py::dict>(value))
    return object_of(py::reinterpret_borrow<py::dict>(value), pointer);
  if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value))
    return array_of(value, pointer);
  if (py::hasattr(value, "tolist")) return to_json_value(value.attr("tolist")(), pointer);  // NumPy
  refuse(pointer,
         "a " + py::cast<std::string>(py::str(py::type::handle_of(value).attr("__name__"))) +
             " cannot stand in a scenario (write a dict, list, str, number, bool or None)");
}

}  // namespace windtunnel::python
