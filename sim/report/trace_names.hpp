#pragma once

#include <string>

#include "plan/plan.hpp"
#include "schedule/program.hpp"

/// What things are called in a trace.
namespace windtunnel::detail {

/// "ranks 0008-0015 · dp0 pp1 tp0-7 · node1"; one GPU alone: "rank 0003 · dp0 pp1 tp3 · node0
/// gpu3".
std::string process_name(const Plan& plan, const PlanDevice& device);
/// Names of communication start with "nccl", as the profiler's do: Holistic Trace Analysis tells it
/// from computing by that. `stage` is the one whose device it runs on.
std::string kernel_name(Phase phase, const Plan& plan, StageId stage);
/// The same for a collective that is an operation of a pass.
std::string kernel_name(Label label);
/// The name of one part of a compute op.
std::string part_name(Phase phase, Part part, const Plan& plan);
/// Whether an op belongs to one microbatch.
bool is_of_microbatch(Phase phase);

/// What reports and traces say of a class of traffic.
struct TrafficWords {
  const char* what;           ///< "gradient reduction"
  Stream stream;              ///< whose thread shows it
  const char* process_group;  ///< that carries it, in the profiler's words: "DATA_PARALLEL"
};
const TrafficWords& words_of(Traffic traffic);

}  // namespace windtunnel::detail
