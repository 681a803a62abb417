#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "core/testing.hpp"
#include "scenario/testing.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

std::string in_quotes(const std::string& text) { return "\"" + text + "\""; }

/// A change that advice names, and what it says of the changed plan.
struct Promise {
  std::string change, figure;
  bool fits = false, at_risk = false;
};

/// "…; fits with recompute "full" (61.3 GiB) or micro_batch 1 (70.4 GiB, at risk)", or "…; no single change fits; nearest is …"
std::vector<Promise> promises_of(const std::string& advice) {
  const std::size_t fitting = advice.find("; fits with "), nearest = advice.find("; nearest is ");
  const bool fits = fitting != std::string::npos;
  if (!fits && nearest == std::string::npos) return {};
  std::vector<Promise> promises;
  const std::string text = advice.substr(fits ? fitting + std::string("; fits with ").size()
                                              : nearest + std::string("; nearest is ").size());
  static const std::regex each(R"((?: or )?(.+?) \(([0-9.]+ GiB)(, at risk)?\))");
  for (std::sregex_iterator found(text.begin(), text.end(), each), end; found != end; ++found)
    promises.push_back({(*found)[1], (*found)[2], fits, (*found)[3].matched});
  return promises;
}

/// The change as a user of --set writes it.
Overrides overrides_of(const std::string& change) {
  Overrides overrides;
  const auto take = [&](const std::string& pattern, const std::vector<std::string>& pointers) {
    std::smatch found;
    if (!std::regex_search(change, found, std::regex(pattern))) return;
    for (const std::string& pointer : pointers) overrides.emplace_back(pointer, found[1]);
  };
  take(R"(recompute "(\w+)\")", {"/training/recompute"});
  take(R"(cross_entropy "(\w+)\")", {"/training/cross_entropy"});
  take(R"(micro_batch (\d+))", {"/training/micro_batch"});
  take(R"(pipeline (\d+))", {"/parallel/pipeline"});
  take(R"(data (\d+))", {"/parallel/data"});
  take(R"(zero_stage (\d+))", {"/parallel/zero_stage"});
  take(R"(tensor (\d+))", {"/parallel/tensor"});
  take(R"(exp_avg_sq_dtype "(\w+)\")", {"/training/exp_avg_dtype", "/training/exp_avg_sq_dtype"});
  take(R"(optimizer_offload_fraction ([0-9.]+))", {"/training/optimizer_offload_fraction"});
  take(R"(activation_offload_fraction ([0-9.]+))", {"/training/activation_offload_fraction"});
  for (const char* key : {"recompute_layers", "recompute_modules"})
    if (change.find(std::string("without ") + key) != std::string::npos)
      overrides.emplace_back(std::string("/training/") + key, "null");
  if (change.find("twice the GPUs") != std::string::npos) overrides.emplace_back("/nodes", "null");
  return overrides;
}

/// A model of a few billion parameters on up to four nodes, whose GPUs are too small for it.
std::string drawn_scenario() {
  const std::string software = *rc::gen::element<std::string>(
      "nanotron-2024", "megatron-core-2024", "megatron-lm-2021", "torchtitan-2025");
  const bool is_megatron = software.starts_with("megatron");
  const int tensor = *rc::gen::element(1, 2, 4), pipeline = *rc::gen::element(1, 2, 4);
  const int data = *rc::gen::element(1, 2);
  const int samples = *rc::gen::element(1, 2, 4);
  const std::string recompute =
      *rc::gen::element<std::string>("none", "full", is_megatron ? "selective" : "none");
  const bool in_part = recompute == "full" && *rc::gen::arbitrary<bool>();
  const int layers = *rc::gen::element(8, 16, 22);
  return R"({"platform": "hf-cluster-h100", "software": )" + in_quotes(software) +
         R"(, "model": {"family": "llama", "layers": )" + std::to_string(layers) +
         R"(, "hidden": 2048, "heads": 16, "ffn_hidden": 8192, "gated_mlp": true, "rotary": true, "sequence": 4096, "vocab": 65536,
             "tied_embeddings": false}, "training": {"global_batch": )" +
         std::to_string(samples * data * 8) + R"(, "micro_batch": )" + std::to_string(samples) +
         R"(, "precision": "bf16", "attention": "flash", "recompute": )" + in_quotes(recompute) +
         (in_part ? R"(, "recompute_layers": {"first": 1})" : "") +
         R"(}, "parallel": {"tensor": )" + std::to_string(tensor) + R"(, "pipeline": )" +
         std::to_string(pipeline) + R"(, "data": )" + std::to_string(data) + R"(, "zero_stage": )" +
         std::to_string(*rc::gen::inRange(0, 2)) +
         (tensor > 1                    ? R"(, "sequence_parallel": true)"
          : *rc::gen::arbitrary<bool>() ? R"(, "sequence_parallel": false)"
                                        : "") +
         "}}";
}

TEST_CASE("advice that takes more trays of an NVLink domain is laid out on them") {
  const Scenario scenario = testing::read_text(
      R"({"platform": "gb200-nvl72", "software": "nanotron-2024@0.4",
          "model": {"extends": "kimi-k2", "layers": 26, "mtp_layers": 1},
          "training": {"global_batch": 2, "micro_batch": 2, "precision": "bf16"},
          "parallel": {"tensor": 4, "pipeline": 6, "stage_layers": [2, 4, 10, 4, 4, 2]},
          "compression": {"data_gradients": {"codec": "sign", "stages": "auto"}}})",
      {});
  CHECK(!simulate(scenario, {}).report.memory.fits);
}

TEST_CASE("advice takes no more nodes than the fabric joins") {
  const Scenario scenario = testing::read_text(
      R"({"platform": {"extends": "hf-cluster-h100",
                       "fabric": {"kind": "dragonfly", "nodes_per_router": 1, "routers_per_group": 1,
                                  "global_links": 1, "groups": 2, "local_rate": "50 GB/s",
                                  "global_rate": "50 GB/s"}},
          "software": "nanotron-2024", "model": "llama3-70b",
          "training": {"global_batch": 8, "micro_batch": 1, "precision": "bf16"},
          "parallel": {"tensor": 4, "pipeline": 4}})",
      {});
  const Report report = simulate(scenario, {}).report;
  REQUIRE(!report.memory.fits);
  CHECK(report.memory.advice.find("twice the GPUs") == std::string::npos);
}

TEST_CASE("advice keeps its promise: the changed scenario needs the figure and gets the verdict") {
  int promised = 0;
  const bool holds = rc::check([&] {
    const std::string text = drawn_scenario();
    RC_LOG() << text;
    const Overrides usable{{"/platform/node_types/0/device/memory/usable",
                            std::to_string(*rc::gen::inRange(8, 36)) + " GiB"}};
    std::optional<Scenario> scenario;
    try {
      scenario = testing::read_text(text, usable);
    } catch (const InputError&) {
      RC_DISCARD("no legal plan");
    }
    const Report report = simulate(*scenario, {}).report;
    for (const Promise& promise : promises_of(report.memory.advice)) {
      RC_LOG() << report.memory.advice;
      Overrides overrides = overrides_of(promise.change);
      RC_ASSERT(!overrides.empty());
      overrides.insert(overrides.begin(), usable.begin(), usable.end());
      const MemoryAccount changed = simulate(testing::read_text(text, overrides), {}).report.memory;
      Bytes needed{};
      for (const StageMemory& stage : changed.stages)
        needed = std::max(needed, changed.fits ? stage.total : stage.required);
      char figure[32];
      std::snprintf(figure, sizeof figure, "%.1f GiB", needed / 1_GiB);
      RC_ASSERT(changed.fits == promise.fits);
      RC_ASSERT((changed.verdict == MemoryVerdict::at_risk) == promise.at_risk);
      RC_ASSERT(figure == promise.figure);
      ++promised;
    }
  });
  CHECK(holds);
  CHECK(promised > 5);  // of 20 scenarios under the sanitizers, of 100 else
}

}  // namespace
}  // namespace windtunnel
