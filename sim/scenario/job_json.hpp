#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "core/object_reader.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// Parts that fail. Each part has a rate of its own, and all but software take a node out of service.
enum class FailingPart { gpu, memory, nic, network, node, software };
inline constexpr std::size_t num_failing_parts = 6;
const char* name_of(FailingPart part);  ///< "gpu", ... as in files

enum class CheckpointKind {
  synchronous,   ///< training waits until the checkpoint is on storage
  asynchronous,  ///< training waits for a copy in host memory, which is written beside it
};

/// Which plan a job, or a point of a sweep, is played with.
enum class JobPlan {
  given,  ///< the scenario's
  best,   ///< the best that fits by search/objective, of those that `rank` tries
};

/// The `job` block: a training run made of many iterations. What is not given has no value here.
struct JobBlock {
  double tokens = 0;  ///< 0: `steps` is given
  int steps = 0;      ///< 0: `tokens` is given

  JobPlan plan = JobPlan::given;
  std::optional<Seconds> step_time;   ///< measured; none: predicted
  std::optional<Seconds> start_time;  ///< none: measured, by number of nodes
  Seconds warm_up{};
  int evaluation_every = 0;  ///< steps; 0: no evaluation
  Seconds evaluation_time{};

  CheckpointKind checkpoint_kind = CheckpointKind::synchronous;
  bool sharded = true;
  std::optional<Seconds> interval;  ///< none: by Daly's formula
  BytesPerSecond storage_bandwidth{}, node_bandwidth{}, snapshot_bandwidth{};
  int kept_checkpoints = 1;

  /// Failures per part and year: of a GPU, a GPU's memory, a NIC, a NIC's share of the network, a node, and the
  /// software of a node.
  std::array<double, num_failing_parts> failures_per_year{};
  std::optional<Seconds> detection;  ///< of every failure; none: by what fails
  Seconds repair{};
  int spare_nodes = 0;
  bool elastic = false;

  struct Price {
    double gpu_hour = 0, storage_tb_month = 0;
    std::string currency;
  };
  std::optional<Price> price;

  /// Watts of a GPU by state, and of the rest of a node.
  struct Power {
    double computing = 0, communicating = 0, idle = 0, node = 0;
    double overhead = 1;                   ///< power usage effectiveness (PUE)
    std::optional<double> kg_co2_per_kwh;  ///< none: no emissions are told
  };
  std::optional<Power> power;
};

/// Reads and checks the block.
JobBlock read_job(ObjectReader reader);

}  // namespace windtunnel
