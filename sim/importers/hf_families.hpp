#pragma once

#include <string_view>
#include <vector>

namespace windtunnel {

/// A model_type of HuggingFace's transformers: what its configuration class supplies where a config.json says nothing, and what a model file
/// says of every such model. A new family is a line in hf_families.cpp.
struct HfFamily {
  const char* model_type;
  const char* like;      ///< the model_type whose `ours` this adds to; empty: none
  const char* defaults;  ///< JSON, in the configuration's own keys
  /// JSON, in a model file's keys. "$key" is whether the configuration's key is on, and "$key?value" the value where it is; `moe` and `mla`
  /// stand where the family's experts and latent attention are known.
  const char* ours;
  const char* left_out = "";  ///< what a model file cannot say of it
};

const std::vector<HfFamily>& hf_families();
const HfFamily* find_hf_family(std::string_view model_type);

/// Why models of a type that is no decoder of text, or no stack of like layers, are refused; null: it is none of those.
const char* why_hf_type_is_refused(std::string_view model_type);

/// A key of a configuration that changes what a model computes. While it is off (absent, null, false, 0, empty) it says nothing.
struct HfKey {
  const char* key;
  const char* what;  ///< what it says
};
/// Where it is on, the model cannot be written as a model file.
const std::vector<HfKey>& refused_hf_keys();
/// It is left out, and that is said.
const std::vector<HfKey>& uncounted_hf_keys();

}  // namespace windtunnel
