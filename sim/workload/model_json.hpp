#pragma once

#include <string>

#include "core/json_value.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {

/// Layers of the largest model that is read.
inline constexpr int most_layers = 100'000;

/// Reads a file of models/, or the same object written inline in a scenario. Keys and defaults
/// (CONTRACT section 3): layers, hidden, heads, sequence, vocab are required; family gpt, kv_heads
/// = heads, ffn_hidden = 4 hidden, gated_mlp false, tied_embeddings true, rotary false,
/// vocab_divisor 128. What is wrong goes to `problems`, and the model then holds stand-ins that
/// divide.
Transformer read_transformer(JsonValue& value, const std::string& pointer, Problems& problems);

}  // namespace windtunnel
