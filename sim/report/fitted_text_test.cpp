#include "report/fitted_text.hpp"

#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "core/utf8.hpp"
#include "report/text_table.hpp"

namespace windtunnel {
namespace {

TEST_CASE("text that is narrow enough stays as it is, with or without a last line end") {
  CHECK(fitted_text("  a   b\n\nc\n", 10) == "  a   b\n\nc\n");
  CHECK(fitted_text("a", 10) == "a\n");
  CHECK(fitted_text("", 10) == "");
}

TEST_CASE("a sentence goes on below its beginning, indented by two more") {
  CHECK(fitted_text("  one two three four\n", 12) == "  one two\n    three\n    four\n");
  // A word of more than a line is not cut.
  CHECK(fitted_text("a incomprehensibilities b\n", 8) == "a incomprehensibilities\n  b\n");
}

TEST_CASE("a command that goes on can be pasted") {
  CHECK(fitted_text("  windtunnel run a --set b=1 --quiet\n", 24) ==
        "  windtunnel run a \\\n    --set b=1 --quiet\n");
}

TEST_CASE("columns of a table move together before a row is broken") {
  const std::string table = "  point        error     time\n  a           10.0 %    2.0 s\n";
  CHECK(fitted_text(table, 40) == table);
  CHECK(fitted_text(table, 24) == "  point    error    time\n  a       10.0 %   2.0 s\n");
  CHECK(fitted_text(table, 23) == "  point   error    time\n  a      10.0 %   2.0 s\n");
}

TEST_CASE("what the last column says goes on below it") {
  CHECK(fitted_text("  peak   100 TFLOP/s  from the datasheet\n", 36) ==
        "  peak  100 TFLOP/s  from the\n                     datasheet\n");
}

TEST_CASE("colours take no room, and stay in front of what they colour") {
  CHECK(fitted_text("\033[1mab\033[0m   c\n", 6) == "\033[1mab\033[0m   c\n");
  CHECK(fitted_text("\033[1mab\033[0m   c\n", 5) == "\033[1mab\033[0m  c\n");
  CHECK(fitted_text("\033[2mone two\033[0m\n", 5) == "\033[2mone\n  two\033[0m\n");
}

TEST_CASE("no line of a wide table is wider than asked for") {
  const std::string table = text_table(
      "lrl", {{"stage", "allocated", "why"},
              {"0", "36.40", "weights, gradients and states of layers 0 to 5 and the embedding"},
              {"1 · 2", "3.5", "×"}});
  for (int width = 30; width < 90; ++width) {
    std::istringstream lines(fitted_text(table, width));
    for (std::string line; std::getline(lines, line);) CHECK(utf8_count(line) <= width);
  }
}

}  // namespace
}  // namespace windtunnel
