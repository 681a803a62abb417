#pragma once

#include "core/json_value.hpp"
#include "report/page_assets.hpp"

/// The files of sim/importers/tables/, built into the program: what other programs call things, and what that is here.
namespace windtunnel::detail {

extern const Asset deepspeed_table;  ///< keys, as LaunchScenario takes them
extern const Asset megatron_table;
extern const Asset torchtitan_table;
extern const Asset hf_table;         ///< families of models on HuggingFace's hub
extern const Asset kernels_table;    ///< names of kernels, and what they do
extern const Asset file_signatures;  ///< by which files are recognised

/// `name`: what messages call it.
JsonValue parsed(const Asset& table, const char* name = "built-in");

}  // namespace windtunnel::detail
