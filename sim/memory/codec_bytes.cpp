#include "memory/codec_bytes.hpp"

#include <algorithm>

#include "cost/codec_shapes.hpp"
#include "cost/stage_cost.hpp"

namespace windtunnel {
namespace {

constexpr Bytes single{4};  // of an fp32 value
constexpr double ends = 2;  // one block on its way out, one on its way in

/// One encoded message or block of `size` uncompressed bytes.
Bytes encoded_buffer(const Compressor& c, Bytes size, Bytes element) {
  if (!is_compressed(c, size)) return {};
  const Bytes at_once = c.buffer > Bytes{0} ? std::min(size, c.buffer) : size;
  return c.codec->kept(c, {at_once, element, {}});
}

CodecBytes message_bytes(const Compressor& c, const CodecMessage& message, bool sends,
                         bool receives) {
  CodecBytes bytes;
  if (!is_compressed(c, message.size)) return bytes;
  const double used = (sends ? 1 : 0) + (receives ? 1 : 0);
  if (c.codec->sends_factors())
    bytes.factors = c.codec->kept(c, message) * used;
  else
    bytes.buffers = encoded_buffer(c, message.size, message.element) * used;
  if (c.error_feedback && sends) bytes.residuals = single * (message.size / message.element);
  return bytes;
}

CodecBytes gradient_bytes(const Compressor& c, const Transformer& model, const Plan& plan,
                          StageId stage) {
  const Bytes element = element_size(plan.training.gradient_type);
  CodecBytes bytes;
  double elements = 0;
  for (int chunk = 0; chunk < plan.parallel.virtual_pipeline; ++chunk) {
    for (const CodecMatrix& matrix : gradient_matrices(model, plan, stage, chunk)) {
      elements += matrix.elements();
      if (c.codec->sends_factors())
        bytes.factors += c.codec->kept(c, {element * matrix.elements(), element, matrix});
    }
  }
  if (!c.codec->sends_factors())
    bytes.buffers =
        encoded_buffer(c, element * elements / plan.parallel.replicas(), element) * ends;
  if (c.error_feedback) bytes.residuals = single * elements;
  return bytes;
}

Bytes ring_buffers(const std::optional<Compressor>& c, Bytes payload, Bytes element, int members) {
  if (!c || members == 1) return {};
  return encoded_buffer(*c, payload / members, element) * ends;
}

CodecBytes sum(const CodecBytes& a, const CodecBytes& b) {
  return {a.residuals + b.residuals, a.factors + b.factors, a.buffers + b.buffers};
}

}  // namespace

CodecBytes codec_bytes(const Transformer& model, const Plan& plan, const SoftwareProfile& software,
                       StageId stage) {
  const Compression& compression = plan.compression;
  const Parallel& parallel = plan.parallel;
  const Bytes element = element_size(plan.training.precision);
  const bool has_next = !plan.chunk_map().stages_behind(stage).empty();
  const bool has_previous = !plan.chunk_map().stages_before(stage).empty();
  CodecMessage message;
  if (compression.pipeline_forward || compression.pipeline_backward)
    message = stage_message(model, plan, software);
  CodecBytes bytes;
  if (const auto& c = compression.pipeline_forward)
    bytes = sum(bytes, message_bytes(*c, message, has_next, has_previous));
  if (const auto& c = compression.pipeline_backward)
    bytes = sum(bytes, message_bytes(*c, message, has_previous, has_next));
  if (parallel.replicas() > 1 && compresses_gradients(compression, static_cast<int>(stage.index())))
    bytes = sum(bytes, gradient_bytes(*compression.data_gradients, model, plan, stage));
  const Bytes activation = activation_size(model, {.microbatch = plan.training.micro_batch,
                                                   .tensor = parallel.tensor,
                                                   .precision = plan.training.precision});
  bytes.buffers +=
      ring_buffers(compression.tensor_activations, activation, element, parallel.tensor);
  if (parallel.zero_stage > 0)
    bytes.buffers += ring_buffers(compression.zero_gather,
                                  element * layer_matrix_parameters(model, parallel.tensor),
                                  element, sharding_ways(parallel));
  return bytes;
}

}  // namespace windtunnel
