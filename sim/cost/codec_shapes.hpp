#pragma once

#include <vector>

#include "cost/codec_cost.hpp"
#include "operations/label.hpp"
#include "plan/plan.hpp"

namespace windtunnel {

/// A message between stages, an activation or its gradient, as its codec sees it: the tokens that one rank sends (1/t of them where messages are scattered over
/// the tensor group), by the hidden size. At tensor 8 that is the matrix of Optimus-CC's released code, which always divides by 8.
CodecMessage stage_message(const Transformer& model, const Plan& plan,
                           const SoftwareProfile& software, Label message);
/// The same of `size` bytes.
CodecMessage stage_message(const Transformer& model, const Plan& plan, Bytes size);

/// The matrices among the gradients of one model chunk of a stage, on one rank, without those of experts: those of its layers, the word embedding where it
/// is held and reduced with the rest (a fused embedding synchronisation takes it out), learned positions.
std::vector<CodecMatrix> gradient_matrices(const Transformer& model, const Plan& plan,
                                           StageId stage, int chunk);

/// The matrices of the experts that one rank holds of a chunk.
std::vector<CodecMatrix> expert_gradient_matrices(const Transformer& model, const Plan& plan,
                                                  StageId stage, int chunk);

/// Whether the word embedding of tied first and last stages is synchronised over both and all replicas at once.
bool fuses_embedding_sync(const Transformer& model, const Plan& plan);

/// Whether a chunk holds a copy of the word embedding that is synchronised apart from the other gradients.
bool holds_fused_embedding(const Transformer& model, const Plan& plan, StageId stage, int chunk);

}  // namespace windtunnel
