#pragma once

#include <string>

#include "platform/platform.hpp"
#include "scenario/key_table.hpp"

namespace windtunnel {

/// The plan as arguments of Megatron-LM (megatron/training/arguments.py, core 0.13): tensor, pipeline, virtual stages or
/// layout, microbatch, recomputation, sharding. Uneven stages become --pipeline-model-parallel-layout. ZeRO 1 is the
/// distributed optimizer; 2 and 3 are Megatron-FSDP with what it requires.
LaunchArguments megatron_arguments(const Plan& plan);

/// The plan as DeepSpeed's JSON configuration, in one argument: batch sizes, accumulation steps (= microbatches), ZeRO with offloading, formats of weights
/// and of reduced gradients. The notes have all else: the arguments of Megatron-DeepSpeed for what these say, and what DeepSpeed cannot do.
LaunchArguments deepspeed_config(const Plan& plan);

/// The plan as a Python function that takes a torchtitan configuration (Trainer.Config) and gives it the plan's batches, degrees, parts and
/// activation checkpoints, in one argument: torchtitan/config/configs.py of August 2026 (commit b5bcd76), where TOML files are no more.
/// Model and data stay those of the configuration.
LaunchArguments torchtitan_config(const Plan& plan, int sequence);

/// The GPU of each rank, a line each: "12 node1 4" is rank 12 on GPU 4 of the cluster's second node.
std::string host_map(const Plan& plan, const Platform& platform);

}  // namespace windtunnel
