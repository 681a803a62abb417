#include "cost/codec_shapes.hpp"

#include "cost/stage_cost.hpp"

namespace windtunnel {
namespace {

bool is_first_part(const Plan& plan, StageId stage, int chunk) {
  return plan.is_first(stage) && chunk == 0;
}
bool is_last_part(const Plan& plan, StageId stage, int chunk) {
  return plan.is_last(stage) && chunk == plan.parallel.virtual_pipeline - 1;
}

}  // namespace

CodecMessage stage_message(const Transformer& model, const Plan& plan,
                           const SoftwareProfile& software) {
  CodecMessage message;
  message.size = stage_message_size(model, plan, software);
  message.element = element_size(plan.training.precision);
  message.matrix.columns = model.hidden;
  message.matrix.rows = message.size / message.element / model.hidden;
  return message;
}

std::vector<CodecMatrix> gradient_matrices(const Transformer& model, const Plan& plan,
                                           StageId stage, int chunk) {
  const int t = plan.parallel.tensor;
  const double h = model.hidden, words = word_embedding_parameters(model, t) / h;
  const bool first = is_first_part(plan, stage, chunk), last = is_last_part(plan, stage, chunk);
  const bool head = last && (!model.tied_embeddings || plan.parallel.pipeline > 1);
  const int copies = holds_fused_embedding(model, plan, stage, chunk) ? 0 : first + head;
  std::vector<CodecMatrix> matrices;
  if (plan.chunk_layers(stage) > 0)
    for (const auto& [rows, columns] : layer_matrices(model, t))
      matrices.push_back({rows, columns, plan.chunk_layers(stage)});
  if (copies > 0) matrices.push_back({words, h, copies});
  if (first && model.has_learned_positions())
    matrices.push_back({static_cast<double>(model.sequence), h});
  return matrices;
}

bool fuses_embedding_sync(const Transformer& model, const Plan& plan) {
  return plan.compression.fused_embedding_sync && model.tied_embeddings &&
         plan.parallel.pipeline > 1;
}

bool holds_fused_embedding(const Transformer& model, const Plan& plan, StageId stage, int chunk) {
  return fuses_embedding_sync(model, plan) &&
         (is_first_part(plan, stage, chunk) || is_last_part(plan, stage, chunk));
}

}  // namespace windtunnel
