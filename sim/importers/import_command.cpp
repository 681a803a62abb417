#include <algorithm>
#include <array>
#include <ostream>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json_build.hpp"
#include "core/mapped.hpp"
#include "core/option_error.hpp"
#include "core/staged_files.hpp"
#include "core/text_input.hpp"
#include "core/text_list.hpp"
#include "core/utf8.hpp"
#include "importers/importer.hpp"
#include "importers/tables.hpp"
#include "report/json_object.hpp"

namespace windtunnel {
namespace {

void check(const ImportRequest& request, const Importer& importer) {
  const std::string name = std::string("import ") + importer.name;
  const ImportOptions& options = request.options;
  const auto number = [](int value) { return value == 0 ? "" : std::to_string(value); };
  const std::pair<const char*, std::string> given[]{
      {"--base", options.base},           {"--clean", options.clean},
      {"--table", options.table},         {"--unit", options.unit},
      {"--rails", number(options.rails)}, {"--sequence", number(options.sequence)},
      {"--model", options.model},         {"--args", options.arguments},
      {"--gpus", number(options.gpus)}};
  for (const auto& [option, text] : given) {
    if (text.empty() || std::ranges::count(importer.options, option) > 0) continue;
    throw option_error(
        option, text, name + " has no option " + option,
        importer.options.empty() ? "it takes none" : "it takes " + listed(importer.options));
  }
  const bool writes = importer.result == Importer::Result::file;
  if (writes && request.output.empty())
    throw option_error("import", importer.name, "it needs -o OUT: where the result goes", {});
  if (importer.result == Importer::Result::report && !request.output.empty())
    throw option_error("-o", request.output.string(), name + " writes no file, it prints totals",
                       "leave -o out");
  if (writes && !request.page.empty())
    throw option_error("--report", request.page.string(),
                       name + " writes a file, and has no results to show", "leave --report out");
  if (importer.files == Importer::Files::one && request.inputs.size() != 1)
    throw option_error("import", importer.name, "it takes one file", importer.input);
  const bool needs_base = !importer.options.empty() && importer.options.front() == "--base";
  if (importer.result == Importer::Result::file_if_asked) {
    // A set needs the scenario that it is of, and the scenario is for nothing else.
    if (request.output.empty() != request.options.base.empty())
      throw option_error(
          request.output.empty() ? "--base" : "-o", request.output.string(),
          name +
              " writes a set for calibrate where both -o and --base are given: where "
              "it goes, and the scenario of the job",
          "leave both out for the report alone");
    return;
  }
  if (needs_base && request.options.base.empty())
    throw option_error(
        "import", importer.name,
        "it needs --base: the platform that says what such a file does not hold, such as "
        "the type of GPU and what is not measured in it",
        "a name that `windtunnel list platforms` prints, or a path");
}

/// Throws where tables/file_signatures.json says of an input that it is a kind of file that `importer` does not read.
void refuse_other_files(const Importer& importer, const ImportRequest& request) {
  static const JsonValue known_files = detail::parsed(detail::file_signatures);
  for (const std::filesystem::path& input : request.inputs) {
    // A pipe gives its text once: opened again, it would wait for a writer for ever.
    std::error_code no_such_file;
    if (!std::filesystem::is_regular_file(input, no_such_file)) continue;
    TextInput file(input);
    const std::string_view text = file.beginning();
    std::vector<const JsonValue*> fitting;
    bool is_own = false;
    for (const JsonValue& known : known_files.array()) {
      const auto is_in_text = [&](const JsonValue& word) {
        return text.find(word.string()) != std::string_view::npos;
      };
      const JsonValue* const without = known.find("without");
      if (!std::ranges::all_of(known.find("words")->array(), is_in_text) ||
          (without != nullptr && std::ranges::any_of(without->array(), is_in_text)))
        continue;
      const JsonValue* const reader = known.find("importer");
      is_own = is_own || (reader != nullptr && request.kind == reader->string());
      fitting.push_back(&known);
    }
    if (fitting.empty() || is_own) continue;
    const JsonValue* const other = fitting.front()->find("importer");
    const JsonValue* const command = fitting.front()->find("command");
    throw option_error("import", request.kind,
                       input.string() + " is " + fitting.front()->find("what")->string() +
                           ", not " + importer.input,
                       command != nullptr ? command->string() + " reads it"
                       : other == nullptr ? "no importer reads such a file yet"
                                          : "windtunnel import " + other->string());
  }
}

}  // namespace

JsonValue detail::parsed(const Asset& table, const char* name) {
  Problems problems;
  JsonValue value = parse_json(
      std::make_shared<const SourceText>(SourceText{name, std::string(table.text)}), problems);
  problems.throw_if_any();
  return value;
}

namespace formats {
#define WT_IMPORTER(name) Importer name();
#include "importers/formats.def"
#undef WT_IMPORTER
}  // namespace formats

std::span<const Importer> importers() {
  static const std::array table{
#define WT_IMPORTER(name) formats::name(),
#include "importers/formats.def"
#undef WT_IMPORTER
  };
  return table;
}

void run_import(const ImportRequest& request, ResultFormat format, const Library& library,
                std::ostream& out, std::ostream& messages) {
  const auto found = std::ranges::find(importers(), request.kind, &Importer::name);
  if (found == importers().end()) {
    const auto names = mapped<std::string>(importers(), &Importer::name);
    std::string nearest = closest_match(request.kind, names);
    constexpr std::size_t shortest = 4;  // a name of a program: "huggingface", "pytorch"
    for (const Importer& each : importers())
      if (nearest.empty() && request.kind.size() >= shortest &&
          lower_case(each.what).find(lower_case(request.kind)) != std::string::npos)
        nearest = each.name;
    throw option_error(
        "import", request.kind, "there is no importer \"" + request.kind + "\"",
        nearest.empty() ? "there are " + listed(names) : "did you mean \"" + nearest + "\"?");
  }
  const Importer& importer = *found;
  check(request, importer);
  // The kind of a file, where it is the reason why it could not be read. Readers of settings find some in many files, and are not asked.
  if (std::ranges::count(importer.options, "--gpus") > 0) refuse_other_files(importer, request);
  Imported imported;
  try {
    imported = importer.import(request, library);
  } catch (const InputError&) {
    refuse_other_files(importer, request);
    throw;
  }
  if (imported.report) {
    imported.found = imported.report->data;
    imported.text = document::text_of(*imported.report);
  }
  std::error_code no_such_file;
  const bool is_replaced = std::filesystem::is_regular_file(request.output, no_such_file);
  StagedFiles files;
  if (!imported.document.is_null())
    files.add(request.output, pretty_text(imported.document) + "\n");
  if (!request.page.empty()) {
    document::Document page = imported.report.value();
    page.warnings = imported.warnings;
    page.warnings.insert(page.warnings.end(), imported.notes.begin(), imported.notes.end());
    files.add(request.page, document::page_of(page));
  }
  files.commit();
  for (const std::string& note : imported.notes) messages << "import: " << note << "\n";
  for (const std::string& warning : imported.warnings)
    messages << "import: warning: " << warning << "\n";
  if (!imported.document.is_null())
    messages << "import: " << (is_replaced ? "replaced " : "wrote ") << request.output.string()
             << "\n";
  if (!request.page.empty()) messages << "import: wrote " << request.page.string() << "\n";
  if (format == ResultFormat::text) return void(out << imported.text);
  const JsonValue inputs =
      array_of(request.inputs, [](const auto& input) { return input.string(); });
  const std::string output = request.output.string();
  out << pretty_text(object_of({{"schema", "windtunnel/import-v1"},
                                {"kind", request.kind},
                                {"inputs", inputs},
                                {"output", only_if(!output.empty(), output)},
                                {"found", imported.found},
                                {"notes", array_of(imported.notes)},
                                {"warnings", array_of(imported.warnings)}}))
      << "\n";
}

}  // namespace windtunnel
