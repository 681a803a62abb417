#include <doctest/doctest.h>

#include "validate/validation_report.hpp"

namespace windtunnel {
namespace {

ValidatedSet set_of(const char* name, MeasurementKind kind, double seconds) {
  ValidatedSet set;
  set.name = name;
  set.kind = kind;
  set.comparisons = {{"a<b", "", Seconds{seconds}, Seconds{2 * seconds}, Flops{1}}};
  return set;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST_CASE("each point is drawn once, with its names made safe, under the key of its GPUs") {
  ValidatedSet first = set_of("first", MeasurementKind::iteration, 1);
  first.comparisons[0].judged = JudgedRun{"stack", "h100", "model", Seconds{1}, {}};
  ValidatedSet second = first, third = set_of("third", MeasurementKind::iteration, 5);
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
  const ValidatedSet collectives = set_of("c", MeasurementKind::collective, 1e-4);
  CHECK(scatter_svg({set_of("i", MeasurementKind::iteration, 1), collectives}).find("<title>c, ") ==
        std::string::npos);
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
