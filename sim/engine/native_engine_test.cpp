// The native engine, SimGrid and the exact oracle on drawn flows: do they agree?
//
//   WINDTUNNEL_DRAWN_PROGRAMS=1000000 windtunnel_engine_test -tc="*agree on drawn flows"     runs more of them
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/exact_sharing_fixtures.hpp"
#include "engine/flow_fixtures.hpp"
#include "engine/testing.hpp"

namespace windtunnel {
namespace {

using testing::exact_ends;
using testing::FlowSimulator;
using testing::precision;
using testing::TimedFlow;

/// Flows that take seconds, on links that many of them share: alone, in bursts that begin together and are equal (as in collectives),
/// some of no bytes, some at times when others begin or end.
class FlowDrawer {
 public:
  /// The links are added to the network.
  FlowDrawer(unsigned seed, Network& network) : random_(seed), network_(network) {}

  std::vector<TimedFlow> draw() {
    constexpr int in_hundred_are_large = 1;
    const bool large = draw(1, 100) <= in_hundred_are_large;
    draw_network();
    for (int i = large ? 100 : draw(1, 12); i > 0; --i) {
      if (draw(0, 3) == 0) {
        draw_ring();
      } else {
        flows_.push_back({draw_time(), draw_path(), draw_path(), draw_bytes()});
      }
    }
    return std::move(flows_);
  }

 private:
  int draw(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }
  PathId draw_path() {
    return paths_[static_cast<std::size_t>(draw(0, static_cast<int>(paths_.size()) - 1))];
  }
  Bytes draw_bytes() {
    constexpr int in_ten_has_none = 1;
    if (draw(1, 10) <= in_ten_has_none) return 0_B;
    return even_ ? 1_GB * draw(1, 3) : 1_MB * draw(1, 20000);
  }
  Seconds draw_time() { return even_ ? 1_s * draw(0, 3) : 1_ms * draw(0, 8000); }

  void draw_network() {
    even_ = draw(0, 2) == 0;  // round numbers: much happens at the same time
    std::vector<LinkId> links;
    for (int i = draw(1, 10); i > 0; --i)
      links.push_back(
          network_.add_link(even_ ? 1_GBps * draw(1, 2) : 1_GBps * (draw(200, 9000) / 1e3), ""));
    paths_.push_back(network_.add_path({}));
    for (int i = draw(2, 12); i > 0; --i) {
      std::vector<LinkId> path;
      for (int length = draw(1, 3); length > 0; --length) {
        const LinkId link =
            links[static_cast<std::size_t>(draw(0, static_cast<int>(links.size()) - 1))];
        if (std::find(path.begin(), path.end(), link) == path.end()) path.push_back(link);
      }
      paths_.push_back(network_.add_path(path));
    }
  }
  void draw_ring() {
    const Seconds begin = draw_time();
    const Bytes bytes = draw_bytes();
    const PathId first = draw_path();
    PathId from = first;
    for (int i = draw(1, 4); i > 0; --i) {
      const PathId to = draw_path();
      flows_.push_back({begin, from, to, bytes});
      from = to;
    }
    flows_.push_back({begin, from, first, bytes});
  }

  std::mt19937 random_;
  Network& network_;
  std::vector<TimedFlow> flows_;
  std::vector<PathId> paths_;
  bool even_ = false;
};

/// A network of their own, and the flows on it.
struct DrawnFlows {
  explicit DrawnFlows(unsigned seed) : flows(FlowDrawer(seed, network).draw()) {}
  Network network;
  std::vector<TimedFlow> flows;
};

std::vector<double> native_ends(const DrawnFlows& drawn) {
  const auto engine = make_native_engine(drawn.network);
  return FlowSimulator(*engine, drawn.flows).ends();
}

/// Ends for seeds `first` to `last`, simulated side by side in one process: SimGrid takes longer to load than to simulate one of them.
std::vector<std::vector<double>> simgrid_ends(unsigned first, unsigned last) {
  Network network;
  std::vector<TimedFlow> flows;
  std::vector<std::size_t> ends_at;
  for (unsigned seed = first; seed <= last; ++seed) {
    const std::vector<TimedFlow> drawn = FlowDrawer(seed, network).draw();
    flows.insert(flows.end(), drawn.begin(), drawn.end());
    ends_at.push_back(flows.size());
  }
  const std::vector<double> ends = testing::ends_of(make_simgrid_engine, network, flows);
  std::vector<std::vector<double>> by_seed;
  std::size_t begin = 0;
  for (const std::size_t end : ends_at) {
    by_seed.emplace_back(ends.begin() + static_cast<std::ptrdiff_t>(begin),
                         ends.begin() + static_cast<std::ptrdiff_t>(end));
    begin = end;
  }
  return by_seed;
}

unsigned num_programs() {
  constexpr unsigned in_every_test_run = 2000;
  const char* const wanted = std::getenv("WINDTUNNEL_DRAWN_PROGRAMS");
  return wanted == nullptr ? in_every_test_run : static_cast<unsigned>(std::stoul(wanted));
}

TEST_CASE("the native engine and the exact oracle agree on drawn flows") {
  double largest = 0;
  for (unsigned seed = 1; seed <= num_programs(); ++seed) {
    const DrawnFlows drawn(seed);
    const double difference =
        testing::largest_difference(native_ends(drawn), exact_ends(drawn.network, drawn.flows));
    largest = std::max(largest, difference);
    CAPTURE(seed);
    REQUIRE(difference <= precision);
  }
  MESSAGE("the largest relative difference is ", largest);
}

/// SimGrid merges events within 1e-9 s, at each begin and end once: where that shows, the exact oracle decides.
bool agrees(const DrawnFlows& drawn, const std::vector<double>& simgrid) {
  const auto native = native_ends(drawn);
  if (testing::largest_difference(simgrid, native) <= precision) return true;
  const auto exact = exact_ends(drawn.network, drawn.flows);
  const double num_events = 2 * static_cast<double>(drawn.flows.size());
  REQUIRE(testing::largest_difference(native, exact) <= precision);
  REQUIRE(testing::largest_difference(simgrid, exact) <= precision * num_events);
  return false;
}

TEST_CASE("the native engine and SimGrid agree on drawn flows") {
  constexpr unsigned side_by_side = 50;
  unsigned num_decided = 0;
  for (unsigned first = 1; first <= num_programs(); first += side_by_side) {
    const unsigned last = std::min(num_programs(), first + side_by_side - 1);
    const auto simgrid = simgrid_ends(first, last);
    for (unsigned seed = first; seed <= last; ++seed) {
      CAPTURE(seed);
      if (!agrees(DrawnFlows(seed), simgrid[seed - first])) ++num_decided;
    }
  }
  MESSAGE("SimGrid was further off than 1e-9 in ", num_decided, " of ", num_programs());
  CHECK(num_decided <= num_programs() / 100);
}

TEST_CASE("native engines in several threads run as if each were alone") {
  constexpr unsigned num_threads = 4, num_drawn = 50;
  const auto run_all = [] {
    std::vector<std::vector<double>> ends;
    for (unsigned seed = 1; seed <= num_drawn; ++seed)
      ends.push_back(native_ends(DrawnFlows(seed)));
    return ends;
  };
  const auto alone = run_all();
  std::vector<std::vector<std::vector<double>>> of_thread(num_threads);
  std::vector<std::thread> threads;
  for (auto& ends : of_thread) threads.emplace_back([&] { ends = run_all(); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& ends : of_thread) CHECK(ends == alone);
}

}  // namespace
}  // namespace windtunnel
