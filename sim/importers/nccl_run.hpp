#pragma once

#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "importers/base_platform.hpp"
#include "importers/gpu_trace.hpp"
#include "importers/log_text.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// What nccl-tests calls a collective whose times say something about a platform: "all_reduce", …, "alltoall".
const char* nccl_name_of(CollectiveKind collective);

/// One line of nccl-tests' table: `bytes` is its "size" column.
struct CollectiveTime {
  Bytes bytes{};
  Seconds time{};
  Origin origin;
};

/// One run of nccl-tests.
struct NcclRun {
  CollectiveKind collective = CollectiveKind::all_reduce;
  int ranks = 0;
  int nodes = 1;
  bool hosts_known = false;  ///< false: the file does not list its ranks, one node is assumed
  /// Where bandwidths alone tell `ranks`, the fewest and most GPUs that they allow; 0 otherwise.
  int least_ranks = 0, most_ranks = 0;
  bool is_always_ring = false;        ///< the file shows NCCL_ALGO=Ring
  std::vector<NamedGpu> gpus;         ///< each kind once; none where the file does not say
  std::vector<CollectiveTime> times;  ///< out of place; in place where that was not run
  int num_empty = 0;                  ///< lines of 0 bytes, which are left out
  int num_in_place = 0;               ///< lines that have no out-of-place time
  bool has_end = true;                ///< false: the text ends before its summary
};

/// Where "# size count ... algbw" begins, the line that names the columns.
std::size_t find_nccl_header(std::string_view text);

/// Reads what nccl-tests prints, among whatever else was printed there. Its column header says which
/// columns there are: -I adds some, -S a time of day, older versions have other leading ones. A line
/// must agree with itself: algbw is size over time, and busbw algbw times the collective's factor
/// (nccl-tests, doc/PERFORMANCE.md), which also finds times in another unit.
NcclRun read_nccl_text(const LogText& log, Problems& problems);

/// Reads what nccl-tests -J writes.
NcclRun read_nccl_json(JsonValue& document, Problems& problems);

}  // namespace windtunnel
