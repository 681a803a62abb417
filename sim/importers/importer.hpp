#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "report/document.hpp"
#include "report/summary_text.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// Options of `import`; empty or 0 where an option was not given.
struct ImportOptions {
  std::string
      base;  ///< --base: the platform that says what a log cannot know, or the scenario that says what a trace cannot
  std::string clean;      ///< --clean
  std::string table;      ///< --table: send | recv
  std::string unit;       ///< --unit of the rates in a table
  int rails = 0;          ///< --rails: processes a node that the rates were measured with
  int sequence = 0;       ///< --sequence, tokens
  std::string model;      ///< --model: of a launch script that does not say its sizes
  std::string arguments;  ///< --args: that a launch script is called with
  int gpus = 0;           ///< --gpus, of a launch script that does not say how many
};

/// Files to import, and how.
struct ImportRequest {
  std::string kind;
  std::vector<std::filesystem::path> inputs;
  std::filesystem::path output;
  ImportOptions options;
  std::filesystem::path page = {};  ///< --report; of importers that report
};

/// Findings of an importer. Nothing is written before all of it is known to be right.
struct Imported {
  JsonValue document;  ///< one of our own files; null when the importer only reports
  JsonValue found{JsonValue::Object{}};  ///< member "found" of --json
  std::string text;                      ///< the same for people
  /// Findings of an importer that reports; `found`, `text` and the page are made of them.
  std::optional<document::Document> report = {};
  std::vector<std::string> notes;     ///< what was inferred, left out or could not be known
  std::vector<std::string> warnings;  ///< why the result may not be what was wanted
};

/// One kind of file that can be imported.
struct Importer {
  const char* name;
  const char* what;                  ///< "mpiGraph logs and tables, to a platform file"
  const char* input;                 ///< what IN is, for messages
  std::vector<std::string> options;  ///< those it takes: "--base", …
  Imported (*import)(const ImportRequest& request, const Library& library);
  /// Result: it writes a file, only reports, or reports and also writes a file if -o is given.
  enum class Result { file, report, file_if_asked } result = Result::file;
  enum class Files { one, several } files = Files::one;  ///< how many IN it takes
};

/// Every importer; a new one is a file of formats/, which defines its function, and a line of formats.def.
std::span<const Importer> importers();

/// `windtunnel import`: reads the files, writes the result whole or not at all, prints to `out` what
/// was found in them, and to `messages` what was inferred, left out or could not be known. Throws
/// InputError and EnvironmentError.
void run_import(const ImportRequest& request, ResultFormat format, const Library& library,
                std::ostream& out, std::ostream& messages);

}  // namespace windtunnel
