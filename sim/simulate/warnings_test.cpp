// Warnings of a report that come from the plan alone.
#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "core/testing.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

bool warns(const std::string& parallel, const std::string& of) {
  const Library library{source_dir()};
  const std::string text = R"({"model": {"extends": "llama3-8b", "kv_heads": 2}, "nodes": 1,
    "platform": "dgx-h100", "software": "megatron-core-2024",
    "training": {"global_batch": 8, "micro_batch": 1, "recompute": "full"}, "parallel": )" +
                           parallel + "}";
  Problems problems;
  const auto source = std::make_shared<const SourceText>(SourceText{"job.json", text});
  const Scenario scenario = read_scenario(parse_json(source, problems), library.root, library, {});
  SimulateOptions heap;
  heap.make_engine = make_heap_engine;
  for (const std::string& warning : simulate(scenario, heap).report.warnings)
    if (warning.find(of) != std::string::npos) return true;
  return false;
}

TEST_CASE("tensor parallelism that cuts single key and value heads is warned of") {
  const std::string cut = "cuts the model's 2 key/value heads into parts";
  CHECK(warns(R"({"tensor": 4, "data": 2})", cut));
  CHECK_FALSE(warns(R"({"tensor": 2, "data": 4})", cut));
}

TEST_CASE("an interleaved schedule with one chunk is warned of") {
  const std::string is_plain = "schedule interleaved_1f1b of one chunk per device is 1f1b";
  CHECK(warns(R"({"tensor": 2, "pipeline": 4, "schedule": "interleaved_1f1b"})", is_plain));
  CHECK_FALSE(warns(
      R"({"tensor": 2, "pipeline": 4, "schedule": "interleaved_1f1b", "virtual_pipeline": 2})",
      is_plain));
}

}  // namespace
}  // namespace windtunnel
