#pragma once

#include <string>

#include "importers/importer.hpp"
#include "importers/launch_settings.hpp"

namespace windtunnel {

/// The scenario of settings that have Megatron-LM's names: its own options, and the `model` block of NeMo. `software` is the stack, unless
/// --deepspeed says that it is Megatron-DeepSpeed.
Imported megatron_scenario(const ImportRequest& request, const Library& library,
                           LaunchSettings settings, std::string software);

}  // namespace windtunnel
