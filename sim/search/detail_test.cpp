#include <doctest/doctest.h>

#include <cmath>

#include "report/report_words.hpp"
#include "search/random_scenario_fixtures.hpp"

namespace windtunnel {
namespace {

// If transfers of a pass (tokens sent to experts, parts of sequences, gathered weights) meet messages or each other on a link,
// a pass that is one number does not see it: docs/limits.md says by how much.
TEST_CASE("passes as one number take as long as operation by operation where no transfers meet") {
  constexpr double same = 1e-9, most_when_they_meet = 0.1, most_when_they_fill_the_links = 0.3;
  int without_contention = 0, beyond = 0;
  const int checked =
      for_each_drawn_plan(RandomBases(11), 600, 9, [&](const Scenario& base, const Plan& plan) {
        CAPTURE(base.name);
        CAPTURE(detail::plan_text(plan.training, plan.parallel));
        const double pass = time_of(base, plan, Detail::pass, make_native_engine),
                     layer = time_of(base, plan, Detail::layer, make_native_engine),
                     alone = time_of(base, plan, Detail::layer, make_heap_engine);
        const bool meet = std::abs(layer / alone - 1) > same;
        const double apart = std::abs(layer / pass - 1);
        CHECK(apart < (meet ? most_when_they_fill_the_links : same));
        if (apart > most_when_they_meet) ++beyond;
        if (!meet) ++without_contention;
      });
  CHECK(checked > 2000 / one_in);
  CHECK(beyond <= 4);  // exchanges of tokens where eight GPUs share one network card
  CHECK(without_contention > 1000 / one_in);
}

}  // namespace
}  // namespace windtunnel
