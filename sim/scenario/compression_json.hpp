#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/object_reader.hpp"
#include "plan/compression.hpp"

namespace windtunnel {

/// The traffic classes that can be compressed, as the `compression` block names them.
inline constexpr std::array compression_classes{"pipeline_forward",   "pipeline_backward",
                                                "data_gradients",     "embedding_sync",
                                                "tensor_activations", "zero_gather"};

/// The codecs' names, and what each does.
const std::vector<std::pair<std::string, std::string>>& codec_list();

/// Reads the `compression` block and writes its defaults: messages all; error_feedback true for powersgd and topk;
/// threshold 1 MB and buffer 32 MB for zfp and mpc; chunks 1; stream compute.
Compression read_compression(ObjectReader reader);

}  // namespace windtunnel
