#pragma once

#include <chrono>
#include <iosfwd>
#include <string>

namespace windtunnel {

/// A line on a terminal that says how far the work has come, written over itself, and gone at the end:
///
///   explain: 3 of 11 iterations simulated
///
/// Nothing is shown until the work has taken `patience`: long enough for somebody to wonder.
class ProgressLine {
 public:
  static constexpr std::chrono::milliseconds usual_patience{1000};
  explicit ProgressLine(std::ostream& terminal, std::chrono::milliseconds patience = usual_patience)
      : terminal_(&terminal), patience_(patience) {}
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;
  std::ostream* terminal_;
  std::chrono::milliseconds patience_;
  Clock::time_point start_ = Clock::now();
  bool shown_ = false;
};

}  // namespace windtunnel
