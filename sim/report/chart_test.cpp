#include "report/chart.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace windtunnel {
namespace {

TEST_CASE("numbers at an axis are short, amounts have the unit that suits them") {
  CHECK(number_mark(1500000, 3) == "1.5 M");
  CHECK(number_mark(2048, 3) == "2,048");
  CHECK(number_mark(999.9, 3) == "1,000");
  CHECK(number_mark(999999.9, 3) == "1 M");
  CHECK(number_mark(1e-6, 3) == "1e-6");
  CHECK(number_mark(1234.5, 5) == "1,234.5");
  CHECK(seconds_mark(0.25, 3) == "250 ms");
  CHECK(seconds_mark(0, 3) == "0");
  CHECK(bytes_mark(0x1p24, 3) == "16 MiB");
  CHECK(rate_mark(1e6, 3) == "1 MB/s");
}

TEST_CASE("marks have as many digits as distinguish them") {
  CHECK(mark_texts({0, 0.5, 1}, number_mark, false) == std::vector<std::string>{"0", "0.5", "1"});
  CHECK(mark_texts({15.282, 15.284}, seconds_mark, false) ==
        std::vector<std::string>{"15.282 s", "15.284 s"});
}

TEST_CASE("an axis of counts has no mark between two") {
  const std::string svg = chart_svg({"steps",
                                     Chart::Shape::line,
                                     {-0.5, 1.5, number_mark, "step", false, {}, true},
                                     {0, 1},
                                     {{0, 1}, {1, 1}}});
  CHECK(svg.find(">1</text>") != std::string::npos);
  CHECK(svg.find(">0.5</text>") == std::string::npos);
}

TEST_CASE("a line of one point is a mark") {
  const std::string svg = chart_svg({"x", Chart::Shape::line, {0, 1}, {0, 1}, {{0.5, 0.5}}});
  CHECK(svg.find("<circle") != std::string::npos);
  CHECK(svg.find("<polyline") == std::string::npos);
}

TEST_CASE("names of level rules do not lie on each other, and none is below the frame") {
  Chart chart{"x", Chart::Shape::line, {0, 1}, {0, 1}, {{0, 0}, {1, 1}}};
  chart.rules = {{0.5, "one", true}, {0.5, "other", true}, {0.01, "low", true, true}};
  const std::string svg = chart_svg(chart);
  const auto place = [&](const std::string& name, const std::string& of) {
    const std::size_t text = svg.rfind("<text", svg.find(">" + name + "<"));
    return std::stod(svg.substr(svg.find(of + "=\"", text) + of.size() + 2));
  };
  CHECK(place("one", "x") > place("other", "x") + 14);
  CHECK(place("low", "y") < 26 + 190);
}

TEST_CASE("a histogram counts the values of each span, and a value at the end in the last") {
  const Chart chart = histogram("days", {0, 1, 4, 10}, {0, 10}, 2, "draw");
  REQUIRE(chart.points.size() == 2);
  CHECK(chart.points[0].y == 3);
  CHECK(chart.points[1].y == 1);
  CHECK(chart.points[1].title == "1 draw");
  CHECK(chart.points[1].x == doctest::Approx(7.5));
}

TEST_CASE("the error of a dot is a line from one end to the other") {
  Chart chart{"days", Chart::Shape::dots, {0, 10}, {0, 10}, {{5, 5}}};
  const auto num_lines = [&] {
    const std::string svg = chart_svg(chart);
    int count = 0;
    for (auto at = svg.find("<line"); at != std::string::npos; at = svg.find("<line", at + 1))
      ++count;
    return count;
  };
  const int without = num_lines();
  chart.points.front().error = Chart::Error{4, 3, 8, 9};
  CHECK(num_lines() == without + 1);
}

TEST_CASE("an axis places values evenly, or by their logarithms") {
  CHECK(ChartAxis{10, 20}.position(15) == doctest::Approx(0.5));
  CHECK(ChartAxis{1, 100, nullptr, "", true}.position(10) == doctest::Approx(0.5));
  CHECK(ChartAxis{5, 5}.position(5) == 0);
}

TEST_CASE("axes end at round numbers and have marks of 1, 2 and 5 times a power of ten") {
  const ChartAxis share = axis_from_zero({38, 100});
  CHECK(share.marks == std::vector<double>{0, 20, 40, 60, 80, 100});
  CHECK(share.position(50) == 0.5);
  CHECK(axis_from_zero({0, 0}).position(0) == 0);
  CHECK(axis_from_zero({11}).marks == std::vector<double>{0, 5, 10, 15});
  CHECK(round_marks(14.3, 27, false) == std::vector<double>{15, 20, 25});
  CHECK(round_marks(80, 1100, true) == std::vector<double>{100, 200, 500, 1000});
  CHECK(round_marks(1, 1e6, true).size() == 7);  // powers of ten
  const ChartAxis sizes = axis_over({8, 64, 512});
  CHECK(sizes.is_logarithmic);
  CHECK(sizes.position(64) == doctest::Approx(0.5).epsilon(1e-12));
}

TEST_CASE("a logarithmic axis has room beyond its values, also beyond one value") {
  // 0.3 to 450 are 7.3 times e, of which each end gets 4 %: a factor of e^0.29 = 1.34.
  const ChartAxis axis = logarithmic_axis({0.3, 20, 450});
  CHECK(axis.low == doctest::Approx(0.3 / 1.34).epsilon(0.01));
  CHECK(axis.high == doctest::Approx(450 * 1.34).epsilon(0.01));
  CHECK(logarithmic_axis({10}).low < 10);
  CHECK(logarithmic_axis({10}).high > 10);
}

TEST_CASE("axes over the largest and smallest numbers have few marks, all of them finite") {
  const double largest = 1e308, smallest = 1e-308;
  const ChartAxis wide = logarithmic_axis({smallest, largest});
  CHECK(wide.position(largest) < 1);
  CHECK(wide.position(smallest) > 0);
  for (const ChartAxis& axis : {logarithmic_axis({1, largest}), wide, axis_over({8, largest}),
                                axis_from_zero({largest}), axis_from_zero({smallest})}) {
    const std::vector<double> marks =
        axis.marks.empty() ? round_marks(axis.low, axis.high, axis.is_logarithmic) : axis.marks;
    CHECK(marks.size() > 0);
    CHECK(marks.size() < 12);
    CHECK(std::all_of(marks.begin(), marks.end(), [](double mark) { return std::isfinite(mark); }));
  }
}

TEST_CASE("round marks between numbers that hardly differ are few") {
  std::vector<double> values;
  for (int i = 0; i < 30; ++i) values.push_back(1e17 + 16.0 * i);
  const ChartAxis axis = axis_over(values);
  CHECK(axis.marks.size() > 1);
  CHECK(axis.marks.size() < 12);
}

TEST_CASE("labels that would meet are left out, the last one stays") {
  // Letters of 10: "64" takes 55 to 75, "128" 75 to 105 and "256" 125 to 155.
  const auto fitting = labels_that_fit({{64, 65, "64"}, {128, 90, "128"}, {256, 140, "256"}}, 10);
  REQUIRE(fitting.size() == 2);
  CHECK(fitting[0].text == "256");
  CHECK(fitting[1].text == "128");
  CHECK(labels_that_fit({{1, 0, "1"}, {1.2, 90, "1"}}, 10).size() == 1);
}

TEST_CASE("names next to dots do not lie on each other") {
  Chart chart{"x", Chart::Shape::dots, {0, 10}, {0, 10}};
  for (const double at : {5.0, 5.01, 5.02, 9.9})
    chart.points.push_back({at, at, "a name of the dot"});
  const std::string svg = chart_svg(chart);
  std::size_t names = 0;
  for (std::size_t at = svg.find("<text"); at != std::string::npos; at = svg.find("<text", at + 1))
    if (svg.compare(svg.find('>', at), 19, ">a name of the dot<") == 0) ++names;
  CHECK(names >= 3);
  CHECK(svg.find("class=\"axes\"") != std::string::npos);
}

}  // namespace
}  // namespace windtunnel
