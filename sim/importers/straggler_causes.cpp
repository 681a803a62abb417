#include "importers/straggler_causes.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "importers/job_replay.hpp"
#include "importers/rate_matrix.hpp"

namespace windtunnel {
namespace {

double mean_of(const std::vector<double>& values) {
  return values.empty() ? 0
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}

/// The lower of the two in the middle of an even number: of two workers the faster one is the peer of the slower.
double lower_median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double ratio_of(double a, double b) { return b > 0 ? a / b : 1; }

/// Means of passes by worker and stage, and the ideal times by kind.
class OperationTimes {
 public:
  explicit OperationTimes(const JobTrace& trace) : trace_(trace) {
    std::array<std::vector<double>, num_job_works> by_work;
    for (const JobOperation& operation : trace.operations)
      by_work[index(operation.work)].push_back(operation.duration);
    for (int i = 0; i < num_job_works; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (by_work[at].empty()) continue;
      ideal_[at] = is_computing(static_cast<JobWork>(i)) ? mean_of(by_work[at])
                                                         : median_of(std::move(by_work[at]));
    }
    find_workers();
    find_stages();
  }

  double ideal(const JobOperation& operation) const { return ideal_[index(operation.work)]; }
  double of_worker(const JobOperation& operation) const {
    return worker_[pass_index(operation)][static_cast<std::size_t>(trace_.worker_of(operation))];
  }
  /// The median over the workers of a stage.
  double of_peers(const JobOperation& operation) const {
    return peers_[pass_index(operation)][static_cast<std::size_t>(operation.stage)];
  }
  /// The mean over the stages of that.
  double of_stages(const JobOperation& operation) const { return stages_[pass_index(operation)]; }
  /// Both passes together.
  double of_worker(int worker) const { return worker_[0][at(worker)] + worker_[1][at(worker)]; }
  double of_peers(int stage) const { return peers_[0][at(stage)] + peers_[1][at(stage)]; }
  double of_stages() const { return stages_[0] + stages_[1]; }

 private:
  static std::size_t index(JobWork work) { return static_cast<std::size_t>(work); }
  static std::size_t at(int number) { return static_cast<std::size_t>(number); }
  static std::size_t pass_index(const JobOperation& operation) {
    return operation.work == JobWork::forward_compute ? 0 : 1;
  }

  void find_workers() {
    std::array<std::vector<double>, 2> counts;
    for (std::size_t pass = 0; pass < 2; ++pass) {
      worker_[pass].assign(at(trace_.num_workers()), 0);
      counts[pass].assign(at(trace_.num_workers()), 0);
    }
    for (const JobOperation& operation : trace_.operations) {
      if (!is_pass(operation.work)) continue;
      const std::size_t worker = at(trace_.worker_of(operation));
      worker_[pass_index(operation)][worker] += operation.duration;
      ++counts[pass_index(operation)][worker];
    }
    for (std::size_t pass = 0; pass < 2; ++pass)
      for (std::size_t i = 0; i < worker_[pass].size(); ++i)
        if (counts[pass][i] > 0) worker_[pass][i] /= counts[pass][i];
  }

  void find_stages() {
    for (std::size_t pass = 0; pass < 2; ++pass) {
      for (int stage = 0; stage < trace_.num_stages; ++stage) {
        std::vector<double> times;
        for (int rank = 0; rank < trace_.num_data_ranks; ++rank)
          times.push_back(worker_[pass][at(rank * trace_.num_stages + stage)]);
        peers_[pass].push_back(lower_median_of(std::move(times)));
      }
      stages_[pass] = mean_of(peers_[pass]);
    }
  }

  const JobTrace& trace_;
  std::array<double, num_job_works> ideal_{};
  std::array<std::vector<double>, 2> worker_, peers_;  ///< of forward and backward passes
  std::array<double, 2> stages_{};
};

/// Replays with changed durations.
class WhatIf {
 public:
  explicit WhatIf(const JobTrace& trace) : trace_(trace), times_(trace), replay_(trace) {
    actual_ = replayed([](const JobOperation& operation) { return operation.duration; });
  }

  template <typename Duration>
  std::vector<double> replayed(const Duration& duration_of) const {
    std::vector<double> durations;
    durations.reserve(trace_.operations.size());
    for (const JobOperation& operation : trace_.operations)
      durations.push_back(duration_of(operation));
    return replay_.step_times(durations);
  }

  StragglerAnalysis analysis() const {
    StragglerAnalysis analysis;
    analysis.step_time = mean_of(actual_);
    analysis.ideal_time =
        mean_of(replayed([&](const JobOperation& operation) { return times_.ideal(operation); }));
    for (int i = 0; i < num_straggler_causes; ++i)
      analysis.causes.push_back(cost_of(static_cast<StragglerCause>(i)));
    std::stable_sort(analysis.causes.begin(), analysis.causes.end(),
                     [](const CauseCost& a, const CauseCost& b) { return a.saved > b.saved; });
    add_workers(analysis);
    for (int stage = 0; stage < trace_.num_stages; ++stage)
      analysis.stage_ratios.push_back(ratio_of(times_.of_peers(stage), times_.of_stages()));
    add_slowdowns(analysis);
    add_scatter(analysis);
    return analysis;
  }

 private:
  double without(StragglerCause cause, const JobOperation& operation) const {
    if (cause == StragglerCause::communication)
      return is_computing(operation.work) ? operation.duration : times_.ideal(operation);
    if (!is_pass(operation.work)) return operation.duration;
    if (cause == StragglerCause::uneven_batches) return times_.of_worker(operation);
    if (cause == StragglerCause::uneven_stages)
      return operation.duration * ratio_of(times_.of_stages(operation), times_.of_peers(operation));
    return operation.duration *
           std::min(1.0, ratio_of(times_.of_peers(operation), times_.of_worker(operation)));
  }

  CauseCost cost_of(StragglerCause cause) const {
    const std::vector<double> fixed =
        replayed([&](const JobOperation& operation) { return without(cause, operation); });
    CauseCost cost{cause};
    std::vector<double> saved;
    for (std::size_t i = 0; i < fixed.size(); ++i) saved.push_back(actual_[i] - fixed[i]);
    cost.saved = mean_of(saved);
    double squares = 0;
    for (const double each : saved) squares += (each - cost.saved) * (each - cost.saved);
    const auto count = static_cast<double>(saved.size());
    if (saved.size() > 1) cost.standard_error = std::sqrt(squares / (count - 1) / count);
    return cost;
  }

  void add_workers(StragglerAnalysis& analysis) const {
    for (int rank = 0; rank < trace_.num_data_ranks; ++rank)
      for (int stage = 0; stage < trace_.num_stages; ++stage)
        analysis.workers.push_back(
            {rank, stage,
             ratio_of(times_.of_worker(rank * trace_.num_stages + stage), times_.of_peers(stage)),
             0});
    std::stable_sort(analysis.workers.begin(), analysis.workers.end(),
                     [](const WorkerPace& a, const WorkerPace& b) { return a.ratio > b.ratio; });
    constexpr std::size_t most_replayed = 8;
    for (std::size_t i = 0; i < std::min(most_replayed, analysis.workers.size()); ++i) {
      WorkerPace& worker = analysis.workers[i];
      if (worker.ratio <= 1) continue;
      worker.saved =
          analysis.step_time - mean_of(replayed([&](const JobOperation& operation) {
            return operation.data_rank == worker.data_rank && operation.stage == worker.stage
                       ? without(StragglerCause::slow_worker, operation)
                       : operation.duration;
          }));
    }
  }

  void add_slowdowns(StragglerAnalysis& analysis) const {
    std::array<bool, num_job_works> present{};
    for (const JobOperation& operation : trace_.operations)
      present[static_cast<std::size_t>(operation.work)] = true;
    for (std::size_t i = 0; i < present.size(); ++i)
      if (present[i])
        analysis.slowdown_by_work[i] = mean_of(replayed([&](const JobOperation& operation) {
                                         return static_cast<std::size_t>(operation.work) == i
                                                    ? operation.duration
                                                    : times_.ideal(operation);
                                       })) /
                                       analysis.ideal_time;
  }

  void add_scatter(StragglerAnalysis& analysis) const {
    std::map<std::tuple<int, int, int>, std::array<double, 2>>
        passes;  // by step, worker and microbatch
    for (const JobOperation& operation : trace_.operations)
      if (is_pass(operation.work))
        passes[{operation.step, trace_.worker_of(operation), operation.microbatch}]
              [operation.work == JobWork::forward_compute ? 0 : 1] =
                  ratio_of(operation.duration, times_.of_worker(operation)) - 1;
    double forward = 0, backward = 0, both = 0;
    for (const auto& [pass, scatter] : passes) {
      forward += scatter[0] * scatter[0];
      backward += scatter[1] * scatter[1];
      both += scatter[0] * scatter[1];
    }
    if (forward > 0 && backward > 0)
      analysis.forward_backward_correlation = both / std::sqrt(forward * backward);
    const auto count = static_cast<double>(std::max<std::size_t>(passes.size(), 1));
    analysis.forward_scatter = std::sqrt(forward / count);
    analysis.backward_scatter = std::sqrt(backward / count);
  }

  const JobTrace& trace_;
  OperationTimes times_;
  JobReplay replay_;
  std::vector<double> actual_;
};

}  // namespace

const char* name_of(StragglerCause cause) {
  switch (cause) {
    case StragglerCause::slow_worker:
      return "slow-worker";
    case StragglerCause::uneven_stages:
      return "uneven-stages";
    case StragglerCause::uneven_batches:
      return "uneven-batches";
    case StragglerCause::communication:
      return "communication";
  }
  return "";
}

StragglerAnalysis analyse_stragglers(const JobTrace& trace) { return WhatIf(trace).analysis(); }

}  // namespace windtunnel
