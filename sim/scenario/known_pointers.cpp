#include "scenario/known_pointers.hpp"

#include <algorithm>
#include <vector>

#include "core/problem.hpp"

namespace windtunnel {
namespace {

const std::vector<std::string> leaves = {"/version",
                                         "/name",
                                         "/model",
                                         "/platform",
                                         "/nodes",
                                         "/software",
                                         "/compression",
                                         "/memory_correction",
                                         "/training/global_batch",
                                         "/training/micro_batch",
                                         "/training/precision",
                                         "/training/gradient_dtype",
                                         "/training/optimizer",
                                         "/training/recompute",
                                         "/training/attention",
                                         "/parallel/tensor",
                                         "/parallel/pipeline",
                                         "/parallel/data",
                                         "/parallel/schedule",
                                         "/parallel/virtual_pipeline",
                                         "/parallel/pipeline_send",
                                         "/parallel/sequence_parallel",
                                         "/parallel/zero_stage",
                                         "/parallel/overlap_gradient_reduce",
                                         "/parallel/gradient_ring",
                                         "/parallel/zero_prefetch",
                                         "/parallel/zero_group",
                                         "/parallel/rank_order",
                                         "/parallel/stage_layers",
                                         "/parallel/placement",
                                         "/compression/pipeline_forward",
                                         "/compression/pipeline_backward",
                                         "/compression/data_gradients",
                                         "/compression/embedding_sync",
                                         "/compression/tensor_activations",
                                         "/compression/zero_gather"};

/// Blocks whose inner pointers are allowed here and checked by their own readers.
bool lies_in_open_block(const std::string& pointer) {
  for (const char* block :
       {"/model/", "/platform/", "/software/", "/parallel/stage_layers/", "/parallel/placement/"})
    if (pointer.starts_with(block)) return true;
  return std::any_of(leaves.begin(), leaves.end(), [&](const std::string& leaf) {
    return leaf.starts_with("/compression/") && pointer.starts_with(leaf + "/");
  });
}

std::string last_key(const std::string& pointer) { return pointer.substr(pointer.rfind('/') + 1); }

}  // namespace

const std::vector<std::string>& known_pointers() { return leaves; }

bool is_known_pointer(const std::string& pointer) {
  if (pointer == "/training" || pointer == "/parallel") return true;
  return std::find(leaves.begin(), leaves.end(), pointer) != leaves.end() ||
         lies_in_open_block(pointer);
}

std::string closest_known_pointer(const std::string& text) {
  std::string slashed = text.starts_with('/') ? text : "/" + text;
  std::replace(slashed.begin(), slashed.end(), '.', '/');
  std::vector<std::string> keys;
  keys.reserve(leaves.size());
  for (const std::string& leaf : leaves) keys.push_back(last_key(leaf));
  // A key written alone, or in the wrong block, is found by its last name.
  const std::string key = closest_match(last_key(slashed), keys);
  std::string whole = closest_match(slashed, leaves);
  if (!whole.empty() && (key.empty() || last_key(whole) == key)) return whole;
  for (const std::string& leaf : leaves)
    if (!key.empty() && last_key(leaf) == key) return leaf;
  return whole;
}

}  // namespace windtunnel
