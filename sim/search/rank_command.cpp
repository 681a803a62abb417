#include "search/rank_command.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <ostream>
#include <set>
#include <string_view>
#include <variant>

#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/number_in.hpp"
#include "core/option_error.hpp"
#include "core/problem.hpp"
#include "core/text_list.hpp"
#include "evidence/interval.hpp"
#include "plan/plan_check.hpp"
#include "platform/fabric_parts.hpp"
#include "report/number_text.hpp"
#include "report/report_words.hpp"
#include "search/launch_arguments.hpp"
#include "simulate/forked.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// Reads the parts of one --why.
class PlanTextReader {
 public:
  PlanTextReader(const std::string& text, const Scenario& base, const SearchSpace& space)
      : text_(text), base_(base), space_(space), choice_{base.plan.training, base.plan.parallel} {
    choice_.parallel.data = 0;
  }

  PlanChoice read() {
    std::string_view rest = text_;
    while (!rest.empty()) {
      const std::size_t comma = rest.find(',');
      read_part(rest.substr(0, comma));
      rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    }
    finish();
    return std::move(choice_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why, const std::string& suggestion) const {
    throw option_error("--why", text_, why, suggestion);
  }

  void read_part(std::string_view part) {
    const std::size_t equals = part.find('=');
    const std::string key(part.substr(0, equals));
    const std::string value(equals == std::string_view::npos ? "" : part.substr(equals + 1));
    if (equals == std::string_view::npos)
      refuse("\"" + key + "\" has no \"=\"", "write tensor=8,pipeline=4,micro_batch=2");
    const Key& known = key_named(key);
    if (!read_.insert(key).second) refuse(key + " is given twice", "write it once");
    known.value.set(choice_, value_of(known, value));
    has_schedule_ = has_schedule_ || known.pointer == plan_keys::schedule;
  }

  const Key& key_named(const std::string& name) const {
    std::vector<std::string> names;
    std::string list = "the keys are";
    for (const SearchKey& searched : search_keys()) {
      names.push_back(searched.key->name());
      if (names.back() == name) return *searched.key;
      list += (names.size() == 1 ? " " : ", ") + names.back();
    }
    const std::string nearest = closest_match(name, names);
    refuse("unknown key \"" + name + "\"",
           nearest.empty() ? list : "did you mean \"" + nearest + "\"?");
  }

  int value_of(const Key& key, const std::string& text) const {
    const KeyValue& value = key.value;
    std::string wanted = "write true or false";
    if (value.kind == KeyValue::Kind::whole_number) {
      int number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error == std::errc{} && end == text.data() + text.size() && number >= value.least &&
          number <= value.most)
        return number;
      wanted = "write a whole number from " + std::to_string(value.least) + " to " +
               std::to_string(value.most);
    } else {
      for (int i = 0; i <= value.most; ++i)
        if (text == text_of(key, i)) return i;
      if (value.kind == KeyValue::Kind::word)
        for (const std::string& word : value.words)
          wanted = (&word == &value.words.front() ? "one of " : wanted + ", ") + word;
    }
    refuse(key.name() + " is \"" + text + "\"", wanted);
  }

  /// Derives values that follow from the rest: data, the schedule of several chunks, and the layers of another number of stages.
  void finish() {
    Parallel& parallel = choice_.parallel;
    const std::int64_t replica = parallel.ranks_of_replica();
    if (parallel.data == 0 && space_.gpus % replica == 0)
      parallel.data = static_cast<int>(space_.gpus / replica);
    if (!has_schedule_ && !parallel.schedule->takes(parallel.virtual_pipeline))
      parallel.schedule = default_schedule(parallel.virtual_pipeline);
    // The file's own plan may have one microbatch, and no gradients to keep.
    for (const Key& key : key_table()) {
      const std::string name = key.name();
      if ((name == "no_sync" || name == "overlap_gradient_reduce" || name == "sequence_parallel") &&
          !read_.contains(name) && is_left_out(base_, key.pointer))
        key.value.set(choice_, unsearched_value(base_, key, choice_));
    }
    if (static_cast<int>(parallel.stage_layers.size()) != parallel.pipeline)
      parallel.stage_layers.clear();
    if (static_cast<int>(parallel.position_layers.size()) !=
        parallel.pipeline * parallel.virtual_pipeline)
      parallel.position_layers.clear();
  }

  const std::string& text_;
  const Scenario& base_;
  const SearchSpace& space_;
  PlanChoice choice_;
  std::set<std::string> read_;  ///< keys so far
  bool has_schedule_ = false;
};

/// The plan that is asked for, by its row.
const RankedPlan& chosen_plan(const RankRequest& request, const RankResult& result) {
  const auto row = static_cast<std::size_t>(request.plan) - 1;
  if (row < result.plans.size()) return result.plans[row];
  if (row == result.plans.size() && result.surest_below) return *result.surest_below;
  throw option_error(
      "--plan", std::to_string(request.plan),
      "the table has " +
          count_text(result.plans.size() + (result.surest_below ? std::size_t{1} : 0), "plan"),
      "--top K prints more");
}

/// A plan as its training program wants it.
std::string launch_text(const Scenario& base, const RankRequest& request, const RankResult& result,
                        std::ostream& messages) {
  const RankedPlan& chosen = chosen_plan(request, result);
  const Plan plan = std::get<Plan>(lay_out(base, result.space, chosen.choice));
  if (request.host_map.empty()) {
    messages << "note: --host-map FILE writes which GPU runs which rank\n";
  } else {
    write_file_atomically(request.host_map, host_map(plan, base.platform));
    messages << "wrote " << request.host_map << "\n";
  }
  const bool is_megatron = request.emit == LaunchFormat::megatron;
  if (chosen.memory_verdict == MemoryVerdict::at_risk)
    messages << "note: memory at risk: " << detail::at_risk_meaning << "\n";
  if (chosen.memory_verdict == MemoryVerdict::lower_bound)
    messages << "note: not known to fit: " << detail::lower_bound_reason << "\n";
  if (!chosen.surely_fits())
    messages << "note: --set /search/surely_fits=true takes only plans that surely fit\n";
  if (is_megatron && request.launch_as_json)
    return launch_json(base, chosen, static_cast<std::size_t>(request.plan), plan);
  const LaunchArguments launch = is_megatron ? megatron_arguments(plan)
                                 : request.emit == LaunchFormat::deepspeed
                                     ? deepspeed_config(plan)
                                     : torchtitan_config(plan, base.model.sequence);
  for (const std::string& note : launch.notes) messages << "note: " << note << "\n";
  return is_megatron ? joined(launch.arguments, " \\\n") + "\n" : launch.arguments.front();
}

/// Nodes and the fabric's switches: {"node", 1} is node0 with node 0, {"leaf", 16} is leaf0 with nodes 0 to 15.
std::vector<SwitchTier> named_things(const Fabric& fabric) {
  std::vector<SwitchTier> things{{"node", 1}};
  if (fabric.kind->switches)
    for (const SwitchTier& tier : fabric.kind->switches(fabric)) things.push_back(tier);
  return things;
}

/// Nodes that the name stands for; empty if it is unknown.
std::vector<int> nodes_called(std::string_view name, const Platform& platform) {
  std::vector<int> nodes;
  const std::int64_t end_of_nodes = most_nodes(platform);
  for (const SwitchTier& thing : named_things(platform.fabric)) {
    if (!name.starts_with(thing.name)) continue;
    const auto number = number_in<unsigned>(name.substr(thing.name.size()));
    if (!number) continue;
    const std::int64_t first = std::int64_t{*number} * thing.nodes;
    for (std::int64_t node = first; node < std::min(first + thing.nodes, end_of_nodes); ++node)
      nodes.push_back(static_cast<int>(node));
  }
  return nodes;
}

/// "the names are node0 to node63, leaf0 to leaf3; did you mean "node3"?"; without the last numbers where the platform has as many nodes as a
/// job asks for.
std::string known_names(const std::string& name, const Platform& platform) {
  const bool is_endless =
      platform.available_nodes() == 0 && most_nodes(platform) == most_nodes_in_use;
  const std::size_t digits = name.find_first_of("0123456789");
  std::vector<std::string> near;
  std::string text;
  for (const SwitchTier& thing : named_things(platform.fabric)) {
    const int last = (most_nodes(platform) - 1) / thing.nodes;
    text += (text.empty() ? "the names are " : ", ") + thing.name + "0" +
            (is_endless ? ", " + thing.name + "1 and so on"
             : last > 0 ? " to " + thing.name + std::to_string(last)
                        : "");
    near.push_back(thing.name + (digits == std::string::npos ? "0" : name.substr(digits)));
    if (nodes_called(near.back(), platform).empty()) near.pop_back();
  }
  const std::string nearest = closest_match(name, near);
  return text + (nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?");
}

/// "write --set /nodes=14 --set /parallel/data=7": the file's plan with fewer replicas on the first of the nodes that are left.
std::string smaller_plan(const Scenario& base, const std::vector<NodeId>& kept) {
  const Parallel& parallel = base.plan.parallel;
  const Training& training = base.plan.training;
  std::int64_t gpus = 0;
  for (const NodeId node : kept) gpus += base.platform.type_of(node).gpus;
  for (std::size_t nodes = kept.size(); nodes > 0;
       gpus -= base.platform.type_of(kept[--nodes]).gpus) {
    const std::int64_t data = gpus / parallel.ranks_of_replica();
    if (data > 0 && gpus % parallel.ranks_of_replica() == 0 &&
        training.global_batch % (data * training.micro_batch) == 0)
      return "write --set /nodes=" + std::to_string(nodes) +
             " --set /parallel/data=" + std::to_string(data);
  }
  return "write fewer nodes, and a plan for their GPUs, with --set /nodes=N --set /parallel=…";
}

}  // namespace

std::pair<Scenario, AvoidedNodes> avoid_nodes(Scenario base,
                                              const std::vector<std::string>& names) {
  const auto refused = [&](const std::string& why, const std::string& suggestion) {
    return option_error("--avoid", joined(names, ","), why, suggestion);
  };
  if (base.platform.domain_nodes > 1)
    throw refused("the platform's nodes are NVLink domains, whose trays are not told apart",
                  "write fewer nodes, with --set /nodes=N");
  if (!base.plan.parallel.placement.empty())
    throw refused("placement lists the GPU of each rank",
                  "write --set /parallel/placement=megatron");
  std::set<int> avoided;
  for (const std::string& name : names) {
    const std::vector<int> nodes = nodes_called(name, base.platform);
    if (nodes.empty())
      throw refused("unknown name \"" + name + "\"", known_names(name, base.platform));
    avoided.insert(nodes.begin(), nodes.end());
  }
  std::set<int> taken = avoided;
  for (const NeighbourCost& job : base.neighbour_costs)
    for (int node = job.first_node; node < job.first_node + job.nodes; ++node) taken.insert(node);
  std::vector<NodeId> kept;
  std::int64_t gpus = 0;
  const std::int64_t wanted = base.plan.num_ranks();
  const int end_of_nodes = most_nodes(base.platform);
  for (int node = 0; gpus < wanted && node < end_of_nodes; ++node) {
    if (taken.contains(node)) continue;
    kept.emplace_back(node);
    gpus += base.platform.type_of(kept.back()).gpus;
  }
  if (gpus < wanted)
    throw refused(count_text(gpus, "GPU") + " on " +
                      count_text(static_cast<std::int64_t>(kept.size()), "node") +
                      " are left, and the plan of the file takes " + std::to_string(wanted),
                  smaller_plan(base, kept));
  if (const auto rejections = move_to_nodes(base, kept); !rejections.empty())
    throw refused(
        "the plan of the file is not legal on the other nodes: " + rejections.front().message,
        "write another plan with --set /parallel=…");
  const std::set<std::string> once(names.begin(), names.end());
  return {std::move(base), {{once.begin(), once.end()}, {avoided.begin(), avoided.end()}, {}}};
}

void judge_plans(const Scenario& base, const MeasuredErrors& errors, RankResult& result) {
  std::optional<JudgedRun> best, leader;  // of all, and of the last place begun
  std::size_t last_place = 1;
  for (std::size_t i = 0; i < result.plans.size(); ++i) {
    RankedPlan& plan = result.plans[i];
    if (!plan.is_simulated()) continue;
    const Scenario scenario = with_plan(base, result.space, plan.choice);
    if (!errors.regimes.empty()) {
      const Interval interval = interval_from(errors, traits_of(scenario), plan.time,
                                              share_outside_kernels(plan.breakdown));
      plan.interval = {interval.low, interval.high};
      if (i == 0) result.interval_warning = interval_warning(interval);
    }
    if (result.objective != Objective::time || errors.pairs.sets.empty()) continue;
    const JudgedRun judged = judged_run(scenario, plan.time, plan.breakdown, plan.interval);
    if (!best) best = judged;
    const auto is_behind = [&](const JudgedRun& other) {
      const std::optional<Ordering> ordering = order(other, judged, errors.pairs);
      return ordering && ordering->is_known();
    };
    if (i > 0) plan.against_best = order(*best, judged, errors.pairs);
    plan.place = 1;
    if (!is_behind(*best)) continue;
    if (!leader || is_behind(*leader)) {
      leader = judged;
      last_place = i + 1;
    }
    plan.place = last_place;
  }
}

PlanChoice read_plan_text(const std::string& text, const Scenario& base, const SearchSpace& space) {
  return PlanTextReader(text, base, space).read();
}

RankOptions rank_options(const RankRequest& request, ProgressLine& line) {
  // "█████▌   12 simulated, 9 to rule out, best 13.28 s"
  const auto show = [&line](const RankProgress& progress) {
    constexpr int width = 30;
    const double done = static_cast<double>(progress.simulated);
    const double share = done / (done + static_cast<double>(progress.left));
    line.show(left_aligned(bar_text(share, width), width) + " " +
              std::to_string(progress.simulated) + " simulated, " + std::to_string(progress.left) +
              " to rule out" + (progress.best ? ", best " + to_text(*progress.best) : ""));
  };
  return {request.top, request.budget, request.jobs == 0 ? default_at_once() : request.jobs, show};
}

RankAnswer run_rank(const Scenario& base, const RankRequest& request, std::ostream& messages) {
  std::optional<PlanChoice> question;
  if (!request.why.empty()) question = read_plan_text(request.why, base, search_space(base));
  const auto search = [&](const Scenario& around,
                          MemoryVerdict gravest = MemoryVerdict::lower_bound) {
    ProgressLine line(messages, request.progress);
    RankOptions options = rank_options(request, line);
    options.gravest = gravest;
    RankResult found = rank_plans(around, options);
    place_ranked_plans(around, found);
    return found;
  };
  RankResult result = search(base);
  judge_plans(base, request.evidence, result);
  if (question) {
    const PlanExplanation explanation = explain_plan(base, *question, result);
    return {why_document(base, explanation), !explanation.is_rejected()};
  }
  const bool asks_for_row_below = static_cast<std::size_t>(request.plan) > result.plans.size();
  if ((request.emit == LaunchFormat::none || asks_for_row_below) && !result.plans.empty() &&
      std::ranges::none_of(result.plans, &RankedPlan::surely_fits))
    if (const auto sure = search(base, MemoryVerdict::fits).plans; !sure.empty()) {
      RankResult pair = result;
      pair.plans = {result.plans.front(), sure.front()};
      judge_plans(base, request.evidence, pair);
      result.surest_below = pair.plans.back();
    }
  result.avoided = request.avoided;
  if (result.avoided && request.emit == LaunchFormat::none)
    if (const auto all = search(*request.with_nothing_avoided).plans; !all.empty())
      result.avoided->best_of_all = all.front().time;
  RankAnswer answer{rank_document(base, result), !result.plans.empty()};
  if (request.emit != LaunchFormat::none && answer.is_positive)
    answer.launch = launch_text(base, request, result, messages);
  return answer;
}

}  // namespace windtunnel
