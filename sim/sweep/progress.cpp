#include "sweep/progress.hpp"

#include <ostream>
#include <string>

#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr double patience_in_place = 1, pause_in_place = 0.2;  // seconds
constexpr double patience_of_lines = 30, pause_of_lines = 30;

std::string text_of(std::size_t done, std::size_t failed, std::size_t total, double seconds) {
  std::string text = grouped_text(static_cast<double>(done)) + " of " +
                     grouped_text(static_cast<double>(total)) + " points";
  if (failed > 0) text += " (" + grouped_text(static_cast<double>(failed)) + " failed)";
  if (done == 0) return text;
  const double rate = static_cast<double>(done) / seconds;
  const double left = static_cast<double>(total - done) / rate;
  return text + ", " + significant_text(rate, 3) + " a second, " + to_text(Seconds{left}) + " left";
}

}  // namespace

SweepProgressLine::~SweepProgressLine() {
  if (shown_ && kind_ == SweepProgress::in_place) *messages_ << "\r\x1b[K" << std::flush;
}

void SweepProgressLine::show(std::size_t done, std::size_t failed) {
  if (kind_ == SweepProgress::hidden) return;
  const bool in_place = kind_ == SweepProgress::in_place;
  const Clock::time_point now = Clock::now();
  const auto since = [&](Clock::time_point then) {
    return std::chrono::duration<double>(now - then).count();
  };
  if (since(start_) < (in_place ? patience_in_place : patience_of_lines) ||
      since(last_) < (in_place ? pause_in_place : pause_of_lines))
    return;
  const std::string text = text_of(done, failed, total_, since(start_));
  if (in_place)
    *messages_ << "\r" << text << "\x1b[K" << std::flush;
  else
    *messages_ << text << std::endl;
  last_ = now;
  shown_ = true;
}

}  // namespace windtunnel
