#pragma once

#include <string>

#include "core/object_reader.hpp"
#include "plan/plan.hpp"

namespace windtunnel {

/// Reads the `training` block. Required: global_batch, micro_batch. Defaults: precision fp16, gradient_dtype the software
/// profile's, optimizer adam, recompute none, attention standard.
Training read_training(ObjectReader reader, const SoftwareProfile& software);

}  // namespace windtunnel
