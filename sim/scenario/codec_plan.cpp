#include "scenario/codec_plan.hpp"

#include "core/contracts.hpp"
#include "schedule/order.hpp"

namespace windtunnel {
namespace {

Work codec_work(Seconds duration) {
  Work work;
  work.duration = duration;
  work.parts[static_cast<std::size_t>(Part::codec)] = duration;
  return work;
}

/// The tokens that one rank sends, by the hidden size: s b / t rows where the message is scattered over the tensor group.
CodecMessage stage_message(const Transformer& model, const Plan& plan,
                           const SoftwareProfile& software) {
  CodecMessage message;
  message.size = stage_message_size(model, plan, software);
  message.element = element_size(plan.training.precision);
  message.matrix.columns = model.hidden;
  message.matrix.rows = message.size / message.element / model.hidden;
  return message;
}

std::vector<std::vector<bool>> epilogue_messages(const Plan& plan) {
  const OrderShape shape{plan.parallel.pipeline, plan.microbatches, plan.parallel.virtual_pipeline};
  std::vector<std::vector<bool>> messages;
  for (int s = 0; s < shape.stages; ++s)
    messages.push_back(epilogue_passes(schedule_order(plan, StageId{s}), shape));
  return messages;
}

}  // namespace

CodecPlan::CodecPlan(const Transformer& model, const Plan& plan, const SoftwareProfile& software)
    : plan_(plan), compression_(plan.compression), message_(stage_message(model, plan, software)) {}

bool CodecPlan::is_encoded(const std::optional<Compressor>& compressor) const {
  return compressor && plan_.parallel.pipeline > 1 && is_compressed(*compressor, message_.size);
}

CodecParts CodecPlan::parts_of(const std::optional<Compressor>& compressor) const {
  if (!is_encoded(compressor)) return CodecParts::none;
  return compressor->codec == CodecKind::powersgd ? CodecParts::two : CodecParts::one;
}

CompressedTraffic CodecPlan::traffic_of(StageId) const {
  CompressedTraffic traffic;
  traffic.activations = parts_of(compression_.pipeline_forward);
  traffic.gradients = parts_of(compression_.pipeline_backward);
  if (compression_.pipeline_forward)
    traffic.activation_encoder = compression_.pipeline_forward->stream;
  if (compression_.pipeline_backward)
    traffic.gradient_encoder = compression_.pipeline_backward->stream;
  if (traffic.gradients != CodecParts::none &&
      compression_.backward_messages == CompressedMessages::epilogue)
    traffic.gradient_messages = epilogue_messages(plan_);
  return traffic;
}

EncodedMessage CodecPlan::encoded(const std::optional<Compressor>& compressor,
                                  const Device& device) const {
  if (!is_encoded(compressor)) return {message_.size, {}, {}, {}};
  return encode_message(*compressor, device, message_);
}

std::vector<Bytes> CodecPlan::message_sizes(const Device& device) const {
  const EncodedMessage activation = encoded(compression_.pipeline_forward, device);
  const EncodedMessage gradient = encoded(compression_.pipeline_backward, device);
  return {message_.size,  message_.size,     activation.first,
          gradient.first, activation.second, gradient.second};
}

std::vector<Work> CodecPlan::rows(const Device& device) const {
  const EncodedMessage activation = encoded(compression_.pipeline_forward, device);
  const EncodedMessage gradient = encoded(compression_.pipeline_backward, device);
  std::vector<Work> rows;
  for (const Seconds time :
       {activation.encode, activation.decode, gradient.encode, gradient.decode})
    rows.push_back(codec_work(time));
  return rows;
}

}  // namespace windtunnel
