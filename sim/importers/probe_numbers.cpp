#include "importers/probe_numbers.hpp"

#include <utility>

#include "importers/base_platform.hpp"

namespace windtunnel {

std::string ProbeNumbers::source(const std::string& detail) const {
  return "measured: windtunnel probe on " + gpu + ", PyTorch " + torch +
         (driver.empty() ? "" : ", driver " + driver) + ", " + files +
         (detail.empty() ? "" : " (" + detail + ")");
}

void ProbeNumbers::set(JsonValue& object, const std::string& key, JsonValue value,
                       const std::string& detail, const std::string& shown) {
  set_number(object, key, std::move(value), source(detail));
  show(key, shown);
  ++count;
}

void ProbeNumbers::show(const std::string& key, const std::string& value) {
  constexpr std::size_t column = 22;
  lines +=
      "  " + key + std::string(key.size() < column ? column - key.size() : 1, ' ') + value + "\n";
}

}  // namespace windtunnel
