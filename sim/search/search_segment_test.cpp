#include <doctest/doctest.h>

#include <memory>

#include "core/testing.hpp"
#include "search/rank.hpp"
#include "search/search_space.hpp"

namespace windtunnel {
namespace {

/// 32 trays of four GPUs. The file's own plan has no groups that need NVLink, so that it uses racks of 18 trays as they are.
Scenario read_experts(const Overrides& changes = {}) {
  Problems problems;
  JsonValue value = parse_json(std::make_shared<const SourceText>(SourceText{"search.json", R"({
    "platform": "gb200-nvl72", "nodes": 32, "software": "megatron-core-2026",
    "model": {"family": "llama", "layers": 4, "hidden": 2048, "heads": 16, "sequence": 2048, "vocab": 32000, "gated_mlp": true,
              "rotary": true, "tied_embeddings": false, "moe": {"experts": 64, "top_k": 4, "ffn_hidden": 1024}},
    "training": {"global_batch": 512, "micro_batch": 1, "attention": "flash", "precision": "bf16"},
    "parallel": {"pipeline": 4, "data": 32, "zero_stage": 1},
    "search": {"tensor": [1], "pipeline": [4], "micro_batch": [1], "expert": [8, 16, 32]}})"}),
                               problems);
  problems.throw_if_any();
  return read_scenario(std::move(value), {}, Library{source_dir()}, {changes});
}

TEST_CASE("a search uses the segment of NVLink domains that most of its plans divide") {
  const Scenario own = read_experts();
  REQUIRE(own.nodes.front().gpus == 72);
  const Scenario searched = on_segment_of_search(own);
  CHECK(searched.nodes.size() == 2);
  CHECK(searched.nodes.front().gpus == 64);  // 8, 16 and 32 divide 64; 72 is no multiple of 16
  CHECK(searched.plan.num_ranks() == own.plan.num_ranks());
  const RankResult result = rank_plans(searched, {});
  REQUIRE_FALSE(result.plans.empty());
}

TEST_CASE("a segment that the file gives stays in a search") {
  const Scenario given = read_experts({{"/platform/segment", "18"}});
  CHECK(on_segment_of_search(given).nodes.front().gpus == 72);
}

}  // namespace
}  // namespace windtunnel
