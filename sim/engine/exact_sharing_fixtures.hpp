#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "engine/flow_fixtures.hpp"

/// The oracle of the engines in which flows share links: slow, and written as the textbook has it.
namespace windtunnel::testing {

/// 64 bits of precision on x86: 2048 times finer than a double.
using Exact = long double;

/// Flows that are under way at one time; a flow is a list of different links.
struct Sharing {
  std::vector<Exact> bandwidths;             ///< by link
  std::vector<std::vector<std::size_t>> on;  ///< the links of each flow, at least one
};

/// Max-min fair rates, by flow, by progressive filling: all rates grow together until a link is full, which stops the flows on it, and so
/// on (Bertsekas & Gallager, Data Networks, 2nd edition 1992, section 6.5.2).
inline std::vector<Exact> fair_rates(const Sharing& sharing) {
  std::vector<Exact> rates(sharing.on.size(), -1);  // negative: still grows
  for (std::size_t left = rates.size(); left > 0;) {
    std::vector<Exact> free = sharing.bandwidths;
    std::vector<std::size_t> growing(free.size());
    for (std::size_t flow = 0; flow < rates.size(); ++flow) {
      for (const std::size_t link : sharing.on[flow]) {
        if (rates[flow] < 0) ++growing[link];
        if (rates[flow] >= 0) free[link] -= rates[flow];
      }
    }
    std::size_t fullest = 0;
    Exact lowest = std::numeric_limits<Exact>::infinity();
    for (std::size_t link = 0; link < free.size(); ++link) {
      if (growing[link] == 0 || free[link] / static_cast<Exact>(growing[link]) >= lowest) continue;
      lowest = free[link] / static_cast<Exact>(growing[link]);
      fullest = link;
    }
    for (std::size_t flow = 0; flow < rates.size(); ++flow) {
      const auto& on = sharing.on[flow];
      if (rates[flow] >= 0 || std::find(on.begin(), on.end(), fullest) == on.end()) continue;
      rates[flow] = lowest;
      --left;
    }
  }
  return rates;
}

/// When each of the flows ends, in seconds. From one begin or end to the next, the rates are those above.
class ExactSimulator {
 public:
  ExactSimulator(const Network& network, const std::vector<TimedFlow>& flows) {
    for (const Link& link : network.links()) bandwidths_.push_back(link.bandwidth.value());
    for (const TimedFlow& flow : flows) {
      std::vector<std::size_t> on;
      for (const PathId path : {flow.up, flow.down})
        for (const LinkId link : network.path(path)) on.push_back(link.index());
      std::sort(on.begin(), on.end());
      on.erase(std::unique(on.begin(), on.end()), on.end());
      flows_.push_back({on, flow.begin / 1_s, flow.bytes / 1_B});
    }
    while (step()) continue;
  }
  std::vector<double> ends() const {
    std::vector<double> ends;
    for (const Flow& flow : flows_) ends.push_back(static_cast<double>(flow.end));
    return ends;
  }

 private:
  struct Flow {
    std::vector<std::size_t> on;
    Exact begin = 0, left = 0, end = 0;
    bool ended = false;
  };

  /// Goes on to the next begin or end.
  bool step() {
    Sharing sharing{bandwidths_, {}};
    std::vector<Flow*> active;
    Exact next = std::numeric_limits<Exact>::infinity();
    for (Flow& flow : flows_) {
      if (flow.ended) continue;
      if (flow.begin > now_) {
        next = std::min(next, flow.begin);
      } else if (flow.left <= 0 || flow.on.empty()) {
        flow.ended = true;
        flow.end = now_;
      } else {
        active.push_back(&flow);
        sharing.on.push_back(flow.on);
      }
    }
    const std::vector<Exact> rates = fair_rates(sharing);
    for (std::size_t i = 0; i < active.size(); ++i)
      next = std::min(next, now_ + active[i]->left / rates[i]);
    if (next == std::numeric_limits<Exact>::infinity()) return false;
    for (std::size_t i = 0; i < active.size(); ++i) {
      Flow& flow = *active[i];
      flow.ended = now_ + flow.left / rates[i] <= next;
      flow.end = next;
      flow.left -= rates[i] * (next - now_);
    }
    now_ = next;
    return true;
  }

  std::vector<Exact> bandwidths_;
  std::vector<Flow> flows_;
  Exact now_ = 0;
};

inline std::vector<double> exact_ends(const Network& network, const std::vector<TimedFlow>& flows) {
  return ExactSimulator(network, flows).ends();
}

}  // namespace windtunnel::testing
