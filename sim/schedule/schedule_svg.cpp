#include <algorithm>

#include "core/markup_text.hpp"
#include "schedule/schedule_check.hpp"
#include "schedule/schedule_drawing.hpp"

namespace windtunnel {
namespace {

// Pixels.
constexpr int unit_of_stage = 22;  ///< width of a forward pass
constexpr int unit_of_chunk = 16;  ///< the same of one chunk, where a stage has several
constexpr int least_width = 420;   ///< for the legend
constexpr int row_height = 24;
constexpr int label_width = 64;
constexpr int margin = 8;
constexpr int legend_height = 40;
constexpr int num_shades = 4;

/// A fill, and the colour of the number on it.
struct Paint {
  const char* fill;
  const char* ink;
};

/// By chunk, from dark to light; later chunks begin again.
Paint paint_of(Phase phase, int chunk) {
  static constexpr Paint blue[num_shades] = {{"#2f5fb3", "#ffffff"},
                                             {"#9dbdf0", "#10264d"},
                                             {"#5d8bd9", "#ffffff"},
                                             {"#d3e2fa", "#10264d"}};
  static constexpr Paint green[num_shades] = {{"#2e8b57", "#ffffff"},
                                              {"#9bd6b1", "#0b3a20"},
                                              {"#55b27b", "#ffffff"},
                                              {"#d2eedc", "#0b3a20"}};
  static constexpr Paint pale[num_shades] = {{"#f6e7b0", "#4d3c00"},
                                             {"#fbf3d6", "#4d3c00"},
                                             {"#f0d98a", "#4d3c00"},
                                             {"#fdf9ea", "#4d3c00"}};
  const Paint* const shades = phase == Phase::forward    ? blue
                              : phase == Phase::backward ? green
                                                         : pale;
  return shades[chunk % num_shades];
}

std::string text(int number) { return std::to_string(number); }

class Picture {
 public:
  explicit Picture(const ScheduleOrders& orders)
      : orders_(orders), timing_(time_schedule(orders)) {}

  std::string draw() {
    const int stages = orders_.shape.stages;
    const int width = std::max(least_width, label_width + timing_.end * unit_ + margin);
    const int height = margin + stages * row_height + legend_height;
    svg_ = R"(<svg xmlns="http://www.w3.org/2000/svg" width=")" + text(width) + "\" height=\"" +
           text(height) + "\" viewBox=\"0 0 " + text(width) + " " + text(height) +
           "\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n";
    title();
    for (int stage = 0; stage < stages; ++stage) draw_stage(stage);
    draw_legend(margin + stages * row_height + 14);
    words(width - margin, margin + stages * row_height + 26, "time \u2192", label_ink, "end");
    return svg_ + "</svg>\n";
  }

 private:
  void title() {
    svg_ += "<title>" + markup_text(orders_.name) + ": " + text(orders_.shape.stages) +
            " stages, " + text(orders_.shape.microbatches) + " microbatches</title>\n";
  }

  void box(int x, int y, int width, const char* fill) {
    svg_ += "<rect x=\"" + text(x) + "\" y=\"" + text(y) + "\" width=\"" + text(width) +
            "\" height=\"" + text(row_height) + "\" fill=\"" + fill +
            "\" stroke=\"#50565e\" stroke-width=\"0.7\"/>\n";
  }
  /// The words outside the boxes are of a grey that stands out on white and on black.
  void words(int x, int y, const std::string& what, const char* ink, const char* anchor) {
    svg_ += "<text x=\"" + text(x) + "\" y=\"" + text(y) + "\" fill=\"" + ink +
            "\" text-anchor=\"" + anchor + "\">" + what + "</text>\n";
  }

  void draw_stage(int stage) {
    const int y = margin + stage * row_height;
    words(label_width - margin, y + 16, "Stage " + text(stage), label_ink, "end");
    svg_ += "<rect x=\"" + text(label_width) + "\" y=\"" + text(y) + "\" width=\"" +
            text(timing_.end * unit_) + "\" height=\"" + text(row_height) +
            "\" fill=\"#808890\" fill-opacity=\"0.16\" stroke=\"#808890\" stroke-width=\"0.7\"/>\n";
    const auto index = static_cast<std::size_t>(stage);
    for (std::size_t i = 0; i < orders_.of_stage[index].size(); ++i) {
      const Step& step = orders_.of_stage[index][i];
      const Paint paint = paint_of(step.phase, step.chunk);
      const int width = ScheduleTiming::length_of(step.phase, timing_.splits) * unit_;
      const int x = label_width + timing_.begin[index][i] * unit_;
      box(x, y, width, paint.fill);
      words(x + width / 2, y + 16, std::to_string(step.microbatch), paint.ink, "middle");
    }
  }

  void draw_legend(int y) {
    int x = label_width;
    const auto entry = [&](const std::string& what, Phase phase) {
      for (int chunk = 0; chunk < std::min(orders_.shape.chunks, num_shades); ++chunk) {
        box(x, y - 4, 16, paint_of(phase, chunk).fill);
        x += 16;
      }
      words(x + 6, y + 12, what, label_ink, "start");
      x += 14 + 7 * static_cast<int>(what.size());
    };
    entry("forward", Phase::forward);
    entry(timing_.splits ? "input gradient" : "backward", Phase::backward);
    if (timing_.splits) entry("weight gradient", Phase::weight_gradient);
    if (orders_.shape.chunks > 1) words(x, y + 12, "(shade: chunk)", label_ink, "start");
  }

  static constexpr const char* label_ink = "#7b828a";

  const ScheduleOrders& orders_;
  ScheduleTiming timing_;
  const int unit_ = orders_.shape.chunks > 1 ? unit_of_chunk : unit_of_stage;
  std::string svg_;
};

}  // namespace

std::string schedule_svg(const ScheduleOrders& orders) { return Picture(orders).draw(); }

}  // namespace windtunnel
