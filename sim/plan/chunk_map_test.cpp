#include "plan/chunk_map.hpp"

#include <doctest/doctest.h>

namespace windtunnel {
namespace {

/// "0.0 1.0 0.1 1.1": stage and chunk at each position.
std::string text_of(const ChunkMap& map) {
  std::string text;
  for (int position = 0; position < map.num_positions(); ++position) {
    const ChunkPlace place = map.at(position);
    text += (position == 0 ? "" : " ") + std::to_string(place.stage.index()) + "." +
            std::to_string(place.chunk);
  }
  return text;
}

TEST_CASE("a loop goes round the stages, a V up and down") {
  CHECK(text_of({3, 1, ChunkPath::loop}) == "0.0 1.0 2.0");
  CHECK(text_of({3, 2, ChunkPath::loop}) == "0.0 1.0 2.0 0.1 1.1 2.1");
  CHECK(text_of({3, 2, ChunkPath::v}) == "0.0 1.0 2.0 2.1 1.1 0.1");
  CHECK(text_of({2, 3, ChunkPath::v}) == "0.0 1.0 1.1 0.1 0.2 1.2");
}

TEST_CASE("position and place are each other's inverse, and neighbours are one position apart") {
  for (const ChunkPath path : {ChunkPath::loop, ChunkPath::v}) {
    for (const int stages : {1, 2, 3, 4}) {
      for (const int chunks : {1, 2, 3}) {
        const ChunkMap map(stages, chunks, path);
        for (int position = 0; position < map.num_positions(); ++position) {
          const ChunkPlace place = map.at(position);
          CHECK(map.position(place) == position);
          const auto next = map.next(place), previous = map.previous(place);
          CHECK(next.has_value() == (position + 1 < map.num_positions()));
          CHECK(previous.has_value() == (position > 0));
          if (next) CHECK(map.position(*next) == position + 1);
          if (previous) CHECK(map.position(*previous) == position - 1);
        }
      }
    }
  }
}

TEST_CASE("the ends of a V are on the first stage, those of a loop on the first and the last") {
  CHECK(ChunkMap(4, 2, ChunkPath::v).first() == ChunkPlace{StageId{0}, 0});
  CHECK(ChunkMap(4, 2, ChunkPath::v).last() == ChunkPlace{StageId{0}, 1});
  CHECK(ChunkMap(4, 2, ChunkPath::loop).last() == ChunkPlace{StageId{3}, 1});
}

using Stages = std::vector<StageId>;

TEST_CASE("a stage in the middle of a V has both neighbours on either side, the turn has one") {
  const ChunkMap map(3, 2, ChunkPath::v);
  CHECK(map.stages_behind(StageId{0}) == Stages{StageId{1}});
  CHECK(map.stages_before(StageId{0}) == Stages{StageId{1}});
  CHECK(map.stages_behind(StageId{1}) == Stages{StageId{2}, StageId{0}});
  CHECK(map.stages_before(StageId{1}) == Stages{StageId{0}, StageId{2}});
  CHECK(map.stages_behind(StageId{2}) == Stages{StageId{1}});
  // Chunk 0 of the last stage hands over to chunk 1 next to it; chunk 1 of the first ends the model.
  CHECK(map.num_outputs(StageId{0}) == 1);
  CHECK(map.num_outputs(StageId{1}) == 2);
  CHECK(map.num_outputs(StageId{2}) == 1);
}

TEST_CASE("every chunk of a loop but the model's last hands over to the next stage") {
  const ChunkMap map(3, 2, ChunkPath::loop);
  CHECK(map.stages_behind(StageId{2}) == Stages{StageId{0}});
  CHECK(map.stages_before(StageId{0}) == Stages{StageId{2}});
  CHECK(map.num_outputs(StageId{0}) == 2);
  CHECK(map.num_outputs(StageId{2}) == 1);
  CHECK(ChunkMap(1, 1, ChunkPath::loop).num_outputs(StageId{0}) == 0);
}

}  // namespace
}  // namespace windtunnel
