#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "simulate/simulate.hpp"
#include "sweep/sweep.hpp"

namespace windtunnel {

/// Program and settings that make the rows of a sweep.
struct ManifestMaker {
  std::string version;
  std::optional<EngineKind> engine;  ///< none: whichever the manifest names
};

/// Writes DIR/manifest.json, or makes sure that the one which is there belongs to this very sweep, version and engine. Throws InputError,
/// with what to do, when it does not, and EnvironmentError when it cannot be read or written. Writing needs an engine.
///   {"schema": "windtunnel/sweep-manifest-v2", "name": …, "sweep_hash": …, "version": …, "engine": "native", "points": 12}
void open_manifest(const std::filesystem::path& directory, const Sweep& sweep,
                   const ManifestMaker& maker);
/// The same for looking only: no folder is made. Throws EnvironmentError when there is no manifest.
void expect_manifest(const std::filesystem::path& directory, const Sweep& sweep,
                     const std::string& version);

}  // namespace windtunnel
