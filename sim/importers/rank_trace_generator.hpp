#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "layout/layout.hpp"

/// Traces of a made-up job in the format of PyTorch's profiler, one for each of its 64 ranks; included by tests only.
namespace windtunnel::testing {

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

/// Plays the job with the scatter of a healthy cluster: kernels differ by 2 % from one to the next and by 1 % from GPU to GPU, one in 500
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
    for (int step = 0; step < num_steps; ++step) play_step(step);
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

  void play_step(int step) {
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

}  // namespace windtunnel::testing
