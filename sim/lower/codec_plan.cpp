#include "lower/codec_plan.hpp"

#include <algorithm>

#include "cost/codec_cost.hpp"
#include "cost/end_of_iteration.hpp"
#include "lower/stage_cost_table.hpp"
#include "plan/gradient_reduction.hpp"

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

/// What reduces experts' gradients at the end, or with each chunk's; null where nothing does.
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

CodecParts CodecPlan::parts_of(const StageMessage& message) const {
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
  traffic.activations = parts_of(activation_);
  traffic.gradients = parts_of(gradient_);
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

/// What a message costs at one of its ends, its chunks overlapped with their time on the wire to or from there.
EncodedMessage CodecPlan::over(const StageMessage& message, const CodecStage& stage,
                               BytesPerSecond way) const {
  const EncodedMessage whole = encoded(message, *stage.device);
  if (!message.compressor || way == BytesPerSecond{0}) return whole;
  const Bytes size = whole.size() * static_cast<double>(stage.ranks);
  return in_chunks(whole, message.compressor->chunks, size / way);
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

EncodedCollective CodecPlan::reduction(const CodecStage& stage, CodecParts parts, int members,
                                       Bytes payload,
                                       const std::vector<CodecMatrix>& matrices) const {
  if (parts == CodecParts::none) return {payload, {}, {}, {}, {}};
  const Compressor& compressor = *compression_.data_gradients;
  const Bytes element = element_size(plan_.training.gradient_type);
  if (parts == CodecParts::one)
    return encode_ring(compressor, *stage.device,
                       plan_.scatters_gradients() ? RingKind::reduce_scatter : RingKind::all_reduce,
                       payload, element, members);
  Bytes rest = payload;
  for (const CodecMatrix& matrix : matrices) rest -= element * matrix.elements();
  return encode_powersgd(compressor, *stage.device, matrices, std::max(rest, Bytes{0}));
}

EncodedCollective CodecPlan::reduced_gradients(const CodecStage& stage) const {
  std::vector<CodecMatrix> matrices;
  for (int chunk = 0; chunk < plan_.parallel.virtual_pipeline; ++chunk) {
    const auto of_chunk = gradient_matrices(model_, plan_, stage.stage, chunk);
    matrices.insert(matrices.end(), of_chunk.begin(), of_chunk.end());
  }
  return reduction(stage, gradient_parts(stage.stage, *stage.cost), plan_.reducing_replicas(),
                   stage_gradients(model_, plan_, stage.stage, *stage.cost), matrices);
}

EncodedCollective CodecPlan::reduced_bucket(const CodecStage& stage, int chunk) const {
  if (!reduces_by_chunk(plan_)) return {};
  const Bytes payload = chunk_gradients(stage.stage, *stage.cost, chunk);
  const int pieces = gradient_buckets(plan_, stage.stage), members = plan_.reducing_replicas();
  const CodecParts parts = gradient_parts(stage.stage, *stage.cost);
  if (parts == CodecParts::two)
    return piece_of(reduction(stage, parts, members, payload,
                              gradient_matrices(model_, plan_, stage.stage, chunk)),
                    pieces);
  return reduction(stage, parts, members, payload / static_cast<double>(pieces), {});
}

EncodedCollective CodecPlan::reduced_experts(const CodecStage& stage) const {
  const Operation* const experts = expert_reduction(stage.cost->end);
  if (experts == nullptr) return {};
  std::vector<CodecMatrix> matrices;
  for (int chunk = 0; chunk < plan_.parallel.virtual_pipeline; ++chunk) {
    const auto of_chunk = expert_gradient_matrices(model_, plan_, stage.stage, chunk);
    matrices.insert(matrices.end(), of_chunk.begin(), of_chunk.end());
  }
  return reduction(stage, expert_parts(stage.stage, *stage.cost), expert_copies(plan_.parallel),
                   experts->payload, matrices);
}

EncodedCollective CodecPlan::reduced_expert_bucket(const CodecStage& stage, int chunk) const {
  const Operation* const experts =
      expert_reduction(stage.cost->chunks[static_cast<std::size_t>(chunk)].reductions);
  if (experts == nullptr) return {};
  const int pieces = gradient_buckets(plan_, stage.stage);
  const CodecParts parts = expert_parts(stage.stage, *stage.cost);
  return reduction(stage, parts, expert_copies(plan_.parallel),
                   experts->payload / static_cast<double>(pieces), {});
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

/// In the order of CodecRow and BucketRow.
void CodecPlan::add_reduction_rows(const CodecStage& stage, std::vector<Work>& rows) const {
  const auto add = [&rows](const EncodedCollective& reduced) {
    for (const Seconds time : {reduced.encode, reduced.between, reduced.decode})
      rows.push_back(codec_work(time));
  };
  add(reduced_gradients(stage));
  add(reduced_experts(stage));
  for (const EncodedCollective& gathered : {gathered_parameters(stage), gathered_experts(stage)})
    for (const Seconds time : {gathered.encode, gathered.decode}) rows.push_back(codec_work(time));
  for (int chunk = 0; chunk < plan_.parallel.virtual_pipeline; ++chunk) {
    add(reduced_bucket(stage, chunk));
    add(reduced_expert_bucket(stage, chunk));
  }
}

std::vector<Work> CodecPlan::rows(const CodecStage& stage) const {
  std::vector<Work> rows;
  if (!has_codec_work(compression_)) return rows;
  for (const Seconds time : {over(activation_, stage, stage.to_next).encode,
                             over(activation_, stage, stage.to_previous).decode,
                             over(gradient_, stage, stage.to_previous).encode,
                             over(gradient_, stage, stage.to_next).decode})
    rows.push_back(codec_work(time));
  add_reduction_rows(stage, rows);
  return rows;
}

}  // namespace windtunnel
