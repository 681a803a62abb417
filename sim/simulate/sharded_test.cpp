// Sharded passes (ZeRO 3) whose gathers and scatters are result on links.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/testing.hpp"
#include "cost/stage_cost.hpp"
#include "scenario/testing.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

const char* const on_selene = R"({
    "version": 1, "platform": "selene-a100", "nodes": 2, "software": "deepspeed-zero3-2021",
    "model": {"layers": 3, "hidden": 1024, "heads": 16, "sequence": 512, "vocab": 51200},
    "training": {"global_batch": 32, "micro_batch": 1},
    "parallel": {"tensor": 1, "pipeline": 1, "data": 16, "zero_stage": 3}})";

Scenario read_from(const std::string& text, const std::string& library,
                   const Overrides& overrides) {
  return testing::read_text(text, overrides, Library{source_dir() / library});
}

Simulation run_sharded(const Scenario& scenario, Detail detail, bool keep_timeline = false,
                       MakeEngine engine = make_heap_engine) {
  SimulateOptions options;
  options.make_engine = engine;
  options.detail = detail;
  options.keep_timeline = keep_timeline;
  return simulate(scenario, options);
}

Overrides draw(std::mt19937& random) {
  const auto one_of = [&](std::vector<const char*> of) {
    return std::string(of[random() % of.size()]);
  };
  const int nodes = 1 + static_cast<int>(random() % 4), tensor = 1 << random() % 4;
  const int data = 8 * nodes / tensor;
  const std::string prefetch = one_of({"0", "1", "2", "5"});
  Overrides drawn{
      {"/nodes", std::to_string(nodes)},
      {"/parallel/tensor", std::to_string(tensor)},
      {"/parallel/data", std::to_string(data)},
      {"/parallel/zero_prefetch", prefetch},
      {"/parallel/zero_group", data % 4 == 0 ? one_of({"0", "2", "4"}) : "0"},
      {"/parallel/gradient_ring", one_of({"flat", "hierarchical"})},
      {"/model/layers", one_of({"1", "2", "3", "8"})},
      {"/model/hidden", one_of({"1024", "4096"})},
      {"/training/global_batch", std::to_string(data * static_cast<int>(1 + random() % 3))},
      {"/training/recompute", one_of({"none", "full"})},
      {"/platform/node_types/0/device/collective_multiprocessors", one_of({"0", "24", "60"})},
      {"/platform/node_types/0/nic_rate", one_of({"200 Gbps", "10 Gbps", "1 Gbps"})},
      {"/compression/zero_gather",
       one_of({"null", R"({"codec": "fixed", "ratio": 4, "encode_rate": "50 GB/s"})"})}};
  if (prefetch != "0") drawn.emplace_back("/software/host_gathers", "null");
  return drawn;
}

TEST_CASE("pass by pass and layer by layer give the same where every node and link is alike") {
  std::mt19937 random(11);
  for (int drawn = 0; drawn < 60; ++drawn) {
    const Overrides overrides = draw(random);
    std::string text;
    for (const auto& [pointer, value] : overrides) text += pointer + "=" + value + " ";
    CAPTURE(text);
    const Scenario scenario = read_from(on_selene, "", overrides);
    const Report folded = run_sharded(scenario, Detail::pass).report,
                 layered = run_sharded(scenario, Detail::layer).report;
    CHECK(layered.iteration_time / folded.iteration_time == doctest::Approx(1).epsilon(1e-9));
    for (std::size_t line = 0; line < folded.breakdown.seconds.size(); ++line) {
      CAPTURE(line);
      CHECK(std::abs((layered.breakdown.seconds[line] - folded.breakdown.seconds[line]) /
                     folded.iteration_time) < 1e-9);
    }
    for (std::size_t kind = 0; kind < folded.traffic.size(); ++kind)
      CHECK(layered.traffic[kind].value() ==
            doctest::Approx(folded.traffic[kind].value()).epsilon(1e-9));
  }
}

/// Two nodes of two GPUs with one NIC of 12.5 GB/s each; from the first to the second node, a cable that does 1 GB/s.
const char* const one_slow_cable = R"({
    "version": 1, "nodes": 2,
    "platform": {
      "name": "pairs", "node_types": [{
        "device": "card", "gpus": 2, "nics": 1, "nic_rate": "100 Gbps", "nic_efficiency": 1, "source": "assumed: made up",
        "interconnect": {
          "kind": "nvswitch", "saturated_bandwidth": "100 GB/s", "group_loss": 0, "floor_base": "1 us",
          "floor_per_gpu": "0 us", "half_size": "1 B", "half_size_exponent": 0, "sharpness": 1,
          "point_to_point": "50 GB/s", "point_to_point_latency": "5 us", "source": "assumed: made up"}}],
      "fabric": {"latency": "10 us", "collective_latency": "5 us", "source": "assumed: made up"},
      "link_overrides": [{"from": 0, "to": 1, "bandwidth": "1 GB/s", "source": "assumed: made up"}]},
    "model": {"layers": 3, "hidden": 1024, "heads": 16, "sequence": 128, "vocab": 1024, "tied_embeddings": false},
    "training": {"global_batch": 4, "micro_batch": 1, "gradient_dtype": "fp32"},
    "parallel": {"tensor": 1, "pipeline": 1, "data": 4, "zero_stage": 3}})";

TEST_CASE("by hand: two nodes of two GPUs, three layers, and a slow cable between the nodes") {
  const Scenario scenario = read_from(one_slow_cable, "sim/scenario/corpus/library", {});
  const Simulation result = run_sharded(scenario, Detail::pass, true, make_simgrid_engine);
  // Times of the first GPU's kernels, by direction and layer; layer 0: kernels of no layer.
  std::map<std::pair<Phase, std::uint32_t>, double> kernels;
  std::map<Phase, double> launches;  // that they wait for at the end of a pass
  for (const Span& span : result.timeline.computes)
    if (span.device == DeviceId{0} && span.stream == Stream::compute)
      (label_of(span.op) == Label::launch_floor ? launches[span.op.phase]
                                                : kernels[{span.op.phase, layer_of(span.op)}]) +=
          (span.end - span.begin).value();
  const double first = kernels.at({Phase::forward, 0}),
               last_forward = kernels.at({Phase::forward, 3}),
               backward = kernels.at({Phase::backward, 0});
  for (const Phase phase : {Phase::forward, Phase::backward})
    for (const std::uint32_t layer : {1U, 2U, 3U}) CHECK(kernels.at({phase, layer}) < 0.01);

  // A layer has 12 * 1024^2 parameters. A ring of four sends 3/4 of them over each of its edges, and the slow one decides:
  // 2 bytes gathered, 4 bytes scattered, 10 us for the message and 5 us for each of the 1.5 hops of three that cross.
  constexpr double latency = 17.5e-6, gather = latency + 18'874'368 / 1e9,
                   scatter = latency + 37'748'736 / 1e9;
  // Embedding, head and the norm before it: (1024 + 128 + 1024 + 2) * 1024 parameters.
  constexpr double gather_edges = latency + 3'345'408 / 1e9,
                   scatter_edges = latency + 6'690'816 / 1e9;
  const double forward_layers = gather_edges + first,
               forward_end = forward_layers + 3 * gather + last_forward + launches[Phase::forward],
               backward_layers = forward_end + backward,
               backward_end = backward_layers + 3 * gather + 3 * scatter;
  // Layers wait for gathers. Backward, a layer leaves its gradients before the second next one is gathered.
  const std::vector<double> ends{gather_edges,
                                 forward_layers + gather,
                                 forward_layers + 2 * gather,
                                 forward_layers + 3 * gather,
                                 backward_layers + gather,
                                 backward_layers + 2 * gather,
                                 backward_layers + 2 * gather + scatter,
                                 backward_layers + 3 * gather + scatter,
                                 backward_layers + 3 * gather + 2 * scatter,
                                 backward_end,
                                 backward_end + scatter_edges};
  REQUIRE(result.timeline.collectives.size() == ends.size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    CAPTURE(i);
    CHECK(result.timeline.collectives[i].end.value() == doctest::Approx(ends[i]).epsilon(1e-9));
  }
  CHECK(result.report.iteration_time.value() ==
        doctest::Approx(ends.back() + launches[Phase::backward] +
                        kernels.at({Phase::optimizer, 0}) + kernels.at({Phase::overhead, 0}))
            .epsilon(1e-9));

  // Each of four ranks sends that 3/4 of all gradients once, and nothing is left to reduce at the end.
  const auto& traffic = result.report.traffic;
  CHECK(traffic[static_cast<std::size_t>(Traffic::zero_scatter)].value() ==
        doctest::Approx(4 * (3 * 37'748'736.0 + 6'690'816.0)).epsilon(1e-12));
  CHECK(traffic[static_cast<std::size_t>(Traffic::data_gradients)] == Bytes{0});

  // Six gathers and three scatters of a layer, one of each of the rest, over each of the two edges between the nodes.
  const double edge = 6 * 18'874'368.0 + 3 * 37'748'736.0 + 3'345'408.0 + 6'690'816.0;
  int cables = 0;
  for (const LinkUse& link : result.report.links) {
    CAPTURE(link.name);
    CHECK(total_of(link.carried).value() == doctest::Approx(edge).epsilon(1e-12));
    cables += link.bandwidth == 1_GBps;
  }
  CHECK(cables == 1);
}

TEST_CASE("by hand: under no_sync() two microbatches gather, and one ring scatters behind them") {
  const std::pair<std::string, std::string> fsdp2{"/software/memory/sharded_parameters",
                                                  "\"each\""},
      no_sync{"/parallel/no_sync", "true"}, two{"/training/global_batch", "8"};
  const Scenario scenario =
      read_from(one_slow_cable, "sim/scenario/corpus/library",
                {fsdp2, no_sync, two, {"/parallel/overlap_gradient_reduce", "false"}});
  const Simulation result = run_sharded(scenario, Detail::pass, true, make_simgrid_engine);
  // Kernels of both microbatches on the first GPU that no gather hides.
  double exposed = 0;
  for (const Span& span : result.timeline.computes) {
    const std::uint32_t layer = layer_of(span.op);  // 3: the last of a pass
    if (span.device == DeviceId{0} && span.stream == Stream::compute && (layer == 0 || layer == 3))
      exposed += (span.end - span.begin).value();
  }
  constexpr double latency = 17.5e-6, gather = latency + 18'874'368 / 1e9,
                   gather_edges = latency + 3'345'408 / 1e9;
  // All gradients, also those of a layer's 13 vectors, which passes leave out; 5 us for each of the ring's 1.5 hops.
  constexpr double gradients = 3 * (37'748'736 + 13 * 1024 * 4 * 0.75) + 6'690'816,
                   ring = 7.5e-6 + gradients / 1e9;
  CHECK(result.report.iteration_time.value() ==
        doctest::Approx(exposed + 2 * (gather_edges + 6 * gather) + ring).epsilon(1e-9));
  const auto& traffic = result.report.traffic;
  CHECK(traffic[static_cast<std::size_t>(Traffic::zero_scatter)] == Bytes{0});
  CHECK(traffic[static_cast<std::size_t>(Traffic::data_gradients)].value() ==
        doctest::Approx(4 * gradients).epsilon(1e-12));

  // During the last backward pass it is hidden in part; one microbatch scatters as ever.
  const auto time_of = [](const Overrides& overrides) {
    return run_sharded(read_from(one_slow_cable, "sim/scenario/corpus/library", overrides),
                       Detail::pass, false, make_native_engine)
        .report.iteration_time;
  };
  CHECK(time_of({fsdp2, no_sync, two}) < result.report.iteration_time);
  CHECK(time_of({fsdp2, no_sync}) == time_of({fsdp2}));
}

TEST_CASE("no_sync is refused where gradients are never scattered in passes, or always are") {
  const auto refused = [](const Overrides& overrides) {
    try {
      read_from(one_slow_cable, "sim/scenario/corpus/library", overrides);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::pair<std::string, std::string> no_sync{"/parallel/no_sync", "true"},
      fsdp2{"/software/memory/sharded_parameters", "\"each\""};
  CHECK(refused({no_sync, fsdp2}).empty());
  CHECK(refused({no_sync}).find("scatters the gradients of every microbatch") != std::string::npos);
  CHECK(refused({no_sync, fsdp2, {"/parallel/zero_stage", "2"}})
            .find("no_sync is for zero_stage 3") != std::string::npos);
  CHECK(refused({no_sync, fsdp2, {"/parallel/pipeline", "2"}, {"/parallel/data", "2"}})
            .find("add up whole gradients in any case") != std::string::npos);
}

TEST_CASE(
    "by hand: sharded in each node, gathers stay there and shards are reduced between the nodes") {
  const Overrides in_nodes{{"/parallel/zero_group", "2"}};
  const Scenario scenario = read_from(one_slow_cable, "sim/scenario/corpus/library", in_nodes);
  const Report report = run_sharded(scenario, Detail::pass).report;
  // A rank keeps half of a layer's 12 * 1024^2 gradients of 4 bytes after the scatter in its node, and all-reduces that with one rank
  // of the other node: half of it each way. So do the 2178 * 1024 of embedding, head and the norm before it. Two ranks a node.
  const double shard = (3 * 12 * 1024.0 * 1024 + 2178 * 1024.0) * 4 / 2;
  for (const LinkUse& link : report.links) {
    CAPTURE(link.name);
    CHECK(total_of(link.carried).value() == doctest::Approx(2 * shard).epsilon(1e-12));
  }
  // Three layers gathered twice by each of four ranks, and the edges once: half of 2 bytes a parameter.
  const double gathered = 4 * (2 * 3 * 12 * 1024.0 * 1024 + 2178 * 1024.0);
  CHECK(report.traffic[static_cast<std::size_t>(Traffic::zero_gather)].value() ==
        doctest::Approx(gathered).epsilon(1e-12));
  // Each rank scatters the other half in its node, and all-reduces its shard of two: twice half of it.
  CHECK(report.traffic[static_cast<std::size_t>(Traffic::zero_scatter)].value() ==
        doctest::Approx(4 * shard).epsilon(1e-12));
  CHECK(report.traffic[static_cast<std::size_t>(Traffic::data_gradients)].value() ==
        doctest::Approx(4 * shard).epsilon(1e-12));
  // Half of the states instead of a quarter; and less waiting for the cable.
  const Scenario flat = read_from(one_slow_cable, "sim/scenario/corpus/library", {});
  const Report shared = run_sharded(flat, Detail::pass).report;
  CHECK(report.memory.stages.front().weights.value() ==
        doctest::Approx(2 * shared.memory.stages.front().weights.value()));
  CHECK(report.iteration_time < shared.iteration_time);
}

TEST_CASE(
    "by hand: ZeRO 1 in each node scatters and gathers there, and reduces shards between nodes") {
  const Overrides in_nodes{{"/parallel/zero_stage", "1"},
                           {"/parallel/zero_prefetch", "null"},
                           {"/parallel/zero_group", "2"}};
  const Scenario scenario = read_from(one_slow_cable, "sim/scenario/corpus/library", in_nodes);
  const Report report = run_sharded(scenario, Detail::pass).report;
  // The shards of the test before, once an iteration, with the 13 * 1024 biases and norms of each layer; parameters gathered once.
  const double parameters = 3 * (12 * 1024.0 + 13) * 1024 + 2178 * 1024.0,
               shard = parameters * 4 / 2;
  for (const LinkUse& link : report.links) {
    CAPTURE(link.name);
    CHECK(total_of(link.carried).value() == doctest::Approx(2 * shard).epsilon(1e-12));
  }
  CHECK(report.traffic[static_cast<std::size_t>(Traffic::zero_gather)].value() ==
        doctest::Approx(4 * parameters * 2 / 2).epsilon(1e-12));
  CHECK(report.traffic[static_cast<std::size_t>(Traffic::data_gradients)].value() ==
        doctest::Approx(4 * (shard + shard)).epsilon(1e-12));
  // Optimizer states by half of the replicas of one group, not by all four.
  Overrides over_all = in_nodes;
  over_all.back().second = "0";
  const Scenario flat = read_from(one_slow_cable, "sim/scenario/corpus/library", over_all);
  const Report shared = run_sharded(flat, Detail::pass).report;
  CHECK(report.memory.stages.front().optimizer.value() ==
        doctest::Approx(2 * shared.memory.stages.front().optimizer.value()));
  // Each owner broadcasts its tensors in its node, and whole gradients are all-reduced over all four ranks.
  Overrides broadcasts = in_nodes;
  broadcasts.emplace_back("/software/broadcast_tensors", "9");
  const Scenario owned = read_from(one_slow_cable, "sim/scenario/corpus/library", broadcasts);
  const Report by_owners = run_sharded(owned, Detail::pass).report;
  CHECK(by_owners.traffic[static_cast<std::size_t>(Traffic::zero_gather)].value() ==
        doctest::Approx(2 * parameters * 2).epsilon(1e-12));
  CHECK(by_owners.traffic[static_cast<std::size_t>(Traffic::data_gradients)].value() ==
        doctest::Approx(4 * parameters * 4 * 2 * 3 / 4).epsilon(1e-12));
}

TEST_CASE("backward passes that are split gather and scatter with their input gradients") {
  const Overrides split{{"/parallel/schedule", "zero_bubble_h1"}};
  Overrides on_leaves = split;
  on_leaves.insert(on_leaves.end(), {{"/platform/fabric/nodes_per_leaf", "1"},
                                     {"/platform/fabric/oversubscription", "64"}});
  const Scenario scenario = read_from(on_selene, "", split);
  const Seconds even = run_sharded(scenario, Detail::pass).report.iteration_time;
  CHECK(run_sharded(scenario, Detail::layer).report.iteration_time / even ==
        doctest::Approx(1).epsilon(1e-9));
  CHECK(run_sharded(read_from(on_selene, "", on_leaves), Detail::pass, false, make_simgrid_engine)
            .report.iteration_time > 2 * even);
}

TEST_CASE(
    "gathers overlapped with tensor groups across nodes share the nodes' links with their "
    "all-reduces") {
  const Overrides wide{{"/model/heads", "32"},
                       {"/parallel/tensor", "16"},
                       {"/parallel/data", "2"},
                       {"/nodes", "4"},
                       {"/training/global_batch", "4"}};
  const Report report = run_sharded(read_from(on_selene, "", wide), Detail::pass).report;
  int shared = 0;
  for (const LinkUse& link : report.links)
    shared += link.carried[static_cast<std::size_t>(Traffic::zero_gather)] > Bytes{0} &&
              link.carried[static_cast<std::size_t>(Traffic::tensor_activations)] > Bytes{0};
  CHECK(shared > 0);
}

TEST_CASE("NICs that do not divide among a node's groups are result as such") {
  // Three groups of two GPUs on two NICs: one NIC serves two of them.
  const auto time = [](const char* nics, Detail detail) {
    const Scenario scenario = read_from(on_selene, "",
                                        {{"/platform/node_types/0/gpus", "6"},
                                         {"/platform/node_types/0/nics", nics},
                                         {"/platform/node_types/0/nic_rate", "1 Gbps"},
                                         {"/parallel/tensor", "2"},
                                         {"/parallel/data", "6"},
                                         {"/training/global_batch", "6"}});
    return run_sharded(scenario, detail).report.iteration_time;
  };
  for (const char* nics : {"2", "3", "6"}) {  // the heap shares none
    CAPTURE(nics);
    CHECK(time(nics, Detail::pass) / time(nics, Detail::layer) == doctest::Approx(1).epsilon(1e-9));
  }
}

TEST_CASE("a slow cable and oversubscribed leaves change the time of sharded training") {
  const auto time = [](const Overrides& overrides) {
    return run_sharded(read_from(on_selene, "", overrides), Detail::pass, false, make_native_engine)
        .report.iteration_time;
  };
  const Seconds even = time({{"/nodes", "4"}, {"/parallel/data", "32"}});
  const Seconds cable =
      time({{"/nodes", "4"},
            {"/parallel/data", "32"},
            {"/platform/link_overrides",
             R"([{"from": 1, "to": 2, "bandwidth": "1 GB/s", "source": "assumed: a test"}])"}});
  const Seconds leaves = time({{"/nodes", "4"},
                               {"/parallel/data", "32"},
                               {"/platform/fabric/nodes_per_leaf", "1"},
                               {"/platform/fabric/oversubscription", "8"}});
  CHECK(cable > even * 1.5);
  CHECK(leaves > even * 1.05);
}

}  // namespace
}  // namespace windtunnel
