#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/json_build.hpp"
#include "core/json_value.hpp"
#include "core/mapped.hpp"
#include "core/quantile.hpp"
#include "cost/codec_table.hpp"
#include "evidence/evidence.hpp"
#include "platform/fabric.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/terminal_text.hpp"
#include "scenario/key_table.hpp"
#include "scenario/scenario.hpp"
#include "scenario/scenario_files.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"
#include "workload/model_json.hpp"

namespace windtunnel {
namespace {

/// One line of the list: a name, what one chooses by, and a description.
struct Entry {
  std::string name, key_figure, description;
  JsonValue figures = JsonValue(JsonValue::Object{});  ///< members of the JSON document
};

std::string text_at(const JsonValue& object, const char* key) {
  const JsonValue* value = object.find(key);
  if (value == nullptr) return {};
  return value->is_string() ? value->string() : canonical_text(*value);
}

/// "174.6 B parameters" or "671.0 B parameters, 37.6 B active"; "96 layers, hidden 12288"
Entry model_entry(JsonValue file) {
  Entry entry;
  Problems problems;
  const Transformer model = read_transformer(file, {}, problems);
  if (!problems.empty()) return entry;
  const double parameters = total_parameters(model), active = active_parameters(model);
  entry.key_figure = parameter_text(parameters) + " parameters";
  if (model.moe) entry.key_figure += ", " + parameter_text(active) + " active";
  entry.description =
      std::to_string(model.layers) + " layers, hidden " + std::to_string(model.hidden);
  entry.figures.set("parameters", JsonValue(parameters));
  if (model.moe) entry.figures.set("active_parameters", JsonValue(active));
  return entry;
}

/// "8 x a100-sxm-80gb, 4 x 200 Gbps", or "3 nodes of 4 x t4-16gb, 1 x 50 Gbps" where their number is given.
std::string node_text(const JsonValue& figures) {
  const std::string node = text_at(figures, "gpus") + " x " + text_at(figures, "device") + ", " +
                           text_at(figures, "nics") + " x " + text_at(figures, "nic_rate");
  const std::string count = text_at(figures, "count");
  return count.empty() ? node : count + (count == "1" ? " node of " : " nodes of ") + node;
}

JsonValue node_figures(const JsonValue& type) {
  JsonValue figures(JsonValue::Object{});
  for (const char* key : {"count", "gpus", "device", "nics", "nic_rate"})
    if (const JsonValue* value = type.find(key); value != nullptr)
      figures.set(key, value->is_object() ? JsonValue(text_at(*value, "name")) : *value);
  return figures;
}

Entry platform_entry(const JsonValue& file) {
  Entry entry{"", "", text_at(file, "description")};
  JsonValue::Array nodes;
  if (const JsonValue* types = file.find("node_types"); types != nullptr && types->is_array())
    for (const JsonValue& type : types->array()) {
      nodes.push_back(node_figures(type));
      entry.key_figure += (entry.key_figure.empty() ? "" : "; ") + node_text(nodes.back());
    }
  entry.figures.set("node_types", JsonValue(std::move(nodes)));
  return entry;
}

/// The first sentence of the comment that a scenario file begins with.
std::string opening_comment(std::string_view text) {
  std::string comment;
  while (text.starts_with("//")) {
    const std::size_t line_end = std::min(text.find('\n'), text.size());
    comment += text.substr(2, line_end - 2);
    text.remove_prefix(std::min(line_end + 1, text.size()));
  }
  const auto is_capital = [](char letter) { return letter >= 'A' && letter <= 'Z'; };
  for (std::size_t at = 0; at + 2 < comment.size(); ++at) {
    const bool ends = comment[at] == '.' || comment[at] == '?';
    if (ends && comment[at + 1] == ' ' && is_capital(comment[at + 2])) comment.resize(at + 1);
  }
  comment.erase(0, comment.find_first_not_of(' '));
  return comment;
}

/// How far off predictions of a stack's measured runs were that used nothing of their set, in the median: "3.4 % off, 82 runs".
Entry software_entry(const std::string& name, const JsonValue& file, const UnseenErrors& errors) {
  Entry entry{"", "no measured run", text_at(file, "description")};
  JsonValue::Array sets;
  std::vector<double> misses;
  bool are_shared = false;
  for (const auto& [set, residuals] : errors.of_software(name)) {
    const auto miss = [](double residual) { return std::abs(std::expm1(-residual)); };
    const std::vector<double> its = mapped(residuals, miss);
    sets.push_back(object_of({{"set", set},
                              {"software", array_of(errors.sets.at(set).software)},
                              {"runs", static_cast<std::int64_t>(its.size())},
                              {"median_error", median_of(its)}}));
    misses.insert(misses.end(), its.begin(), its.end());
    are_shared = are_shared || errors.sets.at(set).software.size() > 1;
  }
  if (!sets.empty())
    entry.key_figure = percent_text(median_of(misses)) + " off, " +
                       count_text(misses.size(), "run") +
                       (are_shared ? ", some of another stack" : "");
  entry.figures.set("measured", JsonValue(std::move(sets)));
  return entry;
}

Entry entry_of(const Library& library, const LibraryKind& kind, const std::string& file_name,
               const MeasuredErrors& errors) {
  const std::shared_ptr<const SourceText> source =
      read_source(library_file(library, kind, file_name));
  Problems ignored;
  JsonValue file = parse_json(source, ignored);
  const std::string_view name = kind.name;
  if (name == model_files.name) return model_entry(std::move(file));
  if (name == platform_files.name) {
    ScenarioFiles(library, {}, ignored).expand(file, platform_files, {});
    return platform_entry(file);
  }
  if (name == software_files.name) return software_entry(file_name, file, errors.unseen);
  Entry entry;
  entry.description =
      name == scenario_files.name ? opening_comment(source->text) : text_at(file, "description");
  return entry;
}

std::vector<Entry> entries_of(const LibraryKind& kind) {
  const Library library = Library::find();
  const MeasuredErrors errors = read_evidence(library);
  std::vector<Entry> entries;
  for (const std::string& name : library.names(kind.name)) {
    entries.push_back(entry_of(library, kind, name, errors));
    entries.back().name = name;
  }
  if (entries.empty())
    throw EnvironmentError("there are no " + std::string(kind.name) + " in " +
                           (library.root / kind.folder).string());
  return entries;
}

/// Codecs are no files: the compression block of a scenario names them.
std::vector<Entry> codec_entries() {
  return mapped(codecs(), [](const Codec* codec) {
    return Entry{codec->name(), "", codec->traits().about};
  });
}

/// Kinds of fabric, with the keys that each has.
std::vector<Entry> fabric_entries() {
  std::vector<Entry> entries;
  for (const FabricKind& kind : fabric_kinds()) {
    entries.push_back({kind.name, "", kind.about});
    entries.back().figures.set("keys", JsonValue(mapped<JsonValue>(kind.keys, &FabricKey::name)));
  }
  return entries;
}

/// "1 to 8", "none, selective, full"
std::string values_text(const Key& key) {
  const KeyValue& value = key.value;
  if (value.kind == KeyValue::Kind::whole_number)
    return std::to_string(value.least) + " to " + std::to_string(value.most);
  std::string text;
  for (int i = 0; value.kind != KeyValue::Kind::other && i <= value.most; ++i)
    text += (text.empty() ? "" : ", ") + text_of(key, i);
  return text;
}

/// The keys of training, parallel and search that are made from the table, each with its JSON schema.
std::vector<Entry> key_entries() {
  std::vector<Entry> entries;
  const auto add = [&](const std::string& pointer, const std::string& values, JsonValue schema) {
    entries.push_back({pointer, values, schema.find("description")->string(), std::move(schema)});
  };
  for (const Key& key : key_table()) add(key.pointer, values_text(key), schema_of(key));
  for (const SearchKey& searched : search_keys())
    add("/search/" + searched.key->name(), "list", schema_of(searched));
  return entries;
}

std::vector<Entry> list_of(const std::string& word) {
  if (word == "codecs") return codec_entries();
  if (word == "fabrics") return fabric_entries();
  if (word == "keys") return key_entries();
  std::vector<std::string> words{"codecs", "fabrics", "keys"};
  for (const LibraryKind& kind :
       {model_files, platform_files, device_files, software_files, noise_files, scenario_files}) {
    if (word == kind.name) return entries_of(kind);
    words.emplace_back(kind.name);
  }
  const std::string nearest = closest_match(word, words);
  throw UsageError(
      "there is no list of \"" + word + "\" (" +
      (nearest.empty()
           ? "models, platforms, devices, software, noise, scenarios, codecs, fabrics or keys"
           : "did you mean \"" + nearest + "\"?") +
      ")");
}

std::string text_of(const std::vector<Entry>& entries) {
  std::vector<TextRow> rows;
  const bool any_figure =
      std::ranges::any_of(entries, [](const Entry& entry) { return !entry.key_figure.empty(); });
  for (const Entry& entry : entries)
    rows.push_back(any_figure ? TextRow{entry.name, entry.key_figure, entry.description}
                              : TextRow{entry.name, entry.description});
  std::string text;
  for (const std::string& row : table_lines(text_columns(any_figure ? "lww" : "lw"), rows).rows)
    text += row + "\n";
  return text;
}

std::string list_json(const std::string& kind, const std::vector<Entry>& entries) {
  return pretty_text(object_of(
             {{kind, array_of(entries,
                              [](const Entry& entry) {
                                const std::string& about = entry.description;
                                JsonValue item =
                                    object_of({{"name", entry.name},
                                               {"description", only_if(!about.empty(), about)}});
                                merge_json(item, entry.figures);
                                return item;
                              })}})) +
         "\n";
}

}  // namespace

ExitCode list_command(const CommandLine& line) {
  const std::string& kind = line.arguments.front();
  const std::vector<Entry> entries = list_of(kind);
  print_result(line,
               line.format == ResultFormat::json ? list_json(kind, entries) : text_of(entries));
  return exit_done;
}

}  // namespace windtunnel
