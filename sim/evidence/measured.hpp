#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/object_reader.hpp"
#include "memory/memory_account.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// GPU memory that a run was seen to use.
struct MeasuredMemory {
  std::optional<Bytes> nvidia_smi;  ///< of the fullest GPU: `nvidia_smi_gib`
  /// Of the allocator, by rank: `max_allocated_mib_by_rank`, `max_reserved_mib_by_rank`; and `max_memory_usage_gb`, what rank 0 had allocated
  /// at most, in GiB. NeMo's logs do not name unit and rank: on five H100 systems of mlperf-llama31-405b the figure falls with the number of
  /// replicas by 12 bytes a parameter of the first stage, to 0.01 %, where it is read so.
  std::map<int, Bytes> allocated, reserved;
  std::optional<Bytes> most_reserved;  ///< of the fullest GPU: `max_reserved_gib`
  /// `memory_reading`: what the allocator's maxima are to be compared with, "steady_state" unless
  /// the log is known to print those of the first step ("first_step").
  MemoryReading reading = MemoryReading::steady_state;

  bool empty() const {
    return !nvidia_smi && allocated.empty() && reserved.empty() && !most_reserved;
  }
};

/// Operation of a collective; names as in the sets, "all_reduce", …
enum class CollectiveOperation { all_reduce, all_gather, reduce_scatter, all_to_all };

/// One measured collective.
struct CollectiveRun {
  CollectiveOperation operation = CollectiveOperation::all_reduce;
  int gpus = 0;  ///< the first so many of each node
  int nodes = 1;
  Bytes
      payload{};  ///< the whole reduced or gathered tensor; all-to-all: what a GPU sends, its own share included
  Seconds measured{};
  std::string algorithm = "flat";  ///< of collective_algorithms(): another under NCCL_ALGO
};

/// Member `key`, a number above zero and no larger than `most`; none when it is absent.
std::optional<double> read_measured_number(ObjectReader& measured, std::string_view key,
                                           double most, const char* what = "a measurement");
/// Member `key`, a time above zero in seconds; none when it is absent.
std::optional<Seconds> read_measured_time(ObjectReader& measured, std::string_view key);
MeasuredMemory read_measured_memory(ObjectReader& measured);
/// Megatron's timers of the last rank, by name: `megatron_timers_ms`.
std::map<std::string, Seconds> read_measured_timers(ObjectReader& measured);
/// From the point itself; its time is in `measured`.
CollectiveRun read_collective_run(ObjectReader& point);

}  // namespace windtunnel
