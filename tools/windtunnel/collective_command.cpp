#include <filesystem>
#include <optional>
#include <string>

#include "questions/collective.hpp"
#include "units/quantity_reader.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/outputs.hpp"

namespace windtunnel {

namespace {

constexpr Bytes most_payload{1e15};  // as in a measurement set

Bytes bytes_of(const std::string& text) {
  std::string problem, suggestion;
  const std::optional<Bytes> bytes = parse_quantity<Bytes>(text, problem, suggestion);
  if (bytes && *bytes > Bytes{0} && *bytes <= most_payload) return *bytes;
  if (bytes) problem = *bytes > most_payload ? "more than 1 PB" : "nothing is sent";
  throw UsageError("--bytes " + text + ": " + problem + " (" +
                   (suggestion.empty() ? "write 64MiB or 1GiB" : suggestion) + ")");
}

}  // namespace

ExitCode collective_command(const CommandLine& line) {
  CollectiveQuestion question;
  question.gpus = line.gpus;
  if (!line.algorithm.empty()) question.algorithm = line.algorithm;
  for (const std::string& text : line.bytes) question.bytes.push_back(bytes_of(text));
  for (const CollectiveOperation operation : enumerators<CollectiveOperation>())
    if (line.arguments.front() == dashed_name(operation)) question.operation = operation;
  JsonValue scenario{JsonValue::Object{}};
  scenario.set("platform", JsonValue(line.platform));
  const Platform platform =
      read_platform(scenario, std::filesystem::current_path(), Library::find(), {line.overrides});
  const document::Document document = collective_document(question, platform);
  write_outputs(line, {{line.report, [&] { return page_of(document); }}});
  print_result(line, document);
  return exit_done;
}

}  // namespace windtunnel
