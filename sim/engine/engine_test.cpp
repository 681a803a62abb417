#include "engine/engine.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "core/contracts.hpp"
#include "engine/flow_fixtures.hpp"
#include "engine/testing.hpp"

namespace windtunnel {
namespace {

using testing::ends_of;
using testing::FlowSimulator;
using testing::in_child_process;
using testing::precision;
using testing::TimedFlow;

/// Engines in which flows share links.
constexpr std::array sharing_engines{make_simgrid_engine, make_native_engine};
constexpr std::array all_engines{make_simgrid_engine, make_native_engine, make_heap_engine};

/// All engines compute with doubles; SimGrid merges events closer than 1e-9 s.
void check_ends(const std::vector<double>& ends, const std::vector<double>& expected) {
  REQUIRE(ends.size() == expected.size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    CAPTURE(i);
    CHECK(ends[i] == doctest::Approx(expected[i]).epsilon(precision));
  }
}

/// On each engine in which flows share links.
void check_shared(const Network& network, const std::vector<TimedFlow>& flows,
                  const std::vector<double>& expected) {
  for (const MakeEngine kind : sharing_engines) {
    CAPTURE(kind == make_native_engine);
    check_ends(ends_of(kind, network, flows), expected);
  }
}

struct OneLink {
  Network network;
  PathId link, nothing;
};
OneLink one_link(BytesPerSecond bandwidth) {
  OneLink made;
  made.link = made.network.add_path({made.network.add_link(bandwidth, "link")});
  made.nothing = made.network.add_path({});
  return made;
}

TEST_CASE("5 us of latency and 1 GB over a 50 GB/s link take 20.005 ms on every engine") {
  const OneLink world = one_link(50_GBps);
  for (const MakeEngine kind : all_engines) {
    // 5 us + 1 GB / 50 GB/s = 0.000005 + 0.02 s
    check_ends(ends_of(kind, world.network, {{5_us, world.link, world.nothing, 1_GB}}), {0.020005});
  }
}

TEST_CASE("two flows on one link take twice as long, and on the heap they do not meet") {
  const OneLink world = one_link(10_GBps);
  const std::vector<TimedFlow> flows(2, {0_s, world.link, world.nothing, 10_GB});
  check_shared(world.network, flows, {2, 2});
  check_ends(ends_of(make_heap_engine, world.network, flows), {1, 1});
}

TEST_CASE("eight GPUs on one NIC each get an eighth, though each has a faster link of its own") {
  Network network;
  const LinkId nic = network.add_link(8_GBps, "nic");
  const PathId nothing = network.add_path({});
  std::vector<TimedFlow> flows;
  for (int gpu = 0; gpu < 8; ++gpu) {
    const LinkId cap = network.add_link(5_GBps, "gpu");
    flows.push_back({0_s, network.add_path({cap, nic}), nothing, 3_GB});
  }
  // 3 GB at 8 GB/s / 8 = 1 GB/s
  check_shared(network, flows, std::vector<double>(8, 3.0));
}

TEST_CASE("there and back differ when the links do, and do not disturb each other") {
  Network network;
  const auto path = [&](BytesPerSecond rate) {
    return network.add_path({network.add_link(rate, "")});
  };
  const PathId a_up = path(10_GBps), a_down = path(5_GBps), b_up = path(10_GBps),
               b_down = path(2_GBps);
  // 10 GB over 10 and 2 GB/s: 5 s. 10 GB over 10 and 5 GB/s: 2 s.
  const std::vector<TimedFlow> flows{{0_s, a_up, b_down, 10_GB}, {0_s, b_up, a_down, 10_GB}};
  check_shared(network, flows, {5, 2});
  check_ends(ends_of(make_heap_engine, network, flows), {5, 2});
}

TEST_CASE("what one flow cannot use on a shared link is left to the other") {
  Network network;
  const LinkId wide = network.add_link(10_GBps, "wide");
  const LinkId narrow = network.add_link(4_GBps, "narrow");
  const PathId on_wide = network.add_path({wide}), on_narrow = network.add_path({narrow});
  const PathId nothing = network.add_path({});
  // Max-min: the narrow link is filled first, 2 GB/s each for b and c; a gets the other 8 GB/s of the wide link.
  // At 1 s a (8 GB) and c (2 GB) end; b has 4 - 2 = 2 GB left and goes on at 4 GB/s for 0.5 s.
  const std::vector<TimedFlow> flows{{0_s, on_wide, nothing, 8_GB},
                                     {0_s, on_wide, on_narrow, 4_GB},
                                     {0_s, nothing, on_narrow, 2_GB}};
  check_shared(network, flows, {1, 1.5, 1});
}

TEST_CASE("a flow that comes later takes its half from then on, and gives it back") {
  const OneLink world = one_link(10_GBps);
  // First alone: 5 GB by 0.5 s. Then 5 GB/s each: the second's 2.5 GB end at 1.0 s, when the first has 2.5 GB left: 0.25 s.
  const std::vector<TimedFlow> flows{{0_s, world.link, world.nothing, 10_GB},
                                     {0.5_s, world.link, world.nothing, 2500_MB}};
  check_shared(world.network, flows, {1.25, 1.0});
}

TEST_CASE("a flow that begins when another ends on its link does not meet it") {
  const OneLink world = one_link(3_GBps);
  // 1/3 s each; 1/3 + 1/3 + 1/3 is rounded, so begin and end differ in their last bits
  std::vector<TimedFlow> flows;
  std::vector<double> expected;
  for (int i = 0; i < 30; ++i) {
    flows.push_back({1_s * (i / 3.0), world.link, world.nothing, 1_GB});
    expected.push_back((i + 1) / 3.0);
  }
  check_shared(world.network, flows, expected);
}

TEST_CASE("a link that is on both halves of the path counts once") {
  const OneLink world = one_link(10_GBps);
  const std::vector<TimedFlow> flows(2, {0_s, world.link, world.link, 10_GB});
  check_shared(world.network, flows, {2, 2});
}

TEST_CASE("a flow of nothing, or over no links, ends at once") {
  const OneLink world = one_link(10_GBps);
  const std::vector<TimedFlow> flows{{1_s, world.link, world.nothing, 0_GB},
                                     {2_s, world.nothing, world.nothing, 1_GB}};
  for (const MakeEngine kind : all_engines) {
    check_ends(ends_of(kind, world.network, flows), {1, 2});
  }
}

TEST_CASE("flows of more bytes than SimGrid can count are shared all the same") {
  const OneLink world = one_link(1000_GBps);
  // 40 TB at half of 1 TB/s: 80 s. SimGrid counts to 18 TB in our units.
  const std::vector<TimedFlow> flows(2, {0_s, world.link, world.nothing, 40000_GB});
  check_shared(world.network, flows, {80, 80});
}

TEST_CASE("flows that take years end as surely as those that take seconds") {
  // SimGrid's clock is a double, its precision 1 ns: behind 2^23 s (97 days) neighbouring clocks are further apart than that. Four
  // flows share 40 B/s until T, and something else happens at T/2.9. Both the step from there to T and the clock behind it are
  // rounded, and in seven of these forty the clock comes out behind T.
  const OneLink world = one_link(BytesPerSecond{40});
  for (int i = 1; i <= 40; ++i) {
    const double end = 1.6e9 * (1 + i / 77.0);
    std::vector<TimedFlow> flows(4, {0_s, world.link, world.nothing, Bytes{10 * end}});
    flows.push_back({1_s * (end / 2.9), world.nothing, world.nothing, 0_GB});
    check_shared(world.network, flows, {end, end, end, end, end / 2.9});
  }
}

TEST_CASE("a second SimGrid engine in a process is a contract violation") {
  const OneLink world = one_link(1_GBps);
  const auto answers = in_child_process([&]() -> std::vector<double> {
    make_simgrid_engine(world.network).reset();
    try {
      make_simgrid_engine(world.network);
    } catch (const ContractViolation&) {
      return {1};
    }
    return {};
  });
  CHECK(answers == std::vector<double>{1});
}

#ifndef WINDTUNNEL_SANITIZED  // seconds become a minute
TEST_CASE("SimGrid gives up where too many flows share a link, and the native engine does not") {
  const OneLink world = one_link(1_GBps);
  const std::vector<TimedFlow> flows(25'000, {0_s, world.link, world.nothing, 1_MB});
  CHECK(ends_of(make_native_engine, world.network, flows).back() ==
        doctest::Approx(25).epsilon(precision));
  const auto answer = in_child_process([&]() -> std::vector<double> {
    const auto engine = make_simgrid_engine(world.network);
    try {
      const FlowSimulator simulator(*engine, flows);
    } catch (const TooManySharedFlows&) {
      return {1};
    }
    return {};
  });
  CHECK(answer == std::vector<double>{1});
}
#endif

TEST_CASE("an engine is found by its name") {
  const OneLink world = one_link(1_GBps);
  for (const char* name : {"native", "heap", "simgrid"}) {
    const auto answer = in_child_process([&]() -> std::vector<double> {
      return {engine_named(name)(world.network)->name() == name ? 1.0 : 0.0};
    });
    CHECK(answer == std::vector<double>{1});
  }
  CHECK_THROWS_AS(engine_named("fast"), ContractViolation);
}

TEST_CASE("an engine counts what it was asked for") {
  const OneLink world = one_link(1_GBps);
  for (const MakeEngine kind : all_engines) {
    const auto counts = in_child_process([&]() -> std::vector<double> {
      const auto engine = kind(world.network);
      const std::vector<TimedFlow> flows(3, {0_s, world.link, world.nothing, 1_GB});
      const FlowSimulator simulator(*engine, flows);
      return {static_cast<double>(engine->num_activities()),
              static_cast<double>(engine->num_flows())};
    });
    CHECK(counts == std::vector<double>{6, 3});  // a timer and a flow for each
  }
}

class Thrower final : public EventHandler {
 public:
  void on_event(std::uint64_t) override {
    ++num_events;
    throw std::out_of_range("from the handler");
  }
  int num_events = 0;
};

TEST_CASE("what the handler throws comes out of run, and no further event is handled") {
  const OneLink world = one_link(1_GBps);
  for (const MakeEngine kind : all_engines) {
    const auto answer = in_child_process([&]() -> std::vector<double> {
      const auto engine = kind(world.network);
      Thrower thrower;
      for (const std::uint64_t token : {1U, 2U}) {
        engine->start_flow(world.link, world.nothing, 1_GB, token);
      }
      try {
        engine->run(thrower);
      } catch (const std::out_of_range&) {
        return {static_cast<double>(thrower.num_events)};
      }
      return {};
    });
    CHECK(answer == std::vector<double>{1});
  }
}

TEST_CASE("a process that has an engine exits in the ordinary way") {
  const OneLink world = one_link(1_GBps);
  std::cout.flush();  // or the child prints it again
  const pid_t child = fork();
  if (child == 0) {
    static const auto engine = make_simgrid_engine(world.network);
    const std::vector<TimedFlow> flows(2, {0_s, world.link, world.nothing, 1_GB});
    const FlowSimulator simulator(*engine, flows);
    std::exit(0);  // destroys the engine, then SimGrid's globals
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

/// Flows over a few shared links, drawn by rapidcheck.
struct FlowsOfNetwork {
  Network network;
  std::vector<TimedFlow> flows;
};

BytesPerSecond draw_bandwidth() { return 1_GBps * *rc::gen::inRange(1, 100); }
Bytes draw_bytes() { return 1_MB * *rc::gen::inRange(1, 5000); }
Seconds draw_time() { return 1_ms * *rc::gen::inRange(0, 500); }

TEST_CASE("where no link is shared all engines agree exactly") {
  CHECK(rc::check([] {
    FlowsOfNetwork drawn;
    const int num_flows = *rc::gen::inRange(1, 30);
    for (int i = 0; i < num_flows; ++i) {
      const LinkId up = drawn.network.add_link(draw_bandwidth(), "up");
      const LinkId down = drawn.network.add_link(draw_bandwidth(), "down");
      drawn.flows.push_back({draw_time(), drawn.network.add_path({up}),
                             drawn.network.add_path({down}), draw_bytes()});
    }
    const auto alone = ends_of(make_heap_engine, drawn.network, drawn.flows);
    for (const MakeEngine kind : sharing_engines)
      RC_ASSERT(ends_of(kind, drawn.network, drawn.flows) == alone);
  }));
}

TEST_CASE("a busy link carries its bandwidth, whoever shares it and whenever they come") {
  CHECK(rc::check([] {
    const BytesPerSecond bandwidth = draw_bandwidth();
    const OneLink world = one_link(bandwidth);
    const int num_flows = *rc::gen::inRange(1, 12);
    Bytes total{};
    std::vector<TimedFlow> flows;
    for (int i = 0; i < num_flows; ++i) {
      flows.push_back({0_s, world.link, world.nothing, draw_bytes()});
      total += flows.back().bytes;
    }
    // One comes when the link has been busy for half of its time: it is never idle before the last end.
    flows.push_back({0.5 * (total / bandwidth), world.link, world.nothing, draw_bytes()});
    total += flows.back().bytes;
    for (const MakeEngine kind : sharing_engines) {
      const auto ends = ends_of(kind, world.network, flows);
      const double last = *std::max_element(ends.begin(), ends.end());
      // SimGrid merges events within 1e-9 s, once for each end
      RC_ASSERT(std::abs(last - total / bandwidth / 1_s) < precision * (last + num_flows));
    }
  }));
}

TEST_CASE("a flow among others is never faster than alone") {
  CHECK(rc::check([] {
    FlowsOfNetwork drawn;
    std::vector<PathId> paths;
    const auto num_links = static_cast<std::size_t>(*rc::gen::inRange(2, 6));
    paths.reserve(num_links);
    for (std::size_t i = 0; i < num_links; ++i) {
      paths.push_back(drawn.network.add_path({drawn.network.add_link(draw_bandwidth(), "")}));
    }
    const int num_flows = *rc::gen::inRange(1, 30);
    for (int i = 0; i < num_flows; ++i) {
      const PathId up = *rc::gen::elementOf(paths);
      const PathId down = *rc::gen::elementOf(paths);
      drawn.flows.push_back({draw_time(), up, down, draw_bytes()});
    }
    const auto alone = ends_of(make_heap_engine, drawn.network, drawn.flows);
    for (const MakeEngine kind : sharing_engines) {
      const auto shared = ends_of(kind, drawn.network, drawn.flows);
      for (std::size_t i = 0; i < shared.size(); ++i)
        RC_ASSERT(shared[i] > alone[i] - precision * (1 + num_flows));
    }
  }));
}

}  // namespace
}  // namespace windtunnel
