#pragma once

#include <map>
#include <optional>
#include <string>

#include "platform/device.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// How a stage's sends relate to its computing.
enum class PipelineSend {
  eager,  ///< a message leaves when it is ready; only the receiver waits
  /// Both ends enter an exchange, which ends when all its messages have arrived: _communicate in megatron/p2p_communication.py,
  /// Megatron-LM v2.5, which waits for batch_isend_irecv. DeepSpeed's sends wait as well, but one after the other (send in
  /// deepspeed/runtime/pipe/p2p.py, DeepSpeed 0.3.16, a broadcast in a group of two); that difference is not modelled.
  blocking_pairs,
};

enum class GradientType { fp16, bf16, fp32 };

/// Bytes each parameter costs on a rank, by role. `sharded_*` are divided by the data-parallel ways under ZeRO >= 1.
struct StateBytes {
  double weights = 2;
  double gradients = 2;
  double stale_gradients = 0;  ///< kept alive from the last step by the stack (docs/memory.md)
  double optimizer = 12;       ///< fp32 master and two Adam moments
  double step_temporary = 0;   ///< extra bytes only while the optimizer steps
  bool gradients_freed_each_step =
      true;  ///< the low-precision gradients do not exist before the first backward
};

/// A training software stack: what differs between stacks lives here and nowhere else. A file of platforms/software/.
struct SoftwareProfile {
  std::string name;

  /// CPU time to launch a layer's kernels: the GPU waits for it when its own work is shorter.
  struct LaunchFloor {
    Seconds layer_forward{};        ///< cf
    Seconds layer_backward{};       ///< cb
    Seconds collective{};           ///< car, one tensor-parallel collective
    double wide_tensor_factor = 1;  ///< c8, at wide_tensor_ways and above
    int wide_tensor_ways = 8;
    double cluster_factor = 1;  ///< cscale
    double sharpness = 4;       ///< q of (gpu^q + cpu^q)^(1/q)
    double head_share = 0;      ///< of a layer's forward floor, added for the output head
    double embedding_share = 0;
  } launch;

  double compute_efficiency = 1;  ///< factor on the device's emax
  double in_node_collective_slowdown =
      1;  ///< arf: in-node tensor collectives against the platform's benchmark
  bool overlap_backward_tensor_collectives = true;
  PipelineSend pipeline_send = PipelineSend::eager;
  bool scatter_pipeline_messages = true;   ///< each rank of a tensor group sends 1/t of the message
  bool gather_scattered_messages = false;  ///< receipt adds an in-node all-gather
  GradientType gradient_type = GradientType::fp32;
  /// Of the tied embeddings' synchronisation, where it is not that of the other gradients.
  std::optional<GradientType> embedding_gradient_type;
  bool embedding_and_head_as_layers =
      false;                               ///< layout when layers do not divide but layers + 2 do
  double gradient_accumulation_bytes = 6;  ///< traffic per matrix parameter and microbatch
  double optimizer_bytes = 30;             ///< traffic per parameter of one step
  bool fused_kernels = true;        ///< mask and softmax, bias and GeLU, bias, dropout and residual
  double cross_entropy_bytes = 30;  ///< traffic per logit, forward and backward together
  Seconds iteration_overhead{};     ///< once an iteration: data, logging, scaler
  std::optional<double> flash_forward_efficiency,
      flash_backward_efficiency;     ///< of the device's peak
  double exposed_gather_factor = 0;  ///< iota of sharded data parallelism

  StateBytes states_fp16, states_bf16;  ///< by training precision (fp32 training uses its own rule)
  double allocator_slack = 1.206;       ///< reserved / pool
  double fragmentation = 1.065;         ///< phi of the rule for "fits"
  Bytes fixed_work{};                   ///< constant part of the backward working set
  Bytes extra_context{};                ///< communication buckets beside the device's context
  bool profiled = false;  ///< a measurement set of this stack stands behind its numbers
  std::map<std::string, Source> sources;
};

}  // namespace windtunnel
