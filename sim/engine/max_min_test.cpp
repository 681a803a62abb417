#include "engine/max_min.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "engine/exact_sharing_fixtures.hpp"

namespace windtunnel::detail {
namespace {

using testing::fair_rates;
using testing::Sharing;

std::vector<Link> links_of(const std::vector<BytesPerSecond>& bandwidths) {
  std::vector<Link> links;
  for (const BytesPerSecond bandwidth : bandwidths) links.push_back({bandwidth, ""});
  return links;
}

TEST_CASE("a flow that leaves gives its share to those that it limited, and takes from theirs") {
  const std::vector<Link> links = links_of({10_GBps, 4_GBps});
  const std::vector<LinkId> wide{LinkId{0}}, both{LinkId{0}, LinkId{1}}, narrow{LinkId{1}};
  MaxMin shared(links, 2);
  shared.enter(0_s, {0, 0, 8_GB}, wide, {});
  shared.enter(0_s, {1, 1, 4_GB}, both, {});
  shared.enter(0_s, {2, 2, 2_GB}, {}, narrow);
  shared.settle(0_s);
  CHECK(shared.rate(0) == 8_GBps);  // what the narrow link leaves: 10 - 4/2
  CHECK(shared.rate(1) == 2_GBps);
  CHECK(shared.rate(2) == 2_GBps);
  CHECK(shared.next_end() ==
        1_s);  // 8 GB at 8 GB/s, and 2 GB at 2 GB/s: the first that was asked for
  CHECK(shared.next_flow() == 0);
  shared.leave(1_s, 2);
  shared.settle(1_s);
  CHECK(shared.rate(0) == 6_GBps);
  CHECK(shared.rate(1) == 4_GBps);
}

TEST_CASE("links whose level stays are not looked at") {
  // A chain of 1000 links, 1 GB/s, 2 GB/s and so on; a flow on each, and one on each with the next.
  std::vector<BytesPerSecond> bandwidths;
  for (int i = 1; i <= 1000; ++i) bandwidths.push_back(1_GBps * i);
  const std::vector<Link> links = links_of(bandwidths);
  MaxMin shared(links, 2);
  const auto on = [](std::size_t link) { return std::vector<LinkId>{LinkId{link}}; };
  std::uint32_t flow = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    shared.enter(0_s, {flow, flow, 1000_GB}, on(i), {});
    ++flow;
    if (i % 10 == 9) continue;  // ten links hang together
    shared.enter(0_s, {flow, flow, 1000_GB}, on(i), on(i + 1));
    ++flow;
  }
  shared.settle(0_s);
  const std::uint64_t before = shared.num_repairs();
  shared.enter(1_s, {flow, flow, 1_GB}, on(500), {});
  shared.settle(1_s);
  CHECK(shared.num_repairs() - before <= 30);
}

/// Flows that come and go on drawn links, in addition to what they are.
class DrawnSharing {
 public:
  DrawnSharing(unsigned seed, std::size_t patience)
      : random_(seed), links_(draw_links()), shared_(links_, 2 * most_links, patience) {}

  void step() {
    const Seconds now = 1_ms * ++steps_;
    for (int changes = draw(1, 3); changes > 0; --changes) {
      if (!on_.empty() && draw(0, 99) < 45) {
        leave(now);
      } else {
        enter(now);
      }
    }
    shared_.settle(now);
  }
  void check() const {
    Sharing sharing;
    for (const Link& link : links_) sharing.bandwidths.push_back(link.bandwidth.value());
    for (const auto& [flow, on] : on_) sharing.on.push_back(on);
    const auto rates = fair_rates(sharing);
    std::size_t i = 0;
    for (const auto& [flow, on] : on_)
      CHECK(shared_.rate(flow).value() ==
            doctest::Approx(static_cast<double>(rates[i++])).epsilon(1e-11));
  }

 private:
  static constexpr std::size_t most_links = 3;  // on each half of the path

  int draw(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }
  std::vector<Link> draw_links() {
    // Equal ones among them: links that are full at the same time.
    const bool uneven = draw(0, 1) == 0;
    std::vector<BytesPerSecond> bandwidths;
    for (int i = draw(1, 12); i > 0; --i)
      bandwidths.push_back(uneven ? 1_GBps * (draw(1, 9999) / 1e3) : 1_GBps * draw(1, 3));
    return links_of(bandwidths);
  }
  std::vector<LinkId> draw_path() {
    std::vector<LinkId> path;
    const int last = static_cast<int>(links_.size()) - 1;
    for (int i = draw(1, most_links); i > 0; --i) path.emplace_back(draw(0, last));
    return path;
  }
  void enter(Seconds now) {
    std::uint32_t flow = 0;
    while (on_.count(flow) == 1) ++flow;
    const std::vector<LinkId> up = draw_path(), down = draw_path();
    for (const auto& path : {up, down})
      for (const LinkId link : path) on_[flow].push_back(link.index());
    std::vector<std::size_t>& on = on_[flow];
    std::sort(on.begin(), on.end());
    on.erase(std::unique(on.begin(), on.end()), on.end());
    shared_.enter(now, {flow, number_++, 1000_GB}, up, down);
  }
  void leave(Seconds now) {
    const auto gone = std::next(on_.begin(), draw(0, static_cast<int>(on_.size()) - 1));
    shared_.leave(now, gone->first);
    on_.erase(gone);
  }

  std::mt19937 random_;
  std::vector<Link> links_;
  MaxMin shared_;
  std::map<std::uint32_t, std::vector<std::size_t>> on_;  ///< the links of each flow
  std::uint64_t number_ = 0;
  int steps_ = 0;
};

TEST_CASE("rates are those of progressive filling, whatever came and went before") {
  constexpr std::size_t never = 0,
                        ordinary = 50;  // how many repairs a flow before all is filled anew
  for (const std::size_t patience : {never, ordinary}) {
    for (unsigned seed = 1; seed <= 300; ++seed) {
      CAPTURE(seed);
      DrawnSharing drawn(seed, patience);
      for (int i = 0; i < 60; ++i) {
        drawn.step();
        drawn.check();
      }
    }
  }
}

}  // namespace
}  // namespace windtunnel::detail
