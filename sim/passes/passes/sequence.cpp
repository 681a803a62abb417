#include "passes/pass.hpp"

namespace windtunnel {
namespace {

/// What is gathered of a tensor, over the whole of it.
double gathered_share(const PassContext& in) {
  const Precision precision = in.plan->training.precision;
  return in.software->fp8_tensor_gathers ? operand_size(precision) / element_size(precision) : 1;
}

/// Each all-reduce as a gather, which nothing hides, and a scatter.
std::vector<Operation> with_halves(const std::vector<Operation>& operations, double gathered) {
  std::vector<Operation> result;
  for (const Operation& operation : operations) {
    if (operation.label != Label::reduce_activation) {
      result.push_back(operation);
      continue;
    }
    Operation gather = operation, scatter = operation;
    gather.label = Label::gather_activation;
    gather.overlap = Overlap::none;
    gather.payload = gather.payload * gathered;
    scatter.label = Label::scatter_activation;
    result.push_back(gather);
    result.push_back(scatter);
  }
  return result;
}

/// Korthikanti et al. 2022, eq. 4: no tensor of a layer is whole. Messages are sent as they are.
void divide_held(ChunkOperations& chunk, const PassContext& in) {
  const double ways = in.plan->parallel.tensor;
  chunk.for_each([ways](Operation& operation) {
    for (Divisible<Bytes>& tensor : operation.held.tensors) tensor.whole = tensor.whole / ways;
  });
  const ScatteredMessages scattered =
      in.software->scatter_pipeline_messages;  // done by the tensor pass
  if (scattered == ScatteredMessages::none) chunk.message.payload = chunk.message.payload / ways;
  if (scattered != ScatteredMessages::all)
    chunk.gradient_message.payload = chunk.gradient_message.payload / ways;
}

/// Sequence parallelism: each all-reduce is a reduce-scatter and an all-gather of the same bytes. Backward the gather is exposed and
/// the scatter hides (Korthikanti et al. 2022, 4.2.2; LinearWithGradAccumulationAndAsyncCommunication.backward in
/// megatron/mpu/layers.py at 2514892, October 2022, where the gather runs beside the input gradient: that this hides nothing is own).
void split_sequence(ChunkOperations& chunk, const PassContext& in) {
  if (!in.plan->parallel.sequence_parallel) return;
  divide_held(chunk, in);
  for (PassOperations& pass : chunk.passes) {
    pass.layer = with_halves(pass.layer, gathered_share(in));
    for (std::vector<Operation>* list : {&pass.before, &pass.after}) *list = with_halves(*list, 1);
  }
}

}  // namespace

const OperationPass& sequence_pass() {
  static const OperationPass pass{"sequence", split_sequence};
  return pass;
}

}  // namespace windtunnel
