#pragma once

#include <vector>

#include "operations/operation.hpp"
#include "plan/plan.hpp"
#include "platform/platform.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {

/// Inputs of the end of an iteration: one stage on one kind of node.
struct EndInputs {
  const Transformer* model = nullptr;
  const Plan* plan = nullptr;
  const SoftwareProfile* software = nullptr;
  const NodeType* node = nullptr;  ///< null: there are no times
  StageId stage;
  ParameterCounts parameters;  ///< of one rank; chunk_reductions(): of one of its chunks
};

/// Operations of a stage after its passes, in order, payloads uncompressed: it reduces its gradients, unless that was part of the
/// passes; synchronises tied words where they are on two stages; steps the optimizer; gathers parameters of which it stepped a shard.
/// Traffic classes, times and programs come from this list. Source: train_step in megatron/training.py, Megatron-LM v2.5:
/// allreduce_gradients, then the word embeddings over the embedding group, then optimizer.step; parameters are gathered behind it as by
/// DistributedOptimizer.gather_model_params (megatron/optimizer/distrib_optimizer.py at 2514892, October 2022). Limit: that optimizer
/// and DeepSpeed 0.3.16 (TrainSchedule.steps in runtime/pipe/schedule.py) synchronise the embeddings before the other gradients.
/// Quantised products: the linear weights are cast from bf16 once a step, for all its microbatches, read and written in operand_copies()
/// (Transformer Engine keeps them while is_first_microbatch is false). ZeRO 3 casts what it gathers in each pass instead, and
/// weights that are kept as operands are written by the optimizer.
/// A reduction that overlaps the backward pass is `trailing`: the end waits for what is left of it.
std::vector<Operation> end_of_iteration(const EndInputs& inputs);

/// Operations with which a pass reduces the gradients of its chunk, payloads uncompressed: none if all of the stage's are reduced together
/// at the end (reduces_by_chunk). If the reduction overlaps the pass, it goes bucket by bucket (gradient_buckets).
std::vector<Operation> chunk_reductions(const EndInputs& inputs, int chunk);

/// Gradients of so many parameters as reduced, without those of experts.
Bytes dense_gradients(const Plan& plan, const ParameterCounts& parameters);

/// True if linear weights are kept, and gathered, as operands. Those of nvfp4 stay bf16: "fp4_param and fp4_param_gather are not supported
/// for now" (MixedPrecisionConfig.finalize in megatron/bridge/training/mixed_precision.py, Megatron-Bridge at 0509780), and
/// FP8_PARAM_GATHER=False in config_common_fp4.sh of NVIDIA's submissions to MLPerf Training 5.1. So do those with a scale for each row
/// (Float8LinearConfig.__post_init__ in torchao/float8/config.py, torchao at 6243040).
bool keeps_operands(const Plan& plan, const SoftwareProfile& software);

/// Copies of a quantised operand: by rows, and transposed or scaled by columns for the product that sums over the other dimension. With one
/// scale for the whole tensor a GPU that takes any layout needs the first alone (create_transpose in Float8Quantizer::create_tensor,
/// transformer_engine/pytorch/csrc/quantizer.cpp, Transformer Engine 2); torchao makes both (torch._scaled_mm takes one layout).
double operand_copies(const Plan& plan, const SoftwareProfile& software, const Device& device);

/// One weight of the linear layers as it is gathered: in the products' own format where the stack keeps it so.
Bytes linear_weight_size(const Plan& plan, const SoftwareProfile& software);

/// The operation with this label; null: there is none.
const Operation* find(const std::vector<Operation>& operations, Label label);
/// The operation, at the end of an iteration, that gathers or broadcasts the parameters of a sharded step; null: there is none.
const Operation* find_parameter_gather(const std::vector<Operation>& end);

}  // namespace windtunnel
