#include "report/progress_line.hpp"

#include <doctest/doctest.h>

#include <sstream>

#include "core/terminal_safe.hpp"

namespace windtunnel {
namespace {

constexpr ProgressPace at_once{std::chrono::milliseconds(0), std::chrono::milliseconds(0)};

TEST_CASE("a progress line is written over itself, and gone at the end") {
  std::ostringstream terminal;
  {
    ProgressLine line(terminal, ProgressStyle::in_place, at_once);
    line.show("9 of 10");
    line.show("10 of 10");
  }
  CHECK(for_terminal(terminal.str()) == "\x1b[G9 of 10\x1b[K\x1b[G10 of 10\x1b[K\x1b[G\x1b[K");
}

TEST_CASE("short work shows no progress") {
  std::ostringstream terminal;
  {
    ProgressLine line(terminal, ProgressStyle::in_place,
                      {std::chrono::hours(1), std::chrono::hours(0)});
    line.show("9 of 10");
  }
  CHECK(terminal.str().empty());
}

TEST_CASE("in a log progress is told by whole lines, not too many") {
  std::ostringstream log;
  {
    ProgressLine line(log, ProgressStyle::lines, {std::chrono::hours(0), std::chrono::hours(1)});
    line.show("9 of 10");
    line.show("10 of 10");
  }
  CHECK(log.str() == "9 of 10\n");
}

TEST_CASE("hidden progress is not told") {
  std::ostringstream log;
  { ProgressLine(log, ProgressStyle::hidden, at_once).show("9 of 10"); }
  CHECK(log.str().empty());
}

}  // namespace
}  // namespace windtunnel
