#include "sweep/row.hpp"

#include <memory>
#include <string_view>

#include "core/contracts.hpp"
#include "core/hash.hpp"
#include "core/problem.hpp"
#include "core/text_list.hpp"
#include "memory/memory_account.hpp"

namespace windtunnel {
namespace {

constexpr std::string_view checksum_key = ", \"checksum\": \"";
constexpr std::size_t hash_digits = 32;
constexpr std::string_view row_end = "\"}";

/// What is wrong with the figures of a point that was simulated; empty: nothing.
std::string fault_of_figures(const JsonValue& row) {
  for (const char* key : {"samples_per_s", "tokens_per_s", "model_tflops_per_gpu", "mfu",
                          "memory_max_bytes", "iteration_time_s"})
    if (number_of(row.find(key)).value_or(-1) < 0)
      return std::string("its ") + key + " is no figure of a simulation";
  if (number_of(row.find("iteration_time_s")) == 0.0) return "its iteration takes no time";
  const JsonValue* gpus = row.find("gpus");
  if (gpus == nullptr || !gpus->is_integer() || std::get<std::int64_t>(gpus->content) < 1)
    return "its gpus are no number of GPUs";
  const JsonValue* fits = row.find("fits");
  return fits == nullptr || !fits->is_bool() ? "it does not say whether the point fits" : "";
}

std::string fault_of_checksum(const std::string& line, const std::string& sweep_hash) {
  const std::size_t tail = checksum_key.size() + hash_digits + row_end.size();
  if (line.size() <= tail ||
      line.compare(line.size() - tail, checksum_key.size(), checksum_key) != 0)
    return "it has no checksum, so nobody can know whether it was changed";
  return line == with_checksum(line.substr(0, line.size() - tail) + "}", sweep_hash)
             ? ""
             : "its checksum does not match: it was changed after it was written, or is of another "
               "sweep";
}

std::string fault_of_values(const JsonValue& row, const PointValues& values) {
  for (const auto& [pointer, value] : values) {
    const JsonValue* found = row.find(pointer);
    if (found == nullptr || canonical_text(*found) != canonical_text(value))
      return "its " + pointer + " is not what the sweep sets there";
  }
  const std::string id = text_at(row, "id");
  return id.size() == hash_digits && id.find_first_not_of("0123456789abcdef") == std::string::npos
             ? ""
             : "its id is none of a scenario";
}

}  // namespace

std::string line_text(const JsonValue& object) {
  return listed(object.object(), [](const JsonValue::Member& member) {
    return canonical_text(JsonValue(member.key)) + ": " + canonical_text(member.value);
  });
}

std::optional<Row> parse_row(const std::string& line) {
  Problems problems;
  Row row;
  row.content = parse_json(std::make_shared<const SourceText>(SourceText{"", line}), problems);
  if (!problems.empty() || !row.content.is_object()) return std::nullopt;
  const JsonValue* point = row.content.find("point");
  const JsonValue* ok = row.content.find("ok");
  if (point == nullptr || !point->is_integer() || ok == nullptr || !ok->is_bool())
    return std::nullopt;
  row.point = static_cast<std::size_t>(std::get<std::int64_t>(point->content));
  row.ok = std::get<bool>(ok->content);
  row.line = line;
  return row;
}

std::optional<std::pair<double, double>> interval_of(const JsonValue& row, const char* key) {
  const JsonValue* interval = row.find(key);
  if (interval == nullptr || !interval->is_array() || interval->array().size() != 2)
    return std::nullopt;
  const auto low = number_of(&interval->array()[0]), high = number_of(&interval->array()[1]);
  if (!low || !high) return std::nullopt;
  return std::pair(*low, *high);
}

double figure(const JsonValue& row, const std::string& key) {
  return number_of(row.find(key)).value_or(0);
}

std::string text_at(const JsonValue& object, const std::string& key) {
  const JsonValue* value = object.find(key);
  if (value == nullptr) return "";
  return value->is_string() ? value->string() : canonical_text(*value);
}

const char* memory_mark(const JsonValue& row) {
  return text_at(row, "memory_verdict") == name_of(MemoryVerdict::lower_bound) ? "≥ " : "";
}

bool fits(const JsonValue& row) {
  const JsonValue* value = row.find("fits");
  return value != nullptr && value->is_bool() && std::get<bool>(value->content);
}

double penalty_of(const Sweep& sweep, const JsonValue& row) {
  const Objective objective = sweep.choices().objective;
  if (objective == Objective::tokens_per_second) return -figure(row, "tokens_per_s");
  return figure(row, objective == Objective::time ? "iteration_time_s" : name_of(objective));
}

std::string point_name(const JsonValue& row, const std::vector<std::string>& columns) {
  std::string name = text_at(row, "label");
  if (!name.empty()) return name;
  for (const std::string& column : columns)
    if (row.find(column) != nullptr)
      name += (name.empty() ? "" : ", ") + short_name(column, columns) + " " + text_at(row, column);
  return name;
}

std::string with_checksum(const std::string& row, const std::string& sweep_hash) {
  WT_EXPECT(row.ends_with('}'));
  return row.substr(0, row.size() - 1) + std::string(checksum_key) +
         fnv1a_128_hex(sweep_hash + row) + std::string(row_end);
}

std::string with_members(const std::string& row, const JsonValue& more,
                         const std::string& sweep_hash) {
  return with_checksum(row.substr(0, row.rfind(checksum_key)) + ", " + line_text(more) + "}",
                       sweep_hash);
}

std::variant<Row, std::string> read_row(const std::string& line, const Sweep& sweep) {
  std::optional<Row> row = parse_row(line);
  if (!row) return "it is no row";
  if (row->point >= sweep.points().size()) return "the sweep has no such point";
  std::string fault = fault_of_checksum(line, sweep.hash());
  if (fault.empty()) fault = fault_of_values(row->content, sweep.points().values(row->point));
  if (fault.empty() && row->ok) fault = fault_of_figures(row->content);
  if (fault.empty() && !row->ok && text_at(row->content, "failure").empty())
    fault = "it does not say why its point failed";
  if (!fault.empty()) return fault;
  return std::move(*row);
}

}  // namespace windtunnel
