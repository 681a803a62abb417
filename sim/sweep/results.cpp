#include "sweep/results.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>

#include "core/file_io.hpp"
#include "core/staged_files.hpp"
#include "core/terminal_safe.hpp"
#include "evidence/evidence.hpp"
#include "report/json_object.hpp"
#include "report/terminal_text.hpp"
#include "sweep/plot_data.hpp"
#include "sweep/row.hpp"
#include "sweep/sweep_svg.hpp"

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

constexpr std::array figures{"gpus",
                             "iteration_time_s",
                             "iteration_time_low_s",
                             "iteration_time_high_s",
                             "samples_per_s",
                             "tokens_per_s",
                             "model_tflops_per_gpu",
                             "mfu",
                             "memory_max_bytes",
                             "fits",
                             "memory_verdict",
                             "failure",
                             "error"};

bool is_number(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && stop == end;
}

/// A table's program takes what begins so for a formula, which may read files and open addresses. An apostrophe before it makes
/// it text (OWASP, "CSV Injection").
std::string no_formula(const std::string& text) {
  constexpr std::string_view marks = "=+-@\t\r";
  if (text.empty() || marks.find(text.front()) == std::string_view::npos || is_number(text))
    return text;
  return "'" + text;
}

/// Text as a terminal may show it, unless it could be a formula; the rest as JSON.
std::string field_of(const JsonValue* value) {
  if (value == nullptr || value->is_null()) return {};
  return value->is_string() ? no_formula(for_terminal(value->string()))
                            : for_terminal(canonical_text(*value));
}

/// Both ends of the interval have columns of their own.
const JsonValue* figure_of(const JsonValue& row, const std::string& name) {
  for (const auto& [low, high, key] :
       {std::tuple{"iteration_time_low_s", "iteration_time_high_s", time_interval_key},
        {"speedup_low", "speedup_high", speedup_interval_key}})
    if (name == low || name == high)
      return find_at(row, std::string("/") + key + (name == low ? "/0" : "/1"));
  return row.find(name);
}

/// Whether points are on the front, of those that have days and a cost.
std::map<std::size_t, std::string> front_fields(const PartRows& rows,
                                                const std::vector<std::string>& columns) {
  std::map<std::size_t, std::string> fields;
  for (const FrontPoint& each : front_of(rows, columns))
    fields[each.point] = each.priced.on_front ? "true" : "false";
  return fields;
}

/// Two processes that end together may write in either order, so each looks once more. Rows that keep coming are left to those who add them:
/// they merge at their own end.
constexpr int most_rounds = 3;

std::string results_jsonl(const PartRows& rows) {
  std::string text;
  for (const auto& [point, row] : rows.by_point) text += row.line + "\n";
  return text;
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

PartRows with_speedups(PartRows rows, const Sweep& sweep) {
  const std::optional<std::size_t> baseline = sweep.points().baseline();
  const auto found = baseline ? rows.by_point.find(*baseline) : rows.by_point.end();
  if (found == rows.by_point.end() || !found->second.ok) return rows;
  const JsonValue base = found->second.content;
  const auto rate = [](const JsonValue& row) { return figure(row, "tokens_per_s"); };
  if (rate(base) <= 0) return rows;
  // Times of a token: iterations may hold different numbers of them.
  const auto judged = [&](const JsonValue& row) {
    return judged_run(row).scaled(1 / (rate(row) * figure(row, "iteration_time_s")));
  };
  const PairErrors errors = read_evidence(sweep.library()).pairs;
  const JudgedRun judged_base = judged(base);
  for (auto& [point, row] : rows.by_point) {
    if (!row.ok) continue;
    JsonValue more = object_of({{speedup_key, rate(row.content) / rate(base)}});
    if (point != *baseline && rate(row.content) > 0)
      if (const auto ordering = order(judged_base, judged(row.content), errors))
        add_members(more, {{speedup_interval_key, array_of(std::array{ordering->interval.first,
                                                                      ordering->interval.second})},
                           {speedup_verdict_key, name_of(ordering->verdict)}});
    row = *parse_row(with_members(row.line, more, sweep.hash()));
  }
  return rows;
}

std::string results_csv(const PartRows& rows, const std::vector<std::string>& columns,
                        const std::vector<std::string>& asked) {
  std::vector<std::string> fields{"point", "id"};
  const bool has_labels = std::ranges::any_of(
      rows.by_point, [](const auto& each) { return each.second.content.find("label") != nullptr; });
  if (has_labels) fields.emplace_back("label");
  fields.insert(fields.end(), columns.begin(), columns.end());
  fields.emplace_back("ok");
  fields.insert(fields.end(), figures.begin(), figures.end());
  fields.insert(fields.end(), asked.begin(), asked.end());
  if (std::ranges::find(asked, speedup_key) != asked.end())
    fields.insert(fields.end(), {"speedup_low", "speedup_high", speedup_verdict_key});
  const bool has_front = std::ranges::find(asked, "cost") != asked.end();
  if (has_front) fields.emplace_back("on_front");
  const std::map<std::size_t, std::string> fronts = front_fields(rows, columns);
  const std::vector<std::string> header = fields;
  for (std::string& field : fields) field = for_terminal(field);
  std::string text = csv_line(fields);
  for (const auto& [point, row] : rows.by_point) {
    fields.clear();
    for (const std::string& name : header)
      if (name != "on_front") fields.push_back(field_of(figure_of(row.content, name)));
    if (has_front) fields.push_back(fronts.count(point) > 0 ? fronts.at(point) : "");
    text += csv_line(fields);
  }
  return text;
}

PartRows merge_results(const fs::path& directory, const Sweep& sweep) {
  for (int round = 1;; ++round) {
    PartRows rows = with_speedups(read_parts(directory, sweep), sweep);
    StagedFiles files;
    files.add(directory / "results.jsonl", results_jsonl(rows));
    files.add(directory / "results.csv",
              results_csv(rows, sweep.points().columns(), sweep.asked_figures()));
    const std::string picture = sweep_svg(sweep.name(), sweep.points().columns(), rows);
    if (!picture.empty()) files.add(directory / "sweep.svg", picture);
    files.commit();
    std::error_code ignored;
    if (picture.empty()) fs::remove(directory / "sweep.svg", ignored);
    if (round == most_rounds || size_of_parts(directory) == rows.num_bytes) return rows;
  }
}

}  // namespace windtunnel
