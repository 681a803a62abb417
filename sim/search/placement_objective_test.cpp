#include "search/placement_objective.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "engine/program_simulator.hpp"
#include "schedule/pipeline_program.hpp"
#include "search/placement_fixtures.hpp"
#include "search/placement_search.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

using placement_cases::pipette;
using placement_cases::read_text;
using placement_cases::with_slow_nodes;

/// Small plans that between them use everything that the objective knows.
std::vector<std::pair<std::string, Scenario>> all_sorts() {
  const char* const powersgd = R"({"codec": "powersgd", "rank": 16})";
  const char* const tapered = R"({"nodes_per_leaf": 2, "oversubscription": 4, "latency": "1.5 us",
      "collective_latency": "5 us", "source": "assumed: for this test"})";
  const auto small = [](std::vector<std::pair<std::string, std::string>> more) {
    std::vector<std::pair<std::string, std::string>> base{{"/nodes", "4"},
                                                          {"/model/layers", "8"},
                                                          {"/training/global_batch", "64"},
                                                          {"/training/micro_batch", "1"}};
    base.insert(base.end(), more.begin(), more.end());
    return pipette(2, base);
  };
  return {
      {"a tensor group a node", small({})},
      {"four units a node", small({{"/parallel/tensor", "2"}})},
      {"a unit a GPU", small({{"/parallel/tensor", "1"}, {"/model/layers", "2"}})},
      {"tensor groups across nodes", small({{"/parallel/tensor", "16"}, {"/model/heads", "32"}})},
      {"blocking pairs", small({{"/parallel/pipeline_send", "blocking_pairs"}})},
      {"interleaved",
       small({{"/parallel/schedule", "interleaved_1f1b"}, {"/parallel/virtual_pipeline", "2"}})},
      {"ZeRO 1", small({{"/parallel/zero_stage", "1"}, {"/parallel/tensor", "4"}})},
      {"overlapped reduction", small({{"/parallel/overlap_gradient_reduce", "true"}})},
      {"hierarchical rings",
       small({{"/parallel/gradient_ring", "hierarchical"}, {"/parallel/tensor", "2"}})},
      {"ZeRO 2, hierarchical", small({{"/parallel/gradient_ring", "hierarchical"},
                                      {"/parallel/zero_stage", "2"},
                                      {"/parallel/tensor", "4"}})},
      {"pipelines inside nodes",
       small({{"/parallel/rank_order", "tensor-pipeline-data"}, {"/parallel/tensor", "2"}})},
      {"tensor groups over half nodes",
       small({{"/parallel/rank_order", "data-tensor-pipeline"}, {"/parallel/tensor", "8"}})},
      {"tensor groups over two nodes, which other groups begin or end on, and GPUs that differ",
       small({{"/nodes", "3"},
              {"/platform", "dgx1-v100"},
              {"/parallel/pipeline", "12"},
              {"/parallel/tensor", "2"},
              {"/parallel/data", "1"},
              {"/model/layers", "12"},
              {"/parallel/rank_order", "pipeline-data-tensor"}})},
      {"one pipeline", small({{"/parallel/pipeline", "4"}})},
      {"overlapped reduction, two replicas of groups on two nodes",
       small({{"/nodes", "8"},
              {"/parallel/tensor", "16"},
              {"/model/heads", "32"},
              {"/parallel/overlap_gradient_reduce", "true"}})},
      {"compressed messages", small({{"/compression/pipeline_forward/codec", "int8"},
                                     {"/compression/pipeline_backward", powersgd}})},
      {"compressed rings", small({{"/compression/data_gradients/codec", "int8"},
                                  {"/parallel/zero_stage", "1"},
                                  {"/compression/zero_gather/codec", "int8"}})},
      {"PowerSGD's two rings, behind each other",
       small({{"/compression/data_gradients", powersgd}})},
      {"PowerSGD's two rings, overlapped", small({{"/compression/data_gradients", powersgd},
                                                  {"/parallel/overlap_gradient_reduce", "true"}})},
      {"leaf switches that replicas share", small({{"/nodes", "8"},
                                                   {"/platform/extends", "\"pipette-a100-hdr\""},
                                                   {"/platform/fabric", tapered}})},
      {"leaf switches that parts of nodes share",
       small({{"/parallel/tensor", "4"},
              {"/platform/extends", "\"pipette-a100-hdr\""},
              {"/platform/fabric", tapered}})},
      {"fused embeddings", small({{"/compression/embedding_sync/fused", "true"}})},
      {"V100 and T4", read_text(R"({
          "model": {"layers": 24, "hidden": 1024, "heads": 16, "sequence": 1024, "vocab": 52256},
          "platform": "aws-t4-v100-mixed", "nodes": 4, "training": {"global_batch": 32, "micro_batch": 1},
          "parallel": {"pipeline": 4, "tensor": 2}})")},
  };
}

PlacementMoves moves_of(const PlacementObjective& objective, std::uint64_t seed) {
  std::vector<int> nodes;
  for (int slot = 0; slot < objective.num_units(); ++slot) nodes.push_back(objective.node_of(slot));
  return {nodes, seed};
}

TEST_CASE("after any moves the estimate is that of the same placement worked out from scratch") {
  for (const auto& sort : all_sorts()) {
    const std::string& name = sort.first;
    const auto& scenario = sort.second;
    CAPTURE(name);
    PlacementObjective objective(scenario);
    PlacementMoves moves = moves_of(objective, 3);
    for (int i = 0; i < 40; ++i) {
      const Seconds before = objective.value();
      const std::vector<int> was = objective.slots();
      objective.move(moves.draw(objective.slots()));
      const PlacementObjective scratch(scenario, objective.slots());
      CHECK(objective.value() == scratch.value());
      for (const PlacementTerm& term : objective.terms())
        CHECK(objective.time_of(term) == scratch.time_of(term));
      if (i % 3 != 0) continue;
      objective.undo();
      CHECK(objective.value() == before);
      CHECK(objective.slots() == was);
    }
  }
}

TEST_CASE("a copy of an objective is independent") {
  const Scenario scenario = pipette(4);
  PlacementObjective objective(scenario);
  const PlacementObjective before = objective;
  PlacementMoves moves = moves_of(objective, 5);
  for (int i = 0; i < 10; ++i) objective.move(moves.draw(objective.slots()));
  const PlacementObjective own(scenario);
  CHECK(before.value() == own.value());
  CHECK(before.slots() == own.slots());
  for (const PlacementTerm& term : before.terms()) {
    CHECK(before.time_of(term) == own.time_of(term));
    CHECK(objective.value_with(term, before) == objective.value_with(term, own));
  }
}

TEST_CASE("each move leaves every place taken once") {
  std::vector<int> slots(12);
  std::iota(slots.begin(), slots.end(), 0);
  PlacementMoves moves({0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}, 1);
  for (int i = 0; i < 2000; ++i) {
    const auto changes = moves.draw(slots);
    REQUIRE(changes.size() > 1);
    for (const auto& [unit, slot] : changes) slots[static_cast<std::size_t>(unit)] = slot;
    std::vector<int> sorted = slots;
    std::sort(sorted.begin(), sorted.end());
    for (int s = 0; s < 12; ++s) REQUIRE(sorted[static_cast<std::size_t>(s)] == s);
  }
}

double simulated(const Scenario& scenario) {
  return simulate(scenario).report.iteration_time / 1_s;
}

TEST_CASE("where no two messages meet the estimate is the simulated time") {
  // One pipeline, a node a stage: passes, messages, embedding synchronisation, optimizer, overhead; nothing shares a link.
  for (const char* send : {"eager", "blocking_pairs"}) {
    const Scenario scenario = pipette(
        4, {{"/nodes", "4"}, {"/training/global_batch", "48"}, {"/parallel/pipeline_send", send}});
    CHECK(PlacementObjective(scenario).value() / 1_s ==
          doctest::Approx(simulated(scenario)).epsilon(1e-9));
  }
}

TEST_CASE("where no two messages meet the estimate of compressed traffic is the simulated time") {
  const char* const powersgd = R"({"codec": "powersgd", "rank": 16})";
  for (const char* send : {"eager", "blocking_pairs"}) {
    const Scenario scenario = pipette(4, {{"/nodes", "4"},
                                          {"/training/global_batch", "48"},
                                          {"/parallel/pipeline_send", send},
                                          {"/compression/pipeline_forward/codec", "int8"},
                                          {"/compression/pipeline_backward", powersgd}});
    CHECK(PlacementObjective(scenario).value() / 1_s ==
          doctest::Approx(simulated(scenario)).epsilon(1e-9));
  }
  // Replicas on two nodes of one stage: nothing meets their rings.
  for (const char* codec : {R"({"codec": "int8"})", powersgd}) {
    const Scenario scenario = pipette(1, {{"/nodes", "2"},
                                          {"/training/global_batch", "16"},
                                          {"/model/layers", "8"},
                                          {"/parallel/zero_stage", "1"},
                                          {"/compression/zero_gather/codec", "int8"},
                                          {"/compression/data_gradients", codec}});
    CHECK(PlacementObjective(scenario).value() / 1_s ==
          doctest::Approx(simulated(scenario)).epsilon(1e-9));
  }
}

TEST_CASE("a schedule of many rounds is estimated as long as it is simulated") {
  // 1024 microbatches on 4 stages are more passes than are simulated in full.
  const Scenario scenario =
      pipette(4, {{"/nodes", "4"}, {"/training/global_batch", "4096"}, {"/model/layers", "8"}});
  CHECK(PlacementObjective(scenario).value() / 1_s ==
        doctest::Approx(simulated(scenario)).epsilon(1e-9));
}

TEST_CASE("with pipelines and rings side by side the estimate is near the simulated time") {
  for (const int pipeline : {2, 4, 8}) {
    const Scenario scenario = pipette(pipeline);
    CHECK(PlacementObjective(scenario).value() / 1_s ==
          doctest::Approx(simulated(scenario)).epsilon(0.01));
  }
}

TEST_CASE("a stage on slower GPUs takes as long as they do, and the estimate follows") {
  // Three nodes of V100 and one of T4, a stage a node, two pipelines: unit 4 r + s is replica r of stage s. Megatron's
  // order has the last stage, with the head, on the T4; with first and last stage exchanged the first is there.
  const Scenario scenario = all_sorts().back().second;
  const PlacementObjective before(scenario);
  PlacementObjective after(scenario);
  after.move({{0, 3}, {3, 0}, {4, 7}, {7, 4}});
  const PlacementTerm first{PlacementTerm::Kind::passes, 0, 0},
      last{PlacementTerm::Kind::passes, 3, 0};
  CHECK(after.time_of(first) > before.time_of(first));
  CHECK(after.time_of(last) < before.time_of(last));
  CHECK(after.value_with(last, before) > after.value());
}

TEST_CASE("what makes a placement better is named with its link") {
  // Four equal nodes as one pipeline, the path from node 1 to node 2 slow: 2 GB/s. In the order 1 0 2 3 nobody takes it.
  Scenario scenario = with_slow_nodes(pipette(4, {{"/nodes", "4"}}), {});
  scenario.platform.link_overrides.push_back({NodeId{1}, NodeId{2}, 2_GBps});
  const PlacementObjective before(scenario);
  PlacementObjective after(scenario);
  after.place({1, 0, 2, 3});
  CHECK(after.value() < before.value());
  CHECK(why_better(before, after) ==
        "stage 1→2 leaves the 2.0 GB/s link node1->node2; its slowest is now 74.0 GB/s");
  // Two pipelines of two nodes: stage 0 on nodes 0 and 1, stage 1 on 2 and 3, rings 0->1->0 and 2->3->2.
  Scenario rings = with_slow_nodes(pipette(2, {{"/nodes", "4"}}), {});
  rings.platform.link_overrides.push_back({NodeId{0}, NodeId{1}, 2_GBps});
  const PlacementObjective ring_before(rings);
  PlacementObjective ring_after(rings);
  // Units: replica 0 stage 0, replica 0 stage 1, replica 1 stage 0, replica 1 stage 1; slots likewise, on nodes 0 2 1 3.
  ring_after.place({0, 2, 1, 3});
  CHECK(why_better(ring_before, ring_after) ==
        "the gradient ring of stage 0 leaves the 2.0 GB/s link node0->node1; its slowest is now "
        "74.0 GB/s");
}

bool compresses(const CompressedTraffic& traffic) {
  return traffic.activations != CodecParts::none || traffic.gradients != CodecParts::none;
}

/// A pipeline whose stages and messages all take their own time.
struct Pipeline {
  PipelineShape shape;
  SchedulePtr schedule = schedule_named("1f1b");
  DurationLayout layout;
  std::vector<StageProgram> programs;
  std::vector<Seconds> durations;

  Pipeline(const SchedulePtr& order, const PipelineShape& of) : shape(of), schedule(order) {
    shape.chunk_path = schedule->chunk_path;
    for (int s = 0; s < shape.stages; ++s) {
      const OrderShape asked{shape.stages, shape.microbatches, shape.chunks};
      programs.push_back(
          make_pipeline_program(shape, schedule->order(asked, StageId{s}), StageId{s}));
    }
    layout.chunks = shape.chunks;
    layout.rows = num_work_rows(shape.chunks, compresses(shape.compressed));
    layout.messages = num_message_rows;
    layout.collectives = num_collective_slots(shape.chunks);
    durations.resize(layout.size(programs.size()));
  }

  void set_work(std::size_t stage, int chunk, ChunkRow row, Seconds time) {
    durations[layout.work(stage, row_of(row, chunk))] = time;
  }
  void set_codec(std::size_t stage, DeviceRow row, Seconds time) {
    durations[layout.work(stage, row_of(row, shape.chunks))] = time;
  }
  void set_message(std::size_t stage, std::size_t channel, Seconds time) {
    for (std::uint32_t row = 0; row < layout.messages; ++row)
      durations[layout.message(stage, static_cast<std::uint32_t>(channel), row)] = time;
  }
  std::vector<Seconds> ends() const { return PipelinePath(programs, layout).ends(durations); }

  /// The same as simulated by the engine, messages inside a node: latency alone.
  Seconds end() const {
    ProgramSet set;
    set.programs = programs;
    set.message_bytes.assign(num_message_rows, 0_B);
    for (std::size_t s = 0; s < programs.size(); ++s) {
      ProgramDevice device;
      device.program = static_cast<std::uint32_t>(s);
      device.work_base = static_cast<std::uint32_t>(set.work.size());
      for (std::uint32_t row = 0; row < layout.rows; ++row) {
        Work work;
        work.duration = work.parts[0] = durations[layout.work(s, row)];
        set.work.push_back(work);
      }
      for (std::size_t c = 0; c < programs[s].targets.size(); ++c) {
        Channel channel;
        channel.from = DeviceId{s};
        channel.to = DeviceId{programs[s].targets[c].index()};
        channel.bandwidth = 1_GBps;
        channel.latency = durations[layout.message(s, static_cast<std::uint32_t>(c), 0)];
        device.channels.emplace_back(set.channels.size());
        set.channels.push_back(channel);
      }
      device.collectives.resize(layout.collectives);
      set.devices.push_back(device);
    }
    const auto engine = make_heap_engine(Network{});
    return simulate_programs(set, *engine).end;
  }
};

PipelineShape shape_of(int stages, int microbatches, PipelineSend send, int chunks = 1) {
  PipelineShape shape;
  shape.stages = stages;
  shape.microbatches = microbatches;
  shape.send = send;
  shape.chunks = chunks;
  return shape;
}

/// 1F1B on equal stages: F = 1 s, every message `hop`.
Seconds uniform_end(const PipelineShape& shape, Seconds backward, Seconds hop) {
  Pipeline pipeline(schedule_named("1f1b"), shape);
  for (std::size_t s = 0; s < pipeline.programs.size(); ++s) {
    pipeline.set_work(s, 0, ChunkRow::forward, 1_s);
    pipeline.set_work(s, 0, ChunkRow::backward, backward);
    for (std::size_t c = 0; c < pipeline.programs[s].targets.size(); ++c)
      pipeline.set_message(s, c, hop);
  }
  return pipeline.ends().front();
}

constexpr double exact = 1e-12;  // sums of up to 10^4 terms

TEST_CASE("equal stages with eager sends take (m+p-1)(F+B) + c (2(p-1)m/p + 2(p-2))") {
  for (const int p : {2, 3, 4, 8}) {
    for (const int m : {p, 2 * p, 8 * p}) {
      for (const double backward : {1.0, 2.0, 3.0}) {
        const double c = 0.01, closed = (m + p - 1) * (1 + backward) +
                                        c * (2.0 * (p - 1) * m / p + 2 * (p - 2));
        CHECK(uniform_end(shape_of(p, m, PipelineSend::eager), 1_s * backward, 1_s * c) / 1_s ==
              doctest::Approx(closed).epsilon(exact));
      }
    }
  }
}

TEST_CASE("equal stages with blocking pairs take (m+p-1)(F+B) + c (2m+2p-5)") {
  for (const int p : {2, 3, 4, 8}) {
    for (const int m : {p, 2 * p, 8 * p}) {
      for (const double backward : {1.0, 2.0, 3.0}) {
        const double c = 0.01, hops = p > 2 ? 2 * m + 2 * p - 5 : m + 1;
        CHECK(uniform_end(shape_of(p, m, PipelineSend::blocking_pairs), 1_s * backward, 1_s * c) /
                  1_s ==
              doctest::Approx((m + p - 1) * (1 + backward) + c * hops).epsilon(exact));
      }
    }
  }
}

TEST_CASE("a stage other than the first is done as much earlier as its gradients still travel") {
  // Eager sends: stage s is done s (B + c) before stage 0.
  Pipeline pipeline(schedule_named("1f1b"), shape_of(4, 8, PipelineSend::eager));
  for (std::size_t s = 0; s < 4; ++s) {
    pipeline.set_work(s, 0, ChunkRow::forward, 1_s);
    pipeline.set_work(s, 0, ChunkRow::backward, 2_s);
    for (std::size_t c = 0; c < pipeline.programs[s].targets.size(); ++c)
      pipeline.set_message(s, c, 0.1_s);
  }
  const std::vector<Seconds> ends = pipeline.ends();
  for (std::size_t s = 1; s < 4; ++s)
    CHECK((ends[0] - ends[s]) / 1_s == doctest::Approx(2.1 * static_cast<double>(s)));
}

/// Messages in one or two parts, encoded between the passes or during them.
CompressedTraffic drawn_traffic(std::mt19937& random) {
  constexpr CodecParts parts[] = {CodecParts::none, CodecParts::one, CodecParts::two};
  constexpr CodecStream streams[] = {CodecStream::compute, CodecStream::codec};
  CompressedTraffic traffic;
  traffic.activations = parts[random() % 3];
  traffic.gradients = parts[random() % 3];
  traffic.activation_encoder = streams[random() % 2];
  traffic.gradient_encoder = streams[random() % 2];
  return traffic;
}

/// True if activations and gradients leave from different streams.
bool leaves_from_two_streams(const CompressedTraffic& traffic) {
  const auto stream = [](CodecParts parts, CodecStream encoder) {
    return parts == CodecParts::none ? CodecStream::compute : encoder;
  };
  return stream(traffic.activations, traffic.activation_encoder) !=
         stream(traffic.gradients, traffic.gradient_encoder);
}

TEST_CASE("any pipeline of unequal stages, hops and codecs ends when the engine says") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> time(0.1, 1.0);
  for (const SchedulePtr& schedule : named_schedules()) {
    for (const PipelineSend send : {PipelineSend::eager, PipelineSend::blocking_pairs}) {
      if (send == PipelineSend::blocking_pairs && schedule->sends == ScheduleSends::only_eager)
        continue;
      for (int trial = 0; trial < 20; ++trial) {
        const int p = 2 + static_cast<int>(random() % 4);
        const int v = schedule->takes(2) ? 2 : 1;
        const int m =
            std::max(p * (1 + static_cast<int>(random() % 3)), schedule->fewest_microbatches(p, v));
        if (!schedule->misfit({p, m, v}).empty()) continue;
        PipelineShape shape = shape_of(p, m, send, v);
        if (trial % 2 == 1) shape.compressed = drawn_traffic(random);
        // The limit that PipelinePath states.
        const bool is_v = schedule->chunk_path != ChunkPath::loop;
        if (is_v && leaves_from_two_streams(shape.compressed)) continue;
        Pipeline pipeline(schedule, shape);
        for (std::size_t s = 0; s < pipeline.programs.size(); ++s) {
          for (int chunk = 0; chunk < v; ++chunk)
            for (int row = 0; row < num_chunk_rows; ++row)
              pipeline.set_work(s, chunk, static_cast<ChunkRow>(row), 1_s * time(random));
          if (compresses(shape.compressed))
            for (const DeviceRow row : {DeviceRow::encode_activation, DeviceRow::decode_activation,
                                        DeviceRow::encode_gradient, DeviceRow::decode_gradient})
              pipeline.set_codec(s, row, 1_s * time(random));
          for (std::size_t c = 0; c < pipeline.programs[s].targets.size(); ++c)
            pipeline.set_message(s, c, 1_s * time(random));
        }
        CAPTURE(schedule->name);
        CAPTURE(p);
        CAPTURE(m);
        const std::vector<Seconds> ends = pipeline.ends();
        CHECK(*std::max_element(ends.begin(), ends.end()) / 1_s ==
              doctest::Approx(pipeline.end() / 1_s).epsilon(exact));
      }
    }
  }
}

}  // namespace
}  // namespace windtunnel
