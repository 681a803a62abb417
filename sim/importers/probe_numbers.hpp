#pragma once

#include <string>
#include <vector>

#include "core/json_value.hpp"

namespace windtunnel {

/// Numbers that an import of the probe has written into a platform, and what it says of them.
struct ProbeNumbers {
  std::string files, gpu, torch, driver;  ///< where the measurements come from
  std::string lines;                      ///< of the text: a key and its value each
  std::vector<std::string> notes;
  int count = 0;

  /// "measured: windtunnel probe on NVIDIA A100-SXM4-80GB, PyTorch 2.3, probe.json (12 products)"
  std::string source(const std::string& detail) const;
  /// Writes `value` with its source, and shows it.
  void set(JsonValue& object, const std::string& key, JsonValue value, const std::string& detail,
           const std::string& shown);
  void show(const std::string& key, const std::string& value);
};

}  // namespace windtunnel
