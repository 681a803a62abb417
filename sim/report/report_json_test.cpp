#include "report/report_json.hpp"

#include <doctest/doctest.h>

#include "core/problem.hpp"
#include "report/testing.hpp"

namespace windtunnel {
namespace {

std::string keys_of(const JsonValue& object) {
  std::string keys;
  for (const JsonValue::Member& member : object.object()) keys += member.key + " ";
  return keys;
}

TEST_CASE("the report's keys stand in the published order") {
  const JsonValue report = report_value(testing::small_report());
  CHECK(
      keys_of(report) ==
      "schema name version scenario_hash seed iteration_time_s samples_per_s tokens_per_s "
      "model_tflops_per_gpu hardware_tflops_per_gpu mfu hfu model_tflops_per_gpu_causal mfu_causal "
      "breakdown_s memory traffic_bytes "
      "messages assumptions engine software_release warnings job timers_s stage_times_s links ");
  CHECK(keys_of(*report.find("breakdown_s")) ==
        "compute tensor_comm pipeline_comm pipeline_bubble data_comm embedding_sync codec "
        "optimizer other ");
  CHECK(keys_of(*report.find("traffic_bytes")) ==
        "pipeline_forward pipeline_backward data_gradients tensor_activations embedding_sync "
        "zero_gather ");
  Report sharded = testing::small_report();
  sharded.traffic[static_cast<std::size_t>(Traffic::zero_scatter)] = 8_MB;
  CHECK(canonical_text(*report_value(sharded).find("traffic_bytes")->find("zero_scatter")) ==
        "8000000");
  const JsonValue& memory = *report.find("memory");
  CHECK(keys_of(memory) ==
        "capacity_bytes usable_bytes max_bytes fits per_stage verdict worst_stage advice ");
  CHECK(keys_of(memory.find("per_stage")->array()[0])
            .starts_with("stage weights gradients optimizer activations buffers allocated reserved "
                         "context total "));
  CHECK(keys_of(*report.find("engine")) == "name activities flows wall_s ");
}

TEST_CASE("the report's numbers are printed as numbers that read back the same") {
  Report report = testing::small_report();
  report.iteration_time = Seconds{0.1 + 0.2};
  report.memory.max_total = Bytes{12345.5};
  const std::string json = to_json(report);
  const auto has = [&](const char* text) { return json.find(text) != std::string::npos; };
  CHECK(has(R"("schema": "windtunnel/report-v1")"));
  CHECK(has(R"("seed": 7)"));
  CHECK(has(R"("iteration_time_s": 0.30000000000000004)"));
  CHECK(has(R"("model_tflops_per_gpu": 120.0)"));
  CHECK(has(R"("compute": 1.2e-05)"));
  CHECK(has(R"("capacity_bytes": 85899345920)"));  // whole bytes
  CHECK(has(R"("max_bytes": 12345.5)"));
  CHECK(has(R"("fits": true)"));
  CHECK(has(R"("pipeline_forward": 16000000)"));
  CHECK(has(R"("source": "datasheet")"));
  CHECK(has(R"("wall_s": 0.25)"));
  CHECK(json.ends_with("}\n"));
  CHECK(to_json(report) == json);
}

TEST_CASE("the interval is absent until there is evidence") {
  Report report = testing::small_report();
  CHECK(report_value(report).find("iteration_time_interval_s") == nullptr);
  report.iteration_time_interval = {15.5_s, 17.25_s};
  const JsonValue value = report_value(report);
  REQUIRE(value.find("iteration_time_interval_s") != nullptr);
  CHECK(canonical_text(*value.find("iteration_time_interval_s")) == "[15.5,17.25]");
  CHECK(keys_of(value).find("iteration_time_s iteration_time_interval_s samples_per_s") !=
        std::string::npos);
}

TEST_CASE("messages are counted by class") {
  const JsonValue report = report_value(testing::small_report());
  CHECK(canonical_text(*report.find("messages")->find("pipeline_backward")) ==
        R"({"compressed":1,"uncompressed":1})");
}

TEST_CASE("without the wall time, two runs give the same text") {
  Report report = testing::small_report();
  const std::string once = to_json(report);
  report.wall = 0.5_s;
  const std::string again = to_json(report);
  CHECK(once != again);
  CHECK(without_wall_time(once) == without_wall_time(again));
  CHECK(without_wall_time(once).find("wall_s") == std::string::npos);
  CHECK(without_wall_time(once).find(R"("activities": 20)") != std::string::npos);
  const std::string several =
      R"({"runs": [)" + once + ", " + again + R"(], "report": )" + once + "}";
  CHECK(without_wall_time(several).find("wall_s") == std::string::npos);
  CHECK_THROWS_AS(without_wall_time("{"), InputError);
}

TEST_CASE("the largest seed is not negative") {
  Report report = testing::small_report();
  report.seed = ~std::uint64_t{0};
  CHECK(to_json(report).find("\"seed\": -") == std::string::npos);
}

}  // namespace
}  // namespace windtunnel
