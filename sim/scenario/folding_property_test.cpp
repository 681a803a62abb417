// Folding, on pipelines that nobody would think of: drawn by rapidcheck, played folded and whole.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <memory>
#include <string>

#include "scenario/scenario.hpp"

namespace windtunnel {
namespace {

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

/// A small model on up to 8 nodes, with uneven stages, slow links and replicas that share network cards or do not.
std::string drawn_scenario() {
  const int tensor = *rc::gen::element(2, 8), data = *rc::gen::element(1, 2);
  const int pipeline = *rc::gen::element(2, 4);
  const auto schedule =
      *rc::gen::element<std::string>("1f1b", "interleaved_1f1b", "zero_bubble_h1");
  const int chunks = schedule == "interleaved_1f1b" ? *rc::gen::element(1, 2) : 1;
  int microbatches = *rc::gen::inRange(170, 400);
  microbatches -= chunks > 1 ? microbatches % pipeline : 0;
  const int layers = 8, moved = chunks > 1 ? 0 : *rc::gen::inRange(-2, 2);
  std::string stages = std::to_string(layers / pipeline + moved);
  for (int s = 1; s < pipeline; ++s)
    stages += "," + std::to_string(layers / pipeline - (s == pipeline - 1 ? moved : 0));
  const auto choice = [](const char* a, const char* b) {
    return quoted(*rc::gen::element<std::string>(a, b));
  };
  const auto truth = [] { return std::string(*rc::gen::arbitrary<bool>() ? "true" : "false"); };
  const int nodes = std::max(1, tensor * data * pipeline / 8);
  return R"({"platform": "selene-a100", "nodes": )" + std::to_string(nodes) + R"(, "software": )" +
         choice("megatron-lm-2021", "megatron-deepspeed-2021") +
         R"(, "model": {"family": "gpt", "layers": 8, "hidden": 1024, "heads": 16, "sequence": 512, "vocab": 32000, "tied_embeddings": )" +
         truth() + R"(}, "training": {"global_batch": )" + std::to_string(microbatches * data) +
         R"(, "micro_batch": 1, "precision": "fp16"}, "parallel": {"tensor": )" +
         std::to_string(tensor) + R"(, "pipeline": )" + std::to_string(pipeline) + R"(, "data": )" +
         std::to_string(data) + R"(, "schedule": )" + quoted(schedule) +
         R"(, "virtual_pipeline": )" + std::to_string(chunks) + R"(, "stage_layers": [)" + stages +
         R"(], "pipeline_send": )" + choice("eager", "blocking_pairs") +
         R"(, "overlap_gradient_reduce": )" + truth() + R"(, "rank_order": )" +
         choice("tensor-data-pipeline", "tensor-pipeline-data") + "}}";
}

Report report_of(const Scenario& scenario, Folding folding) {
  SimulateOptions options;
  options.engine = EngineKind::heap;
  options.folding = folding;
  return simulate(scenario, options).report;
}

TEST_CASE("any pipeline comes out the same, folded or not") {
  const Library library{std::filesystem::path(WINDTUNNEL_SOURCE_DIR)};
  int num_folded = 0;
  const bool same = rc::check([&] {
    const std::string text = drawn_scenario();
    RC_LOG() << text;
    const std::string rate = *rc::gen::element<std::string>("2 Gbps", "20 Gbps", "200 Gbps");
    Problems problems;
    const auto source = std::make_shared<const SourceText>(SourceText{"drawn.json", text});
    ReadOptions read;
    read.overrides = {{"/platform/node_types/0/nic_rate", rate}};
    const Scenario scenario =
        read_scenario(parse_json(source, problems), library.root, library, read);
    const Report folded = report_of(scenario, Folding::when_exact);
    if (folded.played_microbatches == 0) return;
    ++num_folded;
    const Report whole = report_of(scenario, Folding::never);
    const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); };
    RC_ASSERT(near(folded.iteration_time.value(), whole.iteration_time.value()));
    for (int line = 0; line < num_lines; ++line) {
      const Seconds off = folded.breakdown.of(static_cast<Line>(line)) -
                          whole.breakdown.of(static_cast<Line>(line));
      RC_ASSERT(std::abs(off / whole.iteration_time) < 1e-9);
    }
    for (std::size_t i = 0; i < whole.traffic.size(); ++i) {
      RC_ASSERT(near(folded.traffic[i].value(), whole.traffic[i].value()));
      RC_ASSERT(folded.messages[i].uncompressed == whole.messages[i].uncompressed);
    }
    RC_ASSERT(folded.memory.max_total == whole.memory.max_total);
  });
  CHECK(same);
  CHECK(num_folded > 10);  // of rapidcheck's 100
}

}  // namespace
}  // namespace windtunnel
