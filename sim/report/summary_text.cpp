#include "report/summary_text.hpp"

#include <cstddef>
#include <vector>

#include "report/number_text.hpp"
#include "report/report_words.hpp"
#include "report/terminal_text.hpp"
#include "report/text_table.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace detail {

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

std::string verdict_line(const Report& report, const Painter& paint) {
  const VerdictMark mark = mark_of(report.memory.verdict);
  return marked(mark.mark, verdict_text(report.memory), mark.tone, paint);
}

}  // namespace detail

namespace {

using detail::indent;
using detail::listed;
using detail::marked;
using detail::Painter;
using detail::time_text;
using detail::Tone;
using detail::with_spaces;

std::string job(const Report& report) { return detail::paragraph(detail::job_text(report)); }

std::string plan(const Report& report) {
  std::string text = listed(detail::plan_items(report));
  if (!report.placement_note.empty())
    text += detail::paragraph("placement searched: " + report.placement_note);
  return text;
}

std::string breakdown(const Report& report, const Painter& paint) {
  constexpr int widest_bar = 40;
  const Seconds total = report.breakdown.total();
  if (!(total > 0_s)) return "";
  std::vector<TextRow> rows;
  std::vector<double> shares;
  for (const Line line : all_lines) {
    const Seconds time = report.breakdown.of(line);
    const std::string number = time_text(time, total);
    if (number == time_text(0_s, total)) continue;
    rows.push_back({with_spaces(name_of(line)), number, percent_text(time / total)});
    shares.push_back(time / total);
  }
  const TableLines table = table_lines("l15r10r7", rows);
  const int bar_width = bar_room(table.width, widest_bar);
  std::string text =
      "\n" + paint(Tone::heading, "Where the time goes, on the GPUs that finish last") + "\n";
  for (std::size_t i = 0; i < rows.size(); ++i)
    text += std::string(indent) + table.rows[i] + "  " +
            paint(Tone::bar, bar_text(shares[i], bar_width)) + "\n";
  return text;
}

/// Amounts of a stage as they are printed, the first cell left for its name.
TextRow memory_row(const StageMemory& stage) {
  TextRow row(1);
  for (const Bytes amount : {stage.weights, stage.gradients, stage.optimizer, stage.activations,
                             stage.buffers, stage.allocated, stage.total})
    row.push_back(fixed_text(amount / 1_GiB, 2));
  return row;
}

/// Neighbouring stages that read the same share a row.
std::string memory(const Report& report, const Painter& paint) {
  if (report.memory.stages.empty()) return "";
  std::vector<TextRow> rows{{"stage", "weights", "gradients", "optimizer", "activations", "buffers",
                             "allocated", "in use"}};
  std::vector<Tone> tones{Tone::quiet};
  const std::vector<StageMemory>& stages = report.memory.stages;
  for (std::size_t first = 0, end = 0; first < stages.size(); first = end) {
    const TextRow row = memory_row(stages[first]);
    const bool fits = stages[first].verdict != MemoryVerdict::does_not_fit;
    const auto reads_the_same = [&](const StageMemory& other) {
      return memory_row(other) == row && (other.verdict != MemoryVerdict::does_not_fit) == fits;
    };
    for (end = first + 1; end < stages.size() && reads_the_same(stages[end]);) ++end;
    rows.push_back(row);
    rows.back().front() = std::to_string(stages[first].stage.index());
    if (end > first + 1) rows.back().front() += "–" + std::to_string(stages[end - 1].stage.index());
    tones.push_back(fits ? Tone::plain : Tone::bad);
  }
  std::string text = "\n" + paint(Tone::heading, "Memory of a GPU, GiB") + "\n";
  const TableLines table = table_lines("l7r7?r7??r7??r7?r7???r7?r7", rows);
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    text += std::string(indent) + paint(tones[i], table.rows[i]) + "\n";
  if (!table.left_out.empty()) text += detail::paragraph(table.left_out);
  return text + detail::verdict_line(report, paint);
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
  return paint(Tone::heading, report.name) + "\n\n" + detail::headline(report, paint) + "\n" +
         listed(detail::speed_items(report)) + "\n" + job(report) + plan(report) +
         breakdown(report, paint) + memory(report, paint) + warnings(report, paint) +
         assumptions(report, paint);
}

}  // namespace windtunnel
