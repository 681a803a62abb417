#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/link_traffic.hpp"
#include "memory/memory_account.hpp"
#include "plan/plan.hpp"
#include "platform/device.hpp"
#include "platform/platform_json.hpp"
#include "scenario/scenario.hpp"
#include "schedule/program.hpp"
#include "timeline/breakdown.hpp"

namespace windtunnel {

/// One input of the prediction that a reader should know, with where it comes from.
struct Assumption {
  std::string what, value;
  std::string note;  ///< the source in words: "fitted on …"
  Evidence evidence = Evidence::assumed;
};

/// Number of messages of a traffic class that one pipeline sent compressed and uncompressed.
struct MessageCount {
  std::uint64_t compressed = 0, uncompressed = 0;
};

/// Time of one pipeline stage by cause, on the replica that ends last.
struct StageTime {
  StageId stage;
  Breakdown breakdown;
  Seconds end{};  ///< from here to the end of the iteration it has nothing to do
};

/// Traffic of one shared link in the iteration.
struct LinkUse {
  std::string name;
  BytesPerSecond bandwidth{};
  TrafficBytes carried{};
  /// Bytes over what the link could carry in `time`.
  double utilisation(Seconds time) const { return total_of(carried) / bandwidth / time; }
};

/// Groups that exchange too much for network cards and yet are spread over several NVLink domains.
struct StraddlingGroups {
  AxisName axis = AxisName::tensor;
  int gpus = 1;       ///< of a group
  int domains = 1;    ///< over which one of them is spread
  Seconds exposed{};  ///< of the iteration, in their exchanges, on the GPU that spends most there
};

/// Use of NVLink domains by a job that needs several of them.
struct DomainUse {
  int nodes_used = 0;  ///< of each domain but the last, which may hold fewer: the segment
  int nodes = 0;       ///< of a domain
  int idle_nodes = 0;  ///< of all domains of which a whole segment is used
  std::vector<StraddlingGroups> straddling;
};

/// Everything `run` knows about one iteration: the content of the JSON document, the terminal summary and the page.
///
/// simulate() makes it (simulate/simulate.hpp), add_interval() adds the error bounds that measurements support (evidence/interval.hpp), and
/// report_json.hpp, summary_text.hpp and run_page.hpp print it. A sweep keeps a few of its figures per point, and a comparison puts several
/// side by side. Times are of one iteration, rates per GPU, memory of the fullest GPU of each stage.
struct Report {
  std::string name, version, scenario_hash;
  std::uint64_t seed = 0;
  Seconds iteration_time{};
  /// Between which it lies in 90 of 100 cases, from validation; none until there is evidence.
  std::optional<std::pair<Seconds, Seconds>> iteration_time_interval;
  double samples_per_s = 0, tokens_per_s = 0;
  FlopsPerSecond model_flops_per_gpu{}, causal_flops_per_gpu{}, hardware_flops_per_gpu{};
  double mfu = 0, mfu_causal = 0, hfu = 0;  ///< as FlopCounts counts them
  Breakdown breakdown;
  MemoryAccount memory;
  std::array<Bytes, num_traffic_classes> traffic{};
  std::array<MessageCount, num_traffic_classes> messages{};
  std::vector<LinkUse> links;  ///< those that carried anything, the highest utilisation first
  std::vector<StageTime> stage_times;
  DeviceId last_device;  ///< the simulated device that ends last
  std::vector<Assumption> assumptions;
  std::vector<std::string> warnings;
  std::string engine;  ///< that ran: "simgrid", "native" or "heap"
  std::uint64_t activities = 0, flows = 0;
  int simulated_microbatches = 0;  ///< where a steady state was found and repeated; 0: all
  int simulated_replicas = 0;      ///< where equal replicas were simulated once; 0: all
  Seconds wall{};                  ///< real time the simulation took; not part of what must repeat

  // Content of the summary's first lines.
  std::string model_name, platform_name, software_name;
  std::string gpu_family;  ///< "a100"; of a mixed job "t4+v100"
  std::optional<SoftwareRelease> software_release;
  Plan plan;
  bool host_gathers = false;  ///< the launch floor has what the host does for tensors of ZeRO 3
  std::optional<DomainUse> domains;  ///< none where the job stays in one domain
  Seconds time_alone{};              ///< of an iteration without `neighbours`, where there are any
  std::vector<NeighbourCost> neighbours;
  std::string placement_note;  ///< what a search for a placement found; empty where none was made
  std::vector<int> compressed_stages;  ///< whose gradients are compressed
  double parameters = 0;
  int num_gpus = 0;
  Seconds forward_time{}, backward_time{};  ///< of one microbatch on the slowest stage
  Seconds last_stage_forward{},
      last_stage_backward{};  ///< as Megatron's timers on the last rank, summed over microbatches
};

}  // namespace windtunnel
