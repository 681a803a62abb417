#include <algorithm>
#include <functional>

#include "report/comparison.hpp"
#include "report/comparison_words.hpp"
#include "report/number_text.hpp"
#include "report/report_json.hpp"
#include "report/terminal_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using detail::effect_of;
using detail::indent;
using detail::letter_of;
using detail::marked;
using detail::meaning_of;
using detail::Painter;
using detail::relative_change;
using detail::signed_text;
using detail::time_text;
using detail::Tone;
using detail::verdict_of;
using detail::with_spaces;

constexpr int label_width = 20, value_width = 12, change_width = 10;
constexpr std::size_t others_at_once = 3;  ///< what has room beside the first run in text_width

/// What stands in a row for one run, and what changed against the first.
struct Row {
  std::string label;
  std::function<std::string(const ReportFigures&)> value;
  std::function<std::string(const ReportFigures&, const ReportFigures&)> change;
};

/// The first run and up to three others, in columns.
class Block {
 public:
  Block(const Comparison& comparison, std::size_t first, const Painter& paint)
      : comparison_(&comparison),
        first_(first),
        end_(std::min(first + others_at_once, comparison.runs.size())),
        paint_(&paint) {}

  std::string header() const {
    std::string line = left_aligned("", label_width) + right_aligned(letter_of(0), value_width);
    for (std::size_t i = first_; i < end_; ++i)
      line += right_aligned(letter_of(i), value_width) +
              right_aligned("- " + letter_of(0), change_width);
    return std::string(indent) + (*paint_)(Tone::quiet, line) + "\n";
  }

  std::string row(const Row& row) const {
    const ReportFigures& base = figures(0);
    std::string line =
        left_aligned(row.label, label_width) + right_aligned(row.value(base), value_width);
    for (std::size_t i = first_; i < end_; ++i) {
      line += right_aligned(row.value(figures(i)), value_width);
      line += right_aligned(row.change ? row.change(base, figures(i)) : "", change_width);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return std::string(indent) + line + "\n";
  }

  std::string heading(const char* text) const {
    return "\n" + (*paint_)(Tone::heading, text) + "\n";
  }

  bool any(const std::function<bool(const ReportFigures&)>& is_true) const {
    if (is_true(figures(0))) return true;
    for (std::size_t i = first_; i < end_; ++i)
      if (is_true(figures(i))) return true;
    return false;
  }

  const ReportFigures& figures(std::size_t run) const { return comparison_->runs[run].figures; }

 private:
  const Comparison* comparison_;
  std::size_t first_, end_;
  const Painter* paint_;
};

std::string speed(const Block& block) {
  const auto relative = [](double (*of)(const ReportFigures&)) {
    return [of](const ReportFigures& a, const ReportFigures& b) {
      return relative_change(of(a), of(b));
    };
  };
  const Seconds base = block.figures(0).iteration_time;
  std::string text =
      block.row({"iteration time", [](const ReportFigures& f) { return to_text(f.iteration_time); },
                 relative([](const ReportFigures& f) { return f.iteration_time / 1_s; })});
  text += block.row(
      {"speed-up",
       [base](const ReportFigures& f) { return fixed_text(base / f.iteration_time, 3) + "x"; },
       {}});
  text +=
      block.row({"tokens/s", [](const ReportFigures& f) { return grouped_text(f.tokens_per_s); },
                 relative([](const ReportFigures& f) { return f.tokens_per_s; })});
  text += block.row(
      {"TFLOP/s per GPU",
       [](const ReportFigures& f) { return fixed_text(f.model_flops_per_gpu / 1_TFLOPS, 1); },
       relative([](const ReportFigures& f) { return f.model_flops_per_gpu / 1_TFLOPS; })});
  return text + block.row({"MFU", [](const ReportFigures& f) { return percent_text(f.mfu); },
                           [](const ReportFigures& a, const ReportFigures& b) {
                             return signed_text((b.mfu - a.mfu) * 100, 1);
                           }});
}

/// Lines of the breakdown in which a run spent anything that shows.
std::vector<Line> lines_in_use(const Block& block) {
  std::vector<Line> lines;
  for (const Line line : all_lines) {
    if (block.any([line](const ReportFigures& f) {
          return time_text(f.breakdown.of(line), f.iteration_time) !=
                 time_text(0_s, f.iteration_time);
        }))
      lines.push_back(line);
  }
  return lines;
}

std::string times(const Block& block) {
  const Seconds whole = block.figures(0).iteration_time;
  const Seconds unit = whole >= 1_s ? 1_s : whole >= 1_ms ? 1_ms : 1_us;
  std::string text = block.heading("Where the time goes, on the GPUs that finish last");
  for (const Line line : lines_in_use(block))
    text +=
        block.row({with_spaces(name_of(line)),
                   [=](const ReportFigures& f) { return time_text(f.breakdown.of(line), whole); },
                   [=](const ReportFigures& a, const ReportFigures& b) {
                     return signed_text((b.breakdown.of(line) - a.breakdown.of(line)) / unit, 3);
                   }});
  return text;
}

std::string shares(const Block& block) {
  const auto share = [](const ReportFigures& f, Line line) {
    return f.breakdown.of(line) / f.iteration_time;
  };
  std::string text = block.heading("Share of the iteration, on the same GPUs");
  for (const Line line : lines_in_use(block))
    text += block.row({with_spaces(name_of(line)),
                       [=](const ReportFigures& f) { return percent_text(share(f, line)); },
                       [=](const ReportFigures& a, const ReportFigures& b) {
                         return signed_text((share(b, line) - share(a, line)) * 100, 1);
                       }});
  return text;
}

std::string compressed_text(const MessageCount& count) {
  return grouped_text(static_cast<double>(count.compressed)) + " of " +
         grouped_text(static_cast<double>(count.compressed + count.uncompressed));
}

std::string traffic(const Block& block) {
  std::string text;
  for (const Traffic kind : published_traffic) {
    const auto i = static_cast<std::size_t>(kind);
    if (block.any([i](const ReportFigures& f) {
          return f.traffic[i] > Bytes{} || f.messages[i].compressed > 0;
        }))
      text += block.row({with_spaces(name_of(kind)),
                         [i](const ReportFigures& f) { return to_text(f.traffic[i]); },
                         [i](const ReportFigures& a, const ReportFigures& b) {
                           return relative_change(a.traffic[i] / 1_B, b.traffic[i] / 1_B);
                         }});
    if (block.any([i](const ReportFigures& f) { return f.messages[i].compressed > 0; }))
      text += block.row({"  compressed",
                         [i](const ReportFigures& f) { return compressed_text(f.messages[i]); },
                         {}});
  }
  return text.empty()
             ? text
             : block.heading("Bytes on the wire in one iteration, all GPUs together") + text;
}

std::string memory(const Block& block) {
  return block.heading("Memory of the fullest GPU") +
         block.row({"in use", [](const ReportFigures& f) { return to_text(f.memory_max); },
                    [](const ReportFigures& a, const ReportFigures& b) {
                      return relative_change(a.memory_max / 1_B, b.memory_max / 1_B);
                    }}) +
         block.row({"of", [](const ReportFigures& f) { return to_text(f.memory_capacity); }, {}}) +
         block.row({"fits", [](const ReportFigures& f) { return f.fits ? "yes" : "NO"; }, {}});
}

std::string legend(const Comparison& comparison, const Painter& paint) {
  std::string text;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const ComparedRun& run = comparison.runs[i];
    text += paint(Tone::heading, letter_of(i)) + "  " + run.label;
    if (run.label.find(run.figures.name) == std::string::npos)
      text += paint(Tone::quiet, " (" + run.figures.name + ")");
    text += "\n";
  }
  for (const FailedRun& run : comparison.failed)
    text += marked("✗", run.label + " could not be simulated: " + run.error, Tone::bad, paint);
  return text;
}

std::string differences(const Comparison& comparison, const Painter& paint) {
  if (comparison.differences.empty()) return "";
  std::string text = "\n" + paint(Tone::heading, "Inputs that differ") + "\n";
  for (const InputDifference& difference : comparison.differences) {
    std::string line = difference.pointer + ":";
    for (std::size_t i = 0; i < difference.values.size(); ++i)
      line += (i == 0 ? " " : " | ") + difference.values[i];
    text += std::string(indent) + line + "\n";
  }
  return text;
}

std::string codecs(const Comparison& comparison, const Painter& paint) {
  if (comparison.codecs.empty()) return "";
  std::string text =
      "\n" + paint(Tone::heading, "What compressing does to the job, by simulation") + "\n";
  for (const CodecBreakEven& codec : comparison.codecs)
    text += marked(
        "·",
        letter_of(codec.run) + ", " + with_spaces(name_of(codec.traffic)) + ": " + effect_of(codec),
        codec.slows_job() ? Tone::doubtful : Tone::quiet, paint);
  return text;
}

std::string break_evens(const Comparison& comparison, const Painter& paint) {
  if (comparison.break_evens.empty()) return "";
  std::string text = "\n" + paint(Tone::heading, "Break-even bandwidths, by simulation") + "\n";
  for (const BreakEven& found : comparison.break_evens) {
    if (detail::says_nothing(found)) continue;
    text += marked("·", found.what + ", " + meaning_of(found.part) + ": " + verdict_of(found),
                   Tone::quiet, paint);
  }
  return text;
}

std::string warnings(const Comparison& comparison, const Painter& paint) {
  std::string text = comparison.warnings.empty() ? "" : "\n";
  for (const std::string& warning : comparison.warnings)
    text += marked("!", warning, Tone::doubtful, paint);
  return text;
}

}  // namespace

std::string comparison_text(const Comparison& comparison, Colour colour) {
  const Painter paint(colour);
  std::string text = legend(comparison, paint);
  for (std::size_t first = 1; first == 1 || first < comparison.runs.size();
       first += others_at_once) {
    const Block block(comparison, first, paint);
    text += "\n" + block.header() + speed(block) + times(block) + shares(block) + traffic(block) +
            memory(block);
  }
  return text + differences(comparison, paint) + codecs(comparison, paint) +
         break_evens(comparison, paint) + warnings(comparison, paint);
}

}  // namespace windtunnel
