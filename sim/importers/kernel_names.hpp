#pragma once

#include <string>
#include <string_view>

/// What the names in a profiler's trace say.
namespace windtunnel {

/// Whom a collective is between, in the words of our own breakdown.
enum class CommClass { tensor, pipeline, data, embedding, other };
inline constexpr int num_comm_classes = 5;
const char* name_of(CommClass comm);  ///< "tensor_comm", …, "other_comm"

/// The class that the description of a process group names: Megatron-LM's
/// "TENSOR_MODEL_PARALLEL_GROUP", DeviceMesh's "mesh_tp", our "TENSOR_PARALLEL". Groups of other
/// kinds ("CONTEXT_PARALLEL_GROUP") and those without a name ("default_pg", "") are other.
CommClass comm_class_of(std::string_view description);

/// What a kernel that communicates does, after its library: "nccl AllReduce" of "ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)",
/// "DeepEP dispatch" of "void deep_ep::internode::dispatch<false, 8>(…)"; empty for a kernel that computes.
std::string communication_in(std::string_view kernel);
/// "DtoH" of "Memcpy DtoH (Device -> Pinned)"; "other" where there is none.
std::string direction_in(std::string_view name);
/// What kind of computing a kernel does, by what libraries call theirs ("ampere_sgemm_128x64_nn" is a matrix product). First match of a
/// list, `unknown_kernels` where nothing matches.
const char* compute_kind_of(std::string_view kernel);
inline constexpr const char* unknown_kernels = "other kernels";

}  // namespace windtunnel
