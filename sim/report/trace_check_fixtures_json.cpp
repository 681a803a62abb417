#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "report/trace_check_fixtures.hpp"

namespace windtunnel {
namespace {

using nlohmann::json;

struct CheckedSlice {
  std::int64_t begin = 0, end = 0;
  std::string name;
};

struct Thread {
  std::int64_t pid = 0;
  std::vector<CheckedSlice> slices;
};

struct ArrowEnd {
  std::int64_t at = 0, tid = 0;
};
using ArrowKey = std::tuple<std::int64_t, std::string, std::string>;
struct Arrow {
  std::vector<ArrowEnd> starts, ends;
};

/// Takes events one by one, so that a large trace is never in memory as a tree.
class TraceChecker {
 public:
  void take(const json& event) {
    number_ = findings_.events++;
    if (!event.is_object()) return complain("is no object");
    const std::string phase = text(event, "ph");
    if (phase == "M") return take_meta(event);
    if (phase == "X") return take_slice(event);
    if (phase == "s" || phase == "f") return take_arrow_end(event, phase);
    if (phase == "C") return take_counter(event);
    complain("has an unknown ph \"" + phase + "\"");
  }

  void take_root(const json& root) {
    if (!root.is_object() || !root.contains("traceEvents"))
      return add("the document is no object with traceEvents");
    const json info = root.value("distributedInfo", json::object());
    if (!info.is_object() || !info.contains("rank") || !info["rank"].is_number_integer())
      add("distributedInfo.rank is missing");
  }

  void reject(const std::string& why) { add(why); }

  TraceFindings finish() {
    for (auto& [tid, thread] : threads_) check_nesting(tid, thread);
    for (const auto& [key, arrow] : arrows_) check_arrow(key, arrow);
    check_names();
    findings_.processes = pids_.size();
    findings_.threads = threads_.size();
    return std::move(findings_);
  }

 private:
  void add(const std::string& problem) {
    constexpr std::size_t most_told = 20;
    if (findings_.num_problems++ < most_told) findings_.problems.push_back(problem);
  }
  void complain(const std::string& what) { add("event " + std::to_string(number_) + " " + what); }

  static std::string text(const json& event, const char* key) {
    const auto found = event.find(key);
    return found != event.end() && found->is_string() ? found->get<std::string>() : "";
  }

  std::optional<std::int64_t> integer(const json& event, const char* key) {
    const auto found = event.find(key);
    if (found != event.end() && found->is_number_integer()) return found->get<std::int64_t>();
    complain(std::string("has no integer ") + key);
    return std::nullopt;
  }

  /// A time in microseconds as whole nanoseconds.
  std::optional<std::int64_t> time(const json& event, const char* key) {
    constexpr double limit = 9e15;  // microseconds, of 64 bits of nanoseconds
    const auto found = event.find(key);
    if (found == event.end() || !found->is_number()) {
      complain(std::string("has no number ") + key);
      return std::nullopt;
    }
    const double microseconds = found->get<double>();
    if (microseconds >= 0 && microseconds < limit) return std::llround(microseconds * 1000);
    complain(std::string("has a ") + key + " that is negative or not finite");
    return std::nullopt;
  }

  /// The thread of an event; nothing when it has none or the tid is another process's.
  Thread* thread_of(const json& event, std::int64_t& tid) {
    const auto pid = integer(event, "pid"), its_tid = integer(event, "tid");
    if (!pid || !its_tid) return nullptr;
    tid = *its_tid;
    pids_.insert(*pid);
    const auto [found, is_new] = threads_.try_emplace(tid, Thread{*pid, {}});
    if (found->second.pid == *pid) return &found->second;
    complain("uses tid " + std::to_string(tid) + " of process " +
             std::to_string(found->second.pid) + " in process " + std::to_string(*pid));
    return nullptr;
  }

  void take_meta(const json& event) {
    const std::string what = text(event, "name");
    if (what != "process_name" && what != "thread_name") return;
    const auto args = event.find("args");
    const std::string name =
        args != event.end() && args->is_object() ? text(*args, "name") : std::string();
    if (name.empty()) return complain("gives an empty name");
    const bool of_thread = what == "thread_name";
    const auto id = integer(event, of_thread ? "tid" : "pid");
    if (id && !(of_thread ? thread_names_ : process_names_).insert(*id).second)
      complain("names " + std::string(of_thread ? "thread " : "process ") + std::to_string(*id) +
               " again");
  }

  void take_slice(const json& event) {
    ++findings_.slices;
    const std::string name = text(event, "name");
    if (name.empty()) complain("has no name");
    const auto begin = time(event, "ts"), duration = time(event, "dur");
    std::int64_t tid = 0;
    Thread* thread = thread_of(event, tid);
    if (thread == nullptr || !begin || !duration) return;
    thread->slices.push_back({*begin, *begin + *duration, name});
    findings_.nanoseconds_by_category[text(event, "cat")] += *duration;
  }

  void take_arrow_end(const json& event, const std::string& phase) {
    const auto id = integer(event, "id"), at = time(event, "ts");
    std::int64_t tid = 0;
    if (thread_of(event, tid) == nullptr || !id || !at) return;
    Arrow& arrow = arrows_[{*id, text(event, "cat"), text(event, "name")}];
    (phase == "s" ? arrow.starts : arrow.ends).push_back({*at, tid});
    if (phase == "f" && text(event, "bp") != "e") complain("is an f without bp \"e\"");
  }

  void take_counter(const json& event) {
    ++findings_.counter_samples;
    const auto pid = integer(event, "pid");
    if (!pid || !time(event, "ts")) return;
    pids_.insert(*pid);
    const auto args = event.find("args");
    if (args == event.end() || !args->is_object() || args->size() != 1 ||
        !args->begin()->is_number())
      return complain("is a counter without exactly one number");
    const double value = args->begin()->get<double>();
    const auto [peak, is_first] = findings_.counter_peak_by_process.try_emplace(*pid, value);
    peak->second = std::max(peak->second, value);
  }

  /// Leaves the outermost slices in `thread`, for the arrows.
  void check_nesting(std::int64_t tid, Thread& thread) {
    std::stable_sort(thread.slices.begin(), thread.slices.end(),
                     [](const CheckedSlice& a, const CheckedSlice& b) {
                       return std::pair{a.begin, -a.end} < std::pair{b.begin, -b.end};
                     });
    std::vector<CheckedSlice> outermost, open;
    for (CheckedSlice& slice : thread.slices) {
      while (!open.empty() && open.back().end <= slice.begin) open.pop_back();
      if (open.empty())
        outermost.push_back(slice);
      else if (open.back().end < slice.end)
        add("thread " + std::to_string(tid) + ": \"" + open.back().name + "\" and \"" + slice.name +
            "\" overlap and do not nest");
      open.push_back(std::move(slice));
    }
    thread.slices = std::move(outermost);
  }

  bool is_inside_slice(const ArrowEnd& end) const {
    const auto& slices = threads_.at(end.tid).slices;
    const auto after = std::upper_bound(
        slices.begin(), slices.end(), end.at,
        [](std::int64_t at, const CheckedSlice& slice) { return at < slice.begin; });
    return after != slices.begin() && end.at < std::prev(after)->end;
  }

  void check_arrow(const ArrowKey& key, const Arrow& arrow) {
    ++findings_.arrows;
    const std::string name = "arrow " + std::to_string(std::get<0>(key)) + " (" + std::get<1>(key) +
                             ", " + std::get<2>(key) + ")";
    if (arrow.starts.size() != 1 || arrow.ends.size() != 1)
      return add(name + " has " + std::to_string(arrow.starts.size()) + " s and " +
                 std::to_string(arrow.ends.size()) + " f");
    if (arrow.ends[0].at < arrow.starts[0].at) add(name + " ends before it starts");
    if (!is_inside_slice(arrow.starts[0])) add(name + ": its s is in no slice");
    if (!is_inside_slice(arrow.ends[0])) add(name + ": its f is in no slice");
  }

  void check_names() {
    for (const std::int64_t pid : pids_)
      if (!process_names_.contains(pid)) add("process " + std::to_string(pid) + " has no name");
    for (const auto& [tid, thread] : threads_)
      if (!thread_names_.contains(tid)) add("thread " + std::to_string(tid) + " has no name");
  }

  TraceFindings findings_;
  std::size_t number_ = 0;
  std::map<std::int64_t, Thread> threads_;
  std::map<ArrowKey, Arrow> arrows_;
  std::set<std::int64_t> pids_, process_names_, thread_names_;
};

}  // namespace

TraceFindings check_trace(std::string_view text) {
  constexpr int in_events = 2;  // depth of an event: object, array, event
  TraceChecker checker;
  std::string root_key;
  const auto take = [&](int depth, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::key && depth == 1) root_key = value.get<std::string>();
    const bool is_event =
        depth == in_events && root_key == "traceEvents" &&
        (event == json::parse_event_t::object_end || event == json::parse_event_t::array_end ||
         event == json::parse_event_t::value);
    if (is_event) checker.take(value);
    return !is_event;
  };
  try {
    checker.take_root(json::parse(text, take));
  } catch (const json::exception& error) {
    checker.reject(std::string("not JSON: ") + error.what());
  }
  return checker.finish();
}

}  // namespace windtunnel
