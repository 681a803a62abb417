#include "validate/validation_report.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "core/testing.hpp"

namespace windtunnel {
namespace {

/// Four rows, 10 % slow and 10 % fast in turn, and one that was skipped.
ValidatedSet set_of(const char* name, MeasurementKind kind) {
  ValidatedSet set;
  set.name = name;
  set.kind = kind;
  set.num_points = 5;
  for (const double predicted : {11.0, 9.0, 11.0, 9.0})
    set.comparisons.push_back({"row", "", Seconds{10}, Seconds{predicted}, Flops{1}});
  set.skipped = {{"row", SkipKind::no_time, "the run ended out of memory"}};
  set.fitted_numbers = {"device a100: peak"};
  return set;
}

TEST_CASE("the summary has a line for each set, and what the columns mean") {
  ValidatedSet times = set_of("times", MeasurementKind::iteration);
  for (ScoredRow& row : times.comparisons) row.interval = {Seconds{9}, Seconds{11}};
  times.comparisons.back().interval = {Seconds{7}, Seconds{9.5}};  // holds no 10 s
  ValidatedSet rings = set_of("rings", MeasurementKind::collective);
  rings.num_points = 4;
  CHECK(validation_summary({rings, times}, Legend::hidden) ==
        R"(  iteration times, errors in %  rows  mean  worst  bias  bar  inside  fitted
  times                          4/5  10.0   10.0  +0.0  0.0      75       1

  collectives, errors in %      rows  mean  worst  bias  bar  inside  fitted
  rings                            4  10.0   10.0  +0.0  0.0       -       1
)");
  CHECK(validation_summary({times}, Legend::shown).find("--details") != std::string::npos);
}

TEST_CASE("a set with nothing to compare, and changes over every point, are said") {
  ValidatedSet set = set_of("empty", MeasurementKind::iteration);
  set.comparisons.clear();
  set.overrides = {"/nodes=4"};
  const std::string text = validation_summary({set, set}, Legend::hidden);
  CHECK(text.find("  empty                          0/5     -      -") != std::string::npos);
  const std::string change = "  With /nodes=4 over every point: not the score";
  REQUIRE(text.find(change) != std::string::npos);
  CHECK(text.find(change) == text.rfind(change));
}

TEST_CASE("the summary of as many sets as are shipped fits on a screen of 24 lines of 80") {
  const std::vector<ValidatedSet> sets(
      15, set_of("megatron-2020-tensor-scaling", MeasurementKind::iteration));
  const std::string text = validation_summary(sets, Legend::shown);
  CHECK(std::count(text.begin(), text.end(), '\n') <= 24);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
}

ValidatedSet set_with_rows(const char* name, std::vector<ScoredRow> comparisons) {
  ValidatedSet set;
  set.name = name;
  set.num_points = comparisons.size();
  set.comparisons = std::move(comparisons);
  return set;
}

TEST_CASE(
    "the page of a validation names the worst rows first, with pointers to the exact numbers") {
  const ValidatedSet set = set_with_rows(
      "a set", {{"near", "", 10_s, 10.5_s, Flops{1}}, {"far", "", 10_s, 7_s, Flops{1}}});
  const std::string page = validation_page({set});
  // Errors of +5 % and -30 %: mean 17.5 %, worst 30 %.
  CHECK(contains(page, R"(<span data-at="/iterations/mape">17.5 %</span></span> mean error)"));
  CHECK(contains(page, R"(<span data-at="/points/1/error">-30.0 %</span>)"));
  CHECK(contains(page, R"(<span data-at="/sets/0/worst_ape">30.0 %</span>)"));
  const std::size_t worst = page.find("id=\"worst\"");
  CHECK(page.find("<td>far</td>", worst) < page.find("<td>near</td>", worst));
  CHECK(contains(page, "1 of them within 5 %, 1 within 10 %"));
  CHECK_FALSE(contains(page, "over every point"));
}

TEST_CASE("the page says which values were changed for every point") {
  ValidatedSet set = set_with_rows("a set", {{"near", "", 10_s, 10.5_s, Flops{1}}});
  set.overrides = {"/name=<b>", "/training/micro_batch=2"};
  CHECK(contains(validation_page({set}),
                 "With /name=&lt;b&gt;, /training/micro_batch=2 over every point: not the score"));
}

TEST_CASE("the page lists what was not compared, with the reason") {
  ValidatedSet set = set_with_rows("a set", {});
  set.num_points = 1;
  set.skipped = {{"odd <one>", SkipKind::no_time, "no measured time"}};
  const std::string page = validation_page({set});
  CHECK(contains(page, "<td>odd &lt;one&gt;</td>"));
  CHECK(contains(page, "no measured time"));
  CHECK(contains(page, "0</span> times compared"));
}

ValidatedSet set_with_one_row(const char* name, MeasurementKind kind, double seconds) {
  ValidatedSet set;
  set.name = name;
  set.kind = kind;
  set.comparisons = {{"a<b", "", Seconds{seconds}, Seconds{2 * seconds}, Flops{1}}};
  return set;
}

TEST_CASE("each point is drawn once, with its names made safe, under the key of its GPUs") {
  ValidatedSet first = set_with_one_row("first", MeasurementKind::iteration, 1);
  first.comparisons[0].judged = JudgedRun{"stack", "h100", "model", Seconds{1}, {}};
  ValidatedSet second = first, third = set_with_one_row("third", MeasurementKind::iteration, 5);
  second.name = "second";
  second.comparisons[0].judged->gpu = "v100";
  third.comparisons[0].judged = first.comparisons[0].judged;
  third.fitted_numbers = {"emax"};
  const std::string svg = scatter_svg({first, second, third});
  CHECK(count(svg, "<title>first, a&lt;b: measured ") == 1);
  CHECK(count(svg, ", a&lt;b: measured ") == 3);
  CHECK(count(svg, ">h100: 2 points, mean error 100.0 %<") == 1);
  CHECK(count(svg, ">v100: 1 point, mean error 100.0 %<") == 1);
  // Nothing was fitted on the first two; the third circle is the key.
  CHECK(count(svg, "<circle class=\"s0 hollow\"") == 1);
  CHECK(count(svg, "<circle class=\"s1 hollow\"") == 1);
  CHECK(count(svg, "<circle class=\"s0\"") == 2);
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
}

TEST_CASE("collectives are drawn only by themselves") {
  const ValidatedSet collectives = set_with_one_row("c", MeasurementKind::collective, 1e-4);
  CHECK(scatter_svg({set_with_one_row("i", MeasurementKind::iteration, 1), collectives})
            .find("<title>c, ") == std::string::npos);
  const std::string alone = scatter_svg({collectives});
  CHECK(alone.find("<title>c, ") != std::string::npos);
  CHECK(alone.find(">c: 1 point, ") != std::string::npos);
  CHECK(alone.find("100 us") != std::string::npos);
}

TEST_CASE("nothing to draw is an empty picture") {
  CHECK(scatter_svg({}).find("0 measured runs") != std::string::npos);
}

}  // namespace
}  // namespace windtunnel
