#pragma once

#include "core/object_reader.hpp"
#include "platform/platform.hpp"
#include "platform/source_json.hpp"

namespace windtunnel {

/// Reads member "interconnect" of a node type with `gpus` GPUs; its sources go to `sources` under
/// `prefix`.
Interconnect read_interconnect(ObjectReader reader, std::optional<int> gpus,
                               const std::string& prefix, Sources& sources);

}  // namespace windtunnel
