#pragma once

#include <string>
#include <vector>

#include "scenario/key_table.hpp"

namespace windtunnel {

using Launch = decltype(Key::launch);

/// "--tensor-model-parallel-size 8"
Launch option(const std::string& name);
/// The same, where the value is more than one.
Launch option_above_one(const std::string& name);
/// The arguments of each value; none beyond the list.
Launch options(std::vector<std::vector<std::string>> by_value);

/// What takes more than the value. Megatron-LM's arguments: megatron/training/arguments.py, core 0.13.
void launch_precision(const Plan& plan, int value, LaunchArguments& launch);
void note_data(const Plan& plan, int data, LaunchArguments& launch);
void launch_schedule(const Plan& plan, int value, LaunchArguments& launch);
/// Virtual stages, where no layout says them.
void launch_chunks(const Plan& plan, int chunks, LaunchArguments& launch);
/// Uneven stages as --pipeline-model-parallel-layout.
void launch_layout(const Plan& plan, int value, LaunchArguments& launch);
void launch_context_method(const Plan& plan, int value, LaunchArguments& launch);
/// Modules that selective recomputation has beside or in place of attention's core.
void launch_recomputed_modules(const Plan& plan, int value, LaunchArguments& launch);
void launch_zero_group(const Plan& plan, int group, LaunchArguments& launch);
void launch_rank_order(const Plan& plan, int value, LaunchArguments& launch);

}  // namespace windtunnel
