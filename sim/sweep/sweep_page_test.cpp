#include <doctest/doctest.h>

#include "core/testing.hpp"
#include "sweep/row.hpp"
#include "sweep/sweep_fixtures.hpp"
#include "sweep/sweep_text.hpp"

namespace windtunnel {
namespace {

/// The rows that a sweep's own workers would write.
PartRows rows_of(const Sweep& sweep) {
  const RowMaker maker(sweep, {});
  PartRows rows;
  for (std::size_t point = 0; point < sweep.points().size(); ++point) {
    const std::string row = maker.row(point);
    rows.by_point[point] = *parse_row(row);
  }
  return rows;
}

std::string page_of(const Sweep& sweep, const PartRows& rows) {
  return sweep_page(sweep, rows, "out/x", "0.1.0");
}

TEST_CASE("a sweep's page names the best point and explains where its time goes") {
  const testing::SweepFixture fixture;
  const Sweep sweep =
      fixture.sweep(R"({"matrix": {"/nodes": [1, 2], "/training/micro_batch": [1, 2]}})");
  const PartRows rows = rows_of(sweep);
  const std::string page = page_of(sweep, rows);
  CHECK(contains(page, "tokens/s at best"));
  CHECK(contains(page, R"(data-of="sweep-points" data-at="/0/tokens_per_s")"));
  CHECK(contains(page, "Why does the best point take this long?"));
  CHECK(contains(page, R"(data-of="explained" data-at="/0/iteration_time_s")"));
  CHECK(contains(page, "With micro_batch "));
  CHECK(contains(page, "a scaling efficiency of"));
  CHECK(contains(page, "<code>/training/micro_batch</code></td><td><code>1, 2</code>"));
  CHECK(contains(page, "4 combinations, 0 excluded, 0 included: 4 points."));
  // Four pictures: throughput, efficiency, MFU, memory.
  std::size_t pictures = 0;
  for (std::size_t at = page.find("class=\"axes\" viewBox=\"0 0"); at != std::string::npos;
       at = page.find("class=\"axes\" viewBox=\"0 0", at + 1))
    ++pictures;
  CHECK(pictures == 4);
}

TEST_CASE("a page says once that points are the same scenario") {
  const testing::SweepFixture fixture;
  const Sweep sweep = fixture.sweep(R"({"matrix": {"/name": ["a", "b"]}})");
  const std::string page = page_of(sweep, rows_of(sweep)),
                    said = R"(<p class="verdict doubtful">2 points are one scenario)";
  REQUIRE(contains(page, said));
  CHECK(page.find(said) == page.rfind(said));
}

TEST_CASE("a page claims no scaling between clusters of different GPUs") {
  const testing::SweepFixture fixture;
  const Sweep sweep = fixture.sweep(R"({"matrix": {"/platform": ["boxes", "pair"]}})");
  const std::string page = page_of(sweep, rows_of(sweep));
  CHECK(contains(page, "tokens/s at best"));
  CHECK_FALSE(contains(page, "caling efficiency"));
  CHECK_FALSE(contains(page, "class=\"ideal"));
}

TEST_CASE("the rows stand in the page as results.jsonl has them, the best first") {
  const testing::SweepFixture fixture;
  const Sweep sweep = fixture.sweep(R"({"matrix": {"/nodes": [1, 2]}})");
  const PartRows rows = rows_of(sweep);
  const std::string page = page_of(sweep, rows);
  for (const auto& [point, entry] : rows.by_point) CHECK(contains(page, entry.line));
  const auto first = parse_row(rows.by_point.at(0).line),
             second = parse_row(rows.by_point.at(1).line);
  const bool second_is_faster = std::get<double>(second->content.find("tokens_per_s")->content) >
                                std::get<double>(first->content.find("tokens_per_s")->content);
  CHECK(contains(page, second_is_faster ? "Best point, 1: nodes 2" : "Best point, 0: nodes 1"));
}

TEST_CASE("failed points stand with their reason, and points that are missing are counted") {
  const testing::SweepFixture fixture;
  const Sweep sweep = fixture.sweep(R"({"matrix": {"/training/micro_batch": [1, 3, 2]}})");
  PartRows rows = rows_of(sweep);
  rows.by_point.erase(2);
  const std::string page = page_of(sweep, rows);
  CHECK(contains(page, "1 of 3 points could not be simulated"));
  CHECK(contains(page, "1 of 3 points are left to do"));
  CHECK(contains(page, "point 1: micro_batch 3"));
  CHECK(contains(page, "<td>bad_input</td>"));
  CHECK(contains(page, "A curve needs two simulated points"));
  CHECK(contains(page, "tokens/s at best"));
}

TEST_CASE("a sweep of which nothing could be simulated has a page too") {
  const testing::SweepFixture fixture;
  const Sweep sweep = fixture.sweep(R"({"matrix": {"/training/micro_batch": [3]}})");
  const std::string page = page_of(sweep, rows_of(sweep));
  CHECK(contains(page, "No point</span> could be simulated"));
  CHECK(contains(page, "No point could be simulated, so there is nothing to list"));
  CHECK(contains(page_of(sweep, {}), "No point has been done yet"));
}

TEST_CASE("memory that is a lower bound is marked, and the point not said to fit") {
  const testing::SweepFixture fixture;
  const Sweep sweep = fixture.sweep(R"({"matrix": {"/nodes": [1]}})");
  PartRows rows = rows_of(sweep);
  JsonValue& row = rows.by_point.at(0).content;
  REQUIRE_FALSE(contains(page_of(sweep, rows), R"(<td class="n">≥ )"));
  row.set("memory_verdict", JsonValue("lower_bound"));
  const std::string page = page_of(sweep, rows);
  CHECK(contains(page, R"(<td class="n">≥ <span data-of="sweep-points")"));
  CHECK(contains(page, "<td>not known</td>"));
}

TEST_CASE("a thousand points make a page of bounded size that keeps the first rows in its table") {
  const testing::SweepFixture fixture;
  std::string values;
  for (int i = 1; i <= 1000; ++i) values += (i == 1 ? "" : ", ") + std::to_string(i);
  const Sweep sweep = fixture.sweep(R"({"matrix": {"/training/global_batch": [)" + values + "]}}");
  PartRows rows;
  for (std::size_t i = 0; i < 1000; ++i)
    rows.by_point[i] = *parse_row("{\"point\": " + std::to_string(i) +
                                  ", \"/training/global_batch\": " + std::to_string(i + 1) +
                                  ", \"ok\": true, \"gpus\": 8, \"iteration_time_s\": 1.5, "
                                  "\"tokens_per_s\": " +
                                  std::to_string(1000 + i) +
                                  ", \"mfu\": 0.4, \"memory_max_bytes\": 1e10, \"fits\": true}");
  const std::string page = page_of(sweep, rows);
  std::size_t lines = 0;
  for (std::size_t at = page.find("<tr><td class=\"n\">"); at != std::string::npos;
       at = page.find("<tr><td class=\"n\">", at + 1))
    ++lines;
  CHECK(lines == first_page_rows);
  CHECK(page.size() < 600000);
}

TEST_CASE("a best point whose memory is at risk is marked as such wherever it is named") {
  const testing::SweepFixture fixture;
  const Sweep sweep = fixture.sweep(R"({"matrix": {"/nodes": [1, 2]}})");
  PartRows rows = rows_of(sweep);
  CHECK(!contains(page_of(sweep, rows), "<td>at risk</td>"));
  CHECK(!contains(sweep_text(sweep, rows, "out"), "~"));
  for (auto& [point, row] : rows.by_point)
    row.content.set("memory_verdict", JsonValue(std::string("at_risk")));
  const std::string page = page_of(sweep, rows), text = sweep_text(sweep, rows, "out");
  CHECK(contains(page, "<td>at risk</td>"));
  CHECK(contains(page, "of memory on the fullest GPU; memory at risk."));
  CHECK(contains(text, " ~\n"));
  CHECK(contains(text, "~ memory at risk of points "));
}

}  // namespace
}  // namespace windtunnel
