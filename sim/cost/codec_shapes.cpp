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
  if (const int layers = plan.chunk_layers(place); layers > 0)
    for (const auto& [rows, columns] : layer_matrices(model, t))
      matrices.push_back({rows, columns, layers});
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
