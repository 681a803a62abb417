#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lower/program_builder.hpp"
#include "lower/token_draws.hpp"

namespace windtunnel {

/// The chunk that an operation of a pass or block is of, where the pass, or the forward pass of the block, is of `ahead`.
std::size_t chunk_of(const Operation& operation, std::size_t ahead);

/// Writes the rows of passes that meet other tokens in every microbatch (ProgramSet::drawn_rows), where tokens are not spread evenly.
class DrawnRowWriter {
 public:
  /// All must outlive it.
  DrawnRowWriter(const Plan& plan, bool plays_operations, const TokenDraws& draws, ProgramSet& set)
      : plays_operations_(plays_operations), plan_(plan), draws_(draws), set_(set) {}

  /// For a device whose work table begins at `work_base` and holds the mean draw.
  void write(const PlanDevice& device, const StageCost& cost, std::uint32_t work_base);

 private:
  using Fullness = TokenDraws::OfChunk;
  std::vector<Fullness> fullness_of(const PlanDevice& device) const;
  void write_passes(StageId stage, const StageCost& cost, const std::vector<Fullness>& fullness);
  void write_blocks(StageId stage, const StageCost& cost, const std::vector<Fullness>& fullness);
  void write_operations(const StageCost& cost, const std::vector<Fullness>& fullness);
  std::uint32_t microbatches() const { return static_cast<std::uint32_t>(plan_.microbatches); }
  /// Room for rows that stand for this one, one of each microbatch of so many layers; where they begin.
  std::uint32_t add_rows(std::uint16_t row, std::size_t layers);

  bool plays_operations_;
  const Plan& plan_;
  const TokenDraws& draws_;
  ProgramSet& set_;
  std::uint32_t work_base_ = 0;
  std::array<PlacedPass, 2> placed_blocks_;  ///< by the chunk of their forward pass
};

}  // namespace windtunnel
