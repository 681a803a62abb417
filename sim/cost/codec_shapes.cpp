#include "cost/codec_shapes.hpp"

#include "cost/stage_cost.hpp"

namespace windtunnel {

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
  const bool head =
      last && (!model.tied_embeddings || plan.head_place() == HeadPlace::on_another_stage);
  const int copies = holds_fused_embedding(model, plan, stage, chunk) ? 0 : first + head;
  std::vector<CodecMatrix> matrices;
  add_layers(model, plan, place, matrices);
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
