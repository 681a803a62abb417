#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/json_value.hpp"

namespace windtunnel {

/// What a GPU was doing, as far as the trace says.
enum class GpuWork { compute, communication, copy, set };
const char* name_of(GpuWork work);

/// One piece of work on a stream of a GPU, in nanoseconds of the trace's clock.
struct GpuEvent {
  GpuWork work = GpuWork::compute;
  std::string kind;    ///< "AllReduce", "DtoH"; of compute and set: empty
  std::string stream;  ///< "7"
  std::int64_t device = 0;
  std::int64_t begin = 0, end = 0;
};

/// The GPU events of a trace of PyTorch's profiler (Kineto): complete events ("ph": "X") of the
/// categories kernel, gpu_memcpy and gpu_memset. Kernels whose name begins with "nccl" communicate;
/// their kind is in it ("ncclDevKernel_AllReduce_Sum_f32_RING_LL"). Other events are passed over.
struct GpuTrace {
  std::vector<GpuEvent> events;
  int num_steps = 0;  ///< profiler steps marked on the CPU side
  std::int64_t rank = -1;
};
GpuTrace read_gpu_trace(JsonValue& document, Problems& problems);

/// Time of one kind of work on one stream.
struct WorkTotal {
  std::int64_t count = 0;
  std::int64_t nanoseconds = 0;  ///< sum of durations
};

/// Where the time of one GPU went. Sums are of durations; the rest are lengths of unions, so that
/// what runs beside each other counts once.
struct GpuTotals {
  std::int64_t device = 0;
  std::int64_t window = 0;   ///< from the first begin to the last end
  std::int64_t busy = 0;     ///< something runs
  std::int64_t compute = 0;  ///< compute or set
  std::int64_t communication = 0;
  std::int64_t overlap = 0;  ///< compute and communication at once
  std::map<std::string, std::map<std::string, WorkTotal>> by_stream;  ///< [stream][work kind]
  std::int64_t idle() const { return window - busy; }
  std::int64_t exposed_communication() const { return communication - overlap; }
};
std::vector<GpuTotals> totals_of(const GpuTrace& trace);

}  // namespace windtunnel
