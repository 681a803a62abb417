#pragma once

#include <string>
#include <utility>
#include <vector>

#include "questions/node_kinds.hpp"
#include "questions/what_if.hpp"

namespace windtunnel {

/// What-ifs of one topic, in the order in which they are added.
class WhatIfList {
 public:
  void add(WhatIfKind kind, std::string what, Overrides overrides) {
    list_.push_back({kind, std::move(what), std::move(overrides)});
  }
  void add(WhatIf what_if) { list_.push_back(std::move(what_if)); }
  std::vector<WhatIf> take() { return std::move(list_); }

 private:
  std::vector<WhatIf> list_;
};

/// Faster GPUs, links inside nodes and NICs of each kind of node; the fabric; measured pairs of nodes and links with rates of their own.
std::vector<WhatIf> hardware_what_ifs(const Scenario& scenario, const NodeKinds& kinds);

/// Stragglers, nodes all of one kind, a stage's nodes faster, a layer on another stage.
std::vector<WhatIf> stage_what_ifs(const Scenario& scenario, const NodeKinds& kinds);

/// The software, where experts' tokens go, the microbatch, recomputation and attention, schedule and exchange habits.
std::vector<WhatIf> training_what_ifs(const Scenario& scenario);

/// Those about compression: each traffic class that there is without its codec, with each other that could be used, and at half the bytes for nothing.
std::vector<WhatIf> codec_what_ifs(const Scenario& scenario);

/// What a what-if sets a value to, so that reading it again gives the same number.
std::string exact(double number);
std::string exact(BytesPerSecond rate);
std::string exact(Seconds time);

}  // namespace windtunnel
