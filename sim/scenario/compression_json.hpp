#pragma once

#include <array>

#include "core/object_reader.hpp"

namespace windtunnel {

/// The traffic classes that can be compressed, as the `compression` block names them.
inline constexpr std::array compression_classes{"pipeline_forward",   "pipeline_backward",
                                                "data_gradients",     "embedding_sync",
                                                "tensor_activations", "zero_gather"};

/// The names of the codecs.
const std::vector<std::string>& codec_names();

/// Checks the structure of the `compression` block and writes its defaults: messages all; error_feedback true for powersgd
/// and topk. The numbers are not kept: nothing simulates them yet (unsupported.cpp).
void check_compression(ObjectReader reader);

}  // namespace windtunnel
