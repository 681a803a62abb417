#pragma once

#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// A device file with everything in it, and what was put there.
struct DatasheetDevice {
  JsonValue document;
  std::string nearest;      ///< the device whose measured numbers stand in
  std::string description;  ///< with its power: "h100-sxm-80gb (NVIDIA H100 SXM5, …, 700 W)"
  std::vector<std::string>
      added;  ///< pointers of the values that the datasheet does not give, in order
};

/// A device file that says what a data sheet says (name, multiprocessors, peak, memory capacity and bandwidth), with the rest taken
/// over from the device of the library that is nearest to it among those whose matrix products were measured: efficiencies and
/// overheads as they are, usable memory in proportion to the capacity, throughputs of codecs in proportion to the memory bandwidth.
/// Each such number's source is "assumed: scaled from NAME". What the file says stays. Nearest is the smallest sum of the logarithms
/// of the ratios of peak rate and memory bandwidth. Throws InputError.
DatasheetDevice complete_device(JsonValue sheet, const Library& library);

}  // namespace windtunnel
