#include "report/terminal_text.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "core/utf8.hpp"

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

TEST_CASE("what begins behind the end of the line is moved to the left") {
  CHECK(fitted_text(std::string(12, ' ') + "one two\n", 9) == "  one two\n");
  CHECK(fitted_text(std::string(12, ' ') + "one two\n", 8) == "  one\n    two\n");
}

TEST_CASE("a command that goes on can be pasted") {
  CHECK(fitted_text("  windtunnel run a --set b=1 --quiet\n", 24) ==
        "  windtunnel run a \\\n    --set b=1 --quiet\n");
}

TEST_CASE("what the last column says goes on below it") {
  CHECK(fitted_text("  peak   100 TFLOP/s  from the datasheet\n", 36) ==
        "  peak   100 TFLOP/s  from the\n                      datasheet\n");
}

TEST_CASE("colours take no room, and stay in front of what they colour") {
  CHECK(fitted_text("\033[1mab\033[0m   c\n", 6) == "\033[1mab\033[0m   c\n");
  CHECK(fitted_text("\033[2mone two\033[0m\n", 5) == "\033[2mone\n  two\033[0m\n");
}

/// A table as a terminal of so many columns shows it.
std::string table_in(int width, const std::string& columns, const std::vector<TextRow>& rows) {
  detail::set_text_width(width);
  const std::string text = text_table(columns, rows);
  detail::set_text_width(std::numeric_limits<int>::max());
  return text;
}

TEST_CASE("columns of text go on below themselves, and numbers are never broken") {
  const std::vector<TextRow> rows{{"name", "what it is", "time"},
                                  {"a", "a sentence that is longer than others", "1.5 s"}};
  // 2 of the indent, 4 of the name, 37 of the text and 5 of the time, with two blanks between: 52.
  CHECK(table_in(52, "lwr", rows) == text_table("lwr", rows));
  CHECK(table_in(40, "lwr", rows) ==
        "  name  what it is                  time\n"
        "  a     a sentence that is longer  1.5 s\n"
        "        than others\n");
}

TEST_CASE("a long word of the last column makes no other row too wide") {
  const std::string address(24, 'x');
  const std::vector<TextRow> rows{
      {"a", "8 x a100-sxm-80gb", "a cluster with one adapter for a node"},
      {"b", "8 x a100-sxm-80gb", address}};
  CHECK(table_in(43, "lww", rows) ==
        "  a  8 x a100-sxm-80gb  a cluster with one\n"
        "                        adapter for a node\n"
        "  b  8 x a100-sxm-80gb  " +
            address + "\n");
}

TEST_CASE("columns with most marks are left out first, and named") {
  const std::vector<TextRow> rows{{"plan", "tensor", "time", "samples/s", "why"},
                                  {"1", "8", "4.357 s", "117.5", "compute"},
                                  {"2", "4", "4.358 s", "97.5", "waiting"}};
  const std::string columns = "lrrr?w??";
  CHECK(table_in(80, columns, rows) == text_table(columns, rows));
  CHECK(table_in(38, columns, rows) ==
        "  plan  tensor     time  samples/s\n"
        "  1          8  4.357 s      117.5\n"
        "  2          4  4.358 s       97.5\n"
        "  no room for: why (a wider terminal\n"
        "  or --json shows it)\n");
  CHECK(table_in(30, columns, rows).find("no room for: samples/s; why\n") != std::string::npos);
}

TEST_CASE("a column that all rows share is the first to go, and is said of them all below") {
  const std::vector<TextRow> rows{{"plan", "tensor", "time", "samples/s", "why"},
                                  {"1", "8", "4.357 s", "117.5", "compute"},
                                  {"2", "4", "4.358 s", "117.5", "waiting"}};
  CHECK(table_in(30, "lrrr?w??", rows) ==
        "  plan  tensor     time\n"
        "  1          8  4.357 s\n"
        "  2          4  4.358 s\n"
        "  no room for: why (a wider\n"
        "  terminal or --json shows it)\n"
        "  all of them: samples/s 117.5\n");
  CHECK(table_in(30, "lrrr?w??", {rows[0], rows[1]}).find("why (compute)") != std::string::npos);
}

TEST_CASE(
    "headings of several words take several lines before a column with one mark is left out") {
  const std::vector<TextRow> rows{{"plan", "batch", "time", "slower by"},
                                  {"1", "8", "4.357 s", ""},
                                  {"2", "4", "4.358 s", "0.1 %"}};
  CHECK(table_in(28, "lrrr?", rows) ==
        "  plan batch    time slower\n"
        "                         by\n"
        "  1        8 4.357 s\n"
        "  2        4 4.358 s  0.1 %\n");
}

TEST_CASE("a last column of text without room stands below its rows") {
  const std::vector<TextRow> rows{{"mean time between failures", "49.47 h", ""},
                                  {"goodput", "97.7 %", "of the time counts, at this step"}};
  CHECK(table_in(40, "lrw", rows) ==
        "  mean time between failures 49.47 h\n"
        "  goodput                     97.7 %\n"
        "    of the time counts, at this step\n");
}

TEST_CASE("where nothing else makes room cells are broken, but no number from its unit") {
  const std::vector<TextRow> rows{{"figure", "by the step", "by failures"},
                                  {"cost, USD", "1,676,467 to 2,396,389", "1.5 GiB to 2.5 GiB"}};
  // 2 of the indent, 9 of the names, 12 to 13 of each range.
  CHECK(table_in(37, "lrr", rows) ==
        "  figure     by the step  by failures\n"
        "  cost, USD 1,676,467 to   1.5 GiB to\n"
        "               2,396,389      2.5 GiB\n");
}

TEST_CASE("a sentence is not broken between a number and its unit") {
  using Lines = std::vector<std::string>;
  CHECK(detail::wrapped("it takes 22.1 % of 8 x b200, or 4 x", 10) ==
        Lines{"it takes", "22.1 % of", "8 x b200,", "or 4 x"});
  CHECK(detail::wrapped("an x", 3) == Lines{"an", "x"});
}

TEST_CASE("a line that is broken has no blanks at its end") {
  CHECK(fitted_text("one two three    four\n", 15) == "one two three\n  four\n");
  CHECK(fitted_text("one two     \n", 9) == "one two\n");
}

TEST_CASE("least widths of columns give way where there is no room for them") {
  const std::vector<TextRow> rows{{"a", "1"}};
  CHECK(table_in(100, "l10r5", rows) == "  a               1\n");
  CHECK(table_in(18, "l10r5", rows) == "  a  1\n");
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
