#include "report/progress_line.hpp"

#include <doctest/doctest.h>

#include <sstream>

namespace windtunnel {
namespace {

TEST_CASE("a progress line is written over itself, and gone at the end") {
  std::ostringstream terminal;
  {
    ProgressLine line(terminal, std::chrono::milliseconds(0));
    line.show("9 of 10");
    line.show("10 of 10");
  }
  CHECK(terminal.str() == "\r9 of 10\x1b[K\r10 of 10\x1b[K\r\x1b[K");
}

TEST_CASE("short work shows no progress") {
  std::ostringstream terminal;
  {
    ProgressLine line(terminal, std::chrono::hours(1));
    line.show("9 of 10");
  }
  CHECK(terminal.str().empty());
}

}  // namespace
}  // namespace windtunnel
