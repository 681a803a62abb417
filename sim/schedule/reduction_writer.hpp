#pragma once

#include <vector>

#include "schedule/op_writer.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel::detail {

/// Writes how the replicas of a stage reduce their gradients: at the end, in buckets beside the backward pass that completes them, or on every
/// microbatch.
class ReductionWriter {
 public:
  ReductionWriter(const PipelineShape& shape, const std::vector<Step>& order, bool splits_backward);

  /// Whether gradients of the step's chunk are reduced in this pass.
  bool reduces(const Step& step) const;
  /// Whether they are reduced beside it, in buckets.
  bool overlaps() const;

  /// A pass in pieces, each followed by its bucket's reduction on the data stream.
  void pass_in_pieces(const Step& step, OpWriter& writer) const;
  /// The reduction of a chunk's gradients on this stream.
  void reduce_chunk(Stream stream, const Step& step, OpWriter& writer) const;
  void wait_for_buckets(OpWriter& writer) const;
  /// Behind the last pass: the whole reduction, or what is left of it.
  void at_end(OpWriter& writer) const;
  /// And that of experts' gradients, where passes do not reduce them.
  void experts_at_end(OpWriter& writer) const;
  /// Behind a step that has updated shards; of experts or of all else.
  void gather_parameters(OpWriter& writer, Label label) const;

 private:
  /// Where a reduction at the end has its places.
  struct WholeReduction {
    CodecRow encode, encode_second, decode;
    CollectiveSlot slot, second_slot;
  };
  void reduce_all(CodecParts parts, const WholeReduction& whole, OpWriter& writer) const;

  const PipelineShape* shape_;
  bool splits_backward_;
  std::vector<Step> last_pass_;  ///< by chunk: where its gradients are complete
};

}  // namespace windtunnel::detail
