#include "importers/importer.hpp"

#include <array>

namespace windtunnel {

std::span<const Importer> importers() {
  using Files = Importer::Files;
  static const std::array<Importer, 2> table{{
      {"mpigraph",
       "mpiGraph's bandwidth between all pairs of nodes, to a platform",
       "a log of mpiGraph, or a table of its rates (CSV)",
       {"--base", "--clean", "--table", "--unit", "--rails"},
       Files::one,
       import_mpigraph},
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
