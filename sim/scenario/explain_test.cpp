#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "scenario/explanation.hpp"
#include "scenario/forked.hpp"
#include "scenario/isolated.hpp"
#include "scenario/program_builder.hpp"

namespace windtunnel {
namespace {

Library library() { return Library{std::filesystem::path(WINDTUNNEL_SOURCE_DIR)}; }

const char* const small_text = R"({
  "model": "gpt-1.7b", "platform": "a100-80gb-4hdr", "software": "megatron-lm-2021",
  "training": {"global_batch": 16, "micro_batch": 2, "precision": "fp16", "recompute": "full"},
  "parallel": {"tensor": 4, "pipeline": 4, "data": 2, "schedule": "1f1b"}})";

Scenario read(const std::string& text, const ReadOptions& options = {}) {
  Problems problems;
  const auto source = std::make_shared<const SourceText>(SourceText{"explained.json", text});
  return read_scenario(parse_json(source, problems), library().root, library(), options);
}

/// explain() in a process of its own: it makes a SimGrid engine.
JsonValue explained(const Scenario& scenario) {
  ForkedWork work;
  work.count = 1;
  work.work = [&](std::size_t) {
    return canonical_text(explanation_value(explain(scenario, library(), 2)));
  };
  const ChildOutcome outcome = run_forked(work).front();
  REQUIRE(std::holds_alternative<std::string>(outcome));
  Problems problems;
  return parse_json(
      std::make_shared<const SourceText>(SourceText{"e.json", std::get<std::string>(outcome)}),
      problems);
}

double number_at(const JsonValue& value, const char* key) {
  const JsonValue* found = value.find(key);
  REQUIRE(found != nullptr);
  if (const auto* integer = std::get_if<std::int64_t>(&found->content))
    return static_cast<double>(*integer);
  return std::get<double>(found->content);
}

TEST_CASE("the critical path adds up to the iteration time, whatever the schedule") {
  for (const char* parallel :
       {R"("schedule": "1f1b")", R"("schedule": "1f1b", "pipeline_send": "blocking_pairs")",
        R"("schedule": "gpipe")", R"("schedule": "interleaved_1f1b", "virtual_pipeline": 3)",
        R"("schedule": "zero_bubble_h1")", R"("overlap_gradient_reduce": true, "zero_stage": 2)",
        R"("rank_order": "data-tensor-pipeline", "sequence_parallel": true)"}) {
    CAPTURE(std::string(parallel));
    const std::string text = R"({
      "model": "gpt-1.7b", "platform": "a100-80gb-4hdr", "software": "megatron-lm-2021",
      "training": {"global_batch": 32, "micro_batch": 1, "precision": "fp16"},
      "parallel": {"tensor": 2, "pipeline": 4, "data": 4, )" +
                             std::string(parallel) + "}}";
    SimulateOptions options;
    options.engine = EngineKind::heap;
    options.keep_timeline = true;
    const Scenario scenario = read(text);
    const Simulation simulation = simulate(scenario, options);
    const CriticalPath path = find_critical_path(simulation.programs, simulation.timeline);
    Seconds sum{};
    for (const PathShare& share :
         path_shares(scenario.plan, simulation.programs, simulation.timeline, path))
      sum += share.time;
    CHECK(sum / simulation.report.iteration_time == doctest::Approx(1).epsilon(1e-9));
    for (const Seconds slack : path.compute_slack) CHECK(slack > Seconds{-1e-9});
  }
}

TEST_CASE("each what-if is what a run with its options gives, to the last digit") {
  const JsonValue explanation = explained(read(small_text));
  const JsonValue* list = explanation.find("what_ifs");
  REQUIRE(list != nullptr);
  REQUIRE(list->array().size() >= 8);
  for (const JsonValue& what_if : list->array()) {
    CAPTURE(canonical_text(what_if));
    REQUIRE(what_if.find("failure") == nullptr);
    ReadOptions options;
    for (const JsonValue::Member& member : what_if.find("set")->object())
      options.overrides.emplace_back(member.key, member.value.string());
    const IsolatedOutcome outcome = simulate_isolated(read(small_text, options));
    REQUIRE(std::holds_alternative<IsolatedResult>(outcome));
    const IsolatedResult& run = std::get<IsolatedResult>(outcome);
    CHECK(number_at(what_if, "iteration_time_s") == run.figures.iteration_time.value());
    Problems problems;
    const JsonValue report = parse_json(
        std::make_shared<const SourceText>(SourceText{"r.json", run.report_json}), problems);
    CHECK(canonical_text(*what_if.find("breakdown_s")) ==
          canonical_text(*report.find("breakdown_s")));
  }
}

TEST_CASE("a straggler slows its own stage, and no other node of the same device") {
  const char* const two_stages = R"({
    "model": "gpt-1.7b", "platform": "a100-80gb-4hdr", "software": "megatron-lm-2021", "nodes": 2,
    "training": {"global_batch": 16, "micro_batch": 2, "precision": "fp16"},
    "parallel": {"tensor": 8, "pipeline": 2, "data": 1}})";
  const auto compute_of = [&](const ReadOptions& options) {
    const Scenario scenario = read(two_stages, options);
    const BuiltPrograms built = build_programs(
        {&scenario.model, &scenario.platform, &scenario.nodes, &scenario.software, &scenario.plan});
    return std::pair{built.cost_of_device[0].chunks[0].forward.compute.value(),
                     built.cost_of_device[1].chunks[0].forward.compute.value()};
  };
  const auto list = what_ifs(read(two_stages));
  const auto straggler = std::find_if(list.begin(), list.end(), [](const WhatIf& what_if) {
    return what_if.what == "node 0 10 % slower";
  });
  REQUIRE(straggler != list.end());
  ReadOptions options;
  options.overrides = straggler->overrides;
  const auto [first, second] = compute_of({});
  const auto [slow_first, same_second] = compute_of(options);
  CHECK(slow_first > 1.05 * first);  // products take 1/0.9; memory-bound kernels stay
  CHECK(same_second == second);
}

TEST_CASE("what-ifs come in the order of what they gain") {
  const JsonValue explanation = explained(read(small_text));
  double before = -1;
  for (const JsonValue& what_if : explanation.find("what_ifs")->array()) {
    CHECK(number_at(what_if, "change") >= before);
    before = number_at(what_if, "change");
  }
}

TEST_CASE("one GPU alone raises few questions, and none of the network") {
  const Scenario scenario = read(R"({
    "model": "gpt-1.7b", "platform": "a100-80gb-4hdr", "software": "megatron-lm-2021",
    "training": {"global_batch": 2, "micro_batch": 1}})");
  for (const WhatIf& what_if : what_ifs(scenario)) {
    CHECK(what_if.what.find("NIC") == std::string::npos);
    CHECK(what_if.what.find("nodes") == std::string::npos);
  }
}

}  // namespace
}  // namespace windtunnel
