#include "importers/import_command.hpp"

#include <algorithm>
#include <ostream>
#include <utility>

#include "core/file_io.hpp"
#include "core/option_error.hpp"
#include "importers/file_signature.hpp"

namespace windtunnel {
namespace {

const Importer& importer_of(const std::string& kind) {
  std::vector<std::string> names;
  std::string list;
  for (const Importer& importer : importers()) {
    if (kind == importer.name) return importer;
    names.emplace_back(importer.name);
    list += (list.empty() ? "" : ", ") + names.back();
  }
  const std::string nearest = closest_match(kind, names);
  throw option_error("import", kind, "there is no importer \"" + kind + "\"",
                     nearest.empty() ? "there are " + list : "did you mean \"" + nearest + "\"?");
}

std::vector<std::pair<std::string, std::string>> options_given(const ImportOptions& options) {
  const auto number = [](int value) { return value == 0 ? "" : std::to_string(value); };
  std::vector<std::pair<std::string, std::string>> given{
      {"--base", options.base},           {"--clean", options.clean},
      {"--table", options.table},         {"--unit", options.unit},
      {"--rails", number(options.rails)}, {"--sequence", number(options.sequence)}};
  std::erase_if(given, [](const auto& option) { return option.second.empty(); });
  return given;
}

/// A set needs the scenario that it is of, and the scenario is for nothing else.
void check_pair(const ImportRequest& request, const std::string& name) {
  if (request.output.empty() == request.options.base.empty()) return;
  throw option_error(request.output.empty() ? "--base" : "-o", request.output.string(),
                     name +
                         " writes a set for calibrate where both -o and --base are given: where it "
                         "goes, and the scenario of the job",
                     "leave both out for the report alone");
}

void check(const ImportRequest& request, const Importer& importer) {
  const std::string name = std::string("import ") + importer.name;
  for (const auto& [option, text] : options_given(request.options)) {
    if (std::count(importer.options.begin(), importer.options.end(), option) > 0) continue;
    std::string list;
    for (const std::string& own : importer.options) list += (list.empty() ? "" : ", ") + own;
    throw option_error(option, text, name + " has no option " + option,
                       list.empty() ? "it takes none" : "it takes " + list);
  }
  const bool writes = importer.result == Importer::Result::file;
  if (writes && request.output.empty())
    throw option_error("import", importer.name, name + " needs -o OUT: where the result goes", {});
  if (importer.result == Importer::Result::report && !request.output.empty())
    throw option_error("-o", request.output.string(), name + " writes no file, it prints totals",
                       "leave -o out");
  if (importer.files == Importer::Files::one && request.inputs.size() != 1)
    throw option_error("import", importer.name, name + " takes one file", importer.input);
  const bool needs_base = !importer.options.empty() && importer.options.front() == "--base";
  if (importer.result == Importer::Result::file_if_asked) return check_pair(request, name);
  if (needs_base && request.options.base.empty())
    throw option_error("import", importer.name,
                       name +
                           " needs --base: the platform that says what such a file cannot know, "
                           "as the type of GPU and what is not measured in it",
                       "a name that `windtunnel list platforms` prints, or a path");
}

/// Imports, and says what a file is where that is why it could not be read.
Imported import_with(const Importer& importer, const ImportRequest& request,
                     const Library& library) {
  try {
    return importer.import(request, library);
  } catch (const InputError&) {
    for (const std::filesystem::path& input : request.inputs) {
      const FileSignature* const file = file_signature(input);
      if (file == nullptr || file->importer == request.kind) continue;
      const std::string other = file->importer;
      throw option_error(
          "import", request.kind, input.string() + " is " + file->what + ", not " + importer.input,
          other.empty() ? "no importer reads such a file yet" : "windtunnel import " + other);
    }
    throw;
  }
}

std::string json_of(const ImportRequest& request, const Imported& imported) {
  JsonValue result(JsonValue::Object{});
  result.set("schema", JsonValue(std::string("windtunnel/import-v1")));
  result.set("kind", JsonValue(request.kind));
  JsonValue::Array inputs, notes, warnings;
  for (const auto& input : request.inputs) inputs.emplace_back(input.string());
  result.set("inputs", JsonValue(std::move(inputs)));
  if (!request.output.empty()) result.set("output", JsonValue(request.output.string()));
  result.set("found", imported.found);
  for (const std::string& note : imported.notes) notes.emplace_back(note);
  result.set("notes", JsonValue(std::move(notes)));
  for (const std::string& warning : imported.warnings) warnings.emplace_back(warning);
  result.set("warnings", JsonValue(std::move(warnings)));
  return pretty_text(result) + "\n";
}

}  // namespace

void run_import(const ImportRequest& request, ImportFormat format, const Library& library,
                std::ostream& out, std::ostream& messages) {
  const Importer& importer = importer_of(request.kind);
  check(request, importer);
  const Imported imported = import_with(importer, request, library);
  if (!imported.document.is_null())
    write_file_atomically(request.output, pretty_text(imported.document) + "\n");
  for (const std::string& note : imported.notes) messages << "import: " << note << "\n";
  for (const std::string& warning : imported.warnings)
    messages << "import: warning: " << warning << "\n";
  if (!imported.document.is_null()) messages << "import: wrote " << request.output.string() << "\n";
  out << (format == ImportFormat::json ? json_of(request, imported) : imported.text);
}

}  // namespace windtunnel
