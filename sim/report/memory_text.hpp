#pragma once

#include <string>
#include <vector>

#include "report/report.hpp"
#include "report/summary_text.hpp"

namespace windtunnel {

/// A tensor as it is printed: "saved by attention", "36 × 64.0 MiB", "2.25", "8.6 %".
struct TensorRow {
  std::string name, parts, gib, share;
  MemoryLine line;
  bool operator==(const TensorRow&) const = default;
};

/// Neighbouring stages whose memory reads the same.
struct StagesAlike {
  const StageMemory* first;
  const StageMemory* last;
  std::vector<TensorRow> rows;  ///< at the peak, the largest first
};
std::vector<StagesAlike> stages_alike(const MemoryAccount& memory);
/// "Stages 2 to 6, backward pass of a layer": which, and when they allocate the most.
std::string name_of(const StagesAlike& stages);

/// What `run --memory` prints, at most 80 characters wide: the tensors that add up to what a GPU of each stage allocates at its peak, and what
/// it has on top of that. What a tensor consists of stands below it where the terminal is narrow.
///
///   gpt-39b-512xa100
///
///   Stage 0, backward pass of a layer                                    GiB   share
///     saved by attention                                48 × 128 MiB    6.00  31.1 %
///     optimizer states                             673,523,712 × 8 B    5.02  26.0 %
///     …
///     allocated                                                        19.27 100.0 %
///     reserved by the allocator                                        24.17
///     context                                                           3.24
///     in use                                         of 79.20 usable   27.41
///     ✓ fits
///
///   Stages 1 to 7, …
std::string memory_text(const Report& report, Colour colour = Colour::never);

}  // namespace windtunnel
