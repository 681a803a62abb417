#include "plan/chunk_map.hpp"

#include <algorithm>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

void add_other(const std::optional<ChunkPlace>& neighbour, StageId stage,
               std::vector<StageId>& stages) {
  if (!neighbour || neighbour->stage == stage) return;
  if (std::find(stages.begin(), stages.end(), neighbour->stage) == stages.end())
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
  return place.chunk * stages_ + (goes_up(place.chunk) ? stage : stages_ - 1 - stage);
}

ChunkPlace ChunkMap::at(int position) const {
  WT_EXPECT(position >= 0 && position < num_positions());
  const int chunk = position / stages_, passed = position % stages_;
  return {StageId{goes_up(chunk) ? passed : stages_ - 1 - passed}, chunk};
}

std::optional<ChunkPlace> ChunkMap::next(const ChunkPlace& place) const {
  const int behind = position(place) + 1;
  return behind < num_positions() ? std::optional(at(behind)) : std::nullopt;
}

std::optional<ChunkPlace> ChunkMap::previous(const ChunkPlace& place) const {
  const int before = position(place) - 1;
  return before >= 0 ? std::optional(at(before)) : std::nullopt;
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
