#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/enum_names.hpp"
#include "core/problem.hpp"
#include "core/text_input.hpp"

/// Meaning of the names in a profiler's trace.
namespace windtunnel {

/// Whom a collective is between, in the words of our own breakdown.
enum class CommClass { tensor, pipeline, data, embedding, other };

/// The class that the description of a process group names: Megatron-LM's
/// "TENSOR_MODEL_PARALLEL_GROUP", DeviceMesh's "mesh_tp", our "TENSOR_PARALLEL". Groups of other
/// kinds ("CONTEXT_PARALLEL_GROUP") and those without a name ("default_pg", "") are other.
CommClass comm_class_of(std::string_view description);

/// Operation of a communicating kernel, with its library: "nccl AllReduce" of "ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)",
/// "DeepEP dispatch" of "void deep_ep::internode::dispatch<false, 8>(…)"; empty for a kernel that computes.
std::string communication_in(std::string_view kernel);
/// Kind of computation of a kernel, by the naming of libraries ("ampere_sgemm_128x64_nn" is a matrix product). First match of a
/// list, `unknown_kernels` where nothing matches.
const char* compute_kind_of(std::string_view kernel);
inline constexpr const char* unknown_kernels = "other kernels";

/// Activity of a GPU, as far as the trace says. The last two are of our own traces, and no work:
/// why nothing ran.
enum class GpuWork { compute, communication, copy, set, launching, waiting };
const char* name_of(GpuWork work);

/// Part of training that launched a kernel; unknown if the trace has no launches.
enum class ComputePhase { forward, backward, optimizer, codec, unknown };

/// Times from begin to end, in nanoseconds of the trace's clock.
using Intervals = std::vector<std::pair<std::int64_t, std::int64_t>>;
/// Sorted, and joined where they touch.
Intervals united(Intervals intervals);

/// One piece of work on a stream of a GPU, in nanoseconds of the trace's clock.
struct GpuEvent {
  GpuWork work = GpuWork::compute;
  ComputePhase phase = ComputePhase::unknown;  ///< of compute and set
  CommClass comm = CommClass::other;           ///< of communication
  std::uint32_t kind = 0;    ///< in GpuTrace::names: "nccl AllReduce", "DtoH", "matrix product"
  std::uint32_t stream = 0;  ///< in GpuTrace::names
  std::uint32_t group = 0;   ///< in GpuTrace::names: the process group's description; may be empty
  std::int64_t device = 0;
  std::int64_t begin = 0, end = 0;
};

/// Collective that the ranks of a group take part in with one call.
enum class CollectiveKind {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  message,
  other
};
/// The kind that PyTorch ("_allgather_base"), NCCL's kernel ("AllGather") or nccl-tests ("alltoall") calls so.
CollectiveKind collective_kind_of(std::string_view name);
/// The factor from algorithm bandwidth to bus bandwidth (nccl-tests, doc/PERFORMANCE.md): what a rank sends in a ring, or to its
/// peers, over the bytes of the call.
double bus_factor(CollectiveKind kind, double num_ranks);

/// One rank's part in a call of NCCL, with what the profiler writes in addition to the kernel since PyTorch 2.2.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::other;
  std::uint32_t group = 0;        ///< in GpuTrace::names: the process group's name; may be empty
  std::uint32_t description = 0;  ///< in GpuTrace::names: what it is for; may be empty
  std::uint32_t ranks = 0;        ///< in GpuTrace::names: "[0, 8, 16, 24]"; may be empty
  std::int64_t group_size = 0;    ///< 0: not said
  std::int64_t bytes = 0;         ///< of the larger side of this rank; 0: not said
  std::int64_t sequence = -1;     ///< of the call in its group; -1: not said
  std::int64_t source = -1, destination = -1;  ///< of a message; -1: not said
  std::int64_t begin = 0, end = 0;             ///< of the kernel, ns
};

/// A step that the profiler marked on the CPU side ("ProfilerStep#4").
struct TraceStep {
  std::string name;
  std::int64_t begin = 0, end = 0;
};

/// Source of a trace: a profiler, or our simulation.
enum class TraceKind { real, simulated };

/// The GPU's side of a trace: of PyTorch's profiler (Kineto), or one that `run --trace` wrote.
///
/// Work are complete events ("ph": "X") of the categories kernel, gpu_memcpy and gpu_memset (and
/// launch and bubble, where a simulation says why nothing runs). A kernel's name tells whether it
/// communicates (communication_in()), and the process group the class of that. The phase of a
/// real kernel is that of its launch (the runtime event of the same correlation): backward where
/// autograd's engine runs on that thread, optimizer inside "Optimizer.step", forward elsewhere.
/// Other events are passed over, and only what is needed of these is kept: memory grows with the
/// pieces of GPU work, not with the file.
struct GpuTrace {
  std::string file;
  TraceKind kind = TraceKind::real;
  std::int64_t rank = -1, world_size = -1;  ///< -1: the trace does not say
  std::int64_t device = -1;                 ///< of its last GPU, in the node
  std::string gpu;                          ///< "Tesla V100-SXM2-32GB"; may be empty
  std::string job;                          ///< of a simulated one: the scenario's name
  std::vector<GpuEvent> events;
  std::vector<CollectiveCall> calls;              ///< in the order of the file
  std::vector<TraceStep> steps;                   ///< by time, disjoint
  std::map<std::int64_t, std::string> processes;  ///< names by pid
  std::vector<std::string> names;
  /// Kernels of a real trace whose names say nothing, with their time in ns, the longest first: they count as computing.
  std::vector<std::pair<std::string, std::int64_t>> unknown_kernels;
  std::int64_t kernel_time = 0;  ///< ns, the sum of the durations of all kernels
  /// The share of that which kernels of unknown names take.
  double unknown_share() const;
  std::size_t unlaunched = 0;  ///< kernels whose launch is not in the trace, though others' are
};

/// Reads to the end; events that lack what they need, or whose times are impossible, are problems
/// with file, line and byte. Throws InputError with all of them, or where the text is no JSON.
GpuTrace read_gpu_trace(TextInput& input);

}  // namespace windtunnel
