#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cost/stage_cost.hpp"
#include "engine/collapse.hpp"
#include "operations/operation.hpp"
#include "plan/plan.hpp"
#include "platform/network.hpp"
#include "platform/platform.hpp"
#include "schedule/program.hpp"

namespace windtunnel {

/// Cost of the stage of each device. Devices that cannot differ share one.
class DeviceCosts {
 public:
  /// Appends the cost of the next device.
  void add(std::shared_ptr<const StageCost> cost) { of_device_.push_back(std::move(cost)); }
  std::size_t size() const { return of_device_.size(); }
  const StageCost& operator[](std::size_t device) const { return *of_device_[device]; }
  const StageCost& front() const { return (*this)[0]; }
  const StageCost& back() const { return (*this)[size() - 1]; }

 private:
  std::vector<std::shared_ptr<const StageCost>> of_device_;
};

/// A plan on a cluster, ready to be simulated.
struct BuiltPrograms {
  ProgramSet programs;
  Network network;  ///< the links its messages and collectives share
  DeviceCosts cost_of_device;
  Compression compression;                     ///< the plan's, with its automatic stages chosen
  bool by_operation = false;                   ///< each pass is simulated operation by operation
  std::optional<CollapsedPrograms> collapsed;  ///< simulated instead, where asked for and exact

  const ProgramSet& simulated_set() const { return collapsed ? collapsed->programs : programs; }
  const Network& simulated_network() const { return collapsed ? collapsed->network : network; }
  /// The device that is simulated on behalf of this one.
  DeviceId simulated_as(DeviceId device) const {
    return collapsed ? collapsed->simulated_as[device.index()] : device;
  }
};

/// Treatment of tokens that are not spread evenly over experts.
struct Tokens {
  enum class Draws : std::uint8_t {
    mean,     ///< every pass takes the mean over all draws
    by_seed,  ///< every layer and microbatch of a group of ranks has a draw of its own
    least,    ///< every pass takes what the emptiest draw would: for bounds
  };
  Draws draws = Draws::mean;
  std::uint64_t seed = 0;
};

/// Inputs of build_programs(). The referred objects must outlive the result (the network refers to
/// the platform).
struct BuildInputs {
  const Transformer* model = nullptr;
  const Platform* platform = nullptr;
  const std::vector<NodeType>* nodes = nullptr;  ///< of each node in use
  const SoftwareProfile* software = nullptr;
  const Plan* plan = nullptr;
  Replicas replicas = Replicas::each;
  Detail detail = Detail::pass;
  Tokens tokens = {};
};

/// True if passes are simulated operation by operation: if the detail is asked for; if tensor groups cross nodes; and if a single duration per
/// pass would hide how gathers and scatters (ZeRO 3), or exchanges of tokens or of parts of sequences across nodes, share links with each
/// other or with messages, differ between nodes, or have groups that are unevenly placed on nodes.
bool simulates_operations(const BuildInputs& inputs);

/// Turns the plan into one program a stage, work tables, message channels over the network, and
/// collectives:
///  - gradient reduction: one ring a tensor shard through all replicas; its edges that cross nodes
///  are flows, spread over the
///    replicas of each node (NCCL's channels leave a node through all its NICs); in-node edges are
///    a number.
///  - embedding synchronisation: first with last stage of each replica, two ranks a tensor shard.
///  - where simulates_operations(): each tensor collective of groups across nodes as flows between neighbouring nodes of the group, and each
///  gather and scatter of a layer (ZeRO 3) as a ring through the replicas.
BuiltPrograms build_programs(const BuildInputs& inputs);

/// Simulates the built programs, and returns the result for all devices. The listener hears of those that are simulated.
EngineResult simulate_programs(const BuiltPrograms& built, MakeEngine make_engine,
                               SimulationListener* listener = nullptr);

}  // namespace windtunnel
