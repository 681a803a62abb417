#include "evidence/score.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace windtunnel {
namespace {

ScoredRow row(double measured, double predicted, const char* group = "") {
  return {"", group, Seconds{measured}, Seconds{predicted}, Flops{1}};
}

TEST_CASE("a score is mean, median, 90th percentile, worst and bias of the relative errors") {
  // Errors +10 %, -20 %, 0, +30 %; sorted without sign: 0, 0.1, 0.2, 0.3.
  const Score four = score({row(10, 11), row(10, 8), row(10, 10), row(10, 13)});
  CHECK(four.scored == 4);
  CHECK(four.mape == doctest::Approx(0.15));        // 0.6 / 4
  CHECK(four.median_ape == doctest::Approx(0.15));  // between 0.1 and 0.2
  CHECK(four.p90_ape == doctest::Approx(0.27));     // position 0.9 * 3 = 2.7: 0.2 + 0.7 * 0.1
  CHECK(four.worst_ape == doctest::Approx(0.3));
  CHECK(four.bias == doctest::Approx(0.05));  // (0.1 - 0.2 + 0 + 0.3) / 4
}

TEST_CASE("one row has itself for every quantile") {
  const Score one = score({row(4, 3)});
  CHECK(one.median_ape == doctest::Approx(0.25));
  CHECK(one.p90_ape == doctest::Approx(0.25));
  CHECK(one.bias == doctest::Approx(-0.25));
}

TEST_CASE("leaving out the largest error leaves out the largest, whatever its sign") {
  // Errors -50 %, +10 %, +20 %: without the first, 0.3 / 2.
  CHECK(score_without_largest({row(10, 5), row(10, 11), row(10, 12)}, 1).mape ==
        doctest::Approx(0.15));
  CHECK(num_largest(54) == 3);  // 2.7
  CHECK(num_largest(9) == 0);   // 0.45
  CHECK(num_largest(1) == 0);
}

TEST_CASE("ideal work is FLOPs per GPU scaled up by the pipeline bubble") {
  // 800 / 8 * (1 + 3 / 6) = 150; two chunks a device halve the bubble: 100 * 1.25.
  CHECK(ideal_work(Flops{800}, 8, 4, 6, 1) == Flops{150});
  CHECK(ideal_work(Flops{800}, 8, 4, 6, 2) == Flops{125});
  CHECK(ideal_work(Flops{800}, 8, 1, 6, 1) == Flops{100});
}

TEST_CASE("the naive model is exact where one efficiency explains all") {
  std::vector<ScoredRow> rows{row(2, 99), row(6, 99)};
  rows[1].ideal_work = Flops{3};
  CHECK(naive_mape(rows) == doctest::Approx(0));
}

TEST_CASE("the naive model's constant is the one of least mean absolute error") {
  // t/x = 2, 2, 4 with weights x/t = 0.5, 0.5, 0.25: half of 1.25 is reached at 2. Errors 0, 0,
  // 1/2.
  std::vector<ScoredRow> rows{row(2, 99), row(2, 99), row(8, 99)};
  rows[2].ideal_work = Flops{2};
  CHECK(naive_mape(rows) == doctest::Approx(0.5 / 3));
  // No other constant does better.
  for (double constant = 1; constant < 5; constant += 0.01) {
    double sum = 0;
    for (const ScoredRow& each : rows)
      sum += std::abs(constant * (each.ideal_work / Flops{1}) * Seconds{1} / each.measured - 1);
    CHECK(naive_mape(rows) <= sum / 3 + 1e-12);
  }
}

TEST_CASE("Kendall's tau counts pairs in the right order against pairs in the wrong one") {
  // Six pairs, one (2 and 3) the wrong way round: (5 - 1) / 6.
  CHECK(*kendall_tau({row(1, 1), row(2, 3), row(3, 2), row(4, 4)}) == doctest::Approx(4.0 / 6));
  CHECK(*kendall_tau({row(1, 2), row(2, 1)}) == doctest::Approx(-1));
  // A predicted tie: one of the three pairs says nothing; 2 / sqrt(3 * 2).
  CHECK(*kendall_tau({row(1, 1), row(2, 2), row(3, 2)}) == doctest::Approx(2 / std::sqrt(6.0)));
  CHECK_FALSE(kendall_tau({row(1, 1)}).has_value());
  CHECK_FALSE(kendall_tau({row(1, 1), row(2, 1)}).has_value());
}

TEST_CASE("Spearman's rho is the correlation of ranks") {
  // 1 - 6 sum d^2 / (n (n^2 - 1)): two neighbours swapped of four, d^2 = 1 + 1: 1 - 12 / 60
  CHECK(*spearman_rho({row(1, 1), row(2, 30), row(3, 20), row(9, 40)}) == doctest::Approx(0.8));
  CHECK(*spearman_rho({row(1, 2), row(2, 1)}) == doctest::Approx(-1));
  // Ranks 0 1 2 against 0 1.5 1.5: covariance 1.5, variances 2 and 1.5
  CHECK(*spearman_rho({row(1, 1), row(2, 2), row(3, 2)}) ==
        doctest::Approx(1.5 / std::sqrt(2 * 1.5)));
  CHECK_FALSE(spearman_rho({row(1, 1)}).has_value());
  CHECK_FALSE(spearman_rho({row(1, 1), row(2, 1)}).has_value());
}

TEST_CASE("regret is what the plan predicted fastest costs over the best") {
  // Predicted fastest: the second, measured 12 s; the best took 10 s.
  CHECK(top1_regret({row(10, 9), row(12, 8), row(11, 20)}) == doctest::Approx(0.2));
  CHECK(top1_regret({row(10, 5)}) == doctest::Approx(0));
}

TEST_CASE("groups keep their rows and the order in which they appear") {
  const auto groups = by_group({row(1, 1, "b"), row(2, 2, "a"), row(3, 3, "b")});
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].name == "b");
  CHECK(groups[0].comparisons.size() == 2);
  CHECK(groups[1].name == "a");
}

}  // namespace
}  // namespace windtunnel
