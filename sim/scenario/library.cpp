#include "scenario/library.hpp"

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "core/file_io.hpp"
#include "core/problem.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

constexpr std::array kinds{model_files,    platform_files, device_files,
                           software_files, noise_files,    scenario_files};

bool holds_library(const fs::path& folder) {
  return file_type_of(folder / model_files.folder) == fs::file_type::directory &&
         file_type_of(folder / platform_files.folder) == fs::file_type::directory;
}

fs::path library_root() {
  if (const char* given = std::getenv("WINDTUNNEL_DATA"); given != nullptr && *given != '\0') {
    if (holds_library(given)) return given;
    throw EnvironmentError("WINDTUNNEL_DATA is \"" + std::string(given) +
                           "\", which holds no folders models/ and platforms/");
  }
  std::error_code error;
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  for (fs::path folder = executable.parent_path(); !folder.empty(); folder = folder.parent_path()) {
    if (holds_library(folder)) return folder;
    if (folder == folder.parent_path()) break;
  }
  fs::path installed = executable.parent_path().parent_path() / "share" / "windtunnel";
  if (holds_library(installed)) return installed;
  throw EnvironmentError("no folder with models/ and platforms/ above the program or in " +
                         installed.string() +
                         "; set WINDTUNNEL_DATA to the folder that holds them");
}

}  // namespace

Library Library::find() { return Library{library_root()}; }

std::vector<std::string> Library::names(const std::string& kind) const {
  const auto found =
      std::ranges::find_if(kinds, [&](const LibraryKind& k) { return kind == k.name; });
  if (found == kinds.end()) return {};
  std::vector<std::string> names;
  const fs::path folder = root / found->folder;
  std::error_code error;
  const auto expect_readable = [&error](const fs::path& path) {
    const bool leads_nowhere = error == std::errc::no_such_file_or_directory ||
                               error == std::errc::too_many_symbolic_link_levels;
    if (error && !leads_nowhere)
      throw EnvironmentError("cannot read " + path.string() + ": " + error.message());
  };
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() != ".json") continue;
    if (entry->is_regular_file(error)) names.push_back(entry->path().stem().string());
    expect_readable(entry->path());
    error.clear();  // a link to nothing
  }
  expect_readable(folder);
  std::ranges::sort(names);
  return names;
}

fs::path library_file(const Library& library, const LibraryKind& kind, const std::string& name) {
  return library.root / kind.folder / (name + ".json");
}

std::string suggest_name(const Library& library, const LibraryKind& kind, const std::string& name) {
  constexpr std::size_t most_listed = 12;
  const std::vector<std::string> names = library.names(kind.name);
  if (const std::string nearest = closest_match(name, names); !nearest.empty())
    return "did you mean \"" + nearest + "\"?";
  if (names.empty()) return "there is none in " + (library.root / kind.folder).string();
  if (names.size() > most_listed)
    return std::string("windtunnel list ") + kind.name +
           " shows them; a file of your own is named by its path";
  std::string list = "there is";
  for (const std::string& known : names) list += (known == names.front() ? " " : ", ") + known;
  return list;
}

bool looks_like_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".json");
}

std::string absolute_if_path(const std::string& name) {
  return looks_like_path(name) ? fs::absolute(name).lexically_normal().string() : name;
}

fs::path path_for_people(const fs::path& path) {
  std::error_code error;
  const fs::path current = fs::current_path(error);
  if (error || !path.is_absolute()) return path;
  const fs::path relative = path.lexically_relative(current);
  return relative.empty() || *relative.begin() == ".." ? path : relative;
}

}  // namespace windtunnel
