#include "job/job_points.hpp"

#include <doctest/doctest.h>

namespace windtunnel {
namespace {

JobPoint point(double days, double cost) {
  JobPoint point;
  point.values = "nodes 8";
  point.result = JobResult{};
  point.result->days.median = point.result->days.high = days;
  point.result->cost = Spread{cost, cost, cost};
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
  CHECK(json_of(job_points_document("sizes", points)).find("windtunnel/job-points-v1") !=
        std::string::npos);
}

TEST_CASE(
    "a point that does not fit, cannot be read or has no price is neither on the front nor beats "
    "another") {
  std::vector<JobPoint> points{point(10, 5), point(5, 2), point(5, 2), point(5, 2)};
  points[1].fits = false;
  points[2].result.reset();
  points[2].problem = "48 layers do not divide";
  points[3].result->cost.reset();
  mark_front(points);
  CHECK(points[0].on_front);
  for (int i = 1; i < 4; ++i) CHECK(!points[static_cast<std::size_t>(i)].on_front);
  const std::string text = text_of(job_points_document("sizes", points));
  CHECK(text.find("not played: 48 layers do not divide") != std::string::npos);
  CHECK(text.find("does not fit in memory") != std::string::npos);
}

}  // namespace
}  // namespace windtunnel
