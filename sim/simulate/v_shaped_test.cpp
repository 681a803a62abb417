// Whole runs of a V-shaped schedule next to an interleaved one: what the path through the chunks changes.
#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "core/testing.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

/// 4 stages of 2 chunks of 3 layers, 8 microbatches, tied embeddings.
Report report_of_schedule(const std::string& schedule, const std::string& more = {}) {
  const Library library{source_dir()};
  const std::string text = R"({
    "model": "gpt-1.7b", "platform": "selene-a100", "software": "megatron-lm-2021",
    "training": {"global_batch": 8, "micro_batch": 1, "precision": "fp16"}, )" +
                           more + R"("parallel": {"tensor": 8, "pipeline": 4, "virtual_pipeline": 2,
    "pipeline_send": "eager", "schedule": ")" +
                           schedule + "\"}}";
  Problems problems;
  const auto source = std::make_shared<const SourceText>(SourceText{"v.json", text});
  const Scenario scenario = read_scenario(parse_json(source, problems), library.root, library);
  SimulateOptions options;
  options.make_engine = make_heap_engine;
  return simulate(scenario, options).report;
}

Bytes traffic_of(const Report& report, Traffic traffic) {
  return report.traffic[static_cast<std::size_t>(traffic)];
}

TEST_CASE("the turn of a V is no message, and its ends share the embedding without a collective") {
  const Report v = report_of_schedule("zero_bubble_v"),
               loop = report_of_schedule("interleaved_1f1b");
  // 8 parts of the model have 7 borders between them; one of a V's is inside the last stage.
  for (const Traffic traffic : {Traffic::pipeline_forward, Traffic::pipeline_backward})
    CHECK(traffic_of(v, traffic) / traffic_of(loop, traffic) == doctest::Approx(6.0 / 7));
  CHECK(traffic_of(loop, Traffic::embedding_sync) > Bytes{0});
  CHECK(traffic_of(v, Traffic::embedding_sync) == Bytes{0});
  CHECK(v.breakdown.of(Line::embedding_sync) == Seconds{0});
}

TEST_CASE("every stage of a V holds as many activations as 1F1B's first") {
  // 2 p = 8 chunks of 2 a stage.
  for (const StageMemory& stage : report_of_schedule("zero_bubble_v").memory.stages)
    CHECK(stage.microbatches_in_flight == 4);
}

TEST_CASE("tied words are held once in a V, and twice in a loop") {
  const auto parameters = [](const Report& report) {
    double all = 0;
    for (const StageMemory& stage : report.memory.stages) all += stage.parameters;
    return all;
  };
  // A rank's share of the words: 51200 * 2304 / 8.
  CHECK(parameters(report_of_schedule("interleaved_1f1b")) -
            parameters(report_of_schedule("zero_bubble_v")) ==
        doctest::Approx(51200.0 * 2304 / 8));
}

TEST_CASE("compressed messages of a V are encoded where they leave the stage") {
  const Report v =
      report_of_schedule("zero_bubble_v",
                         R"("compression": {"pipeline_forward": {"codec": "fixed", "ratio": 2,
                   "encode_rate": "100 GB/s", "decode_rate": "100 GB/s", "chunks": 4}}, )");
  const Report plain = report_of_schedule("zero_bubble_v");
  CHECK(traffic_of(v, Traffic::pipeline_forward) / traffic_of(plain, Traffic::pipeline_forward) ==
        doctest::Approx(0.5));
}

}  // namespace
}  // namespace windtunnel
