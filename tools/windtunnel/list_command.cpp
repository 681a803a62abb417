#include <algorithm>
#include <string>
#include <vector>

#include "core/file_io.hpp"
#include "core/json_value.hpp"
#include "scenario/compression_json.hpp"
#include "scenario/library_files.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"

namespace windtunnel {
namespace {

/// One line of the list.
struct Entry {
  std::string name, description;
};

/// "48 layers, hidden 8192" of a model, else what the file says of itself.
std::string describe(const JsonValue& file) {
  if (const JsonValue* text = file.find("description"); text != nullptr && text->is_string())
    return text->string();
  const JsonValue* layers = file.find("layers");
  const JsonValue* hidden = file.find("hidden");
  if (layers == nullptr || hidden == nullptr) return {};
  return text_for_message(*layers) + " layers, hidden " + text_for_message(*hidden);
}

std::vector<Entry> entries_of(const LibraryKind& kind) {
  const Library library = Library::find();
  std::vector<Entry> entries;
  for (const std::string& name : library.names(kind.name)) {
    Problems ignored;
    entries.push_back(
        {name, describe(parse_json(read_source(library_file(library, kind, name)), ignored))});
  }
  if (entries.empty())
    throw EnvironmentError("there are no " + std::string(kind.name) + " in " +
                           (library.root / kind.folder).string());
  return entries;
}

/// Codecs are no files: the compression block of a scenario names them.
std::vector<Entry> codec_entries() {
  std::vector<Entry> entries;
  for (const auto& [name, description] : codec_list()) entries.push_back({name, description});
  return entries;
}

std::vector<Entry> list_of(const std::string& word) {
  std::vector<std::string> words{"codecs"};
  for (const LibraryKind& kind :
       {model_files, platform_files, device_files, software_files, scenario_files}) {
    if (word == kind.name) return entries_of(kind);
    words.emplace_back(kind.name);
  }
  if (word == words.front()) return codec_entries();
  const std::string nearest = closest_match(word, words);
  throw UsageError("there is no list of \"" + word + "\" (" +
                   (nearest.empty() ? "models, platforms, devices, software, scenarios or codecs"
                                    : "did you mean \"" + nearest + "\"?") +
                   ")");
}

std::string text_of(const std::vector<Entry>& entries) {
  std::size_t width = 0;
  for (const Entry& entry : entries) width = std::max(width, entry.name.size());
  std::string text;
  for (const Entry& entry : entries) {
    text += entry.name;
    if (!entry.description.empty())
      text += std::string(width - entry.name.size() + 2, ' ') + entry.description;
    text += "\n";
  }
  return text;
}

std::string json_of(const std::string& kind, const std::vector<Entry>& entries) {
  JsonValue::Array list;
  for (const Entry& entry : entries) {
    JsonValue item(JsonValue::Object{});
    item.set("name", JsonValue(entry.name));
    if (!entry.description.empty()) item.set("description", JsonValue(entry.description));
    list.push_back(std::move(item));
  }
  JsonValue result(JsonValue::Object{});
  result.set(kind, JsonValue(std::move(list)));
  return pretty_text(result) + "\n";
}

}  // namespace

ExitCode list_command(const CommandLine& line) {
  const std::string& kind = line.arguments.front();
  const std::vector<Entry> entries = list_of(kind);
  print_result(line.format == ResultFormat::json ? json_of(kind, entries) : text_of(entries));
  return exit_done;
}

}  // namespace windtunnel
