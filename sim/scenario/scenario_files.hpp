#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json_value.hpp"
#include "scenario/scenario.hpp"

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

  /// Puts the content of a file in place of its name or path. What is no string stays. A model, platform, device or software profile
  /// that extends another is laid over it. False: there is a problem.
  bool expand(JsonValue& slot, const LibraryKind& kind, const std::string& pointer);

  /// Lays a node type over the first one of the platform that it extends, if it does.
  void expand_node_type(JsonValue& type, const std::string& pointer);

 private:
  JsonValue merge_extended(JsonValue value, std::vector<std::filesystem::path>& chain);
  /// Complains of an object that is no whole one where the base names a file: it would replace what the user means to change.
  void check_replacement(const JsonValue& base, const JsonValue& overlay, const NamedPart& named);
  void overlay_scenario(JsonValue& base, const JsonValue& overlay);
  bool lay_over(JsonValue& base, const JsonValue& entry, std::vector<std::filesystem::path>& chain);
  /// Lays a model, platform, device or software profile over the one that it extends, if it does.
  bool lay_over_base(JsonValue& part, const LibraryKind& kind, const std::string& pointer);
  /// The object in file `path`; null with a problem that blames `reference` when there is none.
  JsonValue read(const std::filesystem::path& path, const JsonValue& reference,
                 const std::string& pointer);
  /// The same for a file that many values may name: read and parsed once.
  JsonValue read_once(const std::filesystem::path& path, const JsonValue& reference,
                      const std::string& pointer);
  /// True if messages must not quote its content.
  bool is_unquotable(const std::filesystem::path& path, const JsonValue& reference) const;
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
  struct Known {
    JsonValue value;
    std::size_t num_values = 0;
  };
  std::map<std::pair<std::filesystem::path, bool>, Known> known_;  ///< by path and is_unquotable()
  std::size_t num_copied_values_ = 0;         ///< of known_, as often as they were named again
  std::vector<std::filesystem::path> parts_;  ///< files that extend each other, being laid over
  std::set<std::string> failed_;              ///< pointers already complained about
};

/// Lays what a platform or device says over the one that it extends: objects merge, null deletes, everything else replaces. Besides that:
/// - node_types merge one by one, in order; those beyond the base's are added;
/// - sources merge: a number that is changed takes the source that stands next to it, the others keep theirs. One without a source
///   is "assumed".
void overlay_platform(JsonValue& base, const JsonValue& overlay);

/// Makes room in a platform for the node type that `pointer` names ("/node_types/1/nics") and that it has from the one that it extends;
/// not for more than `most`.
void make_room_for_node_type(JsonValue& platform, std::string_view pointer,
                             std::size_t most = std::string_view::npos);

/// The same for a software profile. What it says also wins over the base's releases and exceptions (`experts/elsewhere`,
/// `flash_elsewhere`), which are laid over the profile's own values when it is read.
void overlay_software(JsonValue& base, const JsonValue& overlay);

/// Makes a value at `path` of a software profile ("/experts/overlap_exchanges") win over the profile's releases and exceptions.
void win_over_exceptions(JsonValue& software, const std::string& path, const JsonValue& value);

}  // namespace windtunnel
