#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/object_reader.hpp"
#include "plan/compression.hpp"
#include "plan/pipeline_layout.hpp"
#include "scenario/key_table.hpp"
#include "workload/model_json.hpp"

namespace windtunnel {

/// The traffic classes that can be compressed, as the `compression` block names them.
inline constexpr std::array compression_classes{"pipeline_forward",   "pipeline_backward",
                                                "data_gradients",     "embedding_sync",
                                                "tensor_activations", "zero_gather"};

/// Reads the `compression` block and writes its defaults: messages all; error_feedback true for codecs that need sums;
/// threshold 1 MB and buffer 32 MB for those of a library; chunks 1; stream compute.
Compression read_compression(ObjectReader reader);

/// The GPUs of the nodes that the scenario asks for.
struct GivenGpus {
  int count = 0;
  std::string text;  ///< "64 nodes * 8 = 512 GPUs"
};

/// Contents of the `parallel` block by itself; the rest takes the model and the cluster.
struct ParallelBlock {
  Parallel parallel;          ///< without `stage_layers` that are no list, and without places
  bool gives_data = false;    ///< else `data` is what the nodes leave, or 1
  bool gives_layers = false;  ///< in some way
  std::vector<std::vector<int>> chunk_layers;  ///< by stage; empty: not given so
  PipelineLayout layout;                       ///< without parts: none
};

/// A named schedule, or one that the user wrote, whose file stands in place of its path. A path that is left could not be read,
/// which has been said.
void read_schedule(ObjectReader& reader, const Key& key, PlanChoice& choice);
/// A word, or a list of "node:gpu".
void read_placement(ObjectReader& reader, const Key& key, PlanChoice& choice);

/// Reads the `parallel` block. `stage_layers` is a list, Megatron-LM's layout (read_pipeline_layout), or "balanced",
/// which only the whole scenario can answer. `placement` is "megatron" (default), "search", or a list of "node:gpu".
ParallelBlock read_parallel(ObjectReader& reader, const SoftwareProfile& software,
                            bool has_experts);

/// Why `data`, which is not given, cannot be num_gpus / (tensor * pipeline); empty: it can.
std::string why_no_data(const Parallel& parallel, const GivenGpus& gpus);

/// Sets the layers of the stages that the layout gives, which has a part for each chunk of each stage.
void split_by_layout(ObjectReader& reader, ParallelBlock& block);

/// The same where they are given by stage and chunk.
void split_by_chunks(ObjectReader& reader, ParallelBlock& block);

/// True if `stage_layers` is "balanced".
bool asks_for_balance(ObjectReader& reader);

/// The ranks of `placement`, where it is a list, for the cluster and ranks that are known by then. Checks that every entry is
/// a GPU of the cluster and none is used twice.
std::vector<int> place_ranks(ObjectReader& reader, int num_ranks, const ClusterShape& cluster);

}  // namespace windtunnel
