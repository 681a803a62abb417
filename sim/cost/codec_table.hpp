#pragma once

#include <string_view>
#include <vector>

#include "plan/compression.hpp"

namespace windtunnel {

/// All codecs, in the order of sim/cost/codecs.def.
const std::vector<const Codec*>& codecs();

/// The codec of this name, which must exist.
const Codec& codec_named(std::string_view name);

}  // namespace windtunnel
