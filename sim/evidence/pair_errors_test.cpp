#include "evidence/pair_errors.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "core/testing.hpp"
#include "evidence/evidence.hpp"

namespace windtunnel {
namespace {

/// A run of 10 s by the model, of which so much is compute and the rest tensor communication.
JudgedRun judged(double compute, double time = 10) {
  JudgedRun run{"stack", "a100", "gpt, 1 B", Seconds{time}, {}, {}};
  run.breakdown.add(Line::compute, Seconds{compute * time});
  run.breakdown.add(Line::tensor_comm, Seconds{(1 - compute) * time});
  return run;
}

/// Sets of one pair each, whose scores are 1, 2, 3, …
PairErrors errors_of(int num_sets) {
  PairErrors errors;
  errors.allowance.base = 0.01;
  errors.allowance.growth = 0.1;
  for (int i = 1; i <= num_sets; ++i) errors.sets["set" + std::to_string(i)] = {double(i)};
  errors.find_bounds();
  return errors;
}

TEST_CASE("the share moved is half the sum of what lines gain and lose") {
  CHECK(share_moved(judged(1).breakdown, judged(1, 30).breakdown) == doctest::Approx(0));
  CHECK(share_moved(judged(0.9).breakdown, judged(0.7).breakdown) == doctest::Approx(0.2));
  CHECK(share_moved(judged(1).breakdown, judged(0).breakdown) == doctest::Approx(1));
}

TEST_CASE("a pair's error is what its two rows do not share") {
  // 20 and 10 % slower than predicted; the third row has another model.
  std::vector<MeasuredRun> runs{{"set", judged(0.8), Seconds{12}},
                                {"set", judged(0.8), Seconds{11}},
                                {"set", judged(0.8), Seconds{50}}};
  runs[2].predicted.model = "gpt, 2 B";
  const PairErrors errors = pair_errors(runs);
  REQUIRE(errors.sets.size() == 1);
  CHECK(errors.allowance.base == doctest::Approx(std::log(12.0 / 11)));
  CHECK(errors.allowance.growth == 0);
  CHECK(errors.sets.at("set") == std::vector<double>{1});
}

TEST_CASE("the allowance is a line through the outer thirds' medians") {
  // One set each, so that all pairs count alike: three share all their lines, three move half of the time.
  std::vector<MeasuredRun> runs;
  for (const double moved : {0.0, 0.0, 0.0, 0.5, 0.5, 0.5}) {
    const std::string set = "set" + std::to_string(runs.size());
    runs.push_back({set, judged(1), Seconds{10}});
    runs.push_back({set, judged(1 - moved), Seconds{10 * std::exp(0.02 + moved)}});
  }
  const PairErrors errors = pair_errors(runs);
  CHECK(errors.allowance.of(0) == doctest::Approx(0.02));
  CHECK(errors.allowance.of(0.5) == doctest::Approx(0.52));
  CHECK(errors.sets.size() == 6);
}

TEST_CASE("the share beyond a score counts the new set as beyond") {
  const PairErrors errors = errors_of(9);
  CHECK(errors.share_beyond(0.5) == doctest::Approx(1));
  CHECK(errors.share_beyond(8.5) == doctest::Approx(0.2));
  CHECK(errors.share_beyond(99) == doctest::Approx(0.1));
  CHECK(errors.bound == doctest::Approx(9));                // 9 of 9 sets are needed
  CHECK(errors_of(19).bound == doctest::Approx(18));        // ceil(0.9 * 20) = 18 of 19
  CHECK(errors_of(19).order_bound == doctest::Approx(16));  // 3 of 19 and the new one are a fifth
  CHECK(errors_of(3).bound == doctest::Approx(4.5));        // too few: the largest, times 1.5
}

TEST_CASE("an order is as sure as errors of pairs are small compared with the gain") {
  const PairErrors errors = errors_of(19);
  const JudgedRun slow = judged(0.8);
  // 9.5 allowances of 0.01: scores 10 to 19 and the new set are beyond, half of them on the wrong side.
  const Ordering ordering = *order(slow, judged(0.8, 10 * std::exp(-0.095)), errors);
  CHECK(ordering.ratio == doctest::Approx(std::exp(0.095)));
  CHECK(ordering.sure == doctest::Approx(1 - 11.0 / 20 / 2));
  CHECK(ordering.verdict == OrderVerdict::not_known);
  CHECK(ordering.interval.first == doctest::Approx(std::exp(0.095 - 0.18)));
  CHECK(ordering.interval.second == doctest::Approx(std::exp(0.095 + 0.18)));

  CHECK(order(slow, judged(0.8, 5), errors)->verdict == OrderVerdict::faster);
  CHECK(order(slow, judged(0.8, 20), errors)->verdict == OrderVerdict::slower);
  // The same gain, with a tenth of the time spent otherwise: errors are allowed to be twice as large.
  CHECK(order(slow, judged(0.7, 10 * std::exp(-0.095)), errors)->sure ==
        doctest::Approx(1 - 16.0 / 20 / 2));
}

TEST_CASE("runs that most likely differ by less than 3 % are about the same") {
  PairErrors errors = errors_of(19);
  errors.allowance.base = 0.002;  // 10 of 19 scores allow at most 2 %
  CHECK(order(judged(0.8), judged(0.8, 9.95), errors)->verdict == OrderVerdict::about_the_same);
  CHECK(order(judged(0.8), judged(0.8, 9.95), errors_of(19))->verdict == OrderVerdict::not_known);
}

TEST_CASE("runs of different GPUs are judged by both intervals") {
  JudgedRun first = judged(0.8), second = judged(0.8, 5);
  second.gpu = "h100";
  CHECK_FALSE(order(first, second, errors_of(19)));
  const auto within = [](JudgedRun& run, double low, double high) {
    run.interval = {run.time * std::exp(-low), run.time * std::exp(high)};
  };
  within(first, 0.3, 0.1);
  within(second, 0.1, 0.4);
  const Ordering ordering = *order(first, second, errors_of(19));
  // The first may be 0.3 faster while the second is 0.4 slower.
  CHECK(ordering.interval.first == doctest::Approx(2 * std::exp(-0.5)));
  CHECK(ordering.interval.second == doctest::Approx(2 * std::exp(std::hypot(0.1, 0.1))));
  // Both sides 0.3207 wide in the mean, a deviation of 0.1950, of which ln 2 is 3.555.
  CHECK(ordering.sure == doctest::Approx(0.99981).epsilon(1e-5));
  CHECK(ordering.verdict == OrderVerdict::faster);
}

TEST_CASE("orders of measured pairs are scored by errors of others") {
  // Predicted 10, 8 and 7.9 s; measured 10, 9 and 9.5 s.
  const std::vector<MeasuredRun> runs{{"set", judged(0.8), Seconds{10}},
                                      {"set", judged(0.8, 8), Seconds{9}},
                                      {"set", judged(0.8, 7.9), Seconds{9.5}}};
  PairErrors errors = errors_of(19);
  errors.allowance.base = 0.002;
  const OrderScore score = score_orders(runs, errors);
  CHECK(score.pairs == 3);
  CHECK(score.apart == 3);
  CHECK(score.right == 2);
  CHECK(score.said == 2);  // 8 and 7.9 s are about the same
  CHECK(score.said_right == 2);
  CHECK(score.covered == 0);  // 3.6 % is what 18 allowances reach; 8 s and 9.5 s are off by more
}

TEST_CASE("a set is left out, and what is left survives its file") {
  MeasuredErrors all;
  all.pairs = errors_of(3);
  all.leave_out("set1");
  CHECK(all.pairs.sets.size() == 2);
  const auto text = std::make_shared<const SourceText>(SourceText{"r.json", evidence_json(all)});
  const PairErrors read = parse_evidence(text).pairs;
  CHECK(read.allowance.base == all.pairs.allowance.base);
  CHECK(read.allowance.growth == all.pairs.allowance.growth);
  CHECK(read.sets.at("set2") == std::vector<double>{2});
}

TEST_CASE("what a report does not say is not taken to be shared") {
  // Reports of versions that did not name the family of GPUs, without intervals and without a breakdown.
  JudgedRun first = judged(0.8), second = judged(0.8, 5);
  first.gpu = second.gpu = "";
  CHECK_FALSE(order(first, second, errors_of(19)));
  JudgedRun empty = judged(0.8);
  empty.breakdown = {};
  CHECK(share_moved(empty.breakdown, judged(0.8).breakdown) == 1);
  CHECK(order(empty, judged(0.8, 5), errors_of(19)));
  empty.time = Seconds{0};
  CHECK_FALSE(order(empty, judged(0.8), errors_of(19)));
  PairErrors huge = errors_of(19);
  huge.allowance.base = 1000;
  CHECK_FALSE(order(judged(0.8), judged(0.8, 5), huge));
}

TEST_CASE("the shipped residuals hold pairs of many sets") {
  const PairErrors pairs = read_evidence(Library{source_dir()}).pairs;
  CHECK(pairs.sets.size() >= 20);
  CHECK(pairs.allowance.base > 0);
  CHECK(pairs.order_bound < pairs.bound);
}

}  // namespace
}  // namespace windtunnel
