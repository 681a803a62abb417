#pragma once

#include <string>

#include "core/json_value.hpp"
#include "importers/gpu_breakdown.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// Nanoseconds of a trace as a time.
Seconds trace_time(std::int64_t nanoseconds);

/// The totals of one GPU as members of a JSON object, over so many steps. Of phases and classes,
/// those that took time.
JsonValue json_of(const GpuTotals& gpu, std::int64_t steps = 1);

/// The same for people:
///
///   GPU 0, 214 ms from its first work to its last
///     compute                      38.6 ms   18.1 %
///     communication                12.3 ms    5.8 %
///       hidden behind compute      1.77 ms    0.8 %
///       exposed                    10.5 ms    4.9 %
///     …
std::string text_of(const GpuTotals& gpu, const std::string& over);

/// "data parallel", "other or unnamed groups".
const char* words_for(CommClass comm);

/// What a trace says of itself: "PyTorch's profiler, rank 0 of 2, NVIDIA A100-SXM4-40GB".
std::string described(const GpuTrace& trace);
/// Its GPU in words: "GPU 0", or the process's name of a simulated one.
std::string gpu_name(const GpuTrace& trace, std::int64_t device);

/// What share of the kernels' time is of an unknown kind, with the longest of them; empty where all are known.
std::string unknown_kernels_note(const GpuTrace& trace);

}  // namespace windtunnel
