#pragma once

#include "plan/plan.hpp"
#include "platform/software_profile.hpp"

namespace windtunnel {

/// Bytes each parameter costs in this training on this stack, before any sharding: the profile's own bytes, adapted to fp32 training,
/// another gradient type, another optimizer, or other types of its states (docs/memory.md, section 2, has the rules). Under Muon they are
/// those of a parameter that Adam steps.
StateBytes state_bytes(const Training& training, const SoftwareProfile& software);

/// Bytes of all moments that one parameter has: Adam two, SGD one; under Muon a parameter that Adam steps, or one of a weight matrix.
double moment_bytes(const Training& training);
double matrix_moment_bytes(const Training& training);

/// One moment:  fp32 4, bf16 and fp16 2, fp8 1, int8 1 + 4/256, as each block of 256 values has an fp32 scale (Optimizer2State.init_state
/// in bitsandbytes/optim/optimizer.py, bitsandbytes at 95f9af3; _subclass_zeros of AdamW8bit in torchao has the same block).
double moment_size(MomentType type);

/// One weight that is not trained. Of a matrix of a layer in NF4:  1/2 + 1/64 + 4/(64 · 256) = 0.516, with scales of 64 values in eight bits
/// and an fp32 scale for 256 of those (Dettmers et al. 2023, arXiv:2305.14314, section 3, "double quantization").
double frozen_weight_size(const Training& training);
double frozen_matrix_size(const Training& training);

/// What the step moves for one parameter:  t + 2 (s' - s),  t that of the profile (`optimizer_bytes`), s the bytes of weights, main
/// parameters and moments of the profile and s' of this training, each read and written once in a step; no less than nothing.
double step_bytes(const Training& training, const SoftwareProfile& software);

}  // namespace windtunnel
