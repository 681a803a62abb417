#include "report/progress_line.hpp"

#include <ostream>

#include "core/terminal_safe.hpp"

namespace windtunnel {
namespace {

const std::string line_start = own_sequence("[G");
const std::string erase_to_end = own_sequence("[K");

}  // namespace

ProgressLine::~ProgressLine() {
  if (shown_ && style_ == ProgressStyle::in_place)
    *messages_ << line_start << erase_to_end << std::flush;
}

void ProgressLine::show(const std::string& text) {
  if (style_ == ProgressStyle::hidden) return;
  const Clock::time_point now = Clock::now();
  if (now - start_ < pace_.patience || (shown_ && now - last_ < pace_.pause)) return;
  if (style_ == ProgressStyle::in_place)
    *messages_ << line_start << text << erase_to_end << std::flush;
  else
    *messages_ << text << std::endl;
  last_ = now;
  shown_ = true;
}

}  // namespace windtunnel
