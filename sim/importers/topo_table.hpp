#pragma once

#include <string>
#include <vector>

#include "importers/log_text.hpp"

namespace windtunnel {

/// How two devices of a node reach each other, nearest first.
enum class PathKind {
  self,
  nvlink,  ///< NV#: a bonded set of # NVLinks
  pix,     ///< at most one PCIe bridge
  pxb,     ///< several PCIe bridges
  phb,     ///< a PCIe host bridge (the processor)
  node,    ///< several host bridges of one NUMA node
  sys,     ///< the interconnect between NUMA nodes; old drivers: SOC
};

/// One cell of the table.
struct TopoCell {
  PathKind kind = PathKind::self;
  int lanes = 0;  ///< of nvlink
};

/// Table that `nvidia-smi topo -m` prints: GPUs and network cards of one node, and how they reach each
/// other.
struct TopoTable {
  int gpus = 0;
  std::vector<std::string> nics;                    ///< in the order of the columns: "mlx5_0"
  std::vector<std::vector<TopoCell>> between_gpus;  ///< [GPU][GPU]
  std::vector<std::vector<PathKind>> to_nics;       ///< [GPU][network card]
  std::vector<std::string> numa;  ///< NUMA affinity of each GPU; empty where it is not said
  Origin header;
  int most_lanes = 0;  ///< NVLinks of the widest bond
  Origin widest_bond;  ///< where it is first named
};

/// Where "GPU0 GPU1 ..." begins, the line that names the columns.
std::size_t find_topo_header(std::string_view text);

/// Reads the table among whatever else was printed. Tabs or blanks separate cells; a legend of
/// network cards ("NIC0: mlx5_0") gives them their names. Rows of GPUs must be there and agree with
/// each other; rows of network cards may be missing. Tables of several nodes, told apart by a
/// launcher's labels, must be the same.
TopoTable read_topo(const LogText& log, Problems& problems);

}  // namespace windtunnel
