#pragma once

#include <optional>
#include <string>

#include "core/enum_array.hpp"
#include "core/object_reader.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// Parts that fail. Each part has a rate of its own, and all but software take a node out of service.
enum class FailingPart { gpu, memory, nic, network, node, software };

enum class CheckpointKind {
  synchronous,  ///< training waits until the checkpoint is on storage
  asynchronous,  ///< training waits for a copy in host memory, which is written while training goes on
};

/// Source of the plan that a job, or a point of a sweep, is simulated with.
enum class JobPlan {
  given,  ///< the scenario's
  best,   ///< the best that fits by search/objective, of those that `rank` tries
};

/// Failures per part and year in 54 days of Llama 3 405B on 16,384 H100 in 2,048 nodes: 419 interruptions, by cause
/// (The Llama 3 Herd of Models, arXiv:2407.21783, table 5, as quoted by G. K. Lockwood's component-reliability page).
/// 54 days are 0.1478 years: 2,422 years of a GPU and of a NIC, 302.8 of a node.
///   gpu: faulty GPU 148, system processor 17, silent corruption 6, thermal 6: 177 / 2422
///   memory: HBM3 72, SRAM 19: 91 / 2422         nic: 7 / 2422       network: switch or cable 35 / 2422
///   node: maintenance 32, SSD 3, power supply 3, chassis 2, I/O board 2, CPU 2, memory 2: 46 / 302.8
///   software: bug 54, dependency 2, NCCL watchdog 7: 63 / 302.8
inline constexpr EnumArray<FailingPart, double> llama3_failures_per_year{
    {0.0731, 0.0376, 0.00289, 0.01445, 0.152, 0.208}};

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
  BytesPerSecond storage_bandwidth = 100_GBps, node_bandwidth = 5_GBps,
                 snapshot_bandwidth = 10_GBps;
  int kept_checkpoints = 3;

  /// Failures per part and year: of a GPU, a GPU's memory, a NIC, a NIC's share of the network, a node, and the
  /// software of a node.
  EnumArray<FailingPart, double> failures_per_year = llama3_failures_per_year;
  std::optional<Seconds> detection;  ///< of every failure; none: by what fails
  Seconds repair = 86400_s;
  int spare_nodes = 0;
  bool elastic = false;

  struct Price {
    double gpu_hour = 0, storage_tb_month = 0;
    std::string currency = "USD";
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
