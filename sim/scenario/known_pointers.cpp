#include "scenario/known_pointers.hpp"

#include <algorithm>
#include <vector>

#include "core/problem.hpp"
#include "scenario/key_table.hpp"

namespace windtunnel {
namespace {

/// Blocks whose inner pointers are allowed here and checked by their own readers.
bool lies_in_open_block(const std::string& pointer) {
  for (const char* block : {"/model/", "/platform/", "/software/", "/parallel/stage_layers/",
                            "/parallel/placement/", "/job/", "/noise/"})
    if (pointer.starts_with(block)) return true;
  const std::vector<std::string>& leaves = known_pointers();
  return std::any_of(leaves.begin(), leaves.end(), [&](const std::string& leaf) {
    return leaf.starts_with("/compression/") && pointer.starts_with(leaf + "/");
  });
}

std::string last_key(const std::string& pointer) { return pointer.substr(pointer.rfind('/') + 1); }

}  // namespace

const std::vector<std::string>& known_pointers() {
  static const std::vector<std::string> pointers = [] {
    std::vector<std::string> all{"/version", "/name",     "/model",       "/platform",
                                 "/nodes",   "/software", "/compression", "/memory_correction",
                                 "/job",     "/noise"};
    for (const Key& key : key_table()) all.push_back(key.pointer);
    for (const char* traffic : {"pipeline_forward", "pipeline_backward", "data_gradients",
                                "embedding_sync", "tensor_activations", "zero_gather"})
      all.push_back(std::string("/compression/") + traffic);
    return all;
  }();
  return pointers;
}

bool is_known_pointer(const std::string& pointer) {
  if (pointer == "/training" || pointer == "/parallel") return true;
  const std::vector<std::string>& leaves = known_pointers();
  return std::find(leaves.begin(), leaves.end(), pointer) != leaves.end() ||
         lies_in_open_block(pointer);
}

std::string closest_known_pointer(const std::string& text) {
  std::string slashed = text.starts_with('/') ? text : "/" + text;
  std::replace(slashed.begin(), slashed.end(), '.', '/');
  const std::vector<std::string>& leaves = known_pointers();
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
