#include <doctest/doctest.h>

#include <memory>

#include "core/contracts.hpp"
#include "core/testing.hpp"
#include "validate/validate.hpp"

namespace windtunnel {
namespace {

TEST_CASE("eight H200 take a step in the time of eight H100, but for what waits for memory") {
  const auto step = [](const std::string& platform, const Overrides& changes = {}) {
    Problems problems;
    const JsonValue scenario = parse_json(
        std::make_shared<const SourceText>(SourceText{
            "step.json",
            R"({"version": 1, "model": "llama3-8b", "software": "nemo-2024", "platform": ")" +
                platform +
                R"(", "training": {"global_batch": 64, "micro_batch": 1, "precision": "bf16", "attention": "flash"},
                              "parallel": {"tensor": 2, "data": 4, "zero_stage": 1}})"}),
        problems);
    problems.throw_if_any();
    return predict_by_simulation(scenario, {}, Library{source_dir()}, {.overrides = changes}).time;
  };
  const Seconds h100 = step("dgx-h100");
  CHECK(step("hgx-h200", {{"/platform/node_types/0/device/memory/bandwidth", "3350 GB/s"}}) ==
        h100);
  // A sixth of the step waits for memory, which an H200 reads 4800 / 3350 times as fast: 1 - (1 - 3350 / 4800) / 6 = 0.95
  CHECK(step("hgx-h200") / h100 == doctest::Approx(0.95).epsilon(0.01));
}

TEST_CASE(
    "a source names the sets it was fitted on, and those it was never fitted on do not count") {
  const FittedNumber number{"",
                            "vtrain-a100-multi-node (0.85 of HDR); never fitted on "
                            "megatron-sc21-table1"};
  CHECK(number.is_fitted_on("vtrain-a100-multi-node"));
  CHECK_FALSE(number.is_fitted_on("megatron-sc21-table1"));
}

}  // namespace
}  // namespace windtunnel
