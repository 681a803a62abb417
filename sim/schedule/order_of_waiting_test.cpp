#include "schedule/order_of_waiting.hpp"

#include <doctest/doctest.h>

#include <string>

namespace windtunnel {
namespace {

Op op(OpKind kind, std::uint32_t slot = 0) { return {.kind = kind, .slot = slot}; }

/// A stage that sends to `targets` and receives up to four messages.
StageProgram program(std::vector<Op> compute, const std::vector<std::size_t>& targets = {},
                     std::vector<Op> codec = {}) {
  StageProgram result;
  result.streams[static_cast<std::size_t>(Stream::compute)] = std::move(compute);
  result.streams[static_cast<std::size_t>(Stream::codec)] = std::move(codec);
  for (const std::size_t target : targets) result.targets.emplace_back(target);
  result.num_slots = result.num_events = 4;
  result.num_collectives = 1;
  return result;
}

/// "compute 0 after 0 0; both after 1 2": the visits in order.
std::string visits(const ProgramSet& set, const MessageOrder& messages = {}) {
  std::string text;
  const auto name = [](const WaitStep& step) -> std::string {
    if (step.op->kind == OpKind::wait) return "both";
    const std::string on = " " + std::to_string(step.device.index());
    if (step.op->kind == OpKind::compute) return "compute" + on;
    if (step.op->kind == OpKind::collective) return "collective" + on;
    return (step.op->kind == OpKind::send ? "message " : "event ") + std::to_string(step.op->slot);
  };
  const auto stuck = for_each_wait(
      set,
      [&](const WaitStep& step) {
        text += (text.empty() ? "" : "; ") + name(step) + " after " + std::to_string(step.a) + " " +
                std::to_string(step.b);
      },
      messages);
  CHECK(stuck.empty());
  return text;
}

TEST_CASE("an op waits for what its stream did, a receive also for its message") {
  CHECK(visits(one_pipeline({program({op(OpKind::compute), op(OpKind::send, 3)}, {1}),
                             program({op(OpKind::receive, 3), op(OpKind::compute)})})) ==
        "compute 0 after 0 0; message 3 after 1 0; compute 1 after 0 2");
}

TEST_CASE("a message waits for the one before it in its channel, its sender does not") {
  CHECK(visits(one_pipeline(
            {program({op(OpKind::send, 0), op(OpKind::compute), op(OpKind::send, 1)}, {1}),
             program({op(OpKind::receive, 1)})})) ==
        "message 0 after 0 0; compute 0 after 0 0; message 1 after 2 1");
}

TEST_CASE("in an exchange a message waits for both ends, and the exchange for all its messages") {
  // Both compute first, so that they post at steps 1 and 2.
  CHECK(visits(one_pipeline(
            {program({op(OpKind::compute), op(OpKind::exchange, 2), op(OpKind::send, 0),
                      op(OpKind::receive, 0), op(OpKind::compute)},
                     {1}),
             program({op(OpKind::compute), op(OpKind::exchange, 2), op(OpKind::receive, 0),
                      op(OpKind::send, 0)},
                     {0})})) ==
        "compute 0 after 0 0; compute 1 after 0 0; both after 1 2; message 0 after 3 0; both after "
        "2 1; message 0 after 5 0; both after 2 4; both after 1 4; compute 0 after 8 6");
}

TEST_CASE("a wait is for an event of another stream, a collective for all its members") {
  ProgramSet set = one_pipeline({program({op(OpKind::wait, 2), op(OpKind::collective)}, {},
                                         {op(OpKind::compute), op(OpKind::record, 2)}),
                                 program({op(OpKind::collective), op(OpKind::compute)})});
  set.collectives.resize(1);
  set.collectives[0].members = {DeviceId{0}, DeviceId{1}};
  set.devices[0].collectives = set.devices[1].collectives = {CollectiveId{0}};
  CHECK(visits(set) ==
        "compute 0 after 0 0; event 2 after 1 1; both after 0 2; collective 1 after 0 3; compute 1 "
        "after 4 4");
}

TEST_CASE("messages of two streams go in the order that is given") {
  const ProgramSet set = one_pipeline({program({op(OpKind::send, 0)}, {1}, {op(OpKind::send, 1)}),
                                       program({op(OpKind::receive, 0)})});
  CHECK(visits(set) == "message 0 after 0 0; message 1 after 0 1");
  CHECK(visits(set, {{1, 0}}) == "message 1 after 0 0; message 0 after 0 1");
}

TEST_CASE("streams that never end say what they wait for, and who would give it") {
  // 0 waits for 1, which waits for 2, which waits for 1; 3 waits for nobody.
  const ProgramSet set = one_pipeline(
      {program({op(OpKind::receive)}, {}),
       program({op(OpKind::compute), op(OpKind::receive), op(OpKind::send), op(OpKind::send)},
               {0, 2}),
       program({op(OpKind::receive), op(OpKind::send)}, {1}), program({op(OpKind::wait, 1)})});
  ProgramSet mutable_set = set;
  mutable_set.programs[1].streams[0].back().peer = 1;
  const std::vector<StuckStream> stuck = for_each_wait(mutable_set, [](const WaitStep&) {});
  REQUIRE(stuck.size() == 4);
  CHECK(stuck[0].provider->device == DeviceId{1});
  CHECK(stuck[2].provider->op == &mutable_set.programs[1].streams[0][3]);
  CHECK(!stuck[3].provider);
  const std::vector<WaitCycle> cycles = cyclic_waits(stuck);
  REQUIRE(cycles.size() == 1);
  REQUIRE(cycles[0].size() == 2);
  CHECK(cycle_text(cycles[0], [](DeviceId device, const Op* at) {
          return std::to_string(device.index()) + (at->kind == OpKind::send ? "s" : "r");
        }) == "1r waits for 2s, which comes after 2r, which waits for 1s, which comes after 1r");
}

}  // namespace
}  // namespace windtunnel
