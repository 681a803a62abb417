#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/id.hpp"

namespace windtunnel {

/// The path of the model through the stages when a device holds several chunks of it.
enum class ChunkPath : std::uint8_t {
  /// Round and round: chunk c of stage s of p is at position c p + s of the model (Narayanan et al. 2021, arXiv:2104.04473, 2.2.2).
  loop,
  /// Up the stages with chunk 0, down with chunk 1: the first stage holds both ends of the model (Qi et al. 2024, arXiv:2401.10241,
  /// section 6). With more than two chunks it goes on up and down.
  v,
  /// From both ends: each stage holds two of p parts of the model, chunk 0 part s and chunk 1 part p - 1 - s, so that each part is on
  /// two stages. Microbatches with an even number go up through chunks 0, those with an odd one down through chunks 1 (DeepSeek-V3,
  /// arXiv:2412.19437, section 3.2.1).
  bidirectional,
};
/// The names under which schedule files write them; none for bidirectional, which no file may ask for.
const std::vector<std::pair<std::string, ChunkPath>>& chunk_paths_by_name();

/// One model chunk of one stage.
struct ChunkPlace {
  StageId stage;
  int chunk = 0;
  bool operator==(const ChunkPlace&) const = default;
};

/// Maps the parts of the model to chunks of pipeline stages. Parts are counted from the embedding; a part's number is its position.
/// A chunk hands its activations to the one at the next position, and gradients to the one before. If both are on one stage,
/// nothing is sent. In a bidirectional schedule (DualPipe) two chunks have each position.
///
/// Interleaved, 2 stages of 2 chunks:  position 0 1 2 3  is  stage 0 1 0 1,  chunk 0 0 1 1.
/// Bidirectional, 2 stages:            position 0 1      is  stage 0 1 in chunk 0, and stage 1 0 in chunk 1.
class ChunkMap {
 public:
  ChunkMap(int stages, int chunks, ChunkPath path);

  int num_positions() const { return is_bidirectional() ? stages_ : stages_ * chunks_; }
  int position(const ChunkPlace& place) const;
  /// The chunk at a position; of two, the one that microbatch 0 goes through.
  ChunkPlace at(int position) const;

  ChunkPlace first() const { return at(0); }                   ///< with the embedding
  ChunkPlace last() const { return at(num_positions() - 1); }  ///< with the head
  bool is_first(const ChunkPlace& place) const { return position(place) == 0; }
  bool is_last(const ChunkPlace& place) const { return position(place) == num_positions() - 1; }
  bool holds_first(StageId stage) const;
  bool holds_last(StageId stage) const;
  std::optional<ChunkPlace> next(const ChunkPlace& place) const;
  std::optional<ChunkPlace> previous(const ChunkPlace& place) const;

  bool is_bidirectional() const { return path_ == ChunkPath::bidirectional; }
  /// Number of stages that hold each part of the model.
  int copies() const { return is_bidirectional() ? 2 : 1; }
  /// The stages that hold the parts that `stage` holds, in order: itself alone, but where the model is taken from both ends.
  std::vector<StageId> holders(StageId stage) const;
  /// True if a microbatch goes through a chunk.
  bool takes(int chunk, std::uint32_t microbatch) const {
    return !is_bidirectional() || static_cast<int>(microbatch % 2) == chunk;
  }

  /// True if the positions of this chunk number increase with the stage.
  bool goes_up(int chunk) const { return path_ == ChunkPath::loop || chunk % 2 == 0; }
  /// Number of chunks of a stage that hand their activations to another stage.
  int num_outputs(StageId stage) const;
  /// The other stages that get activations from this one, or gradients from it, each once.
  std::vector<StageId> stages_behind(StageId stage) const;
  std::vector<StageId> stages_before(StageId stage) const;

 private:
  /// The chunk at a position that activations of `chunk` reach.
  ChunkPlace at(int position, int chunk) const;

  int stages_, chunks_;
  ChunkPath path_;
};

}  // namespace windtunnel
