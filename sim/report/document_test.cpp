#include "report/document.hpp"

#include <doctest/doctest.h>

#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/text_table.hpp"

namespace windtunnel {
namespace {

using document::Document;
using document::figure;

Document example() {
  const JsonValue data = object_of({{"name", "gpt"},
                                    {"days", 41.84},
                                    {"cost", std::optional<double>()},
                                    {"shares", object_of({{"compute", 0.75}, {"idle", 0.25}})}});
  const auto at = [&](const char* pointer) { return figure(data, pointer, percent_text); };
  return {
      data,
      "job",
      "gpt <1>",
      {"on " + figure(data, "/days", grouped_text) + " GPUs"},
      "days",
      {{"days", figure(data, "/days", grouped_text), "of 10 draws"},
       {"cost", figure(data, "/cost", grouped_text), "USD"},
       {"idle", at("/shares/idle")}},
      {{"time",
        "Time",
        "Where the time went",
        {document::Bars{
            {"lr",
             {{"what", "share"}, {"compute", at("/shares/compute")}, {"idle", at("/shares/idle")}}},
            {{0.75, "compute"}, {0.25, "idle"}}}}},
       {"days",
        "Days",
        "How long it may take",
        {Chart{"days", Chart::Shape::line, {}, {}, {{0, 1}}},
         document::Details{"The scenario", "{\"nodes\": 8}"}}},
       {"none", "None", "Left out", {}}},
      "windtunnel job --json",
      {"extrapolated"}};
}

TEST_CASE("a document as text, JSON and page") {
  const Document document = example();
  CHECK(text_of(document) ==
        "gpt <1>: on 42 GPUs\n"
        "\n"
        "  days      42  of 10 draws\n"
        "  idle  25.0 %\n"
        "\n"
        "  ! extrapolated\n"
        "\n"
        "Where the time went\n"
        "  what      share\n"
        "  compute  75.0 %  ██████████████████████▌\n"
        "  idle     25.0 %  ███████▌\n");
  CHECK(json_of(document) ==
        "{\n  \"name\": \"gpt\",\n  \"days\": 41.84,\n"
        "  \"shares\": {\n    \"compute\": 0.75,\n    \"idle\": 0.25\n  }\n}\n");
  const std::string page = page_of(document);
  for (const char* part :
       {"gpt &lt;1&gt;", "<span class=\"big\"><span data-at=\"/days\">42</span></span> days</h1>",
        "<span data-at=\"/shares/idle\">25.0 %</span>", "id=\"time\"", "id=\"days\"", "<polyline",
        "<b>!</b> extrapolated", "{&quot;nodes&quot;: 8}"})
    CHECK_MESSAGE(page.find(part) != std::string::npos, part);
  for (const char* part : {"cost", "Left out"})
    CHECK_MESSAGE(page.find(part) == std::string::npos, part);
}

TEST_CASE("columns of a text table are as wide as their longest cell") {
  CHECK(text_table("lr", {{"point", "error", "µs"}, {"a", "10.0 %"}}) ==
        "  point   error  µs\n  a      10.0 %\n");
}

TEST_CASE("a histogram counts the values of each span, and a value at the end in the last") {
  const Chart chart = histogram("days", {0, 1, 4, 10}, {0, 10}, 2, "draw");
  REQUIRE(chart.points.size() == 2);
  CHECK(chart.points[0].y == 3);
  CHECK(chart.points[1].y == 1);
  CHECK(chart.points[1].title == "1 draw");
  CHECK(chart.points[1].x == doctest::Approx(7.5));
}

TEST_CASE("the error of a dot is a line from one end to the other") {
  Chart chart{"days", Chart::Shape::dots, {0, 10}, {0, 10}, {{5, 5}}};
  const auto num_lines = [&] {
    const std::string svg = chart_svg(chart);
    int count = 0;
    for (auto at = svg.find("<line"); at != std::string::npos; at = svg.find("<line", at + 1))
      ++count;
    return count;
  };
  const int without = num_lines();
  chart.points.front().error = Chart::Error{4, 3, 8, 9};
  CHECK(num_lines() == without + 1);
}

TEST_CASE("an axis places values evenly, or by their logarithms") {
  CHECK(ChartAxis{10, 20}.position(15) == doctest::Approx(0.5));
  CHECK(ChartAxis{1, 100, nullptr, "", true}.position(10) == doctest::Approx(0.5));
  CHECK(ChartAxis{5, 5}.position(5) == 0);
}

}  // namespace
}  // namespace windtunnel
