#pragma once

#include <map>
#include <tuple>

#include "scenario/scenario.hpp"
#include "schedule/in_flight.hpp"

namespace windtunnel {

/// Whether a plan may be recommended: what its fullest stage needs beside what its GPU has.
struct MemoryCheck {
  bool fits = false;
  StageMemory worst;    ///< the stage with the least room, or that misses by the most
  Bytes with_margin{};  ///< what it needs, margin included
  MemoryVerdict verdict = MemoryVerdict::fits;  ///< of all stages, without the margin
  Bytes max_total{};                            ///< what nvidia-smi would show on the fullest GPU
};

/// The memory account of the plan (docs/memory.md):
///   fits  =  required * (1 + share) + amount <= usable   on every stage
MemoryCheck check_memory(const Scenario& base, const Plan& plan, const MemoryMargin& margin);

/// The same, with what is in flight known.
MemoryCheck check_memory(const Scenario& base, const Plan& plan, const MemoryMargin& margin,
                         const InFlightOfStages& in_flight);

/// Microbatches in flight of plans with as many stages, counted once for those of one order of passes.
class InFlightTable {
 public:
  const InFlightOfStages& of(const Plan& plan);

 private:
  /// The schedule, stages, chunks, microbatches.
  std::map<std::tuple<const Schedule*, int, int, int>, InFlightOfStages> known_;
};

/// "stage 0 needs 83.1 GiB and a margin of 4.2 GiB, the GPU has 79.2 GiB".
std::string text_of(const MemoryCheck& check);

}  // namespace windtunnel
