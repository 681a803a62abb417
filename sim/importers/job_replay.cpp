#include "importers/job_replay.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <tuple>

#include "core/problem.hpp"

namespace windtunnel {
namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

/// The operations of one worker in one step, and what each waits for on that worker.
class WorkerOrder {
 public:
  WorkerOrder(const JobTrace& trace, std::uint32_t begin, std::uint32_t end,
              std::vector<std::vector<std::uint32_t>>& awaited)
      : trace_(trace), awaited_(awaited) {
    for (std::uint32_t i = begin; i < end; ++i)
      by_work_[static_cast<std::size_t>(of(i).work)].push_back(i);
    for (const JobWork work : {JobWork::forward_compute, JobWork::backward_compute})
      passes_.insert(passes_.end(), all(work).begin(), all(work).end());
    std::sort(passes_.begin(), passes_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair{of(a).begin, a} < std::pair{of(b).begin, b};
    });
  }

  void add() {
    chain(passes_);
    add_messages(JobWork::forward_compute, JobWork::forward_recv, JobWork::forward_send);
    add_messages(JobWork::backward_compute, JobWork::backward_recv, JobWork::backward_send);
    add_first_backward();
    add_parameters_and_gradients();
  }

 private:
  const JobOperation& of(std::uint32_t operation) const { return trace_.operations[operation]; }
  const std::vector<std::uint32_t>& all(JobWork work) const {
    return by_work_[static_cast<std::size_t>(work)];
  }

  void await(std::uint32_t operation, std::uint32_t what) { awaited_[operation].push_back(what); }
  void chain(const std::vector<std::uint32_t>& operations) {
    for (std::size_t i = 1; i < operations.size(); ++i) await(operations[i], operations[i - 1]);
  }

  void add_messages(JobWork work, JobWork recv, JobWork send) {
    const auto &passes = all(work), &recvs = all(recv), &sends = all(send);
    chain(recvs);
    chain(sends);
    for (std::size_t i = 0; i < std::min(passes.size(), recvs.size()); ++i) {
      await(passes[i], recvs[i]);
      if (i > 0) await(recvs[i], passes[i - 1]);
    }
    for (std::size_t i = 0; i < std::min(passes.size(), sends.size()); ++i)
      await(sends[i], passes[i]);
  }

  /// The first message of the backward pass is launched after the last but one forward pass before it.
  void add_first_backward() {
    const auto first = std::find_if(passes_.begin(), passes_.end(), [&](std::uint32_t pass) {
      return of(pass).work == JobWork::backward_compute;
    });
    if (first == passes_.end() || first - passes_.begin() < 2) return;
    for (const JobWork work : {JobWork::backward_recv, JobWork::backward_send})
      if (!all(work).empty()) await(all(work).front(), *(first - 2));
  }

  void add_parameters_and_gradients() {
    const auto &gathers = all(JobWork::params_all_gather),
               &reductions = all(JobWork::grads_reduce_scatter);
    chain(gathers);
    chain(reductions);
    if (!gathers.empty() && !reductions.empty()) await(reductions.front(), gathers.back());
    if (passes_.empty()) return;
    if (!gathers.empty()) await(passes_.front(), gathers.back());
    const bool overlapped = !all(JobWork::separate_grads_all_reduce).empty();
    std::vector<std::uint32_t> last{passes_.back()};
    if (overlapped && !reductions.empty()) {
      await(reductions.front(), passes_.back());
      last.push_back(reductions.back());
    }
    for (const JobWork work : {JobWork::garbage_collection, JobWork::layernorm_grads_all_reduce,
                               JobWork::embedding_grads_all_reduce, JobWork::grads_reduce_scatter,
                               JobWork::separate_grads_all_reduce,
                               JobWork::optimizer_clip_main_grad, JobWork::optimizer}) {
      if ((work == JobWork::grads_reduce_scatter && overlapped) || all(work).empty()) continue;
      for (const std::uint32_t before : last) await(all(work).front(), before);
      chain(all(work));
      last = {all(work).back()};
    }
  }

  const JobTrace& trace_;
  std::vector<std::vector<std::uint32_t>>& awaited_;
  std::array<std::vector<std::uint32_t>, num_job_works> by_work_;
  std::vector<std::uint32_t> passes_;  ///< by time
};

/// What the members of one communication have in common: step, kind, data-parallel rank, stage, sequence.
using GroupKey = std::tuple<int, JobWork, int, int, int>;

bool has_group(JobWork work) {
  return !is_computing(work) && work != JobWork::layernorm_grads_all_reduce;
}

GroupKey group_of(const JobOperation& operation) {
  constexpr int all = -1;
  const auto key = [&](JobWork work, int data_rank, int stage) {
    return GroupKey{operation.step, work, data_rank, stage, operation.sequence};
  };
  switch (operation.work) {
    case JobWork::forward_send:
      return key(JobWork::forward_send, operation.data_rank, operation.stage);
    case JobWork::forward_recv:
      return key(JobWork::forward_send, operation.data_rank, operation.stage - 1);
    case JobWork::backward_send:
      return key(JobWork::backward_send, operation.data_rank, operation.stage);
    case JobWork::backward_recv:
      return key(JobWork::backward_send, operation.data_rank, operation.stage + 1);
    case JobWork::embedding_grads_all_reduce:
      return key(operation.work, operation.data_rank, all);
    case JobWork::optimizer_clip_main_grad:
      return key(operation.work, all, all);
    default:
      return key(operation.work, all, operation.stage);
  }
}

std::vector<std::vector<std::uint32_t>> awaited_in(const JobTrace& trace) {
  std::vector<std::vector<std::uint32_t>> awaited(trace.operations.size());
  const auto same_worker = [](const JobOperation& a, const JobOperation& b) {
    return std::tuple{a.step, a.data_rank, a.stage} == std::tuple{b.step, b.data_rank, b.stage};
  };
  for (std::uint32_t begin = 0, end = 0; begin < trace.operations.size(); begin = end) {
    while (end < trace.operations.size() &&
           same_worker(trace.operations[begin], trace.operations[end]))
      ++end;
    WorkerOrder(trace, begin, end, awaited).add();
  }
  return awaited;
}

std::vector<std::vector<std::uint32_t>> groups_in(const JobTrace& trace) {
  std::vector<std::vector<std::uint32_t>> groups;
  std::map<GroupKey, std::size_t> numbers;
  for (std::uint32_t i = 0; i < trace.operations.size(); ++i) {
    const JobOperation& operation = trace.operations[i];
    if (!has_group(operation.work)) {
      groups.push_back({i});
      continue;
    }
    const auto [found, is_new] = numbers.try_emplace(group_of(operation), groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].push_back(i);
  }
  return groups;
}

/// Numbers of the groups so that each comes after those that it depends on (Kahn's algorithm); fewer than there are where some
/// depend on each other.
std::vector<std::uint32_t> topological_order(
    const std::vector<std::vector<std::uint32_t>>& groups,
    const std::vector<std::vector<std::uint32_t>>& awaited) {
  std::vector<std::uint32_t> group_of_operation(awaited.size(), none),
      num_awaited(groups.size(), 0);
  for (std::uint32_t group = 0; group < groups.size(); ++group)
    for (const std::uint32_t operation : groups[group]) group_of_operation[operation] = group;
  std::vector<std::vector<std::uint32_t>> followers(groups.size());
  for (std::uint32_t i = 0; i < awaited.size(); ++i)
    for (const std::uint32_t before : awaited[i]) {
      followers[group_of_operation[before]].push_back(group_of_operation[i]);
      ++num_awaited[group_of_operation[i]];
    }
  std::vector<std::uint32_t> order;
  for (std::uint32_t group = 0; group < groups.size(); ++group)
    if (num_awaited[group] == 0) order.push_back(group);
  for (std::size_t next = 0; next < order.size(); ++next)
    for (const std::uint32_t follower : followers[order[next]])
      if (--num_awaited[follower] == 0) order.push_back(follower);
  return order;
}

}  // namespace

JobReplay::JobReplay(const JobTrace& trace) : trace_(&trace) {
  const auto awaited = awaited_in(trace);
  const auto groups = groups_in(trace);
  const auto order = topological_order(groups, awaited);
  if (order.size() != groups.size()) {
    Problem problem;
    problem.origin.kind = OriginKind::file;
    problem.origin.source = std::make_shared<const SourceText>(SourceText{trace.file, {}});
    problem.message =
        "operations of the trace wait for each other in a circle: the order of its passes fits no "
        "schedule";
    throw InputError({problem});
  }
  members_begin_.push_back(0);
  for (const std::uint32_t group : order) {
    members_.insert(members_.end(), groups[group].begin(), groups[group].end());
    members_begin_.push_back(static_cast<std::uint32_t>(members_.size()));
  }
  dependencies_begin_.push_back(0);
  for (const auto& each : awaited) {
    dependencies_.insert(dependencies_.end(), each.begin(), each.end());
    dependencies_begin_.push_back(static_cast<std::uint32_t>(dependencies_.size()));
  }
}

std::vector<double> JobReplay::step_times(const std::vector<double>& durations) const {
  std::vector<double> ends(durations.size(), 0), times(trace_->steps.size(), 0);
  for (std::size_t group = 0; group + 1 < members_begin_.size(); ++group) {
    double begin = 0;
    for (std::uint32_t m = members_begin_[group]; m < members_begin_[group + 1]; ++m)
      for (std::uint32_t d = dependencies_begin_[members_[m]];
           d < dependencies_begin_[members_[m] + 1]; ++d)
        begin = std::max(begin, ends[dependencies_[d]]);
    for (std::uint32_t m = members_begin_[group]; m < members_begin_[group + 1]; ++m) {
      const std::uint32_t operation = members_[m];
      ends[operation] = begin + durations[operation];
      double& time = times[static_cast<std::size_t>(trace_->operations[operation].step)];
      time = std::max(time, ends[operation]);
    }
  }
  return times;
}

}  // namespace windtunnel
