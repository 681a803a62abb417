#include "importers/importer.hpp"

#include <array>

namespace windtunnel {

std::span<const Importer> importers() {
  using Files = Importer::Files;
  using Result = Importer::Result;
  static const std::array<Importer, 7> table{{
      {"mpigraph",
       "mpiGraph's bandwidth between all pairs of nodes, to a platform",
       "a log of mpiGraph, or a table of its rates (CSV)",
       {"--base", "--clean", "--table", "--unit", "--rails"},
       Files::one,
       Result::file,
       import_mpigraph},
      {"nccl-tests",
       "times of NCCL's collectives, to a platform",
       "output of all_reduce_perf, all_gather_perf, reduce_scatter_perf or alltoall_perf: text, or "
       "JSON of -J",
       {"--base"},
       Files::several,
       Result::file,
       import_nccl_tests},
      {"topo",
       "links and network cards of a node, to a platform",
       "output of nvidia-smi topo -m",
       {"--base"},
       Files::one,
       Result::file,
       import_topo},
      {"probe",
       "what windtunnel probe --script measured, to a platform",
       "files of the script that windtunnel probe --script prints",
       {"--base"},
       Files::several,
       Result::file,
       import_probe},
      {"hf-config",
       "a model of HuggingFace's, to a model",
       "the config.json of a model",
       {"--sequence"},
       Files::one,
       Result::file,
       import_hf_config},
      {"kineto",
       "traces of PyTorch's profiler, to where each GPU's time went and what slows the job down",
       "traces of PyTorch's profiler, .json or .json.gz, one a rank",
       {"--base"},
       Files::several,
       Result::file_if_asked,
       import_kineto},
      {"straggler-trace",
       "operations of a job in ByteDance's format, to what stragglers cost it and why",
       "a timeline of ByteDance-Seed/StragglerAnalysis, .json or .json.gz",
       {},
       Files::one,
       Result::report,
       import_straggler_trace},
  }};
  return table;
}

}  // namespace windtunnel
