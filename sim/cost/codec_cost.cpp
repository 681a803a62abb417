#include "cost/codec_cost.hpp"

#include <algorithm>

#include "core/contracts.hpp"
#include "cost/stage_cost.hpp"

namespace windtunnel {

EncodedMessage encode_message(const Compressor& c, const Device& device, const CodecMessage& m) {
  WT_EXPECT(!missing_speed(c, device) && m.size > Bytes{0});
  return c.codec->encode_message(c, device, m);
}

EncodedCollective encode_ring(const Compressor& c, const Device& device, RingKind kind,
                              Bytes payload, Bytes element, int members) {
  WT_EXPECT(members > 0 && !missing_speed(c, device));
  if (members == 1 || !is_compressed(c, payload / members)) return {payload, {}, {}, {}, {}};
  return c.codec->encode_ring(c, device, kind, payload, element, members);
}

EncodedCollective encode_powersgd(const Compressor& c, const Device& device,
                                  const std::vector<CodecMatrix>& matrices, Bytes rest) {
  WT_EXPECT(!missing_speed(c, device));
  return c.codec->encode_matrices(c, device, matrices, rest);
}

EncodedMessage in_chunks(const EncodedMessage& message, int chunks, Seconds wire) {
  WT_EXPECT(chunks > 0);
  const Seconds codec = message.encode + message.decode;
  if (chunks == 1 || codec == Seconds{0}) return message;
  const Seconds longest = std::max({message.encode, wire, message.decode});
  const Seconds whole = longest + (codec + wire - longest) / static_cast<double>(chunks);
  const double exposed = (whole - wire) / codec;
  EncodedMessage overlapped = message;
  overlapped.encode = message.encode * exposed;
  overlapped.decode = message.decode * exposed;
  return overlapped;
}

std::optional<std::string> missing_speed(const Compressor& c, const Device& device) {
  if (c.codec->traits().origin == CodecOrigin::none) return std::nullopt;
  const std::optional<std::string> key =
      device.codecs ? c.codec->missing_key(*device.codecs) : "launch";
  if (!key) return std::nullopt;
  return "device " + device.name + " has no codecs/" + *key + ", which " + c.codec->name() +
         " needs";
}

namespace {

constexpr Bytes residual_size{4};  // of an fp32 value
constexpr double ends = 2;         // one block on its way out, one on its way in

/// One encoded message or block of `size` uncompressed bytes.
Bytes encoded_buffer(const Compressor& c, Bytes size, Bytes element) {
  if (!is_compressed(c, size)) return {};
  const Bytes at_once = c.buffer > Bytes{0} ? std::min(size, c.buffer) : size;
  return c.codec->kept(c, {at_once, element, {}});
}

}  // namespace

KeptByCodec kept_of_message(const Compressor& c, const CodecMessage& message) {
  KeptByCodec kept;
  if (!is_compressed(c, message.size)) return kept;
  if (c.codec->sends_factors())
    kept.factors = c.codec->kept(c, message);
  else
    kept.buffers = encoded_buffer(c, message.size, message.element);
  if (c.error_feedback) kept.residuals = residual_size * (message.size / message.element);
  return kept;
}

KeptByCodec kept_of_ring(const Compressor& c, Bytes payload, Bytes element, int members) {
  KeptByCodec kept;
  if (members > 1) kept.buffers = encoded_buffer(c, payload / members, element) * ends;
  return kept;
}

KeptByCodec kept_of_gradients(const Compressor& c, Bytes payload, Bytes element, int members) {
  KeptByCodec kept;
  if (!c.codec->sends_factors()) kept = kept_of_ring(c, payload, element, members);
  if (c.error_feedback) kept.residuals = residual_size * (payload / element);
  return kept;
}

KeptByCodec kept_of_gradients(const Compressor& c, const std::vector<CodecMatrix>& matrices,
                              Bytes element, int members) {
  double elements = 0;
  for (const CodecMatrix& matrix : matrices) elements += matrix.elements();
  KeptByCodec kept = kept_of_gradients(c, element * elements, element, members);
  for (const CodecMatrix& matrix : matrices)
    if (c.codec->sends_factors())
      kept.factors += c.codec->kept(c, {element * matrix.elements(), element, matrix});
  return kept;
}

CodecMessage stage_message(const Transformer& model, const Plan& plan,
                           const SoftwareProfile& software, Label message) {
  return stage_message(model, plan, stage_message_size(model, plan, software, message));
}

CodecMessage stage_message(const Transformer& model, const Plan& plan, Bytes size) {
  CodecMessage message;
  message.size = size;
  message.element = element_size(plan.training.precision);
  message.matrix.columns = model.hidden;
  message.matrix.rows = message.size / message.element / model.hidden;
  return message;
}

namespace {

void add(std::vector<CodecMatrix>& matrices, const std::vector<MatrixShape>& shapes, int count) {
  for (const MatrixShape& shape : shapes)
    if (count > 0) matrices.push_back({shape.rows, shape.columns, count});
}

/// Layers with experts have what every token takes and a router in place of the MLP.
void add_layers(const Transformer& model, const Plan& plan, const ChunkPlace& place,
                std::vector<CodecMatrix>& matrices) {
  const int t = plan.parallel.tensor;
  const ChunkRole role = chunk_role(model, plan, place);
  add(matrices, attention_shapes(model, t), role.layers);
  add(matrices, mlp_shapes(model, model.ffn_hidden, t), role.layers - role.expert_layers);
  if (role.expert_layers == 0) return;
  if (model.moe->shared_ffn_hidden > 0)
    add(matrices, mlp_shapes(model, model.moe->shared_ffn_hidden, t), role.expert_layers);
  const MatrixShape router{static_cast<double>(model.moe->experts),
                           static_cast<double>(model.hidden)};
  matrices.push_back({router.rows, router.columns, role.expert_layers});
}

}  // namespace

std::vector<CodecMatrix> expert_gradient_matrices(const Transformer& model, const Plan& plan,
                                                  StageId stage, int chunk) {
  std::vector<CodecMatrix> matrices;
  if (!model.moe) return matrices;
  const Parallel& parallel = plan.parallel;
  const int layers = chunk_role(model, plan, {stage, chunk}).expert_layers;
  add(matrices, mlp_shapes(model, model.moe->ffn_hidden, parallel.expert_tensor),
      layers * model.moe->experts / parallel.expert);
  return matrices;
}

std::vector<CodecMatrix> gradient_matrices(const Transformer& model, const Plan& plan,
                                           StageId stage, int chunk) {
  const int t = plan.parallel.tensor;
  const double h = model.hidden, words = word_embedding_parameters(model, t) / h;
  const ChunkMap map = plan.chunk_map();
  const ChunkPlace place{stage, chunk};
  const bool first = map.is_first(place), last = map.is_last(place);
  const bool has_copy = last && synchronises_embedding(model, plan),
             has_own_head = last && !model.tied_embeddings;
  const int copies =
      (holds_fused_embedding(model, plan, stage, chunk) ? 0 : first + has_copy) + has_own_head;
  std::vector<CodecMatrix> matrices;
  add_layers(model, plan, place, matrices);
  if (last && model.mtp_layers > 0) matrices.push_back({h / t, 2 * h, model.mtp_layers});
  if (copies > 0) matrices.push_back({words, h, copies});
  if (first && model.has_learned_positions())
    matrices.push_back({static_cast<double>(model.sequence), h});
  return matrices;
}

bool fuses_embedding_sync(const Transformer& model, const Plan& plan) {
  return plan.compression.fused_embedding_sync && synchronises_embedding(model, plan);
}

bool holds_fused_embedding(const Transformer& model, const Plan& plan, StageId stage, int chunk) {
  const ChunkMap map = plan.chunk_map();
  const ChunkPlace place{stage, chunk};
  return fuses_embedding_sync(model, plan) && (map.is_first(place) || map.is_last(place));
}

}  // namespace windtunnel
