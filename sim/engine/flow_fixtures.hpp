#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "engine/engine.hpp"
#include "engine/testing.hpp"

namespace windtunnel::testing {

/// A flow that begins at a time of its own.
struct TimedFlow {
  Seconds begin{};
  PathId up, down;
  Bytes bytes{};
};

/// Starts each flow at its time and notes when it ends. Token: 2 * flow when it begins, 2 * flow + 1 when it ends.
class FlowSimulator final : public EventHandler {
 public:
  FlowSimulator(Engine& engine, const std::vector<TimedFlow>& flows)
      : engine_(engine), flows_(flows), ends_(flows.size(), -1) {
    for (std::size_t i = 0; i < flows.size(); ++i) engine.after(flows[i].begin, 2 * i);
    engine.run(*this);
  }
  void on_event(std::uint64_t token) override {
    const TimedFlow& flow = flows_[token / 2];
    if (token % 2 == 0) {
      engine_.start_flow(flow.up, flow.down, flow.bytes, token + 1);
    } else {
      ends_[token / 2] = engine_.now() / 1_s;
    }
  }
  const std::vector<double>& ends() const { return ends_; }

 private:
  Engine& engine_;
  const std::vector<TimedFlow>& flows_;
  std::vector<double> ends_;
};

/// When each flow ends, in seconds.
inline std::vector<double> ends_of(MakeEngine kind, const Network& network,
                                   const std::vector<TimedFlow>& flows) {
  return in_child_process([&] {
    const auto engine = kind(network);
    return FlowSimulator(*engine, flows).ends();
  });
}

/// Relative, absolute below 1; 1 where their numbers differ.
inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i])));
  return largest;
}

}  // namespace windtunnel::testing
