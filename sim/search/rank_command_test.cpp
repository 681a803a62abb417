#include "search/rank_command.hpp"

#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "report/number_text.hpp"
#include "search/testing.hpp"

namespace windtunnel {
namespace {

/// Two nodes of two GPUs, below leaves of two nodes; the NIC of node1 has a tenth of its rate.
Scenario with_slow_node(const Overrides& changes = {}) {
  return scenario_from(R"({
    "nodes": 2,
    "platform": {"extends": "selene-a100", "name": "pairs",
                 "node_types": [{"gpus": 2, "nics": 1, "source": "assumed: made up"}],
                 "fabric": {"nodes_per_leaf": 2, "oversubscription": 4, "source": "assumed: made up"},
                 "faults": [{"node": 1, "nic": 0, "share": 0.1, "source": "assumed: made up"}]},
    "model": {"layers": 4, "hidden": 1024, "heads": 16, "sequence": 1024, "vocab": 51200},
    "training": {"global_batch": 4, "micro_batch": 1}, "parallel": {"data": 4},
    "search": {"tensor": [1], "pipeline": [1, 2], "micro_batch": [1]}})",
                       changes);
}

std::vector<int> nodes_of(const Scenario& scenario) {
  std::vector<int> nodes;
  for (const NodeId node : scenario.platform.cluster_nodes)
    nodes.push_back(static_cast<int>(node.index()));
  return nodes;
}

std::string refusal(const Scenario& base, const std::vector<std::string>& names) {
  try {
    avoid_nodes(base, names);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

bool says(const std::string& text, const std::string& part) {
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

TEST_CASE("a job takes the next nodes in place of those that it avoids") {
  const Scenario base = with_slow_node();
  const auto [job, avoided] = avoid_nodes(base, {"node1"});
  CHECK(nodes_of(job) == std::vector{0, 2});
  CHECK(avoided.nodes == std::vector{1});
  CHECK(job.platform.faults.empty());
  CHECK(job.plan.num_ranks() == 4);
  CHECK(avoid_nodes(base, {"node1", "node1"}).second.names == std::vector<std::string>{"node1"});
  // A switch stands for the nodes below it.
  CHECK(nodes_of(avoid_nodes(base, {"leaf0"}).first) == std::vector{2, 3});
  CHECK(nodes_of(avoid_nodes(base, {"leaf0", "node3"}).first) == std::vector{2, 4});
}

TEST_CASE("with the slow node avoided, the best plan is that of a cluster without faults") {
  // On leaves that never fill, nodes 0 and 2 are as near as 0 and 1.
  const Overrides even{{"/platform/fabric/oversubscription", "1"}};
  const Scenario base = with_slow_node(even);
  RankRequest request;
  request.jobs = 1;
  request.with_nothing_avoided = &base;
  std::ostringstream messages;
  const auto [job, avoided] = avoid_nodes(base, {"node1"});
  request.avoided = avoided;
  Overrides sound = even;
  sound.emplace_back("/platform/faults", "null");
  const RankResult healthy = rank_plans(with_slow_node(sound), {}), slow = rank_plans(base, {});
  const RankResult result = rank_plans(job, {});
  REQUIRE_FALSE(result.plans.empty());
  CHECK(result.plans.front().time == healthy.plans.front().time);
  CHECK(result.plans.front().time < slow.plans.front().time);
  const JsonValue data = run_rank(job, request, messages).document.data;
  CHECK(canonical_text(*find_at(data, "/avoided/names")) == R"(["node1"])");
  CHECK(canonical_text(*find_at(data, "/avoided/nodes")) == "[1]");
  CHECK(
      std::get<double>(find_at(data, "/avoided/iteration_time_with_nothing_avoided_s")->content) ==
      slow.plans.front().time / Seconds{1});
}

TEST_CASE("names that are not known, and too few GPUs, are told") {
  const Scenario three = with_slow_node({{"/platform/node_types/0/count", "3"}});
  CHECK(says(refusal(three, {"nod1"}),
             "the names are node0 to node2, leaf0 to leaf1; did you mean \"node1\"?"));
  CHECK(says(refusal(three, {"node3"}), "unknown name \"node3\""));
  CHECK(says(refusal(three, {"node1x"}), "unknown name \"node1x\""));
  CHECK(says(refusal(three, {"node1 nic0 up"}), "unknown name \"node1 nic0 up\""));
  CHECK(says(refusal(three, {"spine"}), "unknown name \"spine\" (the names are node0 to node2"));
  // The platform does not say how many nodes it has.
  CHECK(says(
      refusal(with_slow_node(), {"nod1"}),
      "the names are node0, node1 and so on, leaf0, leaf1 and so on; did you mean \"node1\"?"));
  // One of three nodes is left. With two replicas of one GPU, four samples divide.
  const std::string text = refusal(three, {"node0", "node1"});
  CHECK(says(text, "2 GPUs on 1 node are left, and the plan of the file takes 4"));
  CHECK(says(text, "write --set /nodes=1 --set /parallel/data=2"));
  CHECK(nodes_of(avoid_nodes(three, {"node0"}).first) == std::vector{1, 2});
  CHECK(says(refusal(with_slow_node({{"/parallel/placement", R"(["1:1", "1:0", "0:1", "0:0"])"}}),
                     {"node1"}),
             "placement lists the GPU of each rank"));
}

TEST_CASE("where no plan of the table surely fits, the best that does is searched and named") {
  const auto scenario = [](Overrides changes) {
    return scenario_from(R"({"model": "gpt-1.7b", "platform": "selene-a100", "nodes": 2,
        "training": {"global_batch": 64, "micro_batch": 2},
        "parallel": {"tensor": 8, "pipeline": 2},
        "search": {"tensor": [8], "pipeline": [2], "micro_batch": [2],
                   "recompute": ["none", "full"], "memory_margin": "0 %"}})",
                         changes);
  };
  const Bytes needed = rank_plans(scenario({}), {.top = 1}).plans.front().memory_max;
  const std::string usable = fixed_text((needed + 100_MiB) / 1_MiB, 0) + " MiB";
  const Scenario tight =
      scenario({{"/platform/node_types/0/device/memory/usable", '"' + usable + '"'}});
  RankRequest request;
  request.top = request.plan = 1;
  request.jobs = 1;
  std::ostringstream messages;
  const JsonValue data = run_rank(tight, request, messages).document.data;
  CHECK(find_at(data, "/plans/0/memory_verdict")->string() == "at_risk");
  CHECK(find_at(data, "/plans/1") == nullptr);
  CHECK(number_of(find_at(data, "/best_sure_plan/rank")) == 2);
  CHECK(find_at(data, "/best_sure_plan/training/recompute")->string() == "full");
  const double best = number_of(find_at(data, "/plans/0/iteration_time_s")).value(),
               sure = number_of(find_at(data, "/best_sure_plan/iteration_time_s")).value();
  CHECK(number_of(find_at(data, "/best_sure_plan/behind_best")) == sure / best - 1);
  // Its number is one that launch arguments can be asked of; those of the first warn.
  request.emit = LaunchFormat::megatron;
  CHECK(says(run_rank(tight, request, messages).launch, "--tensor-model-parallel-size 8"));
  CHECK(says(messages.str(), "memory at risk"));
  CHECK(says(messages.str(), "--set /search/surely_fits=true takes only plans that surely fit"));
  messages.str("");
  request.plan = 2;
  CHECK(says(run_rank(tight, request, messages).launch, "--recompute-granularity full"));
  CHECK(!says(messages.str(), "surely_fits"));
  request.plan = 3;
  CHECK_THROWS_WITH_AS(run_rank(tight, request, messages),
                       doctest::Contains("the table has 2 plans"), InputError);
}

TEST_CASE("times that are bounds are marked, in the table and in its head") {
  const auto text_with = [](std::size_t budget) {
    const Scenario scenario = with_slow_node();
    RankRequest request;
    request.jobs = 1;
    request.budget = budget;
    std::ostringstream messages;
    return document::text_of(run_rank(scenario, request, messages).document);
  };
  const std::string none = text_with(0), one = text_with(1);
  CHECK(says(none, "least bound: plan 1, "));
  CHECK(says(none, " per iteration (not simulated)"));
  CHECK(says(none, "≥ not simulated: plans 1 and 2. Their times are lower bounds"));
  CHECK(says(one, "best: plan 1, "));
  CHECK(says(one, "≥ not simulated: plan 2. Its time is a lower bound"));
  CHECK_FALSE(says(one, "(not simulated)"));
  CHECK_FALSE(says(text_with(2), "not simulated"));
}

Scenario base() {
  return scenario_from(R"({"model": "gpt-1.7b", "platform": "selene-a100", "nodes": 2,
                           "training": {"global_batch": 64, "micro_batch": 2, "recompute": "full"},
                           "parallel": {"tensor": 8, "pipeline": 2}})");
}

PlanChoice read_plan(const char* text) {
  const Scenario scenario = base();
  return read_plan_text(text, scenario, search_space(scenario));
}

TEST_CASE("a plan's text that leaves out no_sync has the default of its own plan") {
  const Scenario scenario = scenario_from(
      R"({"model": "llama3-8b", "platform": "dgx-h100", "nodes": 2, "software": "transformers-2024",
          "training": {"global_batch": 128, "micro_batch": 8, "precision": "bf16"},
          "parallel": {"data": 16, "zero_stage": 3}})");
  const auto read = [&](const char* text) {
    return read_plan_text(text, scenario, search_space(scenario)).parallel;
  };
  CHECK_FALSE(scenario.plan.parallel.no_sync);
  CHECK(read("micro_batch=4").no_sync);
  CHECK(read("micro_batch=4").overlap_gradient_reduce);
  CHECK_FALSE(read("micro_batch=4,no_sync=false").no_sync);
  CHECK_FALSE(read("micro_batch=4,no_sync=false").overlap_gradient_reduce);
}

TEST_CASE("what a plan's text leaves out is as in the file, and data is the rest") {
  const PlanChoice choice = read_plan("pipeline=4,tensor=2");
  CHECK(choice.parallel.tensor == 2);
  CHECK(choice.parallel.pipeline == 4);
  CHECK(choice.parallel.data == 2);  // 16 GPUs / (2 * 4)
  CHECK(choice.training.micro_batch == 2);
  CHECK(choice.training.recompute == Recompute::full);
}

TEST_CASE("a plan's text may name every key that is searched") {
  const PlanChoice choice = read_plan(
      "data=1,micro_batch=4,virtual_pipeline=3,zero_stage=0,recompute=selective,"
      "sequence_parallel=true");
  CHECK(choice.parallel.data == 1);
  CHECK(choice.training.micro_batch == 4);
  CHECK(choice.parallel.schedule->takes(2));
  CHECK(choice.training.recompute == Recompute::selective);
  CHECK(choice.parallel.sequence_parallel);
  CHECK(read_plan("schedule=gpipe").parallel.schedule == schedule_named("gpipe"));
}

TEST_CASE("what is no plan is refused with what to write") {
  const auto refused = [](const char* text, const char* with) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(read_plan(text), doctest::Contains(with), InputError);
  };
  refused("tensr=8", "did you mean \"tensor\"?");
  refused("tensor", "has no \"=\"");
  refused("tensor=0", "whole number from 1");
  refused("tensor=2.5", "whole number from 1");
  refused("tensor=99999999999", "whole number from 1");
  refused("zero_stage=4", "from 0 to 3");
  refused("recompute=half", "one of none, selective, full");
  refused("schedule=custom", "one of gpipe, 1f1b");
  refused("sequence_parallel=yes", "true or false");
}

}  // namespace
}  // namespace windtunnel
