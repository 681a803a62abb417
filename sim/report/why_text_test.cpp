#include <doctest/doctest.h>

#include "report/report_words.hpp"
#include "report/testing.hpp"

namespace windtunnel {
namespace {

TEST_CASE("reasons come longest first and leave out what is below one percent") {
  // Of 32 us: 12 compute, 9 bubble, 6 tensor, 2 pipeline, 2 embedding, 1 optimizer; 1 us is 3.1 %.
  Report report = testing::small_report();
  std::vector<Reason> reasons = reasons_for_time(report);
  REQUIRE(reasons.size() == 6);
  CHECK(reasons[0].line == Line::compute);
  CHECK(reasons[1].line == Line::pipeline_bubble);
  CHECK(reasons[1].title == "Pipeline bubble: 9.000 us, 28.1 %");
  CHECK(reasons[2].line == Line::tensor_comm);
  CHECK(reasons[5].line == Line::optimizer);
  report.breakdown.seconds[static_cast<std::size_t>(Line::compute)] = 1_ms;
  CHECK(reasons_for_time(report).size() == 1);  // 9 of 1020 us are 0.9 %
  CHECK(reasons_for_time(Report{}).empty());
}

TEST_CASE("a reason speaks of tensor-parallel communication only where there is some") {
  Report report = testing::small_report();
  const auto compute_of = [](const Report& each) { return reasons_for_time(each)[0].text; };
  report.plan.parallel.tensor = 2;
  CHECK(compute_of(report).ends_with(", tensor-parallel communication included."));
  report.plan.parallel.tensor = 1;
  CHECK(compute_of(report).find("tensor") == std::string::npos);
}

TEST_CASE("the bubble of equal stages is (p - 1) / (v m + p - 1)") {
  Plan plan;
  plan.parallel.pipeline = 4;
  plan.microbatches = 9;
  CHECK(ideal_bubble_share(plan) == doctest::Approx(0.25));  // 3 / 12
  plan.parallel.schedule = schedule_named("interleaved_1f1b");
  plan.parallel.virtual_pipeline = 3;
  CHECK(ideal_bubble_share(plan) == doctest::Approx(0.1));  // 3 / 30
  plan.parallel.schedule = schedule_named("zero_bubble_h1");
  CHECK(ideal_bubble_share(plan) == 0);
  CHECK(ideal_bubble_share(Plan{}) == 0);
}

}  // namespace
}  // namespace windtunnel
