#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

namespace windtunnel {

/// The folder of built-in models, platforms and software profiles.
struct Library {
  std::filesystem::path root;  ///< folder with models/, platforms/, scenarios/
  /// $WINDTUNNEL_DATA, else next to the executable's checkout or installation.
  static Library find();
  std::vector<std::string> names(
      const std::string& kind) const;  ///< kind: models, platforms, scenarios, software
};

/// A kind of built-in file.
struct LibraryKind {
  const char* name;    ///< as in `windtunnel list`
  const char* folder;  ///< below Library::root
  const char* noun;    ///< in messages
};
inline constexpr LibraryKind model_files{"models", "models", "model"};
inline constexpr LibraryKind platform_files{"platforms", "platforms", "platform"};
inline constexpr LibraryKind device_files{"devices", "platforms/devices", "device"};
inline constexpr LibraryKind software_files{"software", "platforms/software", "software profile"};
inline constexpr LibraryKind noise_files{"noise", "platforms/noise", "noise"};
/// Found by path only.
inline constexpr LibraryKind schedule_files{"schedules", "scenarios/schedules", "schedule"};
inline constexpr LibraryKind memory_files{"memory corrections", ".", "memory correction"};
inline constexpr LibraryKind scenario_files{"scenarios", "scenarios", "scenario"};

/// A block of a scenario that may be the name of a file of the library.
struct NamedPart {
  const char* key;
  const LibraryKind* kind;
  const char* needed_key;  ///< without which an object there is no whole one; empty: none
};
inline constexpr std::array named_parts{
    NamedPart{"model", &model_files, "layers"}, NamedPart{"platform", &platform_files, "name"},
    NamedPart{"software", &software_files, "name"}, NamedPart{"noise", &noise_files, ""}};

/// The file of the built-in `name`; it need not exist.
std::filesystem::path library_file(const Library& library, const LibraryKind& kind,
                                   const std::string& name);

/// "did you mean "gpt-39b"?", or what there is, or how to list it.
std::string suggest_name(const Library& library, const LibraryKind& kind, const std::string& name);

/// True for "my/model.json" and "model.json": a path, where "gpt-39b" is a name.
bool looks_like_path(const std::string& text);

/// A name as it is; a path from the root, so that it holds wherever the file lies that says it.
std::string absolute_if_path(const std::string& name);

/// `path` as a person would write it: relative to the working directory where it lies below it.
std::filesystem::path path_for_people(const std::filesystem::path& path);

}  // namespace windtunnel
