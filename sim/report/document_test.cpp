#include "report/document.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/terminal_text.hpp"

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
        "<span data-at=\"/shares/idle\">25.0 %</span>", "id=\"time\"", "id=\"days\"", "<circle",
        "<b>!</b> extrapolated", "{&quot;nodes&quot;: 8}"})
    CHECK_MESSAGE(page.find(part) != std::string::npos, part);
  for (const char* part : {"cost", "Left out"})
    CHECK_MESSAGE(page.find(part) == std::string::npos, part);
}

TEST_CASE(
    "a document without an opening sentence is headed by its name, and sections without a title by "
    "a blank line") {
  Document document = example();
  document.opening = {"", "on 42 GPUs"};
  document.figures = {};
  document.warnings = {};
  document.cards = {{"days", figure(document.data, "/days", grouped_text)}};
  document.sections = {
      {"plans",
       "Plans",
       "",
       {document::Table{"lRr", {{"#", "interval", "time"}, {"1", "8 to 9", "8.5"}}},
        document::Words(), "all alike"}},
      {"search",
       "Search",
       "",
       {document::Verdict{"✓", "proven"}, document::Verdict{"✗", "too large"},
        document::Verdict{"≥", "at least"}}}};
  CHECK(text_of(document) ==
        "gpt <1>\n\n  on 42 GPUs\n"
        "\n  #  time\n  1   8.5\n\n  all alike\n"
        "\n  ✓ proven\n  ✗ too large\n  ≥ at least\n");
  const std::string page = page_of(document);
  for (const char* part :
       {"<span class=\"big\"><span data-at=\"/days\">42</span></span> days</h1>", "<h2>Plans</h2>",
        "<th class=\"n\">interval</th>", "<td class=\"n\">8 to 9</td>", "<h2>Search</h2>",
        "<p class=\"verdict good\"><b>✓</b> proven</p>", "<p class=\"verdict bad\"><b>✗</b>",
        "<p class=\"verdict doubtful\"><b>≥</b>"})
    CHECK_MESSAGE(page.find(part) != std::string::npos, part);
}

TEST_CASE("a terminal with colours shows names, headings and verdicts in their tones") {
  const std::string text = text_of(example(), Colour::always);
  const detail::Painter paint(Colour::always);
  for (const std::string& part :
       {paint(detail::Tone::heading, "gpt <1>") + ": on 42 GPUs\n",
        paint(detail::Tone::doubtful, "! extrapolated") + "\n",
        paint(detail::Tone::heading, "Where the time went") + "\n",
        paint(detail::Tone::heading, "  what      share") + "\n  compute"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part);
}

TEST_CASE("columns of a text table are as wide as their longest cell") {
  CHECK(text_table("lr", {{"point", "error", "µs"}, {"a", "10.0 %"}}) ==
        "  point   error  µs\n  a      10.0 %\n");
}

}  // namespace
}  // namespace windtunnel
