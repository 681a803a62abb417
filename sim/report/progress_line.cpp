#include "report/progress_line.hpp"

#include <ostream>

namespace windtunnel {
namespace {

constexpr const char* erase_to_end = "\x1b[K";  // ECMA-48, EL

}  // namespace

ProgressLine::~ProgressLine() {
  if (shown_ && style_ == ProgressStyle::in_place) *messages_ << "\r" << erase_to_end << std::flush;
}

void ProgressLine::show(const std::string& text) {
  if (style_ == ProgressStyle::hidden) return;
  const Clock::time_point now = Clock::now();
  if (now - start_ < pace_.patience || (shown_ && now - last_ < pace_.pause)) return;
  if (style_ == ProgressStyle::in_place)
    *messages_ << "\r" << text << erase_to_end << std::flush;
  else
    *messages_ << text << std::endl;
  last_ = now;
  shown_ = true;
}

}  // namespace windtunnel
