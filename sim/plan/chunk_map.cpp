#include "plan/chunk_map.hpp"

#include <algorithm>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

void add_other(const std::optional<ChunkPlace>& neighbour, StageId stage,
               std::vector<StageId>& stages) {
  if (!neighbour || neighbour->stage == stage) return;
  if (std::ranges::find(stages, neighbour->stage) == stages.end())
    stages.push_back(neighbour->stage);
}

}  // namespace

const std::vector<std::pair<std::string, ChunkPath>>& chunk_paths_by_name() {
  static const std::vector<std::pair<std::string, ChunkPath>> names{{"loop", ChunkPath::loop},
                                                                    {"v", ChunkPath::v}};
  return names;
}

ChunkMap::ChunkMap(int stages, int chunks, ChunkPath path)
    : stages_(stages), chunks_(chunks), path_(path) {
  WT_EXPECT(stages > 0 && chunks > 0);
}

int ChunkMap::position(const ChunkPlace& place) const {
  const int stage = static_cast<int>(place.stage.index());
  WT_EXPECT(stage < stages_ && place.chunk >= 0 && place.chunk < chunks_);
  const int passed = goes_up(place.chunk) ? stage : stages_ - 1 - stage;
  return is_bidirectional() ? passed : place.chunk * stages_ + passed;
}

ChunkPlace ChunkMap::at(int position) const {
  WT_EXPECT(position >= 0 && position < num_positions());
  const int chunk = position / stages_, passed = position % stages_;
  return {StageId{goes_up(chunk) ? passed : stages_ - 1 - passed}, chunk};
}

ChunkPlace ChunkMap::at(int position, int chunk) const {
  if (!is_bidirectional()) return at(position);
  return {StageId{goes_up(chunk) ? position : stages_ - 1 - position}, chunk};
}

bool ChunkMap::holds_first(StageId stage) const {
  return stage == first().stage || (is_bidirectional() && stage == last().stage);
}
bool ChunkMap::holds_last(StageId stage) const {
  return stage == last().stage || (is_bidirectional() && stage == first().stage);
}

std::vector<StageId> ChunkMap::holders(StageId stage) const {
  if (!is_bidirectional()) return {stage};
  const StageId mirrored{stages_ - 1 - static_cast<int>(stage.index())};
  return {std::min(stage, mirrored), std::max(stage, mirrored)};
}

std::optional<ChunkPlace> ChunkMap::next(const ChunkPlace& place) const {
  const int behind = position(place) + 1;
  return behind < num_positions() ? std::optional(at(behind, place.chunk)) : std::nullopt;
}

std::optional<ChunkPlace> ChunkMap::previous(const ChunkPlace& place) const {
  const int before = position(place) - 1;
  return before >= 0 ? std::optional(at(before, place.chunk)) : std::nullopt;
}

int ChunkMap::num_outputs(StageId stage) const {
  int outputs = 0;
  for (int chunk = 0; chunk < chunks_; ++chunk) {
    const std::optional<ChunkPlace> to = next({stage, chunk});
    if (to && to->stage != stage) ++outputs;
  }
  return outputs;
}

std::vector<StageId> ChunkMap::stages_behind(StageId stage) const {
  std::vector<StageId> stages;
  for (int chunk = 0; chunk < chunks_; ++chunk) add_other(next({stage, chunk}), stage, stages);
  return stages;
}

std::vector<StageId> ChunkMap::stages_before(StageId stage) const {
  std::vector<StageId> stages;
  for (int chunk = 0; chunk < chunks_; ++chunk) add_other(previous({stage, chunk}), stage, stages);
  return stages;
}

}  // namespace windtunnel
