#include <doctest/doctest.h>

#include "core/testing.hpp"
#include "validate/validation_report.hpp"

namespace windtunnel {
namespace {

ValidatedSet set_of(const char* name, std::vector<ScoredRow> comparisons) {
  ValidatedSet set;
  set.name = name;
  set.num_points = comparisons.size();
  set.comparisons = std::move(comparisons);
  return set;
}

TEST_CASE(
    "the page of a validation names the worst rows first, with pointers to the exact numbers") {
  const ValidatedSet set =
      set_of("a set", {{"near", "", 10_s, 10.5_s, Flops{1}}, {"far", "", 10_s, 7_s, Flops{1}}});
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
  ValidatedSet set = set_of("a set", {{"near", "", 10_s, 10.5_s, Flops{1}}});
  set.overrides = {"/name=<b>", "/training/micro_batch=2"};
  CHECK(contains(validation_page({set}),
                 "With /name=&lt;b&gt;, /training/micro_batch=2 over every point: not the score"));
}

TEST_CASE("the page lists what was not compared, with the reason") {
  ValidatedSet set = set_of("a set", {});
  set.num_points = 1;
  set.skipped = {{"odd <one>", SkipKind::no_time, "no measured time"}};
  const std::string page = validation_page({set});
  CHECK(contains(page, "<td>odd &lt;one&gt;</td>"));
  CHECK(contains(page, "no measured time"));
  CHECK(contains(page, "0</span> times compared"));
}

}  // namespace
}  // namespace windtunnel
