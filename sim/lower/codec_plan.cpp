#include "lower/codec_plan.hpp"

#include <algorithm>

#include "cost/codec_cost.hpp"
#include "cost/end_of_iteration.hpp"
#include "lower/stage_cost_table.hpp"
#include "plan/plan.hpp"

namespace windtunnel {
namespace {

Work codec_work(Seconds duration) { return work_of(duration, Part::codec); }

std::vector<std::vector<bool>> epilogue_messages(const Plan& plan) {
  const OrderShape shape = order_shape(plan);
  std::vector<std::vector<bool>> messages;
  for (int s = 0; s < shape.stages; ++s)
    messages.push_back(epilogue_passes(schedule_order(plan, StageId{s}), shape));
  return messages;
}

/// The operation that reduces experts' gradients at the end, or with each chunk's; null: there is none.
const Operation* expert_reduction(const std::vector<Operation>& operations) {
  for (const Operation& operation : operations)
    if (operation.label == Label::reduce_expert_gradients ||
        operation.label == Label::scatter_expert_gradients)
      return &operation;
  return nullptr;
}

EncodedCollective piece_of(EncodedCollective whole, int pieces) {
  const double n = pieces;
  return {whole.payload / n, whole.second_payload / n, whole.encode / n, whole.between / n,
          whole.decode / n};
}

}  // namespace

CodecPlan::CodecPlan(const Transformer& model, const Plan& plan, const SoftwareProfile& software)
    : model_(model),
      plan_(plan),
      compression_(plan.compression),
      activation_{plan.compression.pipeline_forward,
                  stage_message(model, plan, software, Label::activation_message)},
      gradient_{plan.compression.pipeline_backward,
                stage_message(model, plan, software, Label::gradient_message)} {}

bool CodecPlan::is_encoded(const StageMessage& message) const {
  return message.compressor && plan_.parallel.pipeline > 1 &&
         is_compressed(*message.compressor, message.whole.size);
}

CodecParts CodecPlan::codec_parts(const StageMessage& message) const {
  if (!is_encoded(message)) return CodecParts::none;
  return message.compressor->codec->sends_factors() ? CodecParts::two : CodecParts::one;
}

/// ZeRO 3 scatters inside the passes (stage_cost).
CodecParts CodecPlan::gradient_parts(StageId stage, const StageCost& cost) const {
  const Parallel& parallel = plan_.parallel;
  if (!compresses_gradients(compression_, static_cast<int>(stage.index())) ||
      parallel.replicas() == 1 || parallel.scatters_in_passes())
    return CodecParts::none;
  Bytes largest = reduces_by_chunk(plan_) ? Bytes{0} : stage_gradients(model_, plan_, stage, cost);
  for (int chunk = 0; reduces_by_chunk(plan_) && chunk < parallel.virtual_pipeline; ++chunk)
    largest = std::max(largest, chunk_gradients(stage, cost, chunk) /
                                    static_cast<double>(gradient_buckets(plan_, stage)));
  if (!is_compressed(*compression_.data_gradients, largest / plan_.reducing_replicas()))
    return CodecParts::none;
  if (!compression_.data_gradients->codec->sends_factors()) return CodecParts::one;
  // A stage without layers has no matrices.
  for (int chunk = 0; chunk < parallel.virtual_pipeline; ++chunk)
    if (!gradient_matrices(model_, plan_, stage, chunk).empty()) return CodecParts::two;
  return CodecParts::none;
}

CodecParts CodecPlan::expert_parts(StageId stage, const StageCost& cost) const {
  if (!compresses_gradients(compression_, static_cast<int>(stage.index()))) return CodecParts::none;
  const Operation* reduction = expert_reduction(cost.end);
  Bytes largest = reduction == nullptr ? Bytes{0} : reduction->payload;
  for (const ChunkCost& chunk : cost.chunks)
    if (const Operation* of_chunk = expert_reduction(chunk.reductions); of_chunk != nullptr)
      largest = std::max(largest,
                         of_chunk->payload / static_cast<double>(gradient_buckets(plan_, stage)));
  const Compressor& compressor = *compression_.data_gradients;
  if (largest == Bytes{0} ||
      !is_compressed(compressor, largest / static_cast<double>(expert_copies(plan_.parallel))))
    return CodecParts::none;
  return compressor.codec->sends_factors() ? CodecParts::two : CodecParts::one;
}

CompressedTraffic CodecPlan::traffic_of(StageId stage, const StageCost& cost) const {
  CompressedTraffic traffic;
  traffic.activations = codec_parts(activation_);
  traffic.gradients = codec_parts(gradient_);
  if (compression_.pipeline_forward)
    traffic.activation_encoder = compression_.pipeline_forward->stream;
  if (compression_.pipeline_backward)
    traffic.gradient_encoder = compression_.pipeline_backward->stream;
  if (traffic.gradients != CodecParts::none &&
      compression_.backward_messages == CompressedMessages::epilogue)
    traffic.gradient_messages = epilogue_messages(plan_);
  traffic.reduced_gradients = gradient_parts(stage, cost);
  traffic.expert_gradients = expert_parts(stage, cost);
  if (compression_.zero_gather) traffic.gathered_parameters = CodecParts::one;
  return traffic;
}

EncodedMessage CodecPlan::encoded(const StageMessage& message, const Device& device) const {
  if (!is_encoded(message)) return {message.whole.size, {}, {}, {}};
  return encode_message(*message.compressor, device, message.whole);
}

std::vector<Bytes> CodecPlan::message_sizes(const Device& device) const {
  const EncodedMessage activation = encoded(activation_, device);
  const EncodedMessage gradient = encoded(gradient_, device);
  return {activation_.whole.size, gradient_.whole.size, activation.first,
          gradient.first,         activation.second,    gradient.second};
}

/// Cost of a message at one of its ends, with its chunks overlapped with their time on the wire.
EncodedMessage CodecPlan::over(const StageMessage& message, const CodecStage& stage,
                               BytesPerSecond bandwidth) const {
  const EncodedMessage whole = encoded(message, *stage.device);
  if (!message.compressor || bandwidth == BytesPerSecond{0}) return whole;
  const Bytes size = whole.size() * static_cast<double>(stage.ranks);
  return in_chunks(whole, message.compressor->chunks, size / bandwidth);
}

Bytes stage_gradients(const Transformer& model, const Plan& plan, StageId stage,
                      const StageCost& cost) {
  Bytes gradients = cost.gradients;
  for (int chunk = 0; chunk < plan.parallel.virtual_pipeline; ++chunk)
    if (holds_fused_embedding(model, plan, stage, chunk)) gradients -= cost.embedding_share;
  return gradients;
}

Bytes CodecPlan::chunk_gradients(StageId stage, const StageCost& cost, int chunk) const {
  const Bytes gradients = cost.chunks[static_cast<std::size_t>(chunk)].reductions.front().payload;
  return holds_fused_embedding(model_, plan_, stage, chunk) ? gradients - cost.embedding_share
                                                            : gradients;
}

CodecParts CodecPlan::codec_parts(const CodecStage& stage, bool of_experts) const {
  return of_experts ? expert_parts(stage.stage, *stage.cost)
                    : gradient_parts(stage.stage, *stage.cost);
}

std::optional<Bytes> CodecPlan::payload_of(const CodecStage& stage, Reduction of) const {
  const bool at_end = of.chunk == at_the_end;
  if (of.of_experts) {
    const Operation* const experts = expert_reduction(
        at_end ? stage.cost->end
               : stage.cost->chunks[static_cast<std::size_t>(of.chunk)].reductions);
    return experts == nullptr ? std::nullopt : std::optional(experts->payload);
  }
  if (at_end) return stage_gradients(model_, plan_, stage.stage, *stage.cost);
  if (!reduces_by_chunk(plan_)) return std::nullopt;
  return chunk_gradients(stage.stage, *stage.cost, of.chunk);
}

std::vector<CodecMatrix> CodecPlan::matrices_of(StageId stage, Reduction of) const {
  std::vector<CodecMatrix> matrices;
  for (int chunk = 0; chunk < plan_.parallel.virtual_pipeline; ++chunk) {
    if (of.chunk != at_the_end && of.chunk != chunk) continue;
    const auto of_chunk = of.of_experts ? expert_gradient_matrices(model_, plan_, stage, chunk)
                                        : gradient_matrices(model_, plan_, stage, chunk);
    matrices.insert(matrices.end(), of_chunk.begin(), of_chunk.end());
  }
  return matrices;
}

EncodedCollective CodecPlan::reduced(const CodecStage& stage, Reduction of) const {
  const std::optional<Bytes> whole = payload_of(stage, of);
  if (!whole) return {};
  const bool at_end = of.chunk == at_the_end, in_factors = at_end || !of.of_experts;
  const int pieces = at_end ? 1 : gradient_buckets(plan_, stage.stage);
  const Bytes payload = *whole / static_cast<double>(pieces);
  const CodecParts parts = codec_parts(stage, of.of_experts);
  if (parts == CodecParts::none) return {payload, {}, {}, {}, {}};
  const Compressor& compressor = *compression_.data_gradients;
  const Bytes element = element_size(plan_.training.gradient_type);
  if (parts == CodecParts::one)
    return encode_ring(compressor, *stage.device,
                       plan_.scatters_gradients() ? RingKind::reduce_scatter : RingKind::all_reduce,
                       payload, element,
                       of.of_experts ? expert_copies(plan_.parallel) : plan_.reducing_replicas());
  if (!in_factors) return encode_powersgd(compressor, *stage.device, {}, payload);
  const std::vector<CodecMatrix> matrices = matrices_of(stage.stage, of);
  Bytes rest = *whole;
  for (const CodecMatrix& matrix : matrices) rest -= element * matrix.elements();
  return piece_of(encode_powersgd(compressor, *stage.device, matrices, std::max(rest, Bytes{0})),
                  pieces);
}

EncodedCollective CodecPlan::gathered(const Operation* gather, const CodecStage& stage,
                                      int members) const {
  if (gather == nullptr) return {};
  if (!compression_.zero_gather) return {gather->payload, {}, {}, {}, {}};
  return encode_ring(*compression_.zero_gather, *stage.device, RingKind::all_gather,
                     gather->payload, element_size(plan_.training.precision), members);
}

EncodedCollective CodecPlan::gathered_parameters(const CodecStage& stage) const {
  return gathered(find_parameter_gather(stage.cost->end), stage, plan_.sharing_replicas());
}

EncodedCollective CodecPlan::gathered_experts(const CodecStage& stage) const {
  return gathered(find(stage.cost->end, Label::gather_expert_parameters), stage,
                  expert_copies(plan_.parallel));
}

std::vector<Work> CodecPlan::rows(const CodecStage& stage) const {
  std::vector<Work> rows;
  if (!has_codec_work(compression_)) return rows;
  for (const Seconds time : {over(activation_, stage, stage.to_next).encode,
                             over(activation_, stage, stage.to_previous).decode,
                             over(gradient_, stage, stage.to_previous).encode,
                             over(gradient_, stage, stage.to_next).decode})
    rows.push_back(codec_work(time));
  for (const EncodedCollective& gathered : {gathered_parameters(stage), gathered_experts(stage)})
    for (const Seconds time : {gathered.encode, gathered.decode}) rows.push_back(codec_work(time));
  for (int chunk = at_the_end; chunk < plan_.parallel.virtual_pipeline; ++chunk)
    for (const bool of_experts : {false, true}) {
      const EncodedCollective collective = reduced(stage, {chunk, of_experts});
      for (const Seconds time : {collective.encode, collective.between, collective.decode})
        rows.push_back(codec_work(time));
    }
  return rows;
}

}  // namespace windtunnel
