#include <doctest/doctest.h>

#include <sstream>

#include "job/job_result.hpp"

namespace windtunnel {
namespace {

/// The error of the step between 1/`factor` and `factor` times as much; all runs alike.
JobFigure within(double median, double factor) {
  const Spread both{median, median / factor, median * factor};
  return {both, {median, median, median}, both};
}

JobPoint point(double days, double cost, double factor = 1) {
  JobPoint point;
  point.values = "nodes 8";
  point.result = JobResult{};
  point.result->days = within(days, factor);
  point.result->cost = within(cost, factor);
  point.result->job.block.price = JobBlock::Price{};
  point.result->job.block.price->currency = "USD";
  return point;
}

TEST_CASE("the front has the points that no other beats in days and money") {
  // 10 days for 5 and 20 days for 3 beat nothing of each other; 20 days for 4 and 12 for 6 are beaten.
  std::vector<JobPoint> points{point(10, 5), point(20, 3), point(20, 4), point(12, 6)};
  mark_front(points);
  CHECK(points[0].on_front);
  CHECK(points[1].on_front);
  CHECK(!points[2].on_front);
  CHECK(!points[3].on_front);
  for (const JobPoint& each : points) CHECK(each.front_is_sure);
  const std::string text = text_of(job_points_document("sizes", points));
  CHECK(text.find("Fastest: nodes 8; no other comes within the errors.") != std::string::npos);
  CHECK(text.find("uncertain") == std::string::npos);
  CHECK(json_of(job_points_document("sizes", points)).find("windtunnel/job-points-v1") !=
        std::string::npos);
}

TEST_CASE(
    "warnings of points stand below the answer, each once, and figures of no point are left out") {
  std::vector<JobPoint> points{point(10, 5), point(20, 3), point(30, 2)};
  for (JobPoint& each : points) each.result->warnings = {"wide"};
  points[1].result->warnings = {"narrow"};
  const std::string text = text_of(job_points_document("sizes", points));
  CHECK(text.find("Fastest: ") < text.find("! points 1, 3: wide\n"));
  CHECK(text.find("! point 2: narrow\n") != std::string::npos);
  CHECK(text.find("cost") != std::string::npos);
  CHECK(text.find("MWh") == std::string::npos);
}

TEST_CASE("two points are distinguished where their distance is more than both errors together") {
  // 90 of 100 cases stay below 0.7791 of what 95 do: 0.7791 · ln 1.1 · sqrt(2) = 0.1050, a factor of 1.1107
  for (const Expense expense : {Expense::days, Expense::cost}) {
    CHECK(!is_order_known(point(10, 10, 1.1), point(11.1, 11.1, 1.1), expense));
    CHECK(is_order_known(point(10, 10, 1.1), point(11.2, 11.2, 1.1), expense));
    CHECK(is_order_known(point(11.2, 11.2, 1.1), point(10, 10, 1.1), expense));
  }
  // The run's own spread counts like the step's: 0.7791 sqrt(2 + 2) ln 1.1 = 0.1485, a factor of 1.160
  JobPoint one = point(10, 10, 1.1), other = point(11.5, 11.5, 1.1);
  CHECK(is_order_known(one, other, Expense::days));
  for (JobPoint* each : {&one, &other}) each->result->days.of_run = each->result->days.of_step;
  CHECK(!is_order_known(one, other, Expense::days));
  // A cost of zero is less than any other, and not less than zero.
  CHECK(is_order_known(point(1, 0), point(1, 5), Expense::cost));
  CHECK(!is_order_known(point(1, 0), point(1, 0), Expense::cost));
}

TEST_CASE(
    "the steps of points of one stack, model and kind of GPU are distinguished by measured pairs") {
  // Twenty sets whose pairs are off by 2 %: 1 % apart is not known, 5 % is, where independent steps of 10 % would leave it open.
  auto pairs = std::make_shared<PairErrors>();
  pairs->allowance.base = 0.02;
  for (int i = 0; i < 20; ++i) pairs->sets["set" + std::to_string(i)] = {1.0};
  pairs->find_bounds();
  const auto paired = [&](double days) {
    JobPoint one = point(days, days, 1.1);
    one.judged = JudgedRun{"stack", "h100", "llama", Seconds{1}, {}, {}};
    one.judged->breakdown.add(Line::compute, Seconds{1});
    one.pairs = pairs;
    return one;
  };
  CHECK_FALSE(is_order_known(paired(10), paired(10.1), Expense::days));
  CHECK(is_order_known(paired(10), paired(10.5), Expense::days));
  JobPoint other = paired(10.5);
  other.judged->gpu = "a100";
  CHECK_FALSE(is_order_known(paired(10), other, Expense::days));
}

TEST_CASE("where errors leave open which point is cheapest, no point is called so") {
  // 10 days for 5.0 and 20 days for 4.8 are 4 % apart in money, within errors of 1.1107 - 1; 40 days for 20 is beaten for sure.
  std::vector<JobPoint> points{point(10, 5, 1.1), point(20, 4.8, 1.1), point(40, 20, 1.1),
                               point(10.5, 5.1, 1.1)};
  points[1].values = "nodes 4";
  points[3].values = "nodes 7";
  mark_front(points);
  CHECK(points[0].on_front);
  CHECK(!points[0].front_is_sure);  // the last may be faster and cheaper
  CHECK(points[1].on_front);
  CHECK(!points[1].front_is_sure);  // the first may be cheaper, too
  CHECK(!points[2].on_front);
  CHECK(points[2].front_is_sure);
  CHECK(!points[3].on_front);
  CHECK(!points[3].front_is_sure);
  const std::string text = text_of(job_points_document("sizes", points));
  CHECK(text.find("Fastest: not known. Predicted: nodes 8; within the model's error of it: nodes 7 "
                  "(5.0 % more, error\n  up to 11.1 %).") != std::string::npos);
  CHECK(
      text.find("Cheapest: not known. Predicted: nodes 4; within the model's error of it: nodes 8 "
                "(4.2 % more,\n  error up to 11.1 %), nodes 7 (6.2 % more, error up to 11.1 %).") !=
      std::string::npos);
  CHECK(text.find("on the front, uncertain") != std::string::npos);
  CHECK(text.find("off the front, uncertain") != std::string::npos);
}

TEST_CASE(
    "a point that does not fit, cannot be read or has no price is neither on the front nor beats "
    "another") {
  std::vector<JobPoint> points{point(10, 5), point(5, 2), point(5, 2), point(5, 2)};
  points[1].result->memory_verdict = MemoryVerdict::does_not_fit;
  points[2].result.reset();
  points[2].problem = "48 layers do not divide";
  points[3].result->cost.reset();
  mark_front(points);
  CHECK(points[0].on_front);
  for (int i = 1; i < 4; ++i) CHECK(!points[static_cast<std::size_t>(i)].on_front);
  const std::string text = text_of(job_points_document("sizes", points));
  CHECK(text.find("✗ point 3 not simulated: 48 layers do not divide") != std::string::npos);
  CHECK(text.find("does not fit in memory") != std::string::npos);
  // Two of the four have days to compare, one has money.
  CHECK(text.find("Fastest of 2 of 4 points: nodes 8; no other") != std::string::npos);
  CHECK(text.find("Cheapest of 1 of 4 points: nothing to compare nodes 8 with.") !=
        std::string::npos);
}

TEST_CASE("a point without a result has no interval, and lengths below a day are in hours") {
  std::vector<JobPoint> points{point(0.5, 5), point(0.25, 3), {}};
  points[2].problem = "48 layers do not divide";
  const std::string text = text_of(job_points_document("sizes", points));
  CHECK(text.find("hours") != std::string::npos);
  CHECK(text.find("12.0 to 12.0") != std::string::npos);
  CHECK(text.find("6.00 to 6.00") != std::string::npos);
  CHECK(text.find(" to   ") == std::string::npos);
}

TEST_CASE("waits are means and goodput is a median, which is said") {
  std::vector<JobPoint> points{point(10, 5), point(20, 3)};
  points[0].result->mean_shares[Spent::idle] = 0.027;
  points[0].result->enough_spares = EnoughSpares{1, 9.9, 1, 1};
  std::string words;
  std::istringstream text(text_of(job_points_document("sizes", points)));
  for (std::string word; text >> word;) words += word + " ";
  CHECK(words.find("mean of all draws, where goodput is the median: 1 in 2.7 % of its time, 9.90 "
                   "days with 1 spare node") != std::string::npos);
}

TEST_CASE("cost has its currency in the heading, and chosen plans stand below the table") {
  std::vector<JobPoint> points{point(10, 5), point(20, 4)};
  for (JobPoint& each : points) {
    each.result->job.block.price->currency = "EUR";
    each.result->job.block.plan = JobPlan::best;
    each.result->plan = "tensor 8, 1f1b";
  }
  std::string text = text_of(job_points_document("sizes", points));
  CHECK(text.find("cost, EUR") != std::string::npos);
  CHECK(text.find("\n  plan of point 2: tensor 8, 1f1b\n") != std::string::npos);
  points[1].result->job.block.price->currency = "USD";
  text = text_of(job_points_document("sizes", points));
  CHECK(text.find("cost, EUR") == std::string::npos);
  CHECK(text.find("5.00 EUR") != std::string::npos);
  CHECK(text.find("4.00 USD") != std::string::npos);
}

}  // namespace
}  // namespace windtunnel
