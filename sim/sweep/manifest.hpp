#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "sweep/sweep.hpp"

namespace windtunnel {

/// Writes DIR/manifest.json, or makes sure that the one which is there belongs to this very sweep and version. Throws InputError, with what to
/// do, when it does not, and EnvironmentError when it cannot be read or written.
///   {"schema": "windtunnel/sweep-manifest-v2", "name": …, "sweep_hash": …, "version": …, "points": 12}
void open_manifest(const std::filesystem::path& directory, const Sweep& sweep,
                   const std::string& version);
/// The same for looking only: no folder is made. Throws EnvironmentError when there is no manifest.
void expect_manifest(const std::filesystem::path& directory, const Sweep& sweep,
                     const std::string& version);

}  // namespace windtunnel
