#include "report/summary_text.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "core/utf8.hpp"
#include "report/number_text.hpp"
#include "report/report_words.hpp"
#include "report/terminal_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using detail::indent;
using detail::listed;
using detail::marked;
using detail::Painter;
using detail::time_text;
using detail::Tone;
using detail::with_spaces;

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

std::string job(const Report& report) { return detail::paragraph(detail::job_text(report)); }

std::string plan(const Report& report) {
  std::string text = listed(detail::plan_items(report));
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
  for (const Line line : all_lines) {
    const Seconds time = report.breakdown.of(line);
    const std::string number = time_text(time, total);
    if (number == time_text(0_s, total)) continue;
    text += std::string(indent) + left_aligned(with_spaces(name_of(line)), name_width) +
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
  const detail::VerdictMark mark = detail::mark_of(report.memory.verdict);
  return text + marked(mark.mark, detail::verdict_text(report.memory), mark.tone, paint);
}

std::string warnings(const Report& report, const Painter& paint) {
  std::string text = report.warnings.empty() ? "" : "\n";
  for (const std::string& warning : report.warnings)
    text += marked("!", warning, Tone::doubtful, paint);
  return text;
}

std::string assumptions(const Report& report, const Painter& paint) {
  if (report.assumptions.empty()) return "";
  return "\n" + std::string(indent) +
         paint(Tone::quiet, detail::inputs_text(report) + " (--json lists them)") + "\n";
}

}  // namespace

std::string summary_text(const Report& report, Colour colour) {
  const Painter paint(colour);
  return paint(Tone::heading, report.name) + "\n\n" + headline(report, paint) + "\n" +
         listed(detail::speed_items(report)) + "\n" + job(report) + plan(report) +
         breakdown(report, paint) + memory(report, paint) + warnings(report, paint) +
         assumptions(report, paint);
}

}  // namespace windtunnel
