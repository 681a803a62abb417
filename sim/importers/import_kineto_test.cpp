#include "importers/gpu_trace.hpp"
#include "importers/testing.hpp"

using namespace windtunnel;
using namespace windtunnel::testing;

namespace {

GpuTrace trace_of(const std::string& events, Problems& problems) {
  JsonValue document = parse_json(std::make_shared<const SourceText>(
                                      SourceText{"t.json", "{\"traceEvents\": [" + events + "]}"}),
                                  problems);
  return read_gpu_trace(document, problems);
}

std::string event(const std::string& category, const std::string& name, int stream,
                  const std::string& times) {
  return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name +
         R"(", "pid": 0, "tid": )" + std::to_string(stream) + ", " + times + "}";
}

}  // namespace

TEST_CASE("work that runs at once counts once, and hidden communication is told from exposed") {
  Problems problems;
  const GpuTrace trace = trace_of(
      event("kernel", "gemm", 7, R"("ts": 100.5, "dur": 10)") + "," +
          event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 20,
                R"("ts": 105.5, "dur": 20)") +
          "," +
          event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 7, R"("ts": 135.5, "dur": 5)") +
          "," + event("cpu_op", "aten::mm", 1, R"("ts": 0, "dur": 1000)"),
      problems);
  CHECK(problems.empty());
  const std::vector<GpuTotals> totals = totals_of(trace);
  REQUIRE(totals.size() == 1);
  const GpuTotals& gpu = totals.front();
  CHECK(gpu.window == 40'000);         // 100.5 to 140.5 us
  CHECK(gpu.compute == 10'000);        // 100.5 to 110.5
  CHECK(gpu.communication == 20'000);  // 105.5 to 125.5
  CHECK(gpu.overlap == 5'000);         // 105.5 to 110.5
  CHECK(gpu.exposed_communication() == 15'000);
  CHECK(gpu.idle() == 10'000);  // 125.5 to 135.5
  CHECK(gpu.by_stream.at("20").at("nccl AllReduce").nanoseconds == 20'000);
  CHECK(gpu.by_stream.at("7").at("memcpy DtoH").count == 1);
}

TEST_CASE("a real step of data-parallel training on A100: all-reduces behind the backward pass") {
  ImportRun run("kineto");
  run.with(sample("trace-1-step.json.gz"));
  std::ostringstream out, notes;
  run_import(run.request, ImportFormat::text, shipped_library(), out, notes);
  CHECK(contains(out.str(), "1258 pieces of GPU work, 1 profiler steps, rank 0"));
  CHECK(contains(out.str(), "nccl AllReduce"));
  CHECK(contains(out.str(), "5 times"));
}

TEST_CASE("bad traces are refused with the line") {
  const auto problem_of = [](const std::string& events) {
    Problems problems;
    trace_of(events, problems);
    return problems.empty() ? std::string() : to_text(problems.all().front());
  };
  CHECK(contains(problem_of(""), "no work of a GPU in the trace"));
  CHECK(contains(problem_of(event("kernel", "k", 7, R"("ts": 1, "dur": -2)")),
                 "t.json:1:96: error: dur is -2"));
  CHECK(contains(problem_of(event("kernel", "k", 7, R"("ts": 1)")), "dur"));
  CHECK(contains(problem_of(event("kernel", "k", 7, R"("ts": "1", "dur": 2)")),
                 "at /traceEvents/0/ts"));
  ImportRun run("kineto");
  run.with("trace.json.gz", text_of(sample("trace-1-step.json.gz")).substr(0, 4000));
  std::ostringstream out, notes;
  CHECK_THROWS_AS(run_import(run.request, ImportFormat::text, shipped_library(), out, notes),
                  InputError);
}
