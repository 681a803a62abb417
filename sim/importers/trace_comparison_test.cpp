#include "importers/trace_comparison.hpp"

#include "core/testing.hpp"
#include "importers/testing.hpp"
#include "report/chrome_trace.hpp"
#include "simulate/simulate.hpp"

using namespace windtunnel;
using namespace windtunnel::testing;

namespace {

Scenario shipped(const std::string& name) {
  const Library library = shipped_library();
  return read_scenario(source_dir() / "scenarios" / (name + ".json"), library, {});
}

TimelineComparison compared(const std::vector<TimelineInput>& inputs) {
  return compare_timelines(inputs, shipped_library());
}

bool says(const TimelineComparison& comparison, const std::string& part) {
  for (const std::string& note : comparison.notes)
    if (contains(note, part)) return true;
  return false;
}

}  // namespace

TEST_CASE("a simulated iteration stands next to a real one in the same lines") {
  const TimelineComparison comparison =
      compared({{"real", sample("trace-1-step.json.gz")}, {"sim", shipped("gpt-8.3b-128xa100")}});
  REQUIRE(comparison.runs.size() == 2);
  const ComparedTimeline& real = comparison.runs[0];
  const ComparedTimeline& simulated = comparison.runs[1];
  CHECK(real.kind == TraceKind::real);
  CHECK(simulated.kind == TraceKind::simulated);
  CHECK(contains(simulated.who, "ranks 0000-0007"));  // that hold the real trace's rank 0
  for (const ComparedTimeline& run : comparison.runs) {
    const GpuTotals& gpu = run.totals;
    std::int64_t lines = 0;
    for (const std::int64_t time : gpu.lines) lines += time;
    CHECK(lines == gpu.window);
    CHECK(gpu.compute + gpu.exposed_communication() + gpu.of(TraceLine::copies) + gpu.idle() ==
          gpu.window);
    CHECK(gpu.compute > 0);
    CHECK(gpu.communication > 0);
  }
  CHECK(real.time() / 220_ms == doctest::Approx(1).epsilon(0.01));
  CHECK(comparison.speedup(1) == doctest::Approx(real.time() / simulated.time()));
  CHECK(says(comparison, "also runs while it waits for its peers"));
  CHECK(says(comparison, "different numbers of GPUs"));
  CHECK(says(comparison, "default_pg"));
  const std::string text = timeline_comparison_text(comparison, Colour::never);
  CHECK(contains(text, "exposed communication"));
  CHECK(contains(text, "waiting for others"));
  CHECK(contains(timeline_comparison_json(comparison), "windtunnel/timeline-comparison-v1"));
  const std::string page = timeline_comparison_page(comparison);
  CHECK(contains(page, "data-at=\"/runs/1/breakdown_s/tensor_comm\""));
  CHECK(contains(page, "different numbers of GPUs"));
  CHECK(contains(page, "windtunnel/timeline-comparison-v1"));
}

TEST_CASE("two ranks of a real job differ by what their traces say") {
  const TimelineComparison comparison = compared(
      {{"0", sample("trace-v100-rank0.json.gz")}, {"1", sample("trace-v100-rank1.json.gz")}});
  CHECK(comparison.runs[0].rank == 0);
  CHECK(comparison.runs[1].rank == 1);
  CHECK_FALSE(says(comparison, "different numbers of GPUs"));
  CHECK(says(comparison, "B: "));
  CHECK_FALSE(says(comparison, "also runs while it waits"));
}

TEST_CASE("a trace without marks is one iteration, which is said") {
  const TemporaryFolder folder;
  const auto file = folder.write(
      "bare.json",
      R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 10, "dur": 30}]})");
  const TimelineComparison comparison = compared({{"a", file}, {"b", file}});
  CHECK(comparison.runs[0].time() / 30_us == doctest::Approx(1));
  CHECK(comparison.speedup(1) == doctest::Approx(1));
  CHECK(says(comparison, "A: no step is marked"));
}

TEST_CASE("a file is taken for a trace by what it holds") {
  const TemporaryFolder folder;
  CHECK(is_trace_file(sample("trace-1-step.json.gz")));
  CHECK(is_trace_file(folder.write("a.json", R"({"schemaVersion": 1, "traceEvents": []})")));
  std::string archive(512, '\0');
  archive.replace(257, 5, "ustar");
  CHECK(is_trace_file(folder.write("traces.tar", archive)));
  CHECK_FALSE(is_trace_file(folder.write("b.json", R"({"version": 1, "model": "gpt3-175b"})")));
  CHECK_FALSE(is_trace_file(folder.write("c.json", R"({"schema": "windtunnel/report-v1"})")));
}

TEST_CASE("the rank of a process is read from its name") {
  using detail::names_rank;
  CHECK(names_rank("ranks 0008-0015 · dp0 pp1 tp0-7 · node1", 8));
  CHECK(names_rank("ranks 0008-0015 · dp0 pp1 tp0-7 · node1", 11));
  CHECK(names_rank("ranks 0008-0015 · dp0 pp1 tp0-7 · node1", 15));
  CHECK_FALSE(names_rank("ranks 0008-0015 · dp0 pp1 tp0-7 · node1", 16));
  CHECK_FALSE(names_rank("ranks 0008-0015 · dp0 pp1 tp0-7 · node1", 0));
  CHECK(names_rank("ranks 0001,0005 · dp3 pp0 tp0,2 · node2", 5));
  CHECK_FALSE(names_rank("ranks 0001,0005 · dp3 pp0 tp0,2 · node2", 3));
  CHECK(names_rank("rank 0003 · dp0 pp1 tp3 · node0 gpu3", 3));
  CHECK_FALSE(names_rank("python3.10", 3));
  CHECK_FALSE(names_rank("rank 0003", 4));
}
