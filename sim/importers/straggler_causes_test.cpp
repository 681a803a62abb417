#include "importers/straggler_causes.hpp"

#include <cmath>

#include "importers/testing.hpp"

using namespace windtunnel;
using namespace windtunnel::testing;

namespace {

JobTrace job_trace_in(const std::string& text) {
  TextInput input("t.json", text);
  return read_job_trace(input);
}

std::string problem_in_job(const std::string& text) {
  try {
    job_trace_in(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

std::string operation(const std::string& name, int rank, int thread, int sequence, int begin,
                      int duration, int step = 0) {
  const auto text = [](int number) { return std::to_string(number); };
  return R"({"ph": "X", "name": ")" + name + R"(", "pid": )" + text(rank) + R"(, "tid": )" +
         text(thread) + R"(, "ts": )" + text(begin) + R"(, "dur": )" + text(duration) +
         R"(, "args": {"step": )" + text(step) + R"(, "model_chunk": 0, "mb_id": )" +
         text(sequence) + R"(, "seq_id": )" + text(sequence) + "}}";
}

std::string thread_name(int rank, int thread, int stage) {
  return R"({"ph": "M", "name": "thread_name", "pid": )" + std::to_string(rank) + R"(, "tid": )" +
         std::to_string(thread) + R"(, "args": {"name": "PP rank )" + std::to_string(stage) +
         R"(, TP rank 0, compute"}})";
}

/// Two stages, one microbatch: forward 10 and 20 us, a message of 3 us each way, backward 40 and 30 us, optimizer 5 us.
std::string two_stages(int data_ranks = 1) {
  std::string text;
  for (int rank = 0; rank < data_ranks; ++rank)
    text += thread_name(rank, 0, 0) + "," + thread_name(rank, 5, 1) + "," +
            operation("forward-compute", rank, 0, 0, 0, 10) + "," +
            operation("forward-send", rank, 0, 0, 10, 3) + "," +
            operation("forward-recv", rank, 5, 0, 10, 3) + "," +
            operation("forward-compute", rank, 5, 0, 13, 20) + "," +
            operation("backward-compute", rank, 5, 0, 33, 30) + "," +
            operation("backward-send", rank, 5, 0, 63, 3) + "," +
            operation("backward-recv", rank, 0, 0, 63, 3) + "," +
            operation("backward-compute", rank, 0, 0, 66, 40) + "," +
            operation("optimizer", rank, 0, 0, 106, 5) + "," +
            operation("optimizer", rank, 5, 0, 63, 5) + (rank + 1 < data_ranks ? "," : "");
  return "[" + text + "]";
}

std::vector<double> actual(const JobTrace& trace) {
  std::vector<double> durations;
  for (const JobOperation& each : trace.operations) durations.push_back(each.duration);
  return durations;
}

StragglerAnalysis analysis_of(const std::string& job) {
  TextInput input(sample("straggler-" + job + ".json.gz"));
  return analyse_stragglers(read_job_trace(input));
}

std::string verdict_of(const std::string& job) {
  ImportRun run("straggler-trace");
  run.with(sample("straggler-" + job + ".json.gz"));
  std::ostringstream out, notes;
  run_import(run.request, ResultFormat::text, shipped_library(), out, notes);
  return out.str().substr(out.str().find("Verdict"));
}

}  // namespace

TEST_CASE("a replay follows messages between stages: 10 + 3 + 20 + 30 + 3 + 40 + 5 us") {
  const JobTrace trace = job_trace_in(two_stages());
  CHECK(trace.num_stages == 2);
  CHECK(trace.num_data_ranks == 1);
  CHECK(JobReplay(trace).step_times(actual(trace)).at(0) == doctest::Approx(111e-6));
}

TEST_CASE("all workers wait for the slowest before they clip gradients") {
  // Worker of rank 1 ends its pass at 50 us; clipping 2 us and the optimizer 5 us follow on both: 57 us.
  const JobTrace trace = job_trace_in("[" + thread_name(0, 0, 0) + "," + thread_name(1, 0, 0) +
                                      "," + operation("forward-compute", 0, 0, 0, 0, 10) + "," +
                                      operation("forward-compute", 1, 0, 0, 0, 50) + "," +
                                      operation("optimizer-clip-main-grad", 0, 0, 0, 50, 2) + "," +
                                      operation("optimizer-clip-main-grad", 1, 0, 0, 50, 2) + "," +
                                      operation("optimizer", 0, 0, 0, 52, 5) + "," +
                                      operation("optimizer", 1, 0, 0, 52, 1) + "]");
  CHECK(JobReplay(trace).step_times(actual(trace)).at(0) == doctest::Approx(57e-6));
  const StragglerAnalysis analysis = analyse_stragglers(trace);
  CHECK(analysis.workers.at(0).data_rank == 1);
  CHECK(analysis.workers.at(0).ratio == doctest::Approx(5));
  CHECK(analysis.workers.at(0).saved == doctest::Approx(40e-6));
}

TEST_CASE("of a job without stragglers no cause has a share") {
  const StragglerAnalysis analysis = analyse_stragglers(job_trace_in(two_stages()));
  CHECK(analysis.slowdown() == doctest::Approx(1));
  for (const CauseCost& cost : analysis.causes) CHECK(std::abs(analysis.share(cost)) <= 1);
}

TEST_CASE("the three jobs of ByteDance are as slow by stragglers as their authors say") {
  // data/result-*.json of the authors: 1.9730, 1.5374, 1.1787 over all steps. The samples hold 4, 5 and 8 steps of these.
  CHECK(analysis_of("AR").slowdown() == doctest::Approx(1.973).epsilon(0.05));
  CHECK(analysis_of("SE").slowdown() == doctest::Approx(1.537).epsilon(0.05));
  CHECK(analysis_of("ST").slowdown() == doctest::Approx(1.179).epsilon(0.05));
}

TEST_CASE("single kinds of operation slow the jobs down as their authors say") {
  // blocking_decompose_by_optype of data/result-AR.json
  const StragglerAnalysis analysis = analysis_of("AR");
  const auto of = [&](JobWork work) {
    return analysis.slowdown_by_work[static_cast<std::size_t>(work)];
  };
  CHECK(of(JobWork::backward_compute) == doctest::Approx(1.5805).epsilon(0.05));
  CHECK(of(JobWork::forward_compute) == doctest::Approx(1.3689).epsilon(0.05));
}

TEST_CASE("a long stage may be a slow worker where it has but one, and the verdict says so") {
  // Four microbatches through two stages; passes of the first take 10 us, those of the second 40.
  const auto job = [](int data_ranks) {
    std::string text;
    for (int rank = 0; rank < data_ranks; ++rank) {
      text += (rank > 0 ? "," : "") + thread_name(rank, 0, 0) + "," + thread_name(rank, 5, 1);
      for (int i = 0; i < 4; ++i)
        text += "," + operation("forward-compute", rank, 0, i, 10 * i, 10) + "," +
                operation("forward-send", rank, 0, i, 10 * i + 10, 1) + "," +
                operation("forward-recv", rank, 5, i, 10 * i + 10, 1) + "," +
                operation("forward-compute", rank, 5, i, 11 + 40 * i, 40) + "," +
                operation("backward-compute", rank, 5, i, 171 + 40 * i, 40) + "," +
                operation("backward-send", rank, 5, i, 211 + 40 * i, 1) + "," +
                operation("backward-recv", rank, 0, i, 211 + 40 * i, 1) + "," +
                operation("backward-compute", rank, 0, i, 212 + 40 * i, 10);
    }
    return "[" + text + "]";
  };
  const auto verdict = [&](int data_ranks) {
    ImportRun run("straggler-trace");
    run.with("t.json", job(data_ranks));
    std::ostringstream out, notes;
    run_import(run.request, ResultFormat::text, shipped_library(), out, notes);
    return out.str();
  };
  CHECK(contains(verdict(1), "the last stage of 2 has too much to do"));
  CHECK(contains(verdict(1), "or its one worker is slow"));
  CHECK(contains(verdict(2), "the last stage of 2 has too much to do"));
  CHECK_FALSE(contains(verdict(2), "or its one worker is slow"));
}

TEST_CASE("the cause of each of the three jobs is named") {
  // AR: one worker slowed on purpose. ST: a long last stage. SE: sequences of different lengths.
  CHECK(analysis_of("AR").causes.front().cause == StragglerCause::slow_worker);
  CHECK(contains(verdict_of("AR"), "the worker of data-parallel rank 0, stage 0 takes 2.3"));
  CHECK(analysis_of("ST").causes.front().cause == StragglerCause::uneven_stages);
  CHECK(contains(verdict_of("ST"), "the last stage of 4 has too much to do"));
  CHECK(analysis_of("SE").causes.front().cause == StragglerCause::uneven_batches);
  CHECK(contains(verdict_of("SE"), "microbatches hold sequences of different lengths"));
}

TEST_CASE("a job without stragglers gets no verdict") {
  const JobTrace trace = job_trace_in(two_stages(4));
  CHECK(analyse_stragglers(trace).slowdown() < straggling_slowdown);
  ImportRun run("straggler-trace");
  run.with("even.json", two_stages(4));
  std::ostringstream out, notes;
  run_import(run.request, ResultFormat::text, shipped_library(), out, notes);
  CHECK(contains(out.str(), "none: stragglers make a step less than 10.0 % longer"));
}

TEST_CASE("steps in which a worker lacks operations are left out") {
  std::string text = two_stages(2);
  text.insert(text.size() - 1, "," + operation("forward-compute", 0, 0, 0, 0, 10, 1));
  const JobTrace trace = job_trace_in(text);
  CHECK(trace.steps == std::vector<std::int64_t>{0});
  CHECK(trace.incomplete_steps == std::vector<std::int64_t>{1});
}

TEST_CASE("a transfer that ends before it begins by an error of clocks takes no time") {
  const std::string text =
      replaced(two_stages(), R"("ts": 63, "dur": 3)", R"("ts": 63, "dur": -75.5)");
  CHECK(JobReplay(job_trace_in(text)).step_times(actual(job_trace_in(text))).at(0) ==
        doctest::Approx(108e-6));
  CHECK(contains(problem_in_job(replaced(text, "-75.5", "-10001")), "dur is -10001"));
}

TEST_CASE("traces that cannot be replayed are refused with their place") {
  CHECK(contains(problem_in_job("PAR1"), "a Parquet file"));
  CHECK(contains(problem_in_job("[]"), "no operation of a training job"));
  CHECK(contains(problem_in_job("[" + operation("forward-compute", 0, 0, 0, 0, 10) + "]"),
                 "has no name that says its stage"));
  CHECK(contains(problem_in_job("[" +
                                replaced(operation("forward-compute", 0, 0, 0, 0, 10),
                                         R"("model_chunk": 0)", R"("model_chunk": 1)") +
                                "]"),
                 "an interleaved schedule"));
  CHECK(contains(problem_in_job("[" +
                                replaced(operation("forward-compute", 0, 0, 0, 0, 10),
                                         R"("step": 0)", R"("step": "x")") +
                                "]"),
                 "step is no whole number from 0 in the event that ends at byte"));
}
