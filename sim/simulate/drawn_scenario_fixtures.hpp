#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plan/plan.hpp"

/// Scenarios that nobody would think of, for what must hold for all of them.
namespace windtunnel::testing {

inline std::string quoted(const std::string& text) { return "\"" + text + "\""; }

/// Ranges that a drawn scenario is drawn from.
struct Draws {
  std::vector<int> tensor{2, 8}, data{1, 2};
  int least_microbatches = 170, most_microbatches = 400;
  std::vector<std::string> platforms{"selene-a100"};
};

/// A small model on up to 8 nodes by default, with uneven stages and replicas that share network cards or do not.
inline std::string drawn_scenario(const Draws& draws = {}) {
  const int tensor = *rc::gen::elementOf(draws.tensor);
  const std::string platform = *rc::gen::elementOf(draws.platforms);
  const int pipeline = *rc::gen::element(2, 4);
  constexpr int gpus_a_node = 8;
  const int context = *rc::gen::element(1, 2);
  const bool ring = tensor == 16 || (platform == "selene-a100" && *rc::gen::arbitrary<bool>());
  const auto gpus_of = [&](int replicas) {
    Parallel parallel;
    parallel.tensor = tensor;
    parallel.context = context;
    parallel.pipeline = pipeline;
    parallel.data = replicas;
    return static_cast<int>(parallel.num_ranks());
  };
  const auto fills_nodes = [&](int replicas) {
    const int gpus = gpus_of(replicas);
    return gpus < gpus_a_node || gpus % gpus_a_node == 0;
  };
  const int data = *rc::gen::suchThat(rc::gen::elementOf(draws.data), fills_nodes);
  const auto schedule = *rc::gen::element<std::string>("1f1b", "interleaved_1f1b", "zero_bubble_h1",
                                                       "zero_bubble_v", "dualpipe", "dualpipe_v");
  const bool bidirectional = schedule == "dualpipe";
  const bool is_v = schedule == "zero_bubble_v" || schedule == "dualpipe_v" || bidirectional;
  const int virtual_pipeline = is_v                             ? 2
                               : schedule == "interleaved_1f1b" ? *rc::gen::element(1, 2)
                                                                : 1;
  const int chunks = bidirectional ? 1 : virtual_pipeline;  // whose layers a plan lists, by stage
  int microbatches = *rc::gen::inRange(draws.least_microbatches, draws.most_microbatches);
  if (schedule == "dualpipe" || schedule == "dualpipe_v")
    microbatches = std::max(microbatches, 2 * pipeline);
  if (bidirectional) microbatches += microbatches % 2;
  microbatches -= chunks > 1 && !is_v ? microbatches % pipeline : 0;
  // Layers are moved from one end of the model to the other; of chunks, one at most.
  const int per_chunk = 8 / pipeline / chunks;
  const int moved = chunks > 1 ? *rc::gen::inRange(-1, 2) : *rc::gen::inRange(-2, 2);
  std::string stages;
  for (int s = 0; s < pipeline; ++s) {
    std::string list;
    for (int c = 0; c < chunks; ++c) {
      const bool first = s == 0 && c == 0, last = s == pipeline - 1 && c == chunks - 1;
      list +=
          (c > 0 ? "," : "") + std::to_string(per_chunk + (first ? moved : 0) - (last ? moved : 0));
    }
    stages += (s > 0 ? "," : "") + (chunks > 1 ? "[" + list + "]" : list);
  }
  const auto choice = [](const char* a, const char* b) {
    return quoted(*rc::gen::element<std::string>(a, b));
  };
  const auto truth = [] { return std::string(*rc::gen::arbitrary<bool>() ? "true" : "false"); };
  const int nodes = std::max(1, gpus_of(data) / gpus_a_node);
  return R"({"platform": )" + quoted(platform) + R"(, "nodes": )" + std::to_string(nodes) +
         R"(, "software": )" + choice("megatron-lm-2021", "megatron-deepspeed-2021") +
         R"(, "model": {"family": "gpt", "layers": 8, "hidden": 1024, "heads": 16, "sequence": 512, "vocab": 32000, "tied_embeddings": )" +
         truth() + R"(}, "training": {"global_batch": )" + std::to_string(microbatches * data) +
         R"(, "micro_batch": 1, "precision": "fp16", "attention": )" +
         quoted(ring ? "flash" : "standard") + R"(}, "parallel": {"tensor": )" +
         std::to_string(tensor) + R"(, "context": )" + std::to_string(context) +
         R"(, "context_method": )" + quoted(ring ? "ring" : "all_to_all") + R"(, "pipeline": )" +
         std::to_string(pipeline) + R"(, "data": )" + std::to_string(data) + R"(, "schedule": )" +
         quoted(schedule) + R"(, "virtual_pipeline": )" + std::to_string(virtual_pipeline) +
         R"(, "stage_layers": [)" + stages + R"(], "pipeline_send": )" +
         choice("eager", is_v ? "eager" : "blocking_pairs") + R"(, "zero_stage": )" +
         std::to_string(*rc::gen::inRange(0, bidirectional ? 2 : 3)) +
         R"(, "overlap_gradient_reduce": )" + (bidirectional ? "false" : truth()) +
         R"(, "rank_order": )" + choice("tensor-data-pipeline", "tensor-pipeline-data") + "}}";
}

}  // namespace windtunnel::testing
