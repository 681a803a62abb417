#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/id.hpp"
#include "platform/device.hpp"
#include "platform/fabric.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// Connection between the GPUs of a node, and the speed of its collectives
/// (in_node_ring() and in_switch_all_reduce(), cost/collective_cost.hpp; docs/model.md).
struct Interconnect {
  enum class Kind {
    nvswitch,  ///< a ring has all of saturated_bandwidth
    mesh,      ///< each of num_rings(group) rings has saturated_bandwidth (network.hpp)
    pcie,      ///< as nvswitch, through the host
  };
  Kind kind = Kind::nvswitch;
  BytesPerSecond
      saturated_bandwidth{};  ///< B: what a GPU's links carry one way, or a ring's (mesh)
  double group_loss =
      0;  ///< l: the steps of a ring that send nothing last as long as so many that send
  Seconds floor_base{};  ///< T0(n) = floor_base + n * floor_per_gpu
  Seconds floor_per_gpu{};
  Bytes half_size{};              ///< S0 at 8 GPUs
  double half_size_exponent = 0;  ///< S0(n) = half_size * (n/8)^exponent
  double sharpness = 1;           ///< g
  enum class Floor {
    least,  ///< T is T0 or more
    added,  ///< T0 is paid on top of the transfer
  };
  Floor floor = Floor::least;
  /// Below `switch_size` a GPU (mesh: and ring) NCCL sends by a protocol whose bus bandwidth (mesh: of one ring) is at
  /// most `small_bandwidth`. 0: there is no switch.
  Bytes switch_size{};
  BytesPerSecond small_bandwidth{};
  std::vector<std::vector<int>> lanes;  ///< mesh: lanes[i][j] between GPU i and GPU j
  BytesPerSecond point_to_point{};      ///< one GPU to another, one way
  Seconds point_to_point_latency{};
  /// The rate of one GPU while all of a group exchange tokens with each other. 0: the bus bandwidth of collectives.
  BytesPerSecond all_to_all{};
  /// The switch adds up what GPUs send it (NVLink SHARP): NCCL all-reduces by NVLS in a node (in_switch_all_reduce()), and by NVLS trees
  /// over several (crossings()). It attains a share of saturated_bandwidth, fed by so many thread blocks of each GPU: nvlsEfficiency
  /// (src/graph/tuning.cc, NCCL 2.28) and NVLS_NCHANNELS_SM90 (src/transport/nvls.cc, NCCL 2.26) of Hopper.
  bool reduces_in_switch = false;
  double switch_efficiency = 0.85;
  int switch_channels = 16;
};

/// The host's memory as the GPUs of a node see it.
struct Host {
  BytesPerSecond link{};              ///< datasheet, one GPU, one way
  double link_efficiency = 1;         ///< attained fraction
  BytesPerSecond memory_bandwidth{};  ///< datasheet, one GPU's share
  double memory_efficiency = 1;       ///< attained fraction
  BytesPerSecond effective_link() const { return link * link_efficiency; }
  BytesPerSecond effective_memory() const { return memory_bandwidth * memory_efficiency; }
};

/// One kind of node; a platform has one, or several for mixed clusters.
struct NodeType {
  int count = 0;  ///< how many of them the platform has; 0 = as many as asked for
  int trays = 1;  ///< nodes of the machine in one of them: several in an NVLink domain (in_domains)
  Device device;
  int gpus = 0;
  Interconnect interconnect;
  int nics = 0;
  BytesPerSecond nic_rate{};  ///< datasheet, one NIC, one way
  double nic_efficiency = 1;  ///< attained fraction
  std::vector<std::vector<int>> nic_of_gpu =
      {};  ///< of each GPU its NICs; empty: shared out in order (nics_of())
  double compute_efficiency =
      1;  ///< factor on the device's emax: cards that run cooler or slower here
  /// The share of a stack's overhead of tensor collectives that these nodes show.
  double collective_overhead_factor = 1;
  double in_node_collective_slowdown =
      1;  ///< arf: tensor collectives of a training run against `interconnect`
  double launch_slowdown =
      1;  ///< factor on the software's launch floor: this node's host processors
  double pass_spread =
      0;  ///< sigma of ln of how long the same pass takes on one such node and another
  std::optional<Host> host = {};  ///< nothing: not known, and nothing can be offloaded to it
  BytesPerSecond effective_nic_rate() const { return nic_rate * nic_efficiency; }
};

/// Measured node-to-node bandwidth, directional: rate[from][to] of one rail (one NIC). The diagonal is ignored.
struct BandwidthMatrix {
  std::vector<std::vector<BytesPerSecond>> rate;
  int rails = 1;  ///< a node pair carries rails * rate
};

/// A single link given its own rate, one way.
struct LinkOverride {
  NodeId from, to;
  BytesPerSecond bandwidth{};
};

/// A NIC of a node, or its cable, that carries less than it should in both directions: a share of its rate, nothing where it is lost.
struct NicFault {
  NodeId node;
  int nic = 0;
  double share = 1;
};

/// Traffic of another job over a link.
struct NeighbourFlow {
  std::string link;       ///< its name in reports, "leaf0 up"
  BytesPerSecond rate{};  ///< while it sends
  double busy = 1;        ///< share of the time in which it does
  bool is_simulated =
      false;  ///< found by simulating a second job: it may pass where this one does not
};

/// A cluster: a file of platforms/ (docs/platforms.md). It has the types of nodes, each with its GPU, NICs and in-node interconnect, and the
/// fabric that joins them. Rates are bytes per second in one direction; a nominal rate has an efficiency next to it. Every number has a source.
///
/// read_platform() makes it. Costs of kernels and of collectives inside nodes read its node types (cost/); Network (platform/network.hpp)
/// turns the fabric into links that messages share. A job sees its own nodes as 0, 1, 2 …: in_domains() and on_nodes() make that view.
struct Platform {
  std::string name;
  std::string description;
  std::vector<NodeType> node_types;
  /// Number of neighbouring nodes that the in-node interconnect joins: the trays of an NVLink domain. 1: none.
  int domain_nodes = 1;
  Fabric fabric;
  std::optional<BandwidthMatrix> matrix;
  std::vector<LinkOverride> link_overrides;
  std::vector<NicFault> faults;
  std::vector<NeighbourFlow> neighbours;  ///< of the scenario's job
  std::map<std::string, Source> sources;  ///< by path in the file, "node_types/0/nic_rate"
  /// For a job on nodes other than the first ones (on_nodes()): the whole cluster, and the nodes of it that the job has. Links
  /// are called, and the fabric counts, as in the whole cluster.
  std::shared_ptr<const Platform> cluster;
  std::vector<NodeId> cluster_nodes;

  /// Node `node` of the job, in the whole cluster.
  NodeId in_cluster(NodeId node) const { return cluster ? cluster_nodes.at(node.index()) : node; }
  /// True if node `node` of the cluster is one of the job's first `nodes`.
  bool has_node(NodeId node, int nodes) const;
  /// Number of the cluster's first nodes that contain the job's first `nodes`.
  int extent(int nodes) const {
    return cluster ? static_cast<int>(in_cluster(NodeId(nodes - 1)).index()) + 1 : nodes;
  }
  /// The type of node `node`, when the job takes the nodes in file order.
  const NodeType& type_of(NodeId node) const;
  /// Nodes the platform has, or 0 when it has as many as asked for.
  int available_nodes() const;
  /// Nodes there are when a job asks for `asked_for`: where the last count is open, no more than it takes.
  int num_nodes(int asked_for) const;
};

/// The platform as a job on its first `nodes` nodes sees it where the in-node interconnect joins several of them: each domain is
/// one node with the GPUs and NICs of all its nodes, the last with those that are left. What happens inside a domain then never
/// touches a NIC. The fabric's keys that
/// count nodes count domains afterwards.
Platform in_domains(const Platform& platform, int nodes);
/// The machine behind what a job sees: nodes as the file has them, as many as are asked for where an interconnect joins several.
Platform machine_of(const Platform& job);
/// The platform as a job on these of its nodes sees it, which it counts from 0. They are in order, and in no NVLink domains.
Platform on_nodes(const Platform& platform, const std::vector<NodeId>& nodes);
/// The number of the first GPU of each node, counted from 0 through all, and the number of all GPUs.
std::vector<std::size_t> first_gpus(const std::vector<NodeType>& nodes);
/// Nodes of the machine in these.
int num_trays(const std::vector<NodeType>& nodes);

/// Why the first `nodes` nodes are not all alike, or not all equally well connected: "nodes differ in their NICs". Empty where they
/// are.
std::string unevenness(const Platform& platform, int nodes);

}  // namespace windtunnel
