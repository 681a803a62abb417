#include "report/summary_text.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "core/utf8.hpp"
#include "report/number_text.hpp"
#include "report/terminal_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using detail::indent;
using detail::listed;
using detail::marked;
using detail::Painter;
using detail::spoken;
using detail::time_text;
using detail::Tone;

std::string headline(const Report& report, const Painter& paint) {
  std::string line = std::string(indent) +
                     paint(Tone::headline, to_text(report.iteration_time) + " per iteration");
  if (report.iteration_time_interval)
    line += paint(Tone::quiet, "        90 %: " + to_text(report.iteration_time_interval->first) +
                                   " to " + to_text(report.iteration_time_interval->second));
  line += "\n";
  if (!report.memory.fits) line += marked("✗", "if it fitted in memory", Tone::bad, paint);
  return line;
}

std::string speed(const Report& report) {
  constexpr double one_decimal_below = 1000;
  const double samples = report.samples_per_s;
  std::vector<std::string> items{
      (samples < one_decimal_below ? fixed_text(samples, 1) : grouped_text(samples)) + " samples/s",
      grouped_text(report.tokens_per_s) + " tokens/s",
      fixed_text(report.model_flops_per_gpu / 1_TFLOPS, 1) + " TFLOP/s per GPU",
      "MFU " + percent_text(report.mfu)};
  if (report.hfu != report.mfu) items.push_back("HFU " + percent_text(report.hfu));
  return listed(items);
}

/// "39.1 B", "760 M": as models are called.
std::string parameter_text(double parameters) {
  constexpr double trillion = 1e12, billion = 1e9, million = 1e6;
  if (parameters >= trillion) return fixed_text(parameters / trillion, 2) + " T";
  if (parameters >= billion) return fixed_text(parameters / billion, 1) + " B";
  return fixed_text(parameters / million, 0) + " M";
}

std::string counted(int number, const char* thing, const char* plural = "s") {
  return grouped_text(number) + " " + thing + (number == 1 ? "" : plural);
}

std::string job(const Report& report) {
  const std::string cluster = counted(report.num_gpus, "GPU") + " of " + report.platform_name;
  return detail::paragraph(report.model_name + " (" + parameter_text(report.parameters) +
                           " parameters) on " + cluster + " with " + report.software_name);
}

std::string plan(const Report& report) {
  const Parallel& parallel = report.plan.parallel;
  const Training& training = report.plan.training;
  std::string schedule = name_of(parallel.schedule);
  if (parallel.virtual_pipeline > 1)
    schedule += " with " + counted(parallel.virtual_pipeline, "chunk");
  std::vector<std::string> items{"tensor " + std::to_string(parallel.tensor) + " × pipeline " +
                                     std::to_string(parallel.pipeline) + " × data " +
                                     std::to_string(parallel.data),
                                 schedule,
                                 counted(report.plan.microbatches, "microbatch", "es") + " of " +
                                     counted(training.micro_batch, "sample"),
                                 name_of(training.precision)};
  if (parallel.sequence_parallel) items.emplace_back("sequence parallel");
  if (parallel.zero_stage > 0) items.push_back("ZeRO-" + std::to_string(parallel.zero_stage));
  if (training.attention == Attention::flash) items.emplace_back("flash attention");
  if (training.recompute == Recompute::full) items.emplace_back("full recompute");
  if (training.recompute == Recompute::selective) items.emplace_back("selective recompute");
  std::string text = listed(items);
  if (!report.placement_note.empty())
    text += detail::paragraph("placement searched: " + report.placement_note);
  return text;
}

std::string breakdown(const Report& report, const Painter& paint) {
  constexpr int name_width = 15, time_width = 12, share_width = 9, bar_width = 40;
  const Seconds total = report.breakdown.total();
  if (!(total > 0_s)) return "";
  std::string text =
      "\n" + paint(Tone::heading, "Where the time goes, on the GPUs that finish last") + "\n";
  for (int i = 0; i < num_lines; ++i) {
    const auto line = static_cast<Line>(i);
    const Seconds time = report.breakdown.of(line);
    const std::string number = time_text(time, total);
    if (number == time_text(0_s, total)) continue;
    text += std::string(indent) + left_aligned(spoken(name_of(line)), name_width) +
            right_aligned(number, time_width) +
            right_aligned(percent_text(time / total), share_width) + "  " +
            paint(Tone::bar, bar_text(time / total, bar_width)) + "\n";
  }
  return text;
}

/// One row of the memory table: the first stages' name and the amounts as they are printed.
struct MemoryRow {
  std::uint32_t first = 0, last = 0;
  std::string cells;
  bool fits = true;
};

constexpr std::array memory_columns{"weights", "gradients", "optimizer", "activations",
                                    "buffers", "allocated", "in use"};
constexpr int stage_width = 7;

/// Wide enough for 9999.99 and a gap.
int width_of(const char* column) { return std::max(7, utf8_count(column)) + 2; }

std::string memory_cells(const StageMemory& stage) {
  const std::array amounts{stage.weights, stage.gradients, stage.optimizer, stage.activations,
                           stage.buffers, stage.allocated, stage.total};
  static_assert(amounts.size() == memory_columns.size());
  std::string cells;
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    cells += right_aligned(fixed_text(amounts[i] / 1_GiB, 2), width_of(memory_columns[i]));
  }
  return cells;
}

std::vector<MemoryRow> memory_rows(const MemoryAccount& memory) {
  std::vector<MemoryRow> rows;
  for (const StageMemory& stage : memory.stages) {
    MemoryRow row{stage.stage.index(), stage.stage.index(), memory_cells(stage),
                  stage.verdict != MemoryVerdict::does_not_fit};
    if (!rows.empty() && rows.back().cells == row.cells && rows.back().fits == row.fits)
      rows.back().last = row.last;
    else
      rows.push_back(row);
  }
  return rows;
}

std::string verdict(const MemoryAccount& memory, const Painter& paint) {
  const auto worst =
      std::find_if(memory.stages.begin(), memory.stages.end(),
                   [&](const StageMemory& stage) { return stage.stage == memory.worst_stage; });
  if (worst == memory.stages.end()) return "";
  const std::string stage = "stage " + std::to_string(memory.worst_stage.index());
  const std::string use =
      stage + " uses " + to_text(worst->total) + " of " + to_text(memory.capacity);
  switch (memory.verdict) {
    case MemoryVerdict::fits:
      return marked("✓", "fits: " + use, Tone::good, paint);
    case MemoryVerdict::tight:
      return marked("~",
                    "tight: " + use + "; it runs only because the allocator gives its cache back",
                    Tone::doubtful, paint);
    case MemoryVerdict::does_not_fit:
      break;
  }
  const std::string shortage = stage + " needs " + to_text(worst->required) + ", the GPU has " +
                               to_text(worst->usable) + ": " +
                               to_text(worst->required - worst->usable) + " too much";
  return marked("✗", "DOES NOT FIT: " + (memory.advice.empty() ? shortage : memory.advice),
                Tone::bad, paint);
}

std::string memory(const Report& report, const Painter& paint) {
  if (report.memory.stages.empty()) return "";
  std::string header = left_aligned("stage", stage_width);
  for (const char* column : memory_columns) header += right_aligned(column, width_of(column));
  std::string text = "\n" + paint(Tone::heading, "Memory of a GPU, GiB") + "\n" +
                     std::string(indent) + paint(Tone::quiet, header) + "\n";
  for (const MemoryRow& row : memory_rows(report.memory)) {
    std::string name = std::to_string(row.first);
    if (row.last != row.first) name += "–" + std::to_string(row.last);
    const std::string line = left_aligned(name, stage_width) + row.cells;
    text += std::string(indent) + (row.fits ? line : paint(Tone::bad, line)) + "\n";
  }
  return text + verdict(report.memory, paint);
}

std::string warnings(const Report& report, const Painter& paint) {
  std::string text = report.warnings.empty() ? "" : "\n";
  for (const std::string& warning : report.warnings)
    text += marked("!", warning, Tone::doubtful, paint);
  return text;
}

std::string assumptions(const Report& report, const Painter& paint) {
  if (report.assumptions.empty()) return "";
  struct Kind {
    Evidence evidence;
    const char* name;
  };
  std::string kinds;
  for (const Kind kind : {Kind{Evidence::measured, "measured"},
                          {Evidence::datasheet, "from datasheets"},
                          {Evidence::fitted, "fitted"},
                          {Evidence::assumed, "assumed"}}) {
    const auto count = std::count_if(
        report.assumptions.begin(), report.assumptions.end(),
        [&](const Assumption& assumption) { return assumption.evidence == kind.evidence; });
    if (count > 0) kinds += (kinds.empty() ? "" : ", ") + std::to_string(count) + " " + kind.name;
  }
  return "\n" + std::string(indent) +
         paint(Tone::quiet, counted(static_cast<int>(report.assumptions.size()), "input") + ": " +
                                kinds + " (--json lists them)") +
         "\n";
}

}  // namespace

std::string summary_text(const Report& report, Colour colour) {
  const Painter paint(colour);
  return paint(Tone::heading, report.name) + "\n\n" + headline(report, paint) + "\n" +
         speed(report) + "\n" + job(report) + plan(report) + breakdown(report, paint) +
         memory(report, paint) + warnings(report, paint) + assumptions(report, paint);
}

}  // namespace windtunnel
