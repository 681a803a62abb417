#include "report/number_text.hpp"

#include <doctest/doctest.h>

namespace windtunnel {
namespace {

TEST_CASE("numbers are written with fixed decimals, thousands apart, or as percent") {
  CHECK(fixed_text(62.6449, 2) == "62.64");
  CHECK(fixed_text(1e21, 0) == "1000000000000000000000");
  CHECK(grouped_text(0) == "0");
  CHECK(grouped_text(999.4) == "999");
  CHECK(grouped_text(192872.3) == "192,872");
  CHECK(grouped_text(1234567890) == "1,234,567,890");
  CHECK(grouped_text(-1234) == "-1,234");
  CHECK(grouped_text(-123) == "-123");
  CHECK(percent_text(0.4417) == "44.2 %");
}

TEST_CASE("a count below a million is written in full, not as 0 M") {
  CHECK(parameter_text(32768) == "32,768");
  CHECK(parameter_text(999999) == "999,999");
  CHECK(parameter_text(1.2e6) == "1 M");
  CHECK(parameter_text(39.1e9) == "39.1 B");
}

TEST_CASE("alignment counts characters, not bytes") {
  CHECK(right_aligned("1–6", 5) == "  1–6");
  CHECK(left_aligned("1–6", 5) == "1–6  ");
  CHECK(left_aligned("too wide", 3) == "too wide");
}

TEST_CASE("a bar is drawn in eighths of a character") {
  CHECK(bar_text(0, 8) == "");
  CHECK(bar_text(-1, 8) == "");
  CHECK(bar_text(0.25, 8) == "██");
  CHECK(bar_text(0.3125, 8) == "██▌");  // 0.3125 * 64 = 20 eighths
  CHECK(bar_text(1, 4) == "████");
  CHECK(bar_text(7, 4) == "████");
  CHECK(bar_text(1e-9, 8) == "▏");  // little, not nothing
}

TEST_CASE("a change of ten times and more is a factor without an exponent") {
  CHECK(relative_change(8, 8) == "=");
  CHECK(relative_change(8, 4) == "-50.0 %");
  CHECK(relative_change(2, 25) == "x 12.5");
  CHECK(relative_change(1, 999.7) == "x 1,000");
  CHECK(relative_change(13, 13 * 8814.0) == "x 8,810");
}

TEST_CASE("significant digits are counted from the first that is not zero") {
  CHECK(significant_text(0.82345, 4) == "0.8235");
  CHECK(significant_text(64, 4) == "64");
  CHECK(significant_text(1e-7, 4) == "1e-07");
}

}  // namespace
}  // namespace windtunnel
