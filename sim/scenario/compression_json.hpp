#pragma once

#include <array>

#include "core/object_reader.hpp"
#include "plan/compression.hpp"

namespace windtunnel {

/// The traffic classes that can be compressed, as the `compression` block names them.
inline constexpr std::array compression_classes{"pipeline_forward",   "pipeline_backward",
                                                "data_gradients",     "embedding_sync",
                                                "tensor_activations", "zero_gather"};

/// Reads the `compression` block and writes its defaults: messages all; error_feedback true for codecs that need sums;
/// threshold 1 MB and buffer 32 MB for those of a library; chunks 1; stream compute.
Compression read_compression(ObjectReader reader);

}  // namespace windtunnel
