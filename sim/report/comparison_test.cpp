#include "report/comparison.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <sstream>

#include "core/json_value.hpp"
#include "core/testing.hpp"
#include "core/utf8.hpp"
#include "report/report_json.hpp"
#include "report/report_view.hpp"
#include "report/testing.hpp"

namespace windtunnel {
namespace {

/// The small run, and one that is 4 us faster because its gradients' wait is, and sends half the bytes forward.
Comparison two_tables() {
  Report faster = testing::small_report();
  faster.iteration_time = 28_us;
  faster.breakdown.seconds = {12_us, 6_us, 1_us, 6_us, 0_s, 2_us, 0_s, 1_us, 0_s};
  faster.traffic[0] = 8_MB;
  faster.messages[0] = {2, 0};
  Comparison comparison;
  comparison.runs = {testing::run_of("a.json", testing::small_report()),
                     testing::run_of("b.json", faster)};
  comparison.differences = {{"/parallel/tensor", {"8", "4"}}};
  return comparison;
}

std::string problems_of(const JsonValue& report) {
  try {
    checked_report(report);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST_CASE("a run's figures are those of its report") {
  const Report report = testing::small_report();
  const ComparedRun run = testing::run_of("a.json", report);
  CHECK(problems_of(run.report).empty());
  CHECK(run.text("/name") == "small");
  CHECK(run.iteration_time() == report.iteration_time);
  CHECK(run.number("/model_tflops_per_gpu") == doctest::Approx(120).epsilon(1e-12));
  CHECK(run.number("/messages/pipeline_backward/compressed") == 1);
  CHECK(run.number("/no_such_figure") == 0);
  CHECK(run.fits());
}

TEST_CASE("every figure that a report lacks is said at once") {
  JsonValue report = report_value(testing::small_report());
  report.erase("iteration_time_s");
  report.find("memory")->erase("fits");
  report.find("breakdown_s")->erase("codec");
  report.find("traffic_bytes")->set("zero_gather", JsonValue(std::string("many")));
  report.erase("messages");
  const std::string problems = problems_of(report);
  for (const char* name : {"iteration_time_s", "fits", "codec", "zero_gather", "messages"})
    CHECK_MESSAGE(problems.find(name) != std::string::npos, name);
  JsonValue zero = report_value(testing::small_report());
  zero.set("iteration_time_s", JsonValue(0.0));
  CHECK(problems_of(zero).find("not above 0") != std::string::npos);
}

TEST_CASE("what a newer version adds to a report is left alone") {
  JsonValue report = report_value(testing::small_report());
  report.set("new_figure", JsonValue(1.5));
  report.find("breakdown_s")->set("new_line", JsonValue(0.0));
  CHECK(problems_of(report).empty());
}

TEST_CASE("usable memory that an earlier build did not write is that of the worst stage") {
  JsonValue report = report_value(testing::small_report());
  JsonValue& memory = *report.find("memory");
  memory.erase("usable_bytes");
  const auto usable = [](const JsonValue& checked) {
    return number_of(find_at(checked, "/memory/usable_bytes")).value();
  };
  memory.set("worst_stage", JsonValue(0.0));
  memory.set("per_stage", JsonValue(JsonValue::Array{}));
  CHECK(usable(checked_report(report)) == Bytes{80_GiB}.value());
  JsonValue stage(JsonValue::Object{});
  stage.set("stage", JsonValue(0.0));
  stage.set("usable", JsonValue(7e10));
  memory.set("per_stage", JsonValue(JsonValue::Array{stage}));
  CHECK(usable(checked_report(report)) == 7e10);
  memory.set("usable_bytes", JsonValue(6e10));
  CHECK(usable(checked_report(report)) == 6e10);
}

TEST_CASE("a report is known by its schema") {
  CHECK(is_report(report_value(testing::small_report())));
  CHECK_FALSE(is_report(JsonValue(JsonValue::Object{})));
  CHECK_FALSE(is_report(JsonValue(std::string("windtunnel/report-v1"))));
}

TEST_CASE("the speed-up is against the first run") {
  const Comparison comparison = two_tables();
  CHECK(comparison.speedup(0) == 1.0);
  CHECK(comparison.speedup(1) == doctest::Approx(32.0 / 28).epsilon(1e-12));
}

TEST_CASE("two runs side by side, to the letter") {
  // 28 of 32 us are 12.5 % less and a speed-up of 1.143. Shares: 12 of 32 is 37.5 %, 12 of 28 is 42.9 %. 16 MB is 15.3 MiB.
  CHECK(comparison_text(two_tables()) == R"table(A  a.json (small)
B  b.json (small)

                                 A           B     B - A
  iteration time           32.0 us     28.0 us   -12.5 %
  iteration speed-up        1.000x      1.143x
  tokens/s             512,000,000 512,000,000         =
  TFLOP/s per GPU            120.0       120.0         =
  MFU                       38.5 %      38.5 %         =

Where the time goes, on the GPUs that finish last
  compute                12.000 us   12.000 us         =
  tensor comm             6.000 us    6.000 us         =
  pipeline comm           2.000 us    1.000 us    -1.000
  pipeline bubble         9.000 us    6.000 us    -3.000
  embedding sync          2.000 us    2.000 us         =
  optimizer               1.000 us    1.000 us         =

Share of the iteration, on the same GPUs
  compute                   37.5 %      42.9 %      +5.4
  tensor comm               18.8 %      21.4 %      +2.7
  pipeline comm              6.2 %       3.6 %      -2.7
  pipeline bubble           28.1 %      21.4 %      -6.7
  embedding sync             6.2 %       7.1 %      +0.9
  optimizer                  3.1 %       3.6 %      +0.4

Bytes on the wire in one iteration, all GPUs together
  pipeline forward        15.3 MiB    7.63 MiB   -50.0 %
    compressed                   0           2        +2
    uncompressed                 2           0        -2
  pipeline backward            0 B         0 B         =
    compressed                   1           1         =
    uncompressed                 1           1         =

Memory of the fullest GPU
  in use                  29.8 GiB    29.8 GiB         =
  usable                  79.0 GiB    79.0 GiB
  fits                         yes         yes

Inputs that differ
  /parallel/tensor: 8 | 4
)table");
}

TEST_CASE("how sure the order is stands above the table, and in the document") {
  Comparison comparison = two_tables();
  comparison.orderings = {
      std::nullopt,
      Ordering{1 / 0.875, {1 / 0.95, 1.25}, 0.96, OrderVerdict::faster, false, "pairs"}};
  CHECK(comparison_text(comparison)
            .find("B is faster by 12.5 %, in 96 of 100 cases (in 90 of 100 by 5.0 to 20.0 %)") !=
        std::string::npos);
  const std::string json = comparison_json(comparison);
  CHECK(json.find("\"verdict\": \"faster\"") != std::string::npos);
  Problems problems;
  const JsonValue document =
      parse_json(std::make_shared<const SourceText>(SourceText{"compare.json", json}), problems);
  CHECK(number_of(find_at(document, "/speedup_interval/1/0")).value() == doctest::Approx(1 / 0.95));
  CHECK(compare_page(comparison).find("B is faster by 12.5 %") != std::string::npos);
}

TEST_CASE("orders are said as they are known") {
  const auto text = [](double ratio, std::pair<double, double> interval, double sure,
                       OrderVerdict verdict) {
    return text_of(Ordering{ratio, interval, sure, verdict, false, ""});
  };
  CHECK(text(0.8, {0.5, 0.9}, 0.98, OrderVerdict::slower) ==
        "slower by 25.0 %, in 98 of 100 cases (in 90 of 100 by 11.1 to 100.0 %)");
  CHECK(text(1.25, {0.8, 2}, 0.81, OrderVerdict::not_known) ==
        "not known which is faster: the difference (20.0 % faster) is within what the model misses "
        "by; the sign is right in 81 of 100 cases (in 90 of 100 between 25.0 % slower and 50.0 % "
        "faster)");
  CHECK(text(1, {0.8, 1.25}, 0.5, OrderVerdict::about_the_same) ==
        "as fast by the model (in 90 of 100 cases between 25.0 % slower and 20.0 % faster)");
  CHECK(
      text(1.01, {0.8, 1.25}, 0.6, OrderVerdict::about_the_same) ==
      "about the same: 1.0 % faster by the model, in 60 of 100 cases (in 90 of 100 between 25.0 % "
      "slower and 20.0 % faster)");
}

TEST_CASE("changes of ten times and more are written as factors, and lines stay narrow") {
  Comparison comparison = two_tables();
  Report slow = testing::small_report();
  slow.iteration_time = 4000_us;
  slow.traffic[0] = 1.6e9 * 1_B;
  slow.traffic[1] = 1_MB;
  slow.memory.max_total = 3e12 * 1_B;
  for (int i = 0; i < 4; ++i) comparison.runs.push_back(testing::run_of("slow", slow));
  const std::string text = comparison_text(comparison);
  CHECK(text.find("x 125") != std::string::npos);
  CHECK(text.find("x 100") != std::string::npos);
  CHECK(text.find("new") != std::string::npos);
  CHECK(text.find("F     F - A") != std::string::npos);  // a second block, for E and F
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(utf8_count(line) <= 100, line);
}

TEST_CASE("the JSON document holds whole reports, speed-ups and what was found") {
  Comparison comparison = two_tables();
  BreakEven crossing;
  crossing.what = "b.json";
  crossing.outcome = BreakEven::Outcome::crosses;
  crossing.factor = 0.5;
  crossing.bandwidth_now = 100_GBps;
  crossing.bandwidth = 50_GBps;
  BreakEven never = crossing;
  never.outcome = BreakEven::Outcome::always_slower;
  never.part = NetworkPart::inside_nodes;
  comparison.break_evens = {crossing, never};
  comparison.warnings = {"careful"};
  Problems problems;
  JsonValue document = parse_json(
      std::make_shared<const SourceText>(SourceText{"compare.json", comparison_json(comparison)}),
      problems);
  REQUIRE(problems.empty());
  const auto text_at = [&](const char* pointer) {
    const JsonValue* value = find_at(document, pointer);
    return value == nullptr ? std::string("nothing") : canonical_text(*value);
  };
  CHECK(text_at("/runs/1/iteration_time_s") == "2.8e-05");
  CHECK(text_at("/runs/0") == canonical_text(comparison.runs[0].report));
  CHECK(text_at("/speedup/0") == "1");
  CHECK(text_at("/labels/1") == "\"b.json\"");
  CHECK(text_at("/differences/0/pointer") == "\"/parallel/tensor\"");
  CHECK(text_at("/differences/0/values") == R"(["8","4"])");
  CHECK(text_at("/break_even/0/bandwidth_bytes_per_s") == "50000000000");
  CHECK(text_at("/break_even/0/faster") == "\"below\"");
  CHECK(text_at("/break_even/1/outcome") == "\"always_slower\"");
  CHECK(text_at("/break_even/1/network") == "\"inside_nodes\"");
  CHECK(text_at("/break_even/1/factor") == "nothing");
  CHECK(text_at("/warnings/0") == "\"careful\"");
}

/// The small run of 32 us, and one of 28 us with less bubble, whose timeline is that of the small world.
Comparison two_runs() {
  Report faster = testing::small_report();
  faster.iteration_time = 28_us;
  faster.tokens_per_s *= 32.0 / 28.0;
  faster.breakdown.seconds = {12_us, 6_us, 1_us, 6_us, 0_s, 2_us, 0_s, 1_us, 0_s};
  faster.memory.max_total = 90_GiB;
  faster.assumptions[0].value = "0.8";
  Comparison comparison;
  comparison.runs = {testing::run_of("a.json", testing::small_report()),
                     testing::run_of("b.json", faster)};
  comparison.differences = {{"/parallel/tensor", {"8", "4 < 5"}}};
  const ProgramSet programs = testing::two_stage_programs();
  const Plan plan = testing::two_stage_plan();
  const Network network;
  const testing::SimulatedWorld world = testing::simulate_alone(programs);
  comparison.runs[1].details =
      run_details("{\"version\": 1}  // <here>",
                  {&world.timeline, &programs, &network, &plan, world.result.last_device}, faster);
  return comparison;
}

TEST_CASE("a comparison's page says first which run is faster, and by how much") {
  const std::string page = compare_page(two_runs());
  // 28 us / 32 us - 1 = -12.5 %
  CHECK(contains(page,
                 R"(<span data-at="/runs/1/iteration_time_s" data-per="/runs/0/iteration_time_s">)"
                 R"(−12.5 %</span></span> iteration time: B against A)"));
  CHECK(contains(page, R"(<span data-at="/speedup/1">1.143x</span>)"));
  CHECK(contains(page, "<code>4 &lt; 5</code>"));
  CHECK(contains(page, "id=\"report\">{"));
}

TEST_CASE("the lines that differ stand with their difference and the reason") {
  const std::string page = compare_page(two_runs());
  CHECK(contains(page, "Why is B faster than A?"));
  // 6 us - 9 us
  CHECK(contains(page, R"(<span data-at="/runs/1/breakdown_s/pipeline_bubble" )"
                       R"(data-minus="/runs/0/breakdown_s/pipeline_bubble">-3.000 us</span>)"));
  CHECK(contains(page, "Waiting for messages that have not been sent yet"));
}

TEST_CASE("the document of --json stands in the page but for the time it took to make it") {
  Comparison comparison = two_runs();
  comparison.differences.clear();  // no '<', which stands escaped
  CHECK(contains(compare_page(comparison),
                 "id=\"report\">" + without_wall_time(comparison_json(comparison)) + "</script>"));
}

TEST_CASE("a run known by its report alone has no timeline and says so") {
  const std::string page = compare_page(two_runs());
  CHECK_FALSE(contains(page, "id=\"timeline-0\""));
  CHECK(contains(page, "id=\"timeline-1\">{"));
  CHECK(contains(page, "a.json is known by its report alone"));
  CHECK(contains(page, "a.json: a report, which does not hold the scenario"));
  CHECK(contains(page, "// &lt;here&gt;"));
}

TEST_CASE("numbers that not all runs share stand apart from those that all do") {
  const std::string page = compare_page(two_runs());
  CHECK(
      contains(page, "<td>NIC efficiency</td><td><code>0.9</code></td><td><code>0.8</code></td>"));
  CHECK(contains(page, "4 numbers that all runs rest on"));
}

TEST_CASE("a run that failed is named, and the others are shown") {
  Comparison comparison = two_runs();
  comparison.runs.pop_back();
  comparison.failed = {{"b.json", "it <broke>"}};
  const std::string page = compare_page(comparison);
  CHECK(contains(page, "b.json could not be simulated: it &lt;broke&gt;"));
  CHECK(contains(page, "1 run</span> is left to show"));
  CHECK_FALSE(comparison.all_fit());
}

TEST_CASE("runs of other batches are compared by tokens per second") {
  Comparison comparison = two_runs();
  JsonValue& report = comparison.runs[1].report;
  report.set("tokens_per_s", JsonValue(2 * comparison.runs[1].number("/tokens_per_s")));
  CHECK(contains(compare_page(comparison), "</span> tokens per second: B against A"));
}

TEST_CASE("break-evens are in the page when they were looked for") {
  Comparison comparison = two_runs();
  CHECK_FALSE(contains(compare_page(comparison), "id=\"break-even\""));
  BreakEven found;
  found.what = "b.json";
  found.outcome = BreakEven::Outcome::crosses;
  found.factor = 0.5;
  found.bandwidth = 5_GBps;
  found.bandwidth_now = 10_GBps;
  comparison.break_evens = {found};
  const std::string page = compare_page(comparison);
  CHECK(contains(page, "faster below 5.00 GB/s"));
  CHECK(contains(page, "/break_even/0/bandwidth_bytes_per_s"));
}

TEST_CASE("runs that do not fit are named before the verdict") {
  Comparison both = two_tables();
  CHECK(both.misfits().empty());
  both.orderings = {std::nullopt, Ordering{}};
  const auto no_fit = [&](std::size_t run) {
    both.runs[run].report.find("memory")->set("fits", JsonValue(false));
  };
  no_fit(1);
  CHECK(both.misfits() ==
        "B does not fit in memory: its time is what it would be with enough of it");
  no_fit(0);
  const std::string text = comparison_text(both);
  REQUIRE(contains(text, "✗ neither A nor B fits in memory"));
  CHECK(text.find("neither A nor B") < text.find("B: "));
  CHECK(contains(comparison_json(both), "neither A nor B"));
  CHECK(contains(compare_page(both), "neither A nor B"));
}

TEST_CASE("a run's verdict on memory is that of its report in text, JSON and page") {
  Comparison both = two_tables();
  const auto fits_row = [&](const char* verdict) {
    both.runs[1].report.find("memory")->set("verdict", JsonValue(std::string(verdict)));
    const std::string text = comparison_text(both);
    const std::size_t at = text.find("\n  fits ");
    return text.substr(at + 1, text.find('\n', at + 1) - at - 1);
  };
  CHECK(fits_row("fits") == "  fits                         yes         yes");
  CHECK(contains(compare_page(both), "in memory</strong>") == false);
  CHECK(fits_row("lower_bound") == "  fits                         yes    at least");
  CHECK(contains(compare_page(both), "not known to fit in memory</strong>"));
  CHECK(fits_row("at_risk") == "  fits                         yes     at risk");
  CHECK(contains(compare_page(both), "at risk of not fitting in memory</strong>"));
  CHECK(contains(comparison_json(both), "\"verdict\": \"at_risk\""));
}

TEST_CASE("thousands of the largest unit have their comma") {
  CHECK(html::text_of_bytes(1409 * 0x1p40) == "1,409 TiB");
  CHECK(html::text_of_bytes(999 * 0x1p40) == "999 TiB");
  CHECK(html::text_of_bytes(16e6) == "15.3 MiB");
}

}  // namespace
}  // namespace windtunnel
