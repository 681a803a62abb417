#include "importers/importer.hpp"

#include <array>

namespace windtunnel {

std::span<const Importer> importers() {
  using Files = Importer::Files;
  static const std::array<Importer, 4> table{{
      {"mpigraph",
       "mpiGraph's bandwidth between all pairs of nodes, to a platform",
       "a log of mpiGraph, or a table of its rates (CSV)",
       {"--base", "--clean", "--table", "--unit", "--rails"},
       Files::one,
       import_mpigraph},
      {"nccl-tests",
       "times of NCCL's collectives, to a platform",
       "output of all_reduce_perf, all_gather_perf or reduce_scatter_perf: text, or JSON of -J",
       {"--base"},
       Files::several,
       import_nccl_tests},
      {"topo",
       "links and network cards of a node, to a platform",
       "output of nvidia-smi topo -m",
       {"--base"},
       Files::one,
       import_topo},
      {"hf-config",
       "a model of HuggingFace's, to a model",
       "the config.json of a model",
       {"--sequence"},
       Files::one,
       import_hf_config},
  }};
  return table;
}

}  // namespace windtunnel
