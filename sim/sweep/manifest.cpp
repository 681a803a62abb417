#include "sweep/manifest.hpp"

#include "core/file_io.hpp"
#include "report/json_object.hpp"
#include "sweep/row.hpp"

namespace windtunnel {
namespace fs = std::filesystem;
namespace {

constexpr const char* schema = "windtunnel/sweep-manifest-v2";
/// Its rows carry no checksums.
constexpr const char* first_schema = "windtunnel/sweep-manifest-v1";

fs::path path_in(const fs::path& directory) { return directory / "manifest.json"; }

JsonValue manifest_of(const Sweep& sweep, const std::string& version) {
  return object_of({{"schema", schema},
                    {"name", sweep.name()},
                    {"sweep_hash", sweep.hash()},
                    {"version", version},
                    {"points", sweep.points().size()}});
}

[[noreturn]] void refuse(const fs::path& directory, const std::string& why) {
  throw InputError(
      {{{},
        {},
        directory.string() + " holds results of " + why,
        "take another --out, or remove " + directory.string() + " if its results are not needed"}});
}

void compare(const fs::path& directory, const Sweep& sweep, const std::string& version) {
  Problems problems;
  const JsonValue found = parse_json(read_source(path_in(directory)), problems);
  if (text_at(found, "schema") == first_schema)
    refuse(directory,
           "an older windtunnel, whose rows carry no checksums: nobody can know whether they were "
           "changed");
  if (!problems.empty() || !found.is_object() || text_at(found, "schema") != schema)
    refuse(directory, "something else: its manifest.json is none of a sweep");
  if (text_at(found, "sweep_hash") != sweep.hash())
    refuse(directory, "another sweep (\"" + text_at(found, "name") +
                          "\", or this one before the scenario, a file it names or "
                          "validation/residuals.json was changed)");
  if (text_at(found, "version") != version)
    refuse(directory, "another version, " + text_at(found, "version") + "; this is " + version);
}

bool is_there(const fs::path& directory) {
  return file_type_of(path_in(directory)) != fs::file_type::not_found;
}

}  // namespace

void open_manifest(const fs::path& directory, const Sweep& sweep, const std::string& version) {
  const auto is_ours = [&] {
    return write_new_file_atomically(path_in(directory),
                                     pretty_text(manifest_of(sweep, version)) + "\n");
  };
  if (is_there(directory) || !is_ours()) compare(directory, sweep, version);
}

void expect_manifest(const fs::path& directory, const Sweep& sweep, const std::string& version) {
  if (!is_there(directory))
    throw EnvironmentError(directory.string() +
                           " holds no sweep yet: there is no manifest.json in it");
  compare(directory, sweep, version);
}

}  // namespace windtunnel
