#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "scenario/library_files.hpp"

namespace windtunnel {

/// Lays `overlay` over `base` as `extends` means it: objects merge, null deletes, everything else replaces.
/// A null that deletes nothing stays, so that a misspelt key under it is still found.
void overlay_json(JsonValue& base, const JsonValue& overlay);

/// Brings the files together that one scenario consists of: what it extends, and what it names.
/// Relative paths are relative to the file they are written in; those of --set to the working directory.
class ScenarioFiles {
 public:
  ScenarioFiles(const Library& library, std::filesystem::path folder, Problems& problems)
      : library_(&library), folder_(std::move(folder)), problems_(&problems) {}
  ScenarioFiles(Library&&, std::filesystem::path, Problems&) = delete;

  /// `value` laid over everything it extends, last extended wins; the member `extends` is gone.
  JsonValue merge_extended(JsonValue value);

  /// Puts the content of a file in place of its name or path. What is no string stays. False: there is a problem.
  bool expand(JsonValue& slot, const LibraryKind& kind, const std::string& pointer);

 private:
  JsonValue merge_extended(JsonValue value, std::vector<std::filesystem::path>& chain);
  bool lay_over(JsonValue& base, const JsonValue& entry, std::vector<std::filesystem::path>& chain);
  /// The object in file `path`; null with a problem that blames `reference` when there is none.
  JsonValue read(const std::filesystem::path& path, const JsonValue& reference,
                 const std::string& pointer);
  std::filesystem::path resolve(const JsonValue& reference) const;
  /// A problem of the file that is named at `pointer`.
  void problem(const Origin& origin, const std::string& pointer, std::string message,
               std::string suggestion = {});

  const Library* library_;
  std::filesystem::path folder_;
  Problems* problems_;
  std::map<const SourceText*, std::filesystem::path> folder_of_;
  std::vector<std::shared_ptr<const SourceText>> sources_;  ///< keeps the keys of folder_of_ alive
  std::size_t num_bytes_ = 0;                               ///< of them
  std::set<std::string> failed_;                            ///< pointers already complained about
};

}  // namespace windtunnel
