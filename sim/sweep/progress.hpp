#pragma once

#include <chrono>
#include <cstddef>
#include <iosfwd>

#include "sweep/sweep_command.hpp"

namespace windtunnel {

/// Tells how far a sweep has come:  "412 of 1,024 points (3 failed), 254 a second, 2.4 s left".
class SweepProgressLine {
 public:
  SweepProgressLine(std::ostream& messages, SweepProgress kind, std::size_t total)
      : messages_(&messages), kind_(kind), total_(total) {}
  ~SweepProgressLine();
  SweepProgressLine(const SweepProgressLine&) = delete;
  SweepProgressLine& operator=(const SweepProgressLine&) = delete;

  void show(std::size_t done, std::size_t failed);

 private:
  using Clock = std::chrono::steady_clock;
  std::ostream* messages_;
  SweepProgress kind_;
  std::size_t total_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
  bool shown_ = false;
};

}  // namespace windtunnel
