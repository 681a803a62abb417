#pragma once

#include <string>

#include "scenario/testing.hpp"
#include "simulate/simulate.hpp"

// The small world in which exchanges, sharding and compression of experts are worked out by hand.
namespace windtunnel::two_by_two {

/// Two nodes of two GPUs, each with a NIC of 25 GB/s; four experts of 2 * 1024 * 2048 parameters, two for each token. The rest of the scenario follows.
inline constexpr const char* cluster_and_model = R"({
  "platform": {"extends": "selene-a100", "name": "two by two", "node_types": [{"gpus": 2, "nics": 2, "nic_rate": "200 Gbps",
      "nic_efficiency": 1, "source": "assumed: of the test",
      "interconnect": {"floor_base": "10 us", "floor_per_gpu": "0 us", "all_to_all": "100 GB/s", "source": "assumed: of the test"}}],
    "fabric": {"latency": "15 us", "collective_latency": "5 us", "source": "assumed: of the test"}},
  "nodes": 2, "software": "megatron-core-2026@0",
  "model": {"layers": 1, "hidden": 1024, "heads": 16, "sequence": 1024, "vocab": 32000,
    "moe": {"experts": 4, "top_k": 2, "ffn_hidden": 2048, "bias": false}},)";

/// Two microbatches on each rank.
inline Scenario scenario_of(int zero_stage, int expert, const std::string& compression,
                            const Overrides& more = {}) {
  const std::string text = std::string(cluster_and_model) + R"(
  "training": {"global_batch": 8, "micro_batch": 1, "precision": "bf16", "gradient_dtype": "fp32"},
  "compression": {)" + compression +
                           R"(},
  "parallel": {"data": 4, "expert": )" +
                           std::to_string(expert) + R"(, "zero_stage": )" +
                           std::to_string(zero_stage) + "}}";
  return testing::read_text(text, more);
}

inline Report report_for(const Scenario& scenario, Detail detail = Detail::pass,
                         MakeEngine engine = make_native_engine) {
  SimulateOptions options;
  options.make_engine = engine;
  options.detail = detail;
  return simulate(scenario, options).report;
}

inline double sent(const Report& report, Traffic traffic) {
  return report.traffic[static_cast<std::size_t>(traffic)].value();
}
constexpr double of_rank = 2.0 * 2 * 1024 * 2048;  // parameters of two experts

}  // namespace windtunnel::two_by_two
