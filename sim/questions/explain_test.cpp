#include "questions/explain.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/json_value.hpp"
#include "core/testing.hpp"
#include "evidence/interval.hpp"
#include "lower/program_builder.hpp"
#include "report/report_json.hpp"
#include "simulate/forked.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

Library library() { return Library{source_dir()}; }

const char* const small_text = R"({
  "model": "gpt-1.7b", "platform": "a100-80gb-4hdr", "software": "megatron-lm-2021",
  "training": {"global_batch": 16, "micro_batch": 2, "precision": "fp16", "recompute": "full"},
  "parallel": {"tensor": 4, "pipeline": 4, "data": 2, "schedule": "1f1b"}})";

Scenario read_explained(const std::string& text, const ReadOptions& options = {}) {
  Problems problems;
  const auto source = std::make_shared<const SourceText>(SourceText{"explained.json", text});
  return read_scenario(parse_json(source, problems), library().root, library(), options);
}

JsonValue explained(const Scenario& scenario) {
  const Explanation explanation = explain(scenario, library(), {2, {}, {}}).explanation;
  Problems problems;
  return parse_json(std::make_shared<const SourceText>(
                        SourceText{"e.json", canonical_text(explanation_value(explanation))}),
                    problems);
}

double number_at(const JsonValue& value, const char* key) {
  const JsonValue* found = value.find(key);
  REQUIRE(found != nullptr);
  if (const auto* integer = std::get_if<std::int64_t>(&found->content))
    return static_cast<double>(*integer);
  return std::get<double>(found->content);
}

/// Distance of the critical path from the iteration time, as a share of it: of the shares' sum, of the largest gap or overlap of its
/// steps, of the longest negative slack.
double distance(const Scenario& scenario, const Simulation& simulation, Seconds whole) {
  const Explanation e =
      explain_path(simulation.report, scenario.plan, simulation.programs, simulation.timeline);
  Seconds sum{}, at{};
  double worst = 0;
  for (const PathShare& share : e.shares) sum += share.time;
  for (const CriticalStep& step : e.path.steps) {
    worst = std::max(worst, std::abs((step.begin - at) / whole));
    at = step.end;
  }
  const Seconds lines = lines_of_path(e.shares).total();
  for (const Seconds end : {sum, at, lines, e.segments.back().end})
    worst = std::max(worst, std::abs(end / whole - 1));
  for (const auto* slacks :
       {&e.path.compute_slack, &e.path.message_slack, &e.path.collective_slack})
    for (const Seconds slack : *slacks) worst = std::max(worst, -(slack / whole));
  return worst;
}

/// The same of the iteration that was simulated, and of the one that a run reports: its steady state is folded where that is exact.
double path_error(const Scenario& scenario, MakeEngine engine) {
  SimulateOptions options;
  options.make_engine = engine;
  const Seconds reported = simulate(scenario, options).report.iteration_time;
  options.keep_timeline = true;
  const Simulation simulation = simulate(scenario, options);
  return std::max(distance(scenario, simulation, simulation.report.iteration_time),
                  distance(scenario, simulation, reported));
}

void check_paths(const std::vector<std::pair<std::string, Scenario>>& scenarios,
                 MakeEngine engine) {
  for (const auto& named : scenarios) {
    CAPTURE(named.first);
    CHECK(path_error(named.second, engine) <= 1e-9);
  }
}

/// Plans with every kind of division and sending that the program knows, on a small model.
std::vector<std::pair<std::string, Scenario>> all_plans() {
  std::vector<std::pair<std::string, Scenario>> list;
  for (
      const char* settings :
      {R"("schedule": "1f1b"})", R"("schedule": "1f1b", "pipeline_send": "blocking_pairs"})",
       R"("schedule": "gpipe"})", R"("schedule": "gpipe", "pipeline_send": "blocking_pairs"})",
       R"("schedule": "interleaved_1f1b", "virtual_pipeline": 3})",
       R"("schedule": "zero_bubble_h1"})", R"("zero_stage": 1})",
       R"("overlap_gradient_reduce": true, "zero_stage": 2})",
       R"("rank_order": "data-tensor-pipeline", "sequence_parallel": true})",
       R"("overlap_gradient_reduce": true}, "compression": {"data_gradients": {"codec": "powersgd", "rank": 16}, "pipeline_backward": {"codec": "zfp", "rate": 8}})",
       R"("schedule": "1f1b"}, "compression": {"pipeline_forward": {"codec": "int8", "stream": "codec", "chunks": 4}, "embedding_sync": {"fused": true}})",
       R"("schedule": "1f1b"}, "compression": {"tensor_activations": {"codec": "fixed", "ratio": 2}, "pipeline_backward": {"codec": "topk", "density": 0.01}})"}) {
    const std::string text = R"({
      "model": "gpt-1.7b", "platform": "a100-80gb-1hdr", "software": "megatron-lm-2021",
      "training": {"global_batch": 128, "micro_batch": 1, "precision": "fp16"},
      "parallel": {"tensor": 2, "pipeline": 4, "data": 4, )" +
                             std::string(settings) + "}";
    list.emplace_back(settings, read_explained(text));
  }
  list.emplace_back("ZeRO 3", read_explained(R"({
      "model": "gpt-1.7b", "platform": "a100-80gb-1hdr", "software": "deepspeed-zero3-2021",
      "training": {"global_batch": 64, "micro_batch": 1, "precision": "fp16"},
      "parallel": {"data": 16, "zero_stage": 3}})"));
  list.emplace_back("tensor groups across nodes", read_explained(R"({
      "model": "gpt-7.5b", "platform": "a100-80gb-1hdr", "software": "megatron-lm-2021",
      "training": {"global_batch": 16, "micro_batch": 1, "precision": "fp16"},
      "parallel": {"tensor": 16, "pipeline": 2, "data": 2}})"));
  list.emplace_back("tensor groups across nodes, next to gradients", read_explained(R"({
      "model": "gpt-1.7b", "platform": "a100-80gb-1hdr", "software": "megatron-deepspeed-2021",
      "training": {"global_batch": 16, "micro_batch": 1, "precision": "fp16"},
      "parallel": {"tensor": 4, "pipeline": 4, "data": 2, "overlap_gradient_reduce": true,
                   "rank_order": "pipeline-tensor-data"}})"));
  return list;
}

/// The scenarios that come with the program, as `run` takes them; a wish for a search is left out.
std::vector<std::pair<std::string, Scenario>> shipped() {
  std::vector<std::pair<std::string, Scenario>> list;
  for (const std::string& name : library().names("scenarios")) {
    ReadOptions options;
    if (name.starts_with("pipette")) options.overrides = {{"/parallel/placement", "megatron"}};
    list.emplace_back(
        name, read_scenario(library().root / "scenarios" / (name + ".json"), library(), options));
  }
  return list;
}

TEST_CASE("the critical path adds up to the iteration time, whatever the schedule") {
  check_paths(all_plans(), make_heap_engine);
}
TEST_CASE("the critical path adds up where links are shared, whatever the schedule") {
  check_paths(all_plans(), make_native_engine);
}
TEST_CASE("the critical path of every shipped scenario adds up to its iteration time") {
  REQUIRE(shipped().size() >= 20);
  check_paths(shipped(), make_heap_engine);
}
TEST_CASE("among the shipped scenarios are some whose run is folded, and their path is not") {
  SimulateOptions options;
  options.make_engine = make_heap_engine;
  const Scenario scenario =
      read_scenario(library().root / "scenarios/gpt3-175b-512xa100.json", library());
  const Report folded = simulate(scenario, options).report;
  options.keep_timeline = true;
  CHECK(folded.simulated_microbatches > 0);
  CHECK(simulate(scenario, options).report.simulated_microbatches == 0);
}
TEST_CASE("the critical path of every shipped scenario adds up where links are shared") {
  check_paths(shipped(), make_native_engine);
}

/// Result of running a file with the changes written in.
JsonValue run_of_changed_file(const std::string& text, const WhatIf& change,
                              const TemporaryFolder& folder) {
  ReadOptions options;
  options.overrides = change.overrides;
  const auto file =
      folder.write("changed.json", pretty_text(read_explained(text, options).resolved));
  const Report report = simulate(read_scenario(file, library())).report;
  Problems problems;
  return parse_json(std::make_shared<const SourceText>(SourceText{"r.json", to_json(report)}),
                    problems);
}

/// Every what-if of a scenario against such runs; gives the kinds that were among them.
std::set<WhatIfKind> check_what_ifs(const std::string& text) {
  const TemporaryFolder folder;
  const Scenario scenario = read_explained(text);
  std::set<WhatIfKind> kinds;
  for (const WhatIfResult& result :
       simulate_what_ifs(scenario, library(), what_ifs(scenario, library()), default_at_once())) {
    CAPTURE(result.change.what);
    REQUIRE(result.failure == "");
    kinds.insert(result.change.kind);
    const JsonValue run = run_of_changed_file(text, result.change, folder);
    CHECK(number_at(run, "iteration_time_s") == result.iteration_time.value());
    for (const Line line : all_lines) {
      const JsonValue& lines = *run.find("breakdown_s");
      const bool is_written = is_always_written(line) || lines.find(name_of(line)) != nullptr;
      CHECK((is_written ? number_at(lines, name_of(line)) : 0) ==
            result.breakdown.of(line).value());
    }
    CHECK(std::get<bool>(run.find("memory")->find("fits")->content) == result.fits);
  }
  return kinds;
}

/// Questions that explain asks about a scenario.
std::set<std::string> questions_of(const Scenario& scenario) {
  std::set<std::string> asked;
  for (const WhatIf& change : what_ifs(scenario, library())) asked.insert(change.what);
  return asked;
}

std::string scenario_text(const std::string& platform, const std::string& rest) {
  return R"({"model": {"family": "gpt", "layers": 8, "hidden": 1024, "heads": 16, "sequence": 512, "vocab": 5000},
    "platform": )" +
         platform + R"(, "software": "megatron-lm-2021", )" + rest + "}";
}

TEST_CASE("each what-if is what a run of the changed file gives, to the last digit") {
  const std::set<WhatIfKind> kinds = check_what_ifs(small_text);
  CHECK(kinds.size() == enumerators<WhatIfKind>().size());
}
TEST_CASE("each what-if of a compressed scenario is what a run of the changed file gives") {
  check_what_ifs(scenario_text(R"("a100-80gb-1hdr")", R"(
    "training": {"global_batch": 16, "micro_batch": 1, "recompute": "selective", "recompute_layers": {"first": 1}},
    "parallel": {"tensor": 4, "pipeline": 4, "data": 2, "zero_stage": 1},
    "compression": {"pipeline_backward": {"codec": "powersgd", "rank": 8, "messages": "epilogue"},
                    "data_gradients": {"codec": "int8", "stages": 2}, "embedding_sync": {"fused": true},
                    "zero_gather": {"codec": "zfp", "rate": 8}, "tensor_activations": {"codec": "mpc", "ratio": 1.1}})"));
}
TEST_CASE("chunks of another size recompute the same share of their layers") {
  // The first 3 of 6 layers of a stage; the first 2 of chunks of 3 layers.
  std::string text = small_text;
  const std::string full = R"("recompute": "full")";
  text.replace(text.find(full), full.size(), full + R"(, "recompute_layers": {"first": 3})");
  int in_chunks = 0;
  for (const WhatIf& change : what_ifs(read_explained(text), library())) {
    const auto value_of = [&](const std::string& pointer) {
      for (const auto& [at, value] : change.overrides)
        if (at == pointer) return value;
      return std::string();
    };
    if (change.kind != WhatIfKind::schedule) continue;
    CAPTURE(change.what);
    const bool has_chunks = value_of("/parallel/virtual_pipeline") == "2";
    CHECK(value_of("/training/recompute_layers") == (has_chunks ? R"({"first":2})" : ""));
    CHECK(change.what.ends_with("the first 2 layers of each chunk recomputed") == has_chunks);
    in_chunks += has_chunks ? 1 : 0;
  }
  CHECK(in_chunks > 0);
}
TEST_CASE(
    "each what-if of a cluster of two kinds of GPUs is what a run of the changed file gives") {
  const std::string text = scenario_text(R"("aws-t4-v100-mixed")", R"(
    "training": {"global_batch": 16, "micro_batch": 1},
    "parallel": {"tensor": 1, "pipeline": 4, "data": 4, "schedule": "gpipe"})");
  CHECK(check_what_ifs(text).count(WhatIfKind::straggler) == 1);
  const std::set<std::string> asked = questions_of(read_explained(text));
  CHECK(asked.count("every node as t4-16gb") == 1);
  CHECK(asked.count("every node as v100-sxm2-16gb") == 1);
}

TEST_CASE("stages that are balanced are balanced anew in each what-if, as a run of the file does") {
  const std::string text = scenario_text(R"("aws-t4-v100-mixed")", R"(
    "training": {"global_batch": 16, "micro_batch": 1},
    "parallel": {"tensor": 1, "pipeline": 4, "data": 4, "stage_layers": "balanced"})");
  check_what_ifs(text);
  // Faster nodes take more layers, so what the critical path spends on others may be saved too.
  const Explanation explanation = explain(read_explained(text), library(), {2, {}, {}}).explanation;
  for (const WhatIfResult& result : explanation.what_ifs)
    CHECK(result.fate != WhatIfFate::cannot_matter);
}

TEST_CASE("each what-if over NVLink domains of which the last is smaller is what a run gives") {
  check_what_ifs(scenario_text(
      R"({"extends": "gb200-nvl72", "name": "cut", "domain_nodes": 3, "segment": 3, "source": "assumed: small"})",
      R"("nodes": 4, "training": {"global_batch": 16, "micro_batch": 1, "precision": "bf16"},
      "parallel": {"tensor": 4, "pipeline": 4, "data": 1})"));
}

TEST_CASE("each what-if of measured and uneven links is what a run of the changed file gives") {
  check_what_ifs(scenario_text(R"("pipette-a100-hdr")", R"("nodes": 16,
    "training": {"global_batch": 32, "micro_batch": 1},
    "parallel": {"tensor": 8, "pipeline": 4, "data": 4, "pipeline_send": "blocking_pairs"})"));
}

TEST_CASE("a schedule that could replace the plan's sends as its own implementation does") {
  const auto order_of = [](const std::string& parallel) {
    const Scenario scenario = read_explained(scenario_text(R"("hgx-a100-80gb")", R"(
      "software": "megatron-lm-2022", "training": {"global_batch": 16, "micro_batch": 1},
      "parallel": {"tensor": 8, "pipeline": 4, )" + parallel + "}"));
    std::map<std::string, Overrides> orders;
    for (const WhatIf& each : what_ifs(scenario, library()))
      if (each.what.starts_with("schedule ")) orders[each.what] = each.overrides;
    return orders;
  };
  const std::pair<std::string, std::string> eager{"/parallel/pipeline_send", "eager"};
  const auto from_1f1b = order_of(R"("schedule": "1f1b")");
  const auto found = from_1f1b.find("schedule zero_bubble_h1, messages that leave by themselves");
  REQUIRE(found != from_1f1b.end());
  CHECK(std::count(found->second.begin(), found->second.end(), eager) == 1);
  CHECK(order_of(R"("schedule": "zero_bubble_h1")")
            .contains("schedule 1f1b, exchanges in blocking pairs"));
  CHECK(order_of(R"("schedule": "1f1b", "pipeline_send": "eager")")
            .contains("schedule zero_bubble_h1"));
}

TEST_CASE("a slow node is asked about by its number, whatever makes it slow") {
  // Node 0 has the GPUs of the others and a fortieth of their NIC rate: what helps is all nodes as nodes 1 to 3.
  const std::string text = scenario_text(R"("a100-80gb-1hdr")", R"(
    "training": {"global_batch": 16, "micro_batch": 1}, "parallel": {"tensor": 8, "data": 4})");
  const Scenario even = read_explained(text);
  const std::string type =
      canonical_text(even.resolved.find("platform")->find("node_types")->array().front());
  ReadOptions options;
  options.overrides = {{"/platform/node_types", "[" + type + "," + type + "]"},
                       {"/platform/node_types/0/count", "1"},
                       {"/platform/node_types/0/nic_rate", "5 Gbps"}};
  const Scenario scenario = read_explained(text, options);
  SimulateOptions heap;
  heap.make_engine = make_heap_engine;
  const Seconds now = simulate(scenario, heap).report.iteration_time;
  std::map<std::string, Seconds> times;
  for (const WhatIfResult& result :
       simulate_what_ifs(scenario, library(), what_ifs(scenario, library()), default_at_once()))
    times[result.change.what] = result.iteration_time;
  CHECK(times["every node as nodes 1 to 3"].value() ==
        doctest::Approx(simulate(even, heap).report.iteration_time.value()).epsilon(1e-9));
  CHECK(times["every node as node 0"].value() == doctest::Approx(now.value()).epsilon(1e-9));
  CHECK(times["twice the NIC rate (node 0)"] < now);
}

/// Eight nodes, each a type of its own; the GPUs of node n are `efficiency(n)` times as fast.
Scenario nodes_of_kinds(const std::function<double(int)>& efficiency) {
  const std::string text = scenario_text(R"("a100-80gb-1hdr")", R"(
    "training": {"global_batch": 16, "micro_batch": 1},
    "parallel": {"tensor": 8, "pipeline": 4, "data": 2})");
  const std::string type = canonical_text(
      read_explained(text).resolved.find("platform")->find("node_types")->array().front());
  ReadOptions options;
  std::string types;
  for (int node = 0; node < 8; ++node) types += (node == 0 ? "[" : ",") + type;
  options.overrides = {{"/platform/node_types", types + "]"}};
  for (int node = 0; node < 8; ++node) {
    const std::string at = "/platform/node_types/" + std::to_string(node);
    options.overrides.emplace_back(at + "/count", "1");
    options.overrides.emplace_back(at + "/compute_efficiency", std::to_string(efficiency(node)));
  }
  return read_explained(text, options);
}

TEST_CASE("what is not simulated could not have saved what its bound says") {
  const Scenario scenario = nodes_of_kinds([](int node) { return 1 - 0.02 * node; });
  const Explanation explanation = explain(scenario, library(), {2, {}, {}}).explanation;
  const Seconds whole = explanation.report.iteration_time;
  std::size_t bounded = 0, left_out = 0;
  for (const WhatIfResult& result : explanation.what_ifs) {
    if (!result.saves_at_most) continue;
    CAPTURE(result.change.what);
    ++bounded;
    if (result.fate == WhatIfFate::cannot_matter) ++left_out;
    CHECK((result.fate == WhatIfFate::cannot_matter) == (*result.saves_at_most < 0.002));
    const Seconds time =
        simulate_what_ifs(scenario, library(), {result.change}, 1, {}).front().iteration_time;
    CHECK(1 - time / whole <= *result.saves_at_most + 1e-9);
  }
  CHECK(bounded >= 24);  // GPUs, inside the node, NIC of eight kinds
  CHECK(left_out >= 4);
}

TEST_CASE("kinds of node that do the same are asked about as one") {
  const std::set<std::string> two =
      questions_of(nodes_of_kinds([](int node) { return node % 2 == 0 ? 1 : 0.9; }));
  CHECK(two.count("GPUs 10 % faster (node 0, node 2, node 4 and others like them)") == 1);
  CHECK(two.count("every node as node 1, node 3, node 5 and others like them") == 1);
  std::size_t about_gpus = 0;
  for (const std::string& what : two)
    if (what.starts_with("GPUs 10 % faster")) ++about_gpus;
  CHECK(about_gpus == 2);
}

TEST_CASE("a budget that is spent leaves what-ifs out, and says so") {
  const Explanation explanation =
      explain(read_explained(small_text), library(), {2, Seconds{0}, {}}).explanation;
  REQUIRE_FALSE(explanation.what_ifs.empty());
  for (const WhatIfResult& result : explanation.what_ifs)
    CHECK(result.fate == WhatIfFate::over_budget);
  const std::string text = explanation_text(explanation, Colour::never);
  CHECK(text.find("or the budget was spent: ") != std::string::npos);
  const JsonValue value = explanation_value(explanation);
  CHECK(value.find("what_ifs")->array().front().find("not_simulated")->string() == "budget");
}

TEST_CASE("fully sharded training is asked about links and single nodes as any other") {
  const std::set<std::string> asked =
      questions_of(read_explained(scenario_text(R"("a100-80gb-4hdr")", R"(
      "training": {"global_batch": 32, "micro_batch": 1},
      "parallel": {"data": 32, "zero_stage": 3})")));
  for (const char* what : {"twice the NIC rate", "half the latency between nodes",
                           "no latency between nodes", "node 0 10 % slower", "GPUs 10 % faster"}) {
    CAPTURE(what);
    CHECK(asked.count(what) == 1);
  }
}

TEST_CASE("every class of links is asked about") {
  const std::string text = scenario_text(R"("a100-80gb-4hdr")", R"(
    "training": {"global_batch": 16, "micro_batch": 1},
    "parallel": {"tensor": 8, "pipeline": 2, "data": 2})");
  ReadOptions options;
  options.overrides = {
      {"/platform/fabric/nodes_per_leaf", "2"},
      {"/platform/fabric/oversubscription", "4"},
      {"/platform/link_overrides",
       R"([{"from": 0, "to": 2, "bandwidth": "5 GB/s", "source": "assumed: a test"}])"}};
  std::set<std::string> asked;
  for (const WhatIf& change : what_ifs(read_explained(text, options), library()))
    asked.insert(change.what);
  for (const char* what :
       {"twice the bandwidth inside nodes", "half the latency inside nodes", "twice the NIC rate",
        "half the latency between nodes", "no latency between nodes",
        "twice the uplinks of leaf switches", "no oversubscription of leaf switches",
        "twice the rate of links with rates of their own", "no links with rates of their own"})
    CHECK_MESSAGE(asked.count(what) == 1, what);
}

/// What is asked about links and NICs of four nodes whose platform has this set.
std::set<std::string> asked_with(const Overrides& overrides) {
  ReadOptions options;
  options.overrides = overrides;
  std::set<std::string> asked;
  for (const WhatIf& change : what_ifs(read_explained(scenario_text(R"("a100-80gb-4hdr")", R"(
    "training": {"global_batch": 16, "micro_batch": 1},
    "parallel": {"tensor": 8, "pipeline": 2, "data": 2})"),
                                                      options),
                                       library()))
    if (change.kind == WhatIfKind::link || change.kind == WhatIfKind::nic)
      asked.insert(change.what.substr(0, change.what.find(" (")));
  return asked;
}

TEST_CASE("links, NICs and faults that are slower than their peers are asked about by name") {
  const auto links =
      asked_with({{"/platform/link_overrides",
                   R"([{"from": 0, "to": 2, "bandwidth": "5 GB/s", "source": "assumed: a test"},
          {"from": 3, "to": 1, "bandwidth": "6 GB/s", "source": "assumed: a test"},
          {"from": 1, "to": 3, "bandwidth": "6 GB/s", "source": "assumed: a test"},
          {"from": 2, "to": 3, "bandwidth": "900 GB/s", "source": "assumed: a test"}])"}});
  CHECK(links.contains("link from node 0 to 2 at NIC rate"));
  CHECK(links.contains("slow links of node 1 at NIC rate"));
  const auto node =
      asked_with({{"/platform/link_overrides",
                   R"([{"from": 0, "to": 2, "bandwidth": "5 GB/s", "source": "assumed: a test"},
          {"from": 2, "to": 3, "bandwidth": "5 GB/s", "source": "assumed: a test"}])"}});
  CHECK(node.contains("slow links of node 2 at NIC rate"));
  const auto faults =
      asked_with({{"/platform/faults",
                   R"([{"node": 1, "nic": 2, "share": 0.5}, {"node": 3, "nic": 0, "share": 0}])"}});
  CHECK(faults.contains("no fault of NIC 2 of node 1"));
  CHECK(faults.contains("no fault of NIC 0 of node 3"));
}

TEST_CASE("every stage with nodes of its own is asked about, and every codec that is legal") {
  const std::string text = scenario_text(R"("a100-80gb-4hdr")", R"(
    "training": {"global_batch": 16, "micro_batch": 1},
    "parallel": {"tensor": 8, "pipeline": 4, "data": 2, "zero_stage": 2})");
  std::set<std::string> asked;
  for (const WhatIf& change : what_ifs(read_explained(text), library())) asked.insert(change.what);
  for (int stage = 0; stage < 4; ++stage)
    CHECK(asked.count("stage " + std::to_string(stage) + " 10 % faster") == 1);
  CHECK(asked.count("pipeline backward: powersgd of rank 16") == 1);
  CHECK(asked.count("data gradients: powersgd of rank 128") == 0);  // ZeRO 2 has no whole gradients
  CHECK(asked.count("data gradients: signs (1-bit Adam)") == 0);    // nor whole momenta
  CHECK(asked.count("pipeline forward: powersgd of rank 16") == 0);  // an activation is used whole
  CHECK(asked.count("zero gather: int8") == 1);
}

TEST_CASE("on nodes that differ in speed no change is impossible, and no single node is slow") {
  ReadOptions options;
  options.overrides = {{"/platform/node_types/0/pass_spread", "0.07"}};
  const std::vector<WhatIf> list = what_ifs(read_explained(small_text, options), library());
  int faster = 0;
  for (const WhatIf& change : list) {
    CHECK_FALSE(change.what.starts_with("node "));
    if (!change.what.starts_with("stage ")) continue;
    ReadOptions changed = options;
    changed.overrides.insert(changed.overrides.end(), change.overrides.begin(),
                             change.overrides.end());
    CHECK_NOTHROW(read_explained(small_text, changed));
    ++faster;
  }
  CHECK(faster > 0);
}

TEST_CASE("nodes that are distinguished without being changed change nothing") {
  const Scenario scenario = read_explained(small_text);
  const std::vector<WhatIf> list = what_ifs(scenario, library());
  const auto straggler = std::find_if(list.begin(), list.end(), [](const WhatIf& change) {
    return change.what == "node 0 10 % slower";
  });
  REQUIRE(straggler != list.end());
  ReadOptions options;
  options.overrides = straggler->overrides;
  options.overrides.emplace_back("/platform/node_types/0/compute_efficiency",
                                 std::to_string(scenario.nodes.front().compute_efficiency));
  const auto time_of = [](const Scenario& each) {
    return simulate(each).report.iteration_time.value();
  };
  CHECK(time_of(read_explained(small_text, options)) ==
        doctest::Approx(time_of(scenario)).epsilon(1e-9));
}

TEST_CASE("a straggler slows its own stage, and no other node of the same device") {
  const char* const two_stages = R"({
    "model": "gpt-1.7b", "platform": "a100-80gb-4hdr", "software": "megatron-lm-2021", "nodes": 2,
    "training": {"global_batch": 16, "micro_batch": 2, "precision": "fp16"},
    "parallel": {"tensor": 8, "pipeline": 2, "data": 1}})";
  const auto compute_of = [&](const ReadOptions& options) {
    const Scenario scenario = read_explained(two_stages, options);
    const BuiltPrograms built = build_programs(
        {&scenario.model, &scenario.platform, &scenario.nodes, &scenario.software, &scenario.plan});
    return std::pair{built.cost_of_device[0].chunks[0].forward.of(Part::compute).value(),
                     built.cost_of_device[1].chunks[0].forward.of(Part::compute).value()};
  };
  const auto list = what_ifs(read_explained(two_stages), library());
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

TEST_CASE("what-ifs come in the order of what they gain times how sure that is") {
  const JsonValue explanation = explained(read_explained(small_text));
  double before = -1;
  for (const JsonValue& what_if : explanation.find("what_ifs")->array()) {
    const double sure = number_of(find_at(what_if, "/ordering/sure")).value_or(1);
    CHECK(number_at(what_if, "change") * sure >= before);
    before = number_at(what_if, "change") * sure;
  }
}

TEST_CASE("one GPU alone raises few questions, and none of the network") {
  const Scenario scenario = read_explained(R"({
    "model": "gpt-1.7b", "platform": "a100-80gb-4hdr", "software": "megatron-lm-2021",
    "training": {"global_batch": 2, "micro_batch": 1}})");
  for (const WhatIf& what_if : what_ifs(scenario, library())) {
    CHECK(what_if.what.find("NIC") == std::string::npos);
    CHECK(what_if.what.find("nodes") == std::string::npos);
  }
}

TEST_CASE("what-ifs about GPUs, links and NICs leave what was measured") {
  const Library shipped{source_dir()};
  const std::filesystem::path file = shipped.root / "scenarios" / "gpt3-175b-512xa100.json";
  for (const WhatIf& change : what_ifs(read_scenario(file, shipped), shipped)) {
    if (change.kind != WhatIfKind::gpu && change.kind != WhatIfKind::link &&
        change.kind != WhatIfKind::nic)
      continue;
    CAPTURE(change.what);
    Report report;
    report.iteration_time = Seconds{10};
    add_interval(read_scenario(file, shipped, {change.overrides}), shipped, report);
    CHECK(report.warnings.size() == 1);
  }
}

TEST_CASE("smaller microbatches, whose whole gradients do not fit, say what would") {
  const Scenario scenario = read_explained(R"({
    "model": {"extends": "mixtral-8x7b", "sequence": 4096}, "platform": "dgx-h100", "nodes": 2,
    "software": "transformers-2024",
    "training": {"global_batch": 128, "micro_batch": 8, "precision": "bf16", "recompute": "full"},
    "parallel": {"tensor": 1, "pipeline": 1, "zero_stage": 3, "expert": 1}})");
  const WhatIf smaller{WhatIfKind::training, "smaller", {{"/training/micro_batch", "4"}}};
  const WhatIf unrecomputed{WhatIfKind::training, "none", {{"/training/recompute", "none"}}};
  const auto results = simulate_what_ifs(scenario, library(), {smaller, unrecomputed}, 1);
  REQUIRE(results.size() == 2);
  for (const WhatIfResult& result : results) CHECK_FALSE(result.fits);
  CHECK(results[0].memory_advice == "fits with no_sync false");
  CHECK(results[1].memory_advice.empty());
}

}  // namespace
}  // namespace windtunnel
