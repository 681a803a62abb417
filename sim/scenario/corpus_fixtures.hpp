#pragma once

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/testing.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// Folder of the test files: corpus/{good,bad,errors,library}.
inline std::filesystem::path corpus() { return source_dir() / "sim/scenario/corpus"; }

/// A small library with made-up numbers: model tiny (8 layers), platforms boxes (nodes of 8), pair (2 nodes of 4), mixed
/// (8 and 4), software megatron-lm-2021 and flashy.
inline Library test_library() { return Library{corpus() / "library"}; }

/// The JSON files of a folder, sorted.
inline std::vector<std::filesystem::path> json_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace windtunnel
