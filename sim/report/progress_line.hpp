#pragma once

#include <chrono>
#include <iosfwd>
#include <string>

namespace windtunnel {

/// Display of progress: none, one line that is overwritten in place (terminals), or a line now and then (logs).
enum class ProgressStyle { hidden, in_place, lines };

/// Time before anything is shown, so that short work stays silent, and least time between two texts.
struct ProgressPace {
  std::chrono::milliseconds patience, pause;
};
constexpr ProgressPace usual_pace(ProgressStyle style) {
  using std::chrono::milliseconds;
  return style == ProgressStyle::lines ? ProgressPace{milliseconds(8'000), milliseconds(8'000)}
                                       : ProgressPace{milliseconds(1'000), milliseconds(50)};
}

/// Says how far the work has come:
///
///   explain: 3 of 11 what-ifs simulated
///
/// In place, the line is gone at the end.
class ProgressLine {
 public:
  explicit ProgressLine(std::ostream& messages, ProgressStyle style = ProgressStyle::in_place)
      : ProgressLine(messages, style, usual_pace(style)) {}
  ProgressLine(std::ostream& messages, ProgressStyle style, ProgressPace pace)
      : messages_(&messages), style_(style), pace_(pace) {}
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;
  std::ostream* messages_;
  ProgressStyle style_;
  ProgressPace pace_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = Clock::time_point::min();
  bool shown_ = false;
};

}  // namespace windtunnel
