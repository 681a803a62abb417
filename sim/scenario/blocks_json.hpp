#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/enum_array.hpp"
#include "core/enum_names.hpp"
#include "core/object_reader.hpp"
#include "plan/plan.hpp"
#include "platform/platform.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// The `noise` block, or a file of platforms/noise/: how one iteration differs from the next, and one GPU from another. A sigma is that of
/// the natural logarithm: 0.01 is about 1 %.
struct NoiseBlock {
  std::string name;
  /// Of the duration of each pass of the GPUs that play it together (a tensor group), each drawn on its own.
  double pass_jitter = 0;

  /// How the speed of kernels differs among parts, for as long as the job runs.
  struct Spread {
    double gpu = 0, node = 0;
  } spread;

  /// How it changes from one step to the next: of all passes at once, and of the kernels of one GPU or node.
  struct StepJitter {
    double all = 0, gpu = 0, node = 0;
    double correlation = 0;  ///< between one step and the next
    /// How long what befalls all passes at once lasts: longer steps have several of them, which average out. None: a whole step.
    std::optional<Seconds> all_lasts;
    /// Of `all`, in a step of this length.
    double all_in(Seconds step) const;
  } step_jitter;

  /// A GPU or a node, counted from 0 over the cluster, whose kernels take `slowdown` times as long.
  struct SlowPart {
    std::optional<int> gpu, node;  ///< one of them
    double slowdown = 1;
    bool slows(int of_node, int of_gpu) const { return node == of_node || gpu == of_gpu; }
  };
  std::vector<SlowPart> slow_parts;

  struct Links {
    double rate = 0;     ///< of the rate of each link of the network, drawn for each step
    double latency = 0;  ///< of the latency of each message and collective
  } links;

  /// A host that stands still: the pass under way on its GPU, or the next, takes so much longer.
  struct Stalls {
    double per_gpu_hour = 0;  ///< at random times
    Seconds median = 100_ms;  ///< of their duration, which is log-normal
    double spread = 0;        ///< its sigma
  } stalls;

  std::map<std::string, Source> sources;

  /// Whether it leaves every time as it is.
  bool is_none() const;
};

/// Reads and checks the block.
NoiseBlock read_noise(ObjectReader reader);

/// Parts that fail. Each part has a rate of its own, and all but software take a node out of service.
enum class FailingPart { gpu, memory, nic, network, node, software };
inline constexpr std::size_t num_failing_parts = 6;

enum class CheckpointKind {
  synchronous,   ///< training waits until the checkpoint is on storage
  asynchronous,  ///< training waits for a copy in host memory, which is written beside it
};

/// Which plan a job, or a point of a sweep, is played with.
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
inline constexpr std::array<double, num_failing_parts> llama3_failures_per_year{
    0.0731, 0.0376, 0.00289, 0.01445, 0.152, 0.208};

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
  std::array<double, num_failing_parts> failures_per_year = llama3_failures_per_year;
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

/// Measure by which one plan, or one point of a sweep, is better than another.
enum class Objective {
  time,               ///< of an iteration, s; less is better
  tokens_per_second,  ///< more is better
  cost_per_token,     ///< job/price for every GPU, in its currency
  energy_per_token,   ///< job/power of every GPU and node, J
  days,               ///< that the job's steps take, without starts and failures
};
/// "s", "tokens/s", "per token", "J/token", "days"
inline const char* unit_of(Objective objective) {
  constexpr EnumArray<Objective, const char*> units{"s", "tokens/s", "per token", "J/token",
                                                    "days"};
  return units[objective];
}

/// Of what every table of plans or points has: time and tokens/s.
inline bool is_always_shown(Objective objective) {
  return objective == Objective::time || objective == Objective::tokens_per_second;
}

/// Memory that a recommended plan must leave free on every GPU, beside what it is predicted to need.
struct MemoryMargin {
  /// Half of the 90 % interval of the memory account on A100, ±5 %: docs/memory.md, section 4.
  static constexpr double default_share = 0.05;

  double share = default_share;  ///< of what is needed
  Bytes amount{};                ///< on top of the share
};

/// Who decides which GPU plays a rank of a plan that is searched.
enum class PlacementChoice {
  megatron,  ///< rank order tensor, data, pipeline
  search,    ///< the search itself
};

/// Values of keys of a plan by the key's name, as Key::get has them. A key that is not there was not given.
using SearchLists = std::map<std::string, std::vector<int>, std::less<>>;

/// Reads `supports` of a software profile: all values that the stack can run of the keys it lists, written as the lists of a `search`
/// block are. What is not listed is not limited. `rank` tries no others where it searches everything.
SearchLists read_supported(ObjectReader reader);

/// The `search` block of a scenario: the values that `rank` tries for each key of a plan.
struct SearchBlock {
  /// By name of the key, as Key::get has them. A key that is not there was not given.
  SearchLists values;
  MemoryMargin memory_margin;
  PlacementChoice placement = PlacementChoice::megatron;
  Objective objective = Objective::time;

  /// Whether several values of the key are tried.
  bool varies(std::string_view name) const {
    const auto found = values.find(name);
    return found != values.end() && found->second.size() > 1;
  }
};

/// Reads the `search` block. `memory_margin` is a share, "5 %", or a size, "2 GiB".
SearchBlock read_search(ObjectReader reader);

/// Choices of a `sweep` block beside its points.
struct SweepChoices {
  Objective objective = Objective::tokens_per_second;  ///< by which points are ordered
  JobPlan plan = JobPlan::given;                       ///< of each point
};

/// Checks the structure of the `sweep` block: `matrix` maps JSON pointers to the values to try, `exclude` lists points by
/// some of the matrix's pointers, `include` and `points` list points to add, each with a `label` if it has a name; `baseline` is one of the
/// points; `objective` and `plan` are what is returned.
SweepChoices check_sweep(ObjectReader reader);

}  // namespace windtunnel
