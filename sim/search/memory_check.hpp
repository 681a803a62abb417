#pragma once

#include "scenario/scenario.hpp"

namespace windtunnel {

/// Whether a plan may be recommended: what its fullest stage needs beside what its GPU has.
struct MemoryCheck {
  bool fits = false;
  StageMemory worst;    ///< the stage with the least room, or that misses by the most
  Bytes with_margin{};  ///< what it needs, margin included
  MemoryVerdict verdict = MemoryVerdict::fits;  ///< of all stages, without the margin
  Bytes max_total{};                            ///< what nvidia-smi would show on the fullest GPU
};

/// The memory account of the plan (docs/memory.md), in flight as the schedule's closed form has it:
///   fits  =  required * (1 + share) + amount <= usable   on every stage
MemoryCheck check_memory(const Scenario& base, const Plan& plan, const MemoryMargin& margin);

/// "stage 0 needs 83.1 GiB and a margin of 4.2 GiB, the GPU has 79.2 GiB".
std::string text_of(const MemoryCheck& check);

}  // namespace windtunnel
