#include "importers/rank_verdict.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "importers/gpu_totals.hpp"
#include "importers/testing.hpp"
#include "layout/layout.hpp"
#include "report/terminal_text.hpp"

using namespace windtunnel;
using namespace windtunnel::testing;

namespace {

// Traces of a made-up job in the format of PyTorch's profiler, one for each of its 64 ranks.

struct MadeUpPlan {
  int tensor = 8, pipeline = 4, data = 2;
  Layout layout() const {
    return Layout(
        {{AxisName::tensor, tensor}, {AxisName::data, data}, {AxisName::pipeline, pipeline}});
  }
  int num_ranks() const { return layout().num_ranks(); }
};

struct MadeUpFaults {
  std::optional<int> slow_rank;
  std::optional<int> slow_node;  ///< all of its ranks
  double slow_factor = 1;        ///< of their kernels' durations
  std::optional<std::pair<int, int>> slow_link;
  double link_share = 1;         ///< of a link's bandwidth that is left
  std::optional<int> slow_rail;  ///< GPU of each node whose network card has as much left
};

/// Simulates the job with the scatter of a healthy cluster: kernels differ by 2 % from one to the next and by 1 % from GPU to GPU, one in 500
/// takes 2 ms longer (a host that stalls), transfers differ by 3 % and links by 2 %, clocks of nodes by 0.3 ms.
class MadeUpJob {
 public:
  MadeUpJob(MadeUpPlan plan, MadeUpFaults faults, std::uint64_t seed)
      : plan_(plan),
        layout_(plan.layout()),
        faults_(std::move(faults)),
        random_(seed),
        numbered_(seed % 2 == 0) {
    const auto count = static_cast<std::size_t>(plan.num_ranks());
    now_.assign(count, 0);
    text_.resize(count);
    pace_.resize(count);
    for (double& pace : pace_) pace = scattered(0.01);
    for (int node = 0; node < plan.num_ranks() / gpus_per_node; ++node)
      clock_.push_back(1.7e9 + 300 * normal_(random_));
  }

  static int node_of(int rank) { return rank / gpus_per_node; }
  int rank_at(int stage, int data, int tensor) const {
    const std::array<Axis, 3> places{
        Axis{AxisName::tensor, tensor}, {AxisName::data, data}, {AxisName::pipeline, stage}};
    return static_cast<int>(layout_.rank(places).index());
  }

  /// Pairs of nodes whose link alone decides the rate of some group.
  std::vector<std::pair<int, int>> links() const {
    std::set<std::pair<int, int>> links;
    const auto add = [&](int a, int b) {
      if (node_of(a) != node_of(b)) links.insert(std::minmax(node_of(a), node_of(b)));
    };
    for (int stage = 0; stage < plan_.pipeline; ++stage)
      for (int data = 0; data < plan_.data; ++data) {
        if (stage + 1 < plan_.pipeline) add(rank_at(stage, data, 0), rank_at(stage + 1, data, 0));
        if (node_of(rank_at(stage, plan_.data - 1, 0)) - node_of(rank_at(stage, 0, 0)) == 1)
          add(rank_at(stage, 0, 0), rank_at(stage, plan_.data - 1, 0));
      }
    return {links.begin(), links.end()};
  }

  /// By rank.
  std::vector<std::string> traces() {
    constexpr int num_steps = 2;
    for (int step = 0; step < num_steps; ++step) simulate_step(step);
    std::vector<std::string> traces;
    for (int rank = 0; rank < plan_.num_ranks(); ++rank)
      traces.push_back(
          "{\"schemaVersion\": 1, \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": " +
          std::to_string(rank) + ", \"world_size\": " + std::to_string(plan_.num_ranks()) +
          "}, \"traceEvents\": [\n" + text_[at(rank)] + "]}");
    return traces;
  }

  static constexpr int gpus_per_node = 8;
  static constexpr double inside_bandwidth = 230e3, between_bandwidth = 43e3;  ///< bytes/us

 private:
  static std::size_t at(int number) { return static_cast<std::size_t>(number); }
  double scattered(double by) { return std::exp(by * normal_(random_)); }

  void simulate_step(int step) {
    const std::vector<double> begins = now_;
    constexpr int num_microbatches = 2;
    for (int i = 0; i < num_microbatches; ++i)
      for (int stage = 0; stage < plan_.pipeline; ++stage) pass(stage, stage - 1, 1);
    for (int i = 0; i < num_microbatches; ++i)
      for (int stage = plan_.pipeline - 1; stage >= 0; --stage) pass(stage, stage + 1, 2);
    for (int stage = 0; stage < plan_.pipeline; ++stage)
      for (int tensor = 0; tensor < plan_.tensor; ++tensor) reduce_gradients(stage, tensor);
    for (int rank = 0; rank < plan_.num_ranks(); ++rank)
      compute(rank, "multi_tensor_apply_kernel", 1500);
    for (int rank = 0; rank < plan_.num_ranks(); ++rank)
      write(rank, "user_annotation", "ProfilerStep#" + std::to_string(step), 1, begins[at(rank)],
            now_[at(rank)] - begins[at(rank)], "");
  }

  /// A microbatch of one stage, `work` times as long as forward.
  void pass(int stage, int from, double work) {
    constexpr int num_layers = 2;
    for (int data = 0; data < plan_.data; ++data) {
      for (int tensor = 0; tensor < plan_.tensor && from >= 0 && from < plan_.pipeline; ++tensor)
        message(rank_at(from, data, tensor), rank_at(stage, data, tensor));
      std::vector<int> ranks;
      for (int tensor = 0; tensor < plan_.tensor; ++tensor)
        ranks.push_back(rank_at(stage, data, tensor));
      for (int layer = 0; layer < num_layers; ++layer) {
        for (const int rank : ranks) compute(rank, "ampere_bf16_s16816gemm_bf16", 1800 * work);
        all_reduce(ranks, std::int64_t{16} << 20, "TENSOR_MODEL_PARALLEL_GROUP", 20);
      }
    }
  }

  void reduce_gradients(int stage, int tensor) {
    std::vector<int> ranks;
    for (int data = 0; data < plan_.data; ++data) ranks.push_back(rank_at(stage, data, tensor));
    for (int bucket = 0; bucket < 4 && plan_.data > 1; ++bucket)
      all_reduce(ranks, std::int64_t{25} << 20, "DATA_PARALLEL_GROUP", 24);
  }

  void compute(int rank, const std::string& kernel, double duration) {
    duration *=
        pace_[at(rank)] * scattered(0.02) *
        (faults_.slow_rank == rank || faults_.slow_node == node_of(rank) ? faults_.slow_factor : 1);
    write(rank, "kernel", kernel, 7, now_[at(rank)], duration, "");
    constexpr double stall_chance = 1.0 / 500, stall = 2000;
    now_[at(rank)] += duration + 4 + (uniform_(random_) < stall_chance ? stall : 0);
  }

  double bandwidth_between(const std::vector<int>& ranks) {
    const int low = node_of(*std::min_element(ranks.begin(), ranks.end())),
              high = node_of(*std::max_element(ranks.begin(), ranks.end()));
    if (low == high) return inside_bandwidth;
    const auto holds = [&](int node) {
      return std::any_of(ranks.begin(), ranks.end(),
                         [&](int rank) { return node_of(rank) == node; });
    };
    const bool slow =
        faults_.slow_rail == ranks.front() % gpus_per_node ||
        (faults_.slow_link && holds(faults_.slow_link->first) && holds(faults_.slow_link->second));
    // The same links for ever: their scatter is drawn from their ends.
    std::mt19937_64 of_link(at(1'000'000 + ranks.front() * 1000 + ranks.back()));
    std::normal_distribution<double> normal;
    return between_bandwidth * std::exp(0.02 * normal(of_link)) * (slow ? faults_.link_share : 1);
  }

  void all_reduce(const std::vector<int>& ranks, std::int64_t elements, const std::string& group,
                  int stream) {
    const auto n = static_cast<double>(ranks.size());
    const double transfer = 15 + 2 * (n - 1) / n * static_cast<double>(2 * elements) /
                                     bandwidth_between(ranks) * scattered(0.03);
    std::string list;
    for (const int rank : ranks) list += (list.empty() ? "[" : ", ") + std::to_string(rank);
    std::string arguments =
        R"("Collective name": "allreduce", "In msg nelems": )" + std::to_string(elements) +
        R"(, "Out msg nelems": )" + std::to_string(elements) + R"(, "Group size": )" +
        std::to_string(ranks.size()) + R"(, "dtype": "BFloat16", "Process Group Name": ")" +
        std::to_string(stream) + R"(", "Process Group Description": ")" + group +
        R"(", "Process Group Ranks": ")" + list + "]\"";
    if (numbered_) arguments += ", \"Seq\": " + std::to_string(++num_calls_);
    finish_together(ranks, transfer,
                    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                    stream, arguments);
  }

  void message(int source, int destination) {
    constexpr std::int64_t elements = std::int64_t{8} << 20;
    const double transfer = 15 + static_cast<double>(2 * elements) /
                                     bandwidth_between({source, destination}) * scattered(0.03);
    for (const int rank : {source, destination}) {
      const std::string arguments =
          std::string(R"("Collective name": ")") + (rank == source ? "send" : "recv") +
          R"(", "In msg nelems": )" + std::to_string(elements) + R"(, "Out msg nelems": )" +
          std::to_string(elements) + R"(, "Group size": )" + std::to_string(plan_.pipeline) +
          R"(, "dtype": "BFloat16", "Process Group Name": "30", "Process Group Description": "PIPELINE_MODEL_PARALLEL_GROUP", "Src Rank": )" +
          std::to_string(source) + R"(, "Dst Rank": )" + std::to_string(destination);
      arguments_of_message_[rank == source ? 0 : 1] = arguments;
    }
    const double end = std::max(now_[at(source)], now_[at(destination)]) + transfer;
    int side = 0;
    for (const int rank : {source, destination})
      finish(rank, end, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 28,
             arguments_of_message_[side++]);
  }

  void finish_together(const std::vector<int>& ranks, double transfer, const std::string& kernel,
                       int stream, const std::string& arguments) {
    double begin = 0;
    for (const int rank : ranks) begin = std::max(begin, now_[at(rank)]);
    for (const int rank : ranks) finish(rank, begin + transfer, kernel, stream, arguments);
  }

  void finish(int rank, double end, const std::string& kernel, int stream,
              const std::string& arguments) {
    end += std::abs(normal_(random_));
    write(rank, "kernel", kernel, stream, now_[at(rank)], end - now_[at(rank)], arguments);
    now_[at(rank)] = end + 3;
  }

  void write(int rank, const std::string& category, const std::string& name, int thread,
             double begin, double duration, const std::string& arguments) {
    char times[96];
    std::snprintf(times, sizeof times, "\"ts\": %.3f, \"dur\": %.3f",
                  begin + clock_[at(node_of(rank))], duration);
    std::string& text = text_[at(rank)];
    text += (text.empty() ? "" : ",\n") + std::string(R"({"ph": "X", "cat": ")") + category +
            R"(", "name": ")" + name + R"(", "pid": )" + std::to_string(rank % gpus_per_node) +
            R"(, "tid": )" + std::to_string(thread) + ", " + times + ", \"args\": {" + arguments +
            "}}";
  }

  MadeUpPlan plan_;
  Layout layout_;
  MadeUpFaults faults_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  bool numbered_;
  std::int64_t num_calls_ = 0;
  std::vector<double> now_, pace_, clock_;  ///< us
  std::vector<std::string> text_;
  std::string arguments_of_message_[2];
};

RankTrace rank_trace_of(const std::string& text) {
  TextInput input("t.json", text);
  GpuTrace trace = read_gpu_trace(input);
  const GpuTotals totals = totals_of(trace).front();
  std::int64_t begin = trace.events.front().begin;
  for (const GpuEvent& event : trace.events) begin = std::min(begin, event.begin);
  return {trace.rank,
          trace.device,
          totals.compute,
          std::max<std::int64_t>(1, static_cast<std::int64_t>(trace.steps.size())),
          begin,
          std::move(trace.calls),
          std::move(trace.names)};
}

RankVerdict verdict_of(const std::vector<std::string>& traces) {
  std::vector<RankTrace> ranks;
  for (const std::string& trace : traces) ranks.push_back(rank_trace_of(trace));
  return judge_ranks(ranks);
}

std::string found_in(const RankVerdict& verdict) {
  std::string text;
  for (const RankFinding& finding : verdict.findings) {
    text += dashed_name(finding.kind);
    for (const std::int64_t place : finding.places) text += " " + std::to_string(place);
    text += "; ";
  }
  return text;
}

std::string expected_of(const MadeUpFaults& faults) {
  std::string text;
  if (faults.slow_rank) text += "slow-rank " + std::to_string(*faults.slow_rank) + "; ";
  if (faults.slow_link)
    text += "slow-link " + std::to_string(faults.slow_link->first) + " " +
            std::to_string(faults.slow_link->second) + "; ";
  return text;
}

/// Draw `number`: none, a slow rank, a slow link, both, in turn.
MadeUpFaults drawn_faults(MadeUpPlan plan, int number, std::mt19937_64& random) {
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  MadeUpFaults faults;
  const bool rank = number % 4 == 1 || number % 4 == 3, link = number % 4 >= 2;
  if (rank) faults.slow_rank = std::uniform_int_distribution<int>(0, plan.num_ranks() - 1)(random);
  if (rank) faults.slow_factor = uniform(1.08, 1.6);
  const auto links = MadeUpJob(plan, {}, 0).links();
  if (link)
    faults.slow_link =
        links[std::uniform_int_distribution<std::size_t>(0, links.size() - 1)(random)];
  if (link) faults.link_share = uniform(0.2, 0.75);
  return faults;
}

/// A kernel of rank `rank`: an all-reduce of 1 MiB over ranks 0 to 3, or computing where `call` is empty.
std::string kernel(int rank, const std::string& call, double begin, double duration) {
  const std::string arguments =
      R"("Collective name": "allreduce", "In msg nelems": 262144, "Out msg nelems": 262144, "dtype": "Float", "Group size": 4, "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1, 2, 3]")";
  return R"({"ph": "X", "cat": "kernel", "name": ")" +
         (call.empty() ? std::string("gemm") : "ncclDevKernel_" + call) + R"(", "pid": )" +
         std::to_string(rank) + R"(, "tid": 7, "ts": )" + std::to_string(begin) + R"(, "dur": )" +
         std::to_string(duration) + R"(, "args": {)" + (call.empty() ? "" : arguments) + "}}";
}

std::string rank_file(int rank, const std::string& events) {
  return R"({"distributedInfo": {"rank": )" + std::to_string(rank) +
         R"(, "world_size": 4}, "traceEvents": [)" + events + "]}";
}

const std::string all_reduce = "AllReduce_Sum_f32_RING_LL(x)";

/// Rank r computes for `computes[r]` us, then all reduce, which takes 10 us once the last has come; the clock of rank r is r * 1000 us ahead.
std::vector<std::string> four_ranks(const std::vector<double>& computes) {
  const double last = *std::max_element(computes.begin(), computes.end());
  std::vector<std::string> files;
  for (int rank = 0; rank < 4; ++rank) {
    const double clock = 1000.0 * rank, compute = computes[static_cast<std::size_t>(rank)];
    files.push_back(
        rank_file(rank, kernel(rank, "", clock, compute) + "," +
                            kernel(rank, all_reduce, clock + compute, last + 10 - compute)));
  }
  return files;
}

/// As `run --rank-traces` writes them: rank r, on a GPU of a node of 8, computes for `computes[r]` us, and the all-reduce begins at once on all.
std::vector<std::string> simulated_ranks(const std::vector<double>& computes,
                                         int gpus_per_rank = 1) {
  std::vector<std::string> files;
  for (std::size_t i = 0; i < computes.size(); ++i) {
    const int rank = static_cast<int>(i) * gpus_per_rank;
    const std::string device = R"("args": {"device": )" + std::to_string(rank % 8);
    std::string call = replaced(kernel(rank, all_reduce, 100, 10), R"("args": {)", device + ", ");
    call =
        replaced(call, R"("Group size": 4)", R"("Group size": )" + std::to_string(computes.size()));
    call = replaced(call, R"(, "Process Group Ranks": "[0, 1, 2, 3]")", "");
    const std::string computing =
        replaced(kernel(rank, "", 0, computes[i]), R"("args": {)", device);
    const std::string drawn_as_one = replaced(
        replaced(call, "\"device\"", R"("note": "of all layers, drawn as one", "device")"),
        R"("Process Group Name": "0")", R"("Process Group Name": ")" + std::to_string(rank) + "\"");
    files.push_back(replaced(rank_file(rank, computing + "," + drawn_as_one + "," + call),
                             R"("traceEvents")",
                             R"("otherData": {"generator": "windtunnel"}, "traceEvents")"));
  }
  return files;
}

std::string report_of(const std::vector<std::string>& files) {
  ImportRun run("kineto");
  for (std::size_t i = 0; i < files.size(); ++i)
    run.with("rank" + std::to_string(i) + ".json", files[i]);
  std::ostringstream out, notes;
  run_import(run.request, ResultFormat::text, shipped_library(), out, notes);
  return out.str() + notes.str();
}

}  // namespace

TEST_CASE("who came late, and by how much, does not depend on the clocks of the hosts") {
  const RankVerdict verdict = verdict_of(four_ranks({50, 52, 49, 80}));
  REQUIRE(verdict.matched.calls.size() == 1);
  const MatchedCall& call = verdict.matched.calls.front();
  CHECK(call.last().member == 3);
  CHECK(static_cast<double>(call.lag()) ==
        doctest::Approx(28'000).epsilon(0.001));  // ns: 80 - 52 us
  CHECK(call.transfer() == 10'000);
  CHECK(verdict.ranks[3].lag == doctest::Approx(28e-6).epsilon(0.001));
  CHECK(verdict.ranks[3].share_last == 1);
  CHECK(verdict.ranks[3].compute_over_peers == doctest::Approx(80.0 / 51));
  // 2 * 3/4 * 1 MiB in 10 us
  CHECK(verdict.groups.front().bus_bandwidth == doctest::Approx(1.5 * 1048576 / 10e-6));
  CHECK(verdict.groups.front().nodes == std::vector<std::int64_t>{0});
}

TEST_CASE("a slow rank is named where collectives begin at once on all, as in simulated traces") {
  const auto files = simulated_ranks({50, 50, 50, 70, 50, 50, 50, 50});
  const RankVerdict verdict = verdict_of(files);
  CHECK(found_in(verdict) == "slow-rank 3; ");
  CHECK(verdict.ranks[0].share_last == 0);
  // Calls that are drawn as one count as none, and what no three groups do is not judged.
  CHECK(verdict.matched.calls.size() == 1);
  const std::string report = report_of(files);
  CHECK(contains(report, "rank 3 computes 40.0 % slower than its peers; the cost does not show"));
  CHECK(contains(report, "rank 3                     70.0 us       +40.0 %"));
  CHECK(contains(report, "cannot judge whether a link is slow: no three groups"));
  // Each trace is of a tensor group of 2 GPUs: of 4 devices in a node only the first is given.
  CHECK(found_in(verdict_of(simulated_ranks({50, 50, 50, 50, 70, 70, 70, 70, 50, 50, 50, 50},
                                            2))) == "slow-node 1; ");
  // Rounding to a nanosecond is no fault.
  CHECK(found_in(verdict_of(simulated_ranks({50, 50, 50, 50.001, 50, 50, 50, 50}))).empty());
}

TEST_CASE("kernels whose names say nothing are noted once, and our own never") {
  const auto named = [](std::vector<std::string> files) {
    for (std::string& file : files) file = replaced(file, "\"gemm\"", "\"feed-forward\"");
    return files;
  };
  CHECK(contains(report_of(named(four_ranks({50, 50, 50, 60}))),
                 "rank3.json and 3 other files with as much or less: "));
  CHECK_FALSE(contains(report_of(named(simulated_ranks({50, 50, 50, 50}))), "say nothing"));
}

TEST_CASE("calls that differ across ranks, or whose group is not said, are not matched") {
  auto files = four_ranks({50, 50, 50, 50});
  files[2] = replaced(files[2], R"("In msg nelems": 262144, "Out msg nelems": 262144)",
                      R"("In msg nelems": 4, "Out msg nelems": 4)");
  CHECK(verdict_of(files).matched.num_unmatched == 4);
  for (std::string& file : files)
    file = replaced(replaced(file, "Process Group Name", "x"), "Process Group Ranks", "y");
  CHECK(verdict_of(files).matched.calls.empty());
}

TEST_CASE("calls are matched by sequence number where a trace begins later than others") {
  // Ranks 0 to 2 make calls 1 and 2, rank 3 was only recorded at call 2.
  std::vector<std::string> files;
  for (int rank = 0; rank < 4; ++rank) {
    const auto numbered = [&](int number) {
      return replaced(kernel(rank, all_reduce, 10 * number, 5), R"("Group size")",
                      R"("Seq": )" + std::to_string(number) + R"(, "Group size")");
    };
    files.push_back(rank_file(rank, rank == 3 ? numbered(2) : numbered(1) + "," + numbered(2)));
  }
  const RankVerdict verdict = verdict_of(files);
  CHECK(verdict.matched.calls.size() == 1);
  CHECK(verdict.matched.num_unmatched == 3);
}

TEST_CASE("Student's t has the tails of the tables") {
  CHECK(student_tail(1.812, 10) == doctest::Approx(0.05).epsilon(0.001));
  CHECK(student_tail(63.66, 1) == doctest::Approx(0.005).epsilon(0.001));
  CHECK(student_tail(3.090, 1e6) == doctest::Approx(0.001).epsilon(0.01));
}

TEST_CASE("a group is named that moves half of what seven like it move") {
  MadeUpFaults faults;
  faults.slow_rail = 3;
  faults.link_share = 0.5;
  CHECK(found_in(verdict_of(MadeUpJob({8, 1, 8}, faults, 3).traces())) ==
        "slow-group 3 11 19 27 35 43 51 59; ");
}

TEST_CASE("one rank of 64 and one link are named with what they cost") {
  const MadeUpFaults faults{11, {}, 1.25, std::pair{3, 5}, 0.21, {}};
  const auto traces = MadeUpJob({8, 4, 2}, faults, 5).traces();
  const RankVerdict verdict = verdict_of(traces);
  REQUIRE(found_in(verdict) == "slow-rank 11; slow-link 3 5; ");
  CHECK(verdict.findings[0].ratio == doctest::Approx(1.25).epsilon(0.03));
  // 2 microbatches of 2 layers of 1.8 ms forward and 3.6 ms backward, 21.6 ms, of which a quarter; a stall of another rank may hide a little.
  CHECK(verdict.findings[0].cost == doctest::Approx(0.25 * 21.6e-3).epsilon(0.15));
  CHECK(verdict.findings[1].bandwidth == doctest::Approx(0.21 * 43e9).epsilon(0.1));
  CHECK(verdict.findings[1].usual_bandwidth == doctest::Approx(43e9).epsilon(0.1));

  ImportRun run("kineto");
  for (std::size_t rank = 0; rank < traces.size(); ++rank)
    run.with("rank" + std::to_string(rank) + ".json", traces[rank]);
  std::ostringstream out, json, notes;
  run_import(run.request, ResultFormat::text, shipped_library(), out, notes);
  CHECK(contains(out.str(), "Verdict\n  rank 11 computes 2"));
  CHECK(contains(out.str(), "\n  the link between nodes 3 and 5 moves "));
  std::ostringstream narrow;  // the rate that names the slow pair stays in the table
  detail::set_text_width(80);
  run_import(run.request, ResultFormat::text, shipped_library(), narrow, notes);
  detail::set_text_width(std::numeric_limits<int>::max());
  CHECK(contains(narrow.str(), "  bus bandwidth    slowest\n"));
  run_import(run.request, ResultFormat::json, shipped_library(), json, notes);
  CHECK(contains(json.str(), "\"kind\": \"slow-link\""));
}

TEST_CASE("GPUs of a node that are late together cost the job once") {
  MadeUpFaults faults;
  faults.slow_node = 2;
  faults.slow_factor = 1.25;
  const RankVerdict verdict = verdict_of(MadeUpJob({8, 4, 2}, faults, 7).traces());
  REQUIRE(found_in(verdict) == "slow-node 2; ");
  // As of one slow rank: a quarter of 21.6 ms of passes a step, and not of eight times that. Their pipeline waits too, which counts no
  // lag, so that the other replica is all that is charged.
  CHECK(verdict.findings[0].cost < 0.3 * 21.6e-3);
  CHECK(verdict.findings[0].cost > 0.15 * 21.6e-3);
}

TEST_CASE(
    "where no rank has two peers nobody is judged, and the one that is waited for is suspect") {
  MadeUpFaults faults;
  faults.slow_rank = 40;
  faults.slow_factor = 1.25;
  const auto traces = MadeUpJob({8, 4, 2}, faults, 5).traces();
  const auto at = [&](std::size_t rank) { return traces[rank]; };
  const std::vector<std::string> given{at(0), at(8), at(40), at(41)};
  const RankVerdict verdict = verdict_of(given);
  CHECK(verdict.findings.empty());
  CHECK_FALSE(verdict.power.can_judge());
  REQUIRE(verdict.power.suspect);
  CHECK(*verdict.power.suspect == 2);
  // Its data group is ranks 32 and 40, its tensor group ranks 40 to 47.
  CHECK(verdict.power.missing_peers == std::vector<std::int64_t>{32, 42, 43, 44, 45, 46, 47});

  ImportRun run("kineto");
  for (std::size_t i = 0; i < given.size(); ++i)
    run.with("rank" + std::to_string(i) + ".json", given[i]);
  std::ostringstream out, json, notes;
  run_import(run.request, ResultFormat::text, shipped_library(), out, notes);
  CHECK(contains(out.str(), "cannot judge whether a rank is slow"));
  CHECK(contains(out.str(), "Suspect rank 40, for which others wait "));
  CHECK_FALSE(contains(out.str(), "none: "));
  run_import(run.request, ResultFormat::json, shipped_library(), json, notes);
  CHECK(contains(json.str(), "\"suspect\": 40"));
}

TEST_CASE("a verdict of none says how slow a rank would have to be") {
  const RankVerdict verdict = verdict_of(MadeUpJob({8, 4, 2}, {}, 5).traces());
  CHECK(verdict.findings.empty());
  CHECK(verdict.power.can_judge());
  CHECK(verdict.power.num_judged == 64);
  // GPUs scatter by 1 %: a deviation of some four standard deviations stands out of 64.
  CHECK(verdict.power.least_named > 0.02);
  CHECK(verdict.power.least_named < 0.15);
  // At that deviation a part is an outlier, and a little below it it is none.
  const std::vector<double> scatter{0.01, -0.01, 0.012, -0.008, 0.009, -0.011, 0.01, -0.01};
  const OutlierTest test(scatter);
  CHECK(test.is_outlier(test.least_outlier() * 1.001));
  CHECK_FALSE(test.is_outlier(test.least_outlier() * 0.999));
}

/// Sanitizers take a second for each.
#ifdef WINDTUNNEL_SANITIZED
constexpr int num_draws = 20;
#else
constexpr int num_draws = 200;
#endif

TEST_CASE(
    "of 200 jobs of 64 ranks with a slow rank, a slow link, both or none at least 98 % get the "
    "right verdict") {
  const std::vector<MadeUpPlan> plans{{8, 4, 2}, {4, 4, 4}, {8, 2, 4}, {4, 8, 2}, {1, 8, 8}};
  std::mt19937_64 random(18);
  int num_right = 0;
  for (int draw = 0; draw < num_draws; ++draw) {
    const MadeUpPlan plan = plans[static_cast<std::size_t>(draw / 4) % plans.size()];
    const MadeUpFaults faults = drawn_faults(plan, draw, random);
    const std::string found =
        found_in(verdict_of(MadeUpJob(plan, faults, static_cast<std::uint64_t>(draw)).traces()));
    const bool right = found == expected_of(faults);
    num_right += right;
    if (!right)
      MESSAGE("draw ", draw, ", plan ", plan.tensor, "x", plan.pipeline, "x", plan.data, ": found ",
              found, "expected ", expected_of(faults), faults.slow_factor, " ", faults.link_share);
  }
  CHECK(num_right >= num_draws * 98 / 100);
  MESSAGE(num_right, " of ", num_draws, " right");
}
