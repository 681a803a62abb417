#include "report/summary_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

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
  const TableLines table = table_lines(text_columns("l15r10r7"), rows);
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
  const TableLines table = table_lines(text_columns("l7r7?r7??r7??r7?r7???r7?r7"), rows);
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    for (const std::string& line : detail::lines_of(table.rows[i]))
      text += std::string(indent) + paint(tones[i], line) + "\n";
  return text + table.notes() + detail::verdict_line(report, paint);
}

int width() {
  constexpr int widest = 80;
  return std::min(widest, detail::text_width());
}

std::string gib(Bytes bytes) { return fixed_text(bytes / 1_GiB, 2); }

std::string parts_text(const HeldTensor& tensor) {
  const Bytes size = tensor.size();
  const std::string text =
      size < Bytes{1024} ? significant_text(size / 1_B, 4) + " B" : to_text(size);
  if (tensor.count == 1) return text;
  const bool is_whole = std::trunc(tensor.count) == tensor.count;
  return (is_whole ? grouped_text(tensor.count) : fixed_text(tensor.count, 2)) + " × " + text;
}

std::vector<TensorRow> rows_of(const StageMemory& stage) {
  std::vector<TensorRow> rows;
  for (const HeldTensor& tensor : stage.tensors_at_peak())
    rows.push_back({name_of(tensor), parts_text(tensor), gib(tensor.bytes),
                    percent_text(tensor.bytes / stage.allocated), line_of(tensor.kind)});
  return rows;
}

const char* name_of(Moment peak) {
  switch (peak) {
    case Moment::head:
    case Moment::first_head:
      return "backward pass of the head";
    case Moment::edges:
      return "end of the backward pass";
    case Moment::step:
      return "optimizer step";
    default:
      return "backward pass of a layer";
  }
}

/// Parts that there is no room for stand on a line below.
std::string line_text(const std::string& name, const std::string& parts, const std::string& amount,
                      const std::string& share) {
  constexpr int amount_width = 8, share_width = 8;
  const std::string text = std::string(detail::indent) + name + "  ";
  const int room = width() - utf8_count(text) - amount_width - share_width;
  const bool has_room = utf8_count(parts) <= room;
  const std::string parts_and_amount =
      right_aligned(has_room ? parts : "", room) + right_aligned(amount, amount_width);
  return text + parts_and_amount + (share.empty() ? "" : right_aligned(share, share_width)) + "\n" +
         (has_room ? "" : right_aligned(parts, width() - amount_width - share_width) + "\n");
}

std::string stages_text(const StagesAlike& stages, const Painter& paint) {
  const StageMemory& stage = *stages.first;
  std::string header = line_text("", "", "GiB", "share");
  const std::string name = name_of(stages);
  header.replace(0, name.size(), name);
  std::string text = "\n" + paint(Tone::heading, header);
  for (const TensorRow& row : stages.rows)
    text += line_text(row.name, row.parts, row.gib, row.share);
  text += line_text("allocated", "", gib(stage.allocated), percent_text(1));
  const bool fits = stage.verdict != MemoryVerdict::does_not_fit;
  if (fits) text += line_text("reserved by the allocator", "", gib(stage.reserved), "");
  text += line_text("CUDA context", "", gib(stage.context), "");
  text += line_text(fits ? "in use" : "needed", "of " + gib(stage.usable) + " usable",
                    gib(stage.total), "");
  const detail::VerdictMark mark = detail::mark_of(stage.verdict);
  return text +
         detail::marked(mark.mark, detail::with_spaces(name_of(stage.verdict)), mark.tone, paint);
}

}  // namespace

namespace detail {

std::string headline(const Report& report, const Painter& paint) {
  std::string line = std::string(indent) +
                     paint(Tone::headline, to_text(report.iteration_time) + " per iteration");
  constexpr int both = 60;  // columns of time and interval
  if (report.iteration_time_interval)
    line += (text_width() < both ? "\n" + std::string(indent) : "        ") +
            paint(Tone::quiet, "90 %: " + to_text(report.iteration_time_interval->first) + " to " +
                                   to_text(report.iteration_time_interval->second));
  line += "\n";
  if (!report.memory.fits)
    line += marked("✗", "does not fit in memory: the time with enough of it", Tone::bad, paint);
  return line;
}

std::string verdict_line(const Report& report, const Painter& paint) {
  const VerdictMark mark = mark_of(report.memory.verdict);
  return marked(mark.mark, verdict_text(report.memory), mark.tone, paint);
}

}  // namespace detail

std::string summary_text(const Report& report, Colour colour) {
  const Painter paint(colour);
  std::string text = paint(Tone::heading, report.name) + "\n\n" + detail::headline(report, paint) +
                     "\n" + listed(detail::speed_items(report)) + "\n" +
                     detail::paragraph(detail::job_text(report)) +
                     listed(detail::plan_items(report));
  if (!report.placement_note.empty())
    text += detail::paragraph("placement searched: " + report.placement_note);
  for (const std::string& cost : detail::neighbour_texts(report)) text += detail::paragraph(cost);
  text += breakdown(report, paint) + memory(report, paint);
  if (!report.warnings.empty()) text += "\n";
  for (const std::string& warning : report.warnings)
    text += marked("!", warning, Tone::doubtful, paint);
  if (!report.assumptions.empty())
    text += "\n" + std::string(indent) +
            paint(Tone::quiet, detail::inputs_text(report) + " (--json lists them)") + "\n";
  return text;
}

std::vector<StagesAlike> stages_alike(const MemoryAccount& memory) {
  std::vector<StagesAlike> all;
  for (const StageMemory& stage : memory.stages) {
    StagesAlike stages{&stage, &stage, rows_of(stage)};
    const auto reads_alike = [&](const StageMemory& one) {
      return all.back().rows == stages.rows && one.peak == stage.peak &&
             one.verdict == stage.verdict && gib(one.reserved) == gib(stage.reserved) &&
             gib(one.total) == gib(stage.total) && gib(one.usable) == gib(stage.usable);
    };
    if (!all.empty() && reads_alike(*all.back().first))
      all.back().last = &stage;
    else
      all.push_back(std::move(stages));
  }
  return all;
}

std::string name_of(const StagesAlike& stages) {
  const std::uint32_t first = stages.first->stage.index(), last = stages.last->stage.index();
  const std::string name = first == last
                               ? "Stage " + std::to_string(first)
                               : "Stages " + std::to_string(first) + " to " + std::to_string(last);
  return name + ", " + name_of(stages.first->peak);
}

std::string memory_text(const Report& report, Colour colour) {
  const Painter paint(colour);
  std::string text = paint(Tone::heading, report.name) + "\n";
  for (const StagesAlike& stages : stages_alike(report.memory)) text += stages_text(stages, paint);
  const detail::VerdictMark mark = detail::mark_of(report.memory.verdict);
  return text + "\n" +
         detail::marked(mark.mark, detail::verdict_text(report.memory), mark.tone, paint, width());
}

}  // namespace windtunnel
