#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string>

#include "core/file_io.hpp"
#include "core/number_in.hpp"
#include "core/problem.hpp"
#include "scenario/scenario.hpp"
#include "search/new_scenario.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"

namespace windtunnel {
namespace {

/// Why `name` is no file of this kind; empty where it is one, or a path.
std::string why_unknown(const Library& library, const LibraryKind& kind, const std::string& name) {
  if (looks_like_path(name)) return {};
  const std::vector<std::string> names = library.names(kind.name);
  if (std::ranges::find(names, name) != names.end()) return {};
  return std::string("there is no ") + kind.noun + " \"" + name + "\" (" +
         suggest_name(library, kind, name) + ")";
}

/// Asks until `complaint` has nothing against the answer.
template <class Complaint>
std::string ask(const std::string& question, Complaint complaint) {
  for (std::string answer;;) {
    std::cerr << question << ": " << std::flush;
    refuse_if(!std::getline(std::cin, answer), "new needs --model, --platform and --gpus");
    const std::string problem = answer.empty() ? "nothing was written" : complaint(answer);
    if (problem.empty()) return answer;
    print_message(problem);
  }
}

NewScenarioRequest request_of(const CommandLine& line, const Library& library) {
  refuse_if(line.gpus.size() > 1, "new takes one --gpus, these are several");
  NewScenarioRequest request{
      line.model,        line.platform, line.gpus.empty() ? 0 : line.gpus.front(),
      line.global_batch, line.sequence, line.lora_rank,
      line.overrides};
  const auto complaint_about = [&](const LibraryKind& kind) {
    return [&](const std::string& name) { return why_unknown(library, kind, name); };
  };
  const bool is_whole = !request.model.empty() && !request.platform.empty() && request.gpus > 0;
  refuse_if(!is_whole && ::isatty(STDIN_FILENO) != 1, "new needs --model, --platform and --gpus");
  if (request.model.empty())
    request.model = ask("Model, such as llama3-70b (windtunnel list models has all)",
                        complaint_about(model_files));
  if (request.platform.empty())
    request.platform = ask("Platform, such as dgx-h100 (windtunnel list platforms has all)",
                           complaint_about(platform_files));
  if (request.gpus == 0)
    request.gpus = *number_in<int>(ask("Number of GPUs", [](const std::string& text) {
      return number_in<int>(text) > 0 ? "" : "\"" + text + "\" is no number of GPUs";
    }));
  Problems problems;
  for (const auto& [kind, name] :
       {std::pair{&model_files, request.model}, {&platform_files, request.platform}})
    if (const std::string problem = why_unknown(library, *kind, name); !problem.empty())
      problems.add({{}, {}, problem, {}});
  check_values_of_new(request.overrides, problems);
  problems.throw_if_any();
  return request;
}

}  // namespace

ExitCode new_command(const CommandLine& line) {
  const Library library = Library::find();
  const NewScenario made = new_scenario(request_of(line, library), library);
  if (!made.doubt.empty()) print_note(line, "warning: " + made.doubt);
  const std::string text =
      line.format == ResultFormat::json ? pretty_text(made.document) + "\n" : made.text;
  if (line.output.empty()) {
    print_result(text);  // a scenario: no line of it may be broken
    return exit_done;
  }
  if (!write_new_file_atomically(line.output, text))
    throw UsageError(line.output + " is there already (name another file, or remove it)");
  print_note(line, "wrote " + line.output + "; next: windtunnel run " + line.output);
  return exit_done;
}

}  // namespace windtunnel
