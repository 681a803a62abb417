#include "report/progress_line.hpp"

#include <ostream>

namespace windtunnel {
namespace {

constexpr const char* erase_to_end = "\x1b[K";  // ECMA-48, EL

}  // namespace

ProgressLine::~ProgressLine() {
  if (shown_) *terminal_ << "\r" << erase_to_end << std::flush;
}

void ProgressLine::show(const std::string& text) {
  if (Clock::now() - start_ < patience_) return;
  *terminal_ << "\r" << text << erase_to_end << std::flush;
  shown_ = true;
}

}  // namespace windtunnel
