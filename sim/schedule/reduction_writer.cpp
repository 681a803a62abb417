#include "schedule/reduction_writer.hpp"

namespace windtunnel::detail {
namespace {

/// A reduction with its codec: encoded and reduced, in two parts where the codec has them, then decoded.
template <typename Codec, typename Reduce>
void reduce_in_parts(CodecParts parts, const Codec& codec, const Reduce& reduce) {
  if (parts == CodecParts::none) return reduce(0);
  codec(Phase::encode, 0);
  reduce(0);
  if (parts == CodecParts::two) {
    codec(Phase::encode, 1);
    reduce(1);
  }
  codec(Phase::decode, 0);
}

}  // namespace

ReductionWriter::ReductionWriter(const PipelineShape& shape, const std::vector<Step>& order,
                                 bool splits_backward)
    : shape_(&shape),
      splits_backward_(splits_backward),
      last_pass_(static_cast<std::size_t>(shape.chunks)) {
  for (const Step& step : order)
    if (step.phase != Phase::forward) last_pass_[step.chunk] = step;
}

bool ReductionWriter::reduces(const Step& step) const {
  switch (shape_->gradient_reduction) {
    case GradientReduction::none:
      return false;
    case GradientReduction::per_iteration:
      return overlaps() && step == last_pass_[step.chunk];
    case GradientReduction::per_microbatch:
      return step.phase == (splits_backward_ ? Phase::weight_gradient : Phase::backward);
  }
  return false;
}

bool ReductionWriter::overlaps() const {
  return !shape_->reductions.empty() && !shape_->reductions.front().empty() &&
         shape_->reductions.front().front().overlap == Overlap::trailing;
}

void ReductionWriter::pass_in_pieces(const Step& step, OpWriter& writer) const {
  for (int piece = 0; piece < shape_->gradient_buckets; ++piece) {
    writer.work(step.phase, row_of(ChunkRow::last_piece, step.chunk), step);
    writer.order(Stream::compute, Stream::data, Traffic::data_gradients);
    reduce_chunk(Stream::data, step, writer);
  }
}

void ReductionWriter::reduce_chunk(Stream stream, const Step& step, OpWriter& writer) const {
  for (const Operation& reduction : shape_->reductions[step.chunk]) {
    const bool experts = group_of(reduction.label) == GroupKind::expert_data;
    const BucketRow encode = experts ? BucketRow::encode_experts : BucketRow::encode,
                    second = experts ? BucketRow::encode_experts_second : BucketRow::encode_second,
                    decode = experts ? BucketRow::decode_experts : BucketRow::decode;
    const auto codec = [&](Phase phase, int part) {
      const BucketRow row = phase == Phase::decode ? decode : part == 0 ? encode : second;
      writer.codec(stream, phase, row_of(row, step.chunk, shape_->chunks), Traffic::data_gradients,
                   step);
    };
    const ChunkCollective one = experts ? ChunkCollective::expert_bucket : ChunkCollective::bucket,
                          two = experts ? ChunkCollective::expert_bucket_second
                                        : ChunkCollective::bucket_second;
    const auto reduce = [&](int part) {
      writer.collective(stream, slot_of(part == 0 ? one : two, step.chunk), Phase::gradient_reduce,
                        Traffic::data_gradients, step);
    };
    const CompressedTraffic& compressed = shape_->compressed;
    reduce_in_parts(experts ? compressed.expert_gradients : compressed.reduced_gradients, codec,
                    reduce);
  }
}

void ReductionWriter::wait_for_buckets(OpWriter& writer) const {
  writer.order(Stream::data, Stream::compute, Traffic::data_gradients);
}

void ReductionWriter::at_end(OpWriter& writer) const {
  if (shape_->gradient_reduction != GradientReduction::per_iteration) return;
  if (overlaps()) return wait_for_buckets(writer);
  reduce_all(shape_->compressed.reduced_gradients,
             {CodecRow::encode_reduced, CodecRow::encode_reduced_second, CodecRow::decode_reduced,
              CollectiveSlot::gradient_reduce, CollectiveSlot::gradient_reduce_second},
             writer);
}

void ReductionWriter::experts_at_end(OpWriter& writer) const {
  reduce_all(
      shape_->compressed.expert_gradients,
      {CodecRow::encode_experts, CodecRow::encode_experts_second, CodecRow::decode_experts,
       CollectiveSlot::expert_gradient_reduce, CollectiveSlot::expert_gradient_reduce_second},
      writer);
}

void ReductionWriter::reduce_all(CodecParts parts, const WholeReduction& whole,
                                 OpWriter& writer) const {
  const auto codec = [&](Phase phase, int part) {
    const CodecRow row = phase == Phase::decode ? whole.decode
                         : part == 0            ? whole.encode
                                                : whole.encode_second;
    writer.codec(Stream::compute, phase, row_of(row, shape_->chunks), Traffic::data_gradients, {});
  };
  const auto reduce = [&](int part) {
    writer.collective(Stream::compute, slot_of(part == 0 ? whole.slot : whole.second_slot),
                      Phase::gradient_reduce, Traffic::data_gradients, {});
  };
  reduce_in_parts(parts, codec, reduce);
}

void ReductionWriter::gather_parameters(OpWriter& writer, Label label) const {
  const bool experts = label == Label::gather_expert_parameters;
  const auto codec = [&](Phase phase, CodecRow row) {
    if (shape_->compressed.gathered_parameters != CodecParts::none)
      writer.codec(Stream::compute, phase, row_of(row, shape_->chunks), Traffic::zero_gather, {});
  };
  codec(Phase::encode, experts ? CodecRow::encode_gathered_experts : CodecRow::encode_gathered);
  writer.collective(Stream::compute, slot_of(end_place(label).slot), Phase::parameter_gather,
                    Traffic::zero_gather, {});
  codec(Phase::decode, experts ? CodecRow::decode_gathered_experts : CodecRow::decode_gathered);
}

}  // namespace windtunnel::detail
