#include "timeline/critical_path.hpp"

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/topological_sort.hpp>
#include <boost/range/iterator_range.hpp>
#include <iterator>

#include "timeline/activity_graph.hpp"

namespace windtunnel {
namespace {

using detail::ActivityId;
using detail::ActivityOrder;
using Graph =
    boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, boost::no_property,
                                       boost::no_property, ActivityId, std::size_t>;

/// Earliest and latest times of activities whose durations and order are given.
class Schedule {
 public:
  explicit Schedule(const ActivityOrder& order)
      : order_(order),
        graph_(boost::edges_are_unsorted_multi_pass, order.edges.begin(), order.edges.end(),
               static_cast<ActivityId>(order.activities.size())),
        ends_(order.durations),
        cause_(order.activities.size(), none),
        latest_ends_(order.activities.size()) {
    std::vector<ActivityId> last_first;
    last_first.reserve(order.activities.size());
    boost::topological_sort(graph_, std::back_inserter(last_first));  // throws on a cycle
    find_earliest(last_first);
    find_latest(last_first);
  }

  std::vector<CriticalStep> path() const {
    std::vector<CriticalStep> steps;
    for (ActivityId id = last_; id != none; id = cause_[id]) {
      if (order_.durations[id] > Seconds{0})
        steps.push_back({order_.activities[id], ends_[id] - order_.durations[id], ends_[id]});
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

  Seconds slack(ActivityId id) const { return latest_ends_[id] - ends_[id]; }

 private:
  static constexpr ActivityId none = 0xFFFFFFFF;

  void find_earliest(const std::vector<ActivityId>& last_first) {
    // ends_ holds durations until an activity's turn; what comes before it has pushed its start by then.
    std::vector<Seconds> starts(ends_.size());
    for (auto id = last_first.rbegin(); id != last_first.rend(); ++id) {
      ends_[*id] = starts[*id] + order_.durations[*id];
      for (const auto edge : boost::make_iterator_range(boost::out_edges(*id, graph_))) {
        const ActivityId next = boost::target(edge, graph_);
        const bool later = cause_[next] == none || ends_[*id] > starts[next] ||
                           (ends_[*id] == starts[next] && *id < cause_[next]);
        if (!later) continue;
        starts[next] = ends_[*id];
        cause_[next] = *id;
      }
      if (last_ == none || ends_[*id] > ends_[last_] || (ends_[*id] == ends_[last_] && *id < last_))
        last_ = *id;
    }
  }

  void find_latest(const std::vector<ActivityId>& last_first) {
    for (const ActivityId id : last_first) {
      Seconds latest = ends_[last_];
      for (const auto edge : boost::make_iterator_range(boost::out_edges(id, graph_))) {
        const ActivityId next = boost::target(edge, graph_);
        latest = std::min(latest, latest_ends_[next] - order_.durations[next]);
      }
      latest_ends_[id] = latest;
    }
  }

  const ActivityOrder& order_;
  Graph graph_;
  std::vector<Seconds> ends_;
  std::vector<ActivityId> cause_;  ///< what it started with
  std::vector<Seconds> latest_ends_;
  ActivityId last_ = none;
};

}  // namespace

CriticalPath find_critical_path(const ProgramSet& programs, const Timeline& timeline) {
  const ActivityOrder order = detail::activity_order(programs, timeline);
  CriticalPath result;
  if (order.activities.empty()) return result;
  const Schedule schedule(order);
  result.steps = schedule.path();
  for (std::size_t i = 0; i < order.activities.size(); ++i) {
    const Seconds slack = schedule.slack(static_cast<ActivityId>(i));
    if (order.activities[i].kind == Activity::Kind::compute) result.compute_slack.push_back(slack);
    if (order.activities[i].kind == Activity::Kind::message) result.message_slack.push_back(slack);
    if (order.activities[i].kind == Activity::Kind::collective)
      result.collective_slack.push_back(slack);
  }
  return result;
}

}  // namespace windtunnel
