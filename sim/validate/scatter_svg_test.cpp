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

TEST_CASE("each point and each set is drawn once, with its name made safe") {
  const std::string svg = scatter_svg({set_of("first", MeasurementKind::iteration, 1),
                                       set_of("second", MeasurementKind::iteration, 5)});
  CHECK(count(svg, "<title>a&lt;b: measured ") == 2);
  CHECK(count(svg, ">first: 1 point, ") == 1);
  CHECK(count(svg, "mean error 100.0 %") == 2);
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
}

TEST_CASE("collectives are drawn only by themselves") {
  const ValidatedSet collectives = set_of("c", MeasurementKind::collective, 1e-4);
  CHECK(scatter_svg({set_of("i", MeasurementKind::iteration, 1), collectives})
            .find(">c: 1 point, ") == std::string::npos);
  const std::string alone = scatter_svg({collectives});
  CHECK(alone.find(">c: 1 point, ") != std::string::npos);
  CHECK(alone.find("100 µs") != std::string::npos);
}

TEST_CASE("nothing to draw is an empty picture") {
  CHECK(scatter_svg({}).find("0 measured runs") != std::string::npos);
}

}  // namespace
}  // namespace windtunnel
