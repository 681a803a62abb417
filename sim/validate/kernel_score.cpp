#include "validate/kernel_score.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "core/file_io.hpp"
#include "core/quantile.hpp"
#include "cost/kernel_cost.hpp"
#include "cost/model_operations.hpp"
#include "platform/platform_json.hpp"
#include "report/number_text.hpp"
#include "report/terminal_text.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {
namespace fs = std::filesystem;
namespace {

constexpr double microsecond = 1e-6;

/// One line of a table, by the name of its column.
using CsvRow = std::map<std::string, std::string>;

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
  return cells;
}

/// The rows of `table` that were measured on `device`.
std::vector<CsvRow> rows_of(const fs::path& folder, const std::string& table,
                            const std::string& device) {
  const fs::path file = folder / (table + ".csv");
  std::istringstream in(read_source(file)->text);
  std::vector<std::string> names;
  std::vector<CsvRow> rows;
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> cells = cells_of(line);
    if (names.empty()) {
      names = cells;
      continue;
    }
    CsvRow row;
    for (std::size_t i = 0; i < std::min(cells.size(), names.size()); ++i) row[names[i]] = cells[i];
    if (row["device"] == device) rows.push_back(std::move(row));
  }
  return rows;
}

double number(const CsvRow& row, const std::string& column) {
  return std::strtod(row.at(column).c_str(), nullptr);
}

Seconds measured_time(const CsvRow& row) { return Seconds{number(row, "time_us") * microsecond}; }

Precision precision_of(const CsvRow& row) {
  for (const Precision each : {Precision::fp16, Precision::fp8, Precision::mxfp8, Precision::nvfp4})
    if (row.at("precision") == name_of(each)) return each;
  return Precision::bf16;
}

/// All measured kernels of fused attention are cuDNN's.
FlashKernel kernel_of(Precision precision) {
  return is_quantized(precision) ? FlashKernel::fp8 : FlashKernel::cudnn;
}

KernelContext context_of(const Device& device, Precision precision) {
  KernelContext context;
  context.device = &device;
  context.precision = context.attention_precision = precision;
  context.flash_kernel = kernel_of(precision);
  return context;
}

void add_products(const fs::path& folder, const Device& device, std::vector<KernelPoint>& points) {
  for (const CsvRow& row : rows_of(folder, "gemm", device.name)) {
    const Gemm gemm{number(row, "m"), number(row, "n"), number(row, "k"), number(row, "batch")};
    const Bytes accumulated{number(row, "accumulated_bytes") * gemm.m * gemm.n};
    const Seconds time =
        gemm_time(gemm, context_of(device, precision_of(row))) + memory_time(accumulated, device);
    points.push_back({"gemm", row.at("precision"), measured_time(row), time});
  }
}

/// Products of many experts in one kernel; backward, what is summed over, or written, are their tokens.
void add_grouped(const fs::path& folder, const Device& device, std::vector<KernelPoint>& points) {
  for (const CsvRow& row : rows_of(folder, "grouped", device.name)) {
    const double rows = number(row, "rows"), n = number(row, "n"), k = number(row, "k"),
                 groups = number(row, "groups");
    const std::string& stage = row.at("stage");
    const Gemm gemm = stage == "input_gradient"    ? Gemm{rows, k, n, groups, rows}
                      : stage == "weight_gradient" ? Gemm{k, n, rows, groups, rows}
                                                   : Gemm{rows, n, k, groups, rows};
    points.push_back({"grouped", row.at("precision") + " " + stage, measured_time(row),
                      gemm_time(gemm, context_of(device, precision_of(row)))});
  }
}

/// Pairs of queries and keys: all, half of them under a causal mask, or those of a causal window.
double pairs_of(const CsvRow& row) {
  const double queries = number(row, "queries"), window = number(row, "window");
  if (row.at("mask") != "causal") return queries * queries;
  constexpr double half = 0.5;
  return window > 0 ? queries * window - half * window * window : half * queries * queries;
}

Seconds attention_of(const CsvRow& row, const Device& device) {
  constexpr double per_pair = 2, backward_ratio = 2.5;  // as in sim/workload/transformer.cpp
  const bool backward = row.at("direction") == "backward";
  const double width = number(row, "query_size") + number(row, "value_size");
  const Flops flops{per_pair * (backward ? backward_ratio : 1.0) * number(row, "heads") *
                    pairs_of(row) * width};
  return attention_time(flops,
                        {.heads = number(row, "heads"),
                         .queries = number(row, "queries"),
                         .head_size = number(row, "query_size"),
                         .causal = row.at("mask") == "causal",
                         .backward = backward},
                        context_of(device, precision_of(row)));
}

/// The shape of a row's kernel: rows with the same text are measurements of one shape.
std::string shape_of(const CsvRow& row) {
  std::string text;
  for (const auto& [name, value] : row)
    if (name != "time_us" && name != "deterministic") text += value + ",";
  return text;
}

void add_attention(const fs::path& folder, const Device& device, std::vector<KernelPoint>& points) {
  constexpr double least_window = 1024;  // below it blocks at the window's edges dominate
  const std::vector<CsvRow> rows = rows_of(folder, "attention", device.name);
  std::set<std::string> free_order;
  for (const CsvRow& row : rows)
    if (row.at("deterministic") == "no") free_order.insert(shape_of(row));
  for (const CsvRow& row : rows) {
    const double window = number(row, "window");
    const bool is_twin = row.at("deterministic") == "yes" && free_order.contains(shape_of(row));
    if (is_twin || !device.has_attention(kernel_of(precision_of(row)), precision_of(row)) ||
        (window > 0 && window < least_window))
      continue;
    points.push_back({"attention", row.at("precision") + " " + row.at("direction"),
                      measured_time(row), attention_of(row, device)});
  }
}

void add_norms(const fs::path& folder, const Device& device, std::vector<KernelPoint>& points) {
  for (const CsvRow& row : rows_of(folder, "norms", device.name))
    points.push_back({"norms", row.at("backend") + " " + row.at("direction"), measured_time(row),
                      memory_time(Bytes{number(row, "bytes")}, device) + device.kernel_overhead});
}

SoftwareProfile shipped_software(const Library& library, const std::string& name) {
  Problems problems;
  JsonValue value = parse_json(read_source(library_file(library, software_files, name)), problems);
  SoftwareProfile software = read_software(value, {}, problems);
  problems.throw_if_any();
  return software;
}

/// One layer of standard attention on one GPU, forward, as runs have it.
Seconds layer_time(const CsvRow& row, const NodeType& node, const SoftwareProfile& software) {
  constexpr int inner_ratio = 4;
  Transformer model;
  model.hidden = static_cast<int>(number(row, "hidden"));
  model.heads = model.kv_heads = static_cast<int>(number(row, "heads"));
  model.sequence = static_cast<int>(number(row, "sequence"));
  model.ffn_hidden = inner_ratio * model.hidden;
  Plan plan;
  plan.training.micro_batch = static_cast<int>(number(row, "samples"));
  plan.training.precision = Precision::fp16;
  StageCostInputs inputs;
  inputs.model = &model;
  inputs.plan = &plan;
  inputs.software = &software;
  inputs.node = &node;
  const ChunkOperations chunk = model_operations(inputs, {.layers = 1});
  Seconds time{};
  for (const Operation& operation : chunk.at(Direction::forward).layer) time += operation.time;
  return time;
}

void add_layers(const Library& library, const fs::path& folder, const Device& device,
                std::vector<KernelPoint>& points) {
  NodeType node;
  node.device = device;
  std::map<std::string, SoftwareProfile> stacks;
  for (const CsvRow& row : rows_of(folder, "layers", device.name)) {
    const std::string& name = row.at("stack");
    if (!stacks.contains(name)) stacks.emplace(name, shipped_software(library, name));
    points.push_back({"layers", name + " " + row.at("direction"), measured_time(row),
                      layer_time(row, node, stacks.at(name))});
  }
}

KernelError error_of(const std::string& table, const std::string& group,
                     const std::vector<double>& errors) {
  KernelError result{table, group, static_cast<int>(errors.size()), 0, 0, 0, median_of(errors)};
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::abs(error));
  result.median = median_of(sizes);
  for (const double size : sizes) {
    result.mean += size / static_cast<double>(sizes.size());
    result.worst = std::max(result.worst, size);
  }
  return result;
}

}  // namespace

std::vector<KernelPoint> kernel_points(const Library& library, const Device& device) {
  const fs::path folder = library.root / "validation" / "kernels";
  std::vector<KernelPoint> points;
  add_products(folder, device, points);
  add_grouped(folder, device, points);
  add_attention(folder, device, points);
  add_norms(folder, device, points);
  add_layers(library, folder, device, points);
  return points;
}

std::vector<KernelError> kernel_errors(const std::vector<KernelPoint>& points) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> errors;
  for (const KernelPoint& point : points)
    for (const std::string& group : {std::string(), point.group})
      errors[{point.table, group}].push_back(point.error());
  std::vector<KernelError> result;
  for (const auto& [key, each] : errors) result.push_back(error_of(key.first, key.second, each));
  return result;
}

ValidatedSet kernel_set(const std::string& name, const std::string& table,
                        const std::vector<KernelPoint>& points) {
  ValidatedSet set;
  set.name = name;
  set.kind = MeasurementKind::collective;
  for (const KernelPoint& point : points) {
    if (point.table != table) continue;
    ScoredRow& row = set.comparisons.emplace_back();
    row.measured = point.measured;
    row.predicted = point.predicted;
  }
  set.num_points = set.comparisons.size();
  return set;
}

std::string kernel_text(const std::vector<KernelError>& errors) {
  const auto percent = [](double share) { return fixed_text(100 * share, 1) + " %"; };
  std::vector<TextRow> rows{{"kernels", "points", "median", "mean", "worst", "bias", "group"}};
  for (const KernelError& each : errors)
    rows.push_back({each.table, std::to_string(each.points), percent(each.median),
                    percent(each.mean), percent(each.worst), percent(each.bias),
                    each.group.empty() ? "all" : each.group});
  return text_table("lrr?rr?rw", rows);
}

}  // namespace windtunnel
