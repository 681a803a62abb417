#pragma once

#include <string>
#include <vector>

#include "importers/probe_file.hpp"
#include "importers/probe_numbers.hpp"
#include "platform/device.hpp"

namespace windtunnel {

/// Writes the speeds of codecs, and what a call of one costs, into `device`, the document of a GPU. `known` is that GPU as it was, of the
/// platform named `base`.
void write_probed_codecs(ProbeNumbers& numbers, JsonValue& device, const Device& known,
                         const std::string& base,
                         const std::vector<ProbeMeasurement>& measurements);

}  // namespace windtunnel
