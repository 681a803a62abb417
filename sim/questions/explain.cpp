#include "questions/explain.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_value.hpp"
#include "core/text_list.hpp"
#include "cost/codec_table.hpp"
#include "evidence/evidence.hpp"
#include "evidence/interval.hpp"
#include "lower/program_builder.hpp"
#include "platform/platform_json.hpp"
#include "report/terminal_text.hpp"
#include "scenario/overrides.hpp"
#include "scenario/plan_json.hpp"
#include "scenario/scenario.hpp"
#include "schedule/in_flight.hpp"
#include "simulate/built_scenario.hpp"
#include "simulate/memory_inputs.hpp"
#include "simulate/simulate.hpp"
#include "simulate/tasks.hpp"
#include "units/amount_range.hpp"
#include "units/quantity_reader.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {
namespace {

using Clock = std::chrono::steady_clock;

/// Orders changes for the list: simulated ones before failed ones, then by gain times the confidence in its sign, largest first.
class GainsMore {
 public:
  explicit GainsMore(Seconds now) : now_(now) {}
  bool operator()(const WhatIfResult& a, const WhatIfResult& b) const {
    if (a.failure.empty() != b.failure.empty()) return a.failure.empty();
    return expected_gain(a) > expected_gain(b);
  }

 private:
  double expected_gain(const WhatIfResult& result) const {
    return (1 - result.iteration_time / now_) * (result.ordering ? result.ordering->sure : 1);
  }

  Seconds now_;
};

/// Factor by which a what-if makes GPUs faster.
constexpr double faster = 1.1;

/// The most that a what-if which makes kinds of node faster can save, where the platform has several: what the critical path spends on
/// those nodes, times the share that the change takes off. Proven where no link is shared; else as long as messages share links as they
/// did. None for other what-ifs, and where the layers move to the faster nodes.
class PathBound {
 public:
  PathBound(const Scenario& scenario, const Simulation& simulation, const CriticalPath& path)
      : balances_stages_(scenario.balances_stages) {
    const std::vector<NodeType>& types = scenario.platform.node_types;
    of_type_.resize(types.size());
    const auto type_of = [&](DeviceId device) {
      const NodeId node = scenario.plan.devices[device.index()].node;
      return static_cast<std::size_t>(&scenario.platform.type_of(node) - types.data());
    };
    for (const CriticalStep& step : path.steps) {
      const Seconds time = step.end - step.begin;
      std::set<std::size_t> passed;
      switch (step.activity.kind) {
        case Activity::Kind::compute:
          of_type_[type_of(simulation.timeline.computes[step.activity.index].device)].computing +=
              time;
          break;
        case Activity::Kind::message: {
          const ChannelId id = simulation.timeline.messages[step.activity.index].channel;
          const Channel& channel = simulation.programs.channels[id.index()];
          passed = {type_of(channel.from), type_of(channel.to)};
          break;
        }
        case Activity::Kind::collective: {
          const CollectiveId id = simulation.timeline.collectives[step.activity.index].collective;
          for (const DeviceId member : simulation.programs.collectives[id.index()].members)
            passed.insert(type_of(member));
          break;
        }
        case Activity::Kind::event:
          break;
      }
      for (const std::size_t type : passed) of_type_[type].sending += time;
    }
  }

  std::optional<Seconds> most_saved(const WhatIf& change) const {
    if (change.faster_types.empty() || of_type_.size() < 2 || balances_stages_) return std::nullopt;
    constexpr double of_faster_gpus = 1 - 1 / faster, of_twice_the_rate = 0.5;
    Seconds most{};
    for (const std::size_t type : change.faster_types) {
      const Times& times = of_type_[type];
      // Passes hold the collectives inside nodes.
      if (change.kind == WhatIfKind::gpu)
        most += times.computing * of_faster_gpus;
      else if (change.kind == WhatIfKind::nic)
        most += times.sending * of_twice_the_rate;
      else
        most += (times.computing + times.sending) * of_twice_the_rate;
    }
    return most;
  }

 private:
  struct Times {
    Seconds computing{}, sending{};
  };
  std::vector<Times> of_type_;  ///< by place in the platform's list
  bool balances_stages_;
};

/// explain(), one step a function.
class Explainer {
 public:
  Explainer(const Scenario& scenario, const Library& library, const ExplainOptions& options)
      : scenario_(scenario),
        library_(library),
        errors_(read_evidence(library)),
        options_(options),
        start_(Clock::now()) {}

  Explained explain() {
    Explained explained = explained_path();
    std::vector<WhatIfResult> results = what_if_results(explained);
    judge(explained.explanation.report, results);
    std::ranges::stable_sort(results, GainsMore(explained.explanation.report.iteration_time));
    explained.explanation.what_ifs = std::move(results);
    return explained;
  }

 private:
  /// The scenario as it is.
  Explained explained_path() const {
    Explained explained;
    explained.simulation = simulate(scenario_, {.keep_timeline = true});
    Simulation& simulation = explained.simulation;
    if (!errors_.regimes.empty()) add_interval(scenario_, errors_, simulation.report);
    explained.explanation = explain_path(std::move(simulation.report), scenario_.plan,
                                         simulation.programs, simulation.timeline);
    return explained;
  }

  /// Sets the confidence that each change gains, or loses.
  void judge(const Report& report, std::vector<WhatIfResult>& results) const {
    const JudgedRun now = judged_run(scenario_, report.iteration_time, report.breakdown, {});
    for (WhatIfResult& result : results) {
      if (!result.failure.empty() || !is_choice(result.change.kind)) continue;
      JudgedRun changed = now;
      changed.time = result.iteration_time;
      changed.breakdown = result.breakdown;
      result.ordering = order(now, changed, errors_.pairs);
    }
  }

  /// In the order of what_ifs().
  std::vector<WhatIfResult> what_if_results(const Explained& explained) const {
    const Explanation& explanation = explained.explanation;
    const PathBound bound(scenario_, explained.simulation, explanation.path);
    std::vector<WhatIfResult> results;
    std::vector<std::size_t> asked;
    for (WhatIf& change : what_ifs(scenario_, library_)) {
      WhatIfResult& result = results.emplace_back();
      if (const auto saved = bound.most_saved(change))
        result.saves_at_most = *saved / explanation.report.iteration_time;
      result.change = std::move(change);
      if (result.saves_at_most.value_or(1) >= least_saving) {
        asked.push_back(results.size() - 1);
        continue;
      }
      result.fate = WhatIfFate::cannot_matter;
      result.failure = "not simulated: the critical path lets it save less than 0.2 %";
    }
    leave_out_lesser_kinds(asked, results);
    simulate_asked(asked, results);
    return results;
  }

  /// If a question is asked for many kinds of node, keeps those of the kinds that may save most.
  static void leave_out_lesser_kinds(std::vector<std::size_t>& asked,
                                     std::vector<WhatIfResult>& results) {
    const auto question = [&](std::size_t i) {
      const std::string& what = results[i].change.what;
      return what.substr(0, what.find(" ("));
    };
    std::map<std::string, std::vector<std::size_t>> by_question;
    for (const std::size_t i : asked)
      if (results[i].saves_at_most) by_question[question(i)].push_back(i);
    for (auto& [ignored, same] : by_question) {
      if (same.size() <= most_kinds) continue;
      std::ranges::stable_sort(same, [&](std::size_t a, std::size_t b) {
        return *results[a].saves_at_most > *results[b].saves_at_most;
      });
      for (std::size_t k = most_kinds; k < same.size(); ++k) {
        results[same[k]].fate = WhatIfFate::over_budget;
        results[same[k]].failure = "not simulated: other kinds of node may save more";
      }
    }
    std::erase_if(asked, [&](std::size_t i) { return results[i].fate != WhatIfFate::simulated; });
  }

  /// Simulates the changes, those that may save most first, and those without a bound before all others.
  void simulate_asked(std::vector<std::size_t> asked, std::vector<WhatIfResult>& results) const {
    const auto may_save = [&](std::size_t i) { return results[i].saves_at_most.value_or(1); };
    std::ranges::stable_sort(
        asked, [&](std::size_t a, std::size_t b) { return may_save(a) > may_save(b); });
    std::vector<WhatIf> changes;
    for (const std::size_t i : asked) changes.push_back(results[i].change);
    const auto on_done = [&](std::size_t done) {
      if (options_.on_done) options_.on_done(done, asked.size());
    };
    const auto is_over = [this] {
      return options_.budget && std::chrono::duration<double>(Clock::now() - start_).count() >=
                                    *options_.budget / Seconds{1};
    };
    std::vector<WhatIfResult> simulated =
        simulate_what_ifs(scenario_, library_, changes, options_.at_once, on_done, is_over);
    for (std::size_t k = 0; k < asked.size(); ++k) {
      simulated[k].saves_at_most = results[asked[k]].saves_at_most;
      results[asked[k]] = std::move(simulated[k]);
    }
  }

  /// Share of the iteration: smaller savings are not worth a simulation.
  static constexpr double least_saving = 0.002;
  /// Kinds of node for which one question is simulated.
  static constexpr std::size_t most_kinds = 8;

  const Scenario& scenario_;
  const Library& library_;
  MeasuredErrors errors_;
  const ExplainOptions& options_;
  Clock::time_point start_;
};

/// Node types in use that differ in nothing but how many there are: what is asked of one is asked of all.
struct NodeKind {
  std::vector<std::size_t> types;  ///< places in the platform's list
  std::size_t num_nodes = 0;       ///< that hold a part of the plan
};

/// True if everything in `value` was read from the file, or is a default.
bool is_all_of(const SourceText* file, const JsonValue& value) {
  if (value.origin.kind != OriginKind::defaulted &&
      (value.origin.kind != OriginKind::file || value.origin.source.get() != file))
    return false;
  if (value.is_array())
    return std::ranges::all_of(value.array(),
                               [file](const JsonValue& each) { return is_all_of(file, each); });
  if (!value.is_object()) return true;
  return std::ranges::all_of(value.object(),
                             [file](const auto& member) { return is_all_of(file, member.value); });
}

/// The name of a built-in device, where nothing of it was changed; else nothing.
std::optional<std::string> built_in_name(const JsonValue& device, const Library& library) {
  const SourceText* const file = device.origin.source.get();
  if (file == nullptr || !is_all_of(file, device)) return std::nullopt;
  const std::filesystem::path path = file->name;
  std::error_code ignored;
  if (!std::filesystem::equivalent(path, library.root / device_files.folder / path.filename(),
                                   ignored))
    return std::nullopt;
  return path.stem().string();
}

/// A part of the resolved scenario as a person would write it: without defaults, sources and descriptions, built-in devices by name.
JsonValue written(const JsonValue& value, const Library& library) {
  if (value.is_array()) {
    JsonValue::Array list;
    for (const JsonValue& each : value.array()) list.push_back(written(each, library));
    return JsonValue(std::move(list));
  }
  if (!value.is_object()) return value;
  JsonValue object{JsonValue::Object{}};
  for (const JsonValue::Member& member : value.object()) {
    const JsonValue& inner = member.value;
    const bool is_nested = inner.is_object() || inner.is_array();
    if (member.key == "source" || member.key == "description" ||
        (!is_nested && inner.origin.kind == OriginKind::defaulted))
      continue;
    const auto name = member.key == "device" ? built_in_name(inner, library) : std::nullopt;
    object.set(member.key, name ? JsonValue(*name) : written(inner, library));
  }
  return object;
}

/// The kinds of node that a plan uses, and the platform's node types as a person would write them.
class NodeKinds {
 public:
  /// The scenario must outlive it.
  NodeKinds(const Scenario& scenario, const Library& library) : scenario_(scenario) {
    if (const JsonValue* list = scenario.resolved.find("platform")->find("node_types"))
      types_ = written(*list, library);
    find_kinds();
  }

  const std::vector<NodeKind>& kinds() const { return kinds_; }
  const NodeType& first_of(const NodeKind& kind) const { return types()[kind.types.front()]; }
  const NodeType& type(std::size_t place) const { return types()[place]; }
  /// The file has one type for all domains of a platform, of which the last may be smaller.
  bool has_domains() const { return scenario_.platform.domain_nodes > 1; }
  /// A kind of node in use: its device, or where several types have that device, its nodes.
  std::string label_of(const NodeKind& kind) const {
    constexpr std::size_t most_named = 3;
    if (types_with_device_.at(types()[kind.types.front()].device.name) == kind.types.size())
      return types()[kind.types.front()].device.name;
    return listed(
        kind.types, [this](std::size_t type) { return nodes_text(type); }, most_named,
        " and others like them");
  }

  /// The platform's node types when the GPUs of each node in use are `factor(node)` times as fast; nothing where they are not written
  /// as a list, or where NVLink joins nodes, whose domains the list does not distinguish.
  std::optional<std::string> types_with(const std::function<double(std::size_t)>& factor) const {
    if (!types_.is_array() || has_domains()) return std::nullopt;
    JsonValue::Array changed;
    std::vector<int> used(types().size());
    for (std::size_t node = 0, end = 0; node < num_nodes(); node = end) {
      const std::size_t type = type_of_node_[node];
      for (end = node;
           end < num_nodes() && type_of_node_[end] == type && factor(end) == factor(node);)
        ++end;
      JsonValue& run = changed.emplace_back(types_.array()[type]);
      run.set("count", JsonValue(static_cast<std::int64_t>(end - node)));
      if (factor(node) != 1)
        run.set("compute_efficiency", JsonValue(types()[type].compute_efficiency * factor(node)));
      used[type] += static_cast<int>(end - node);
    }
    for (std::size_t type = type_of_node_[num_nodes() - 1]; type < types().size(); ++type) {
      const int count = types()[type].count;
      if (count <= used[type]) continue;  // 0 means: every node that the job asks for
      JsonValue& rest = changed.emplace_back(types_.array()[type]);
      rest.set("count", JsonValue(std::int64_t{count - used[type]}));
    }
    return canonical_text(JsonValue(std::move(changed)));
  }

  /// The platform's node types when all nodes are of this kind.
  std::optional<std::string> all_of(const NodeKind& kind) const {
    if (!types_.is_array()) return std::nullopt;
    JsonValue one = types_.array()[kind.types.front()];
    one.set("count", JsonValue(static_cast<std::int64_t>(std::max(
                         scenario_.platform.available_nodes(), static_cast<int>(num_nodes())))));
    return canonical_text(JsonValue(JsonValue::Array{one}));
  }

 private:
  const std::vector<NodeType>& types() const { return scenario_.platform.node_types; }
  std::size_t num_nodes() const { return scenario_.nodes.size(); }
  void find_kinds() {
    std::set<std::size_t> nodes_in_use;
    for (const PlanDevice& device : scenario_.plan.devices)
      nodes_in_use.insert(device.node.index());
    for (std::size_t node = 0; node < num_nodes(); ++node)
      type_of_node_.push_back(
          static_cast<std::size_t>(&scenario_.platform.type_of(NodeId{node}) - types().data()));
    std::map<std::size_t, std::size_t> nodes_of_type;
    for (const std::size_t node : nodes_in_use) ++nodes_of_type[type_of_node_[node]];
    std::map<std::string, std::size_t> known;
    for (const auto& [type, nodes] : nodes_of_type) {
      const auto [found, is_new] = known.try_emplace(text_without_count(type), kinds_.size());
      if (is_new) kinds_.emplace_back();
      kinds_[found->second].types.push_back(type);
      kinds_[found->second].num_nodes += nodes;
      ++types_with_device_[types()[type].device.name];
    }
  }

  /// Description of a node type without its count, to recognise equal types. With NVLink domains each type is a kind of its own.
  std::string text_without_count(std::size_t type) const {
    if (has_domains()) return {};
    if (!types_.is_array()) return std::to_string(type);
    JsonValue text = types_.array()[type];
    text.erase("count");
    return canonical_text(text);
  }

  std::string nodes_text(std::size_t type) const {
    const auto first = std::ranges::find(type_of_node_, type);
    const auto end =
        std::find_if(first, type_of_node_.end(), [&](std::size_t other) { return other != type; });
    const auto number = [&](auto node) { return std::to_string(node - type_of_node_.begin()); };
    return first + 1 == end ? "node " + number(first)
                            : "nodes " + number(first) + " to " + number(end - 1);
  }

  const Scenario& scenario_;
  JsonValue types_;  ///< node types as written
  std::vector<std::size_t> type_of_node_;
  std::vector<NodeKind> kinds_;
  std::map<std::string, std::size_t> types_with_device_;  ///< in use, by name of the device
};

constexpr double slower = 0.9;  // ten percent: enough to see, little enough to be near

/// A file may say twice the rate.
bool can_double(BytesPerSecond rate) { return side_of(rate * 2) == RangeSide::inside; }

/// With more kinds of node than this, only the most frequent and the fastest are tried as the kind of all nodes.
constexpr std::size_t most_kinds_each = 16;
/// Groups of slow links, and faults of NICs, that are asked about.
constexpr int most_slow_groups = 4;
/// In deeper pipelines only the first, the slowest and the last stage are tried one by one.
constexpr int most_stages_each = 16;

/// One pass of a microbatch through each stage and back, on its slowest device.
std::vector<Seconds> stage_times(const Scenario& scenario) {
  const BuiltPrograms built = build_programs(
      {&scenario.model, &scenario.platform, &scenario.nodes, &scenario.software, &scenario.plan});
  std::vector<Seconds> times(static_cast<std::size_t>(scenario.plan.parallel.pipeline));
  for (std::size_t d = 0; d < built.cost_of_device.size(); ++d) {
    Seconds time{};
    for (const ChunkCost& chunk : built.cost_of_device[d].chunks)
      time += chunk.forward.duration + chunk.backward.duration;
    Seconds& slowest = times[scenario.plan.devices[d].stage.index()];
    slowest = std::max(slowest, time);
  }
  return times;
}

TrialTraffic trial_traffic(std::string_view name, const Scenario& scenario) {
  const Training& training = scenario.plan.training;
  TrialTraffic traffic{TrialTraffic::Kind::messages, element_size(training.precision)};
  if (name != "data_gradients") return traffic;
  traffic.kind = TrialTraffic::Kind::replica_gradients;
  if (training.gradient_type == GradientType::fp32)
    traffic.element = std::max(traffic.element, 4_B);
  return traffic;
}

/// The codecs that can compress the class, those that lean on sums first.
std::vector<const Codec*> candidates(std::string_view name, const Plan& plan) {
  const bool gradients = name == "data_gradients";
  const bool sums = gradients || name == "pipeline_backward";
  const bool sharded = gradients && plan.parallel.zero_stage >= 2;
  std::vector<const Codec*> list = codecs();
  std::erase_if(list, [&](const Codec* codec) {
    const bool needs_whole = codec->sends_factors() || codec->traits().sends_momenta;
    return (codec->needs_sums() && !sums) || (needs_whole && sharded);
  });
  std::stable_partition(list.begin(), list.end(),
                        [](const Codec* codec) { return codec->needs_sums(); });
  return list;
}

/// The entry of the compression block.
std::string setting_text(const Codec& codec, const CodecTrial& trial) {
  return std::string(R"({"codec":")") + codec.name() + '"' + (trial.keys.empty() ? "" : ",") +
         trial.keys + "}";
}

/// True if the plan has compressible traffic of this class.
bool is_in_use(std::string_view name, const Scenario& scenario) {
  const Parallel& parallel = scenario.plan.parallel;
  if (name.starts_with("pipeline")) return parallel.pipeline > 1;
  if (name == "tensor_activations") return parallel.tensor > 1;
  if (name == "zero_gather") return parallel.replicas() > 1 && parallel.zero_stage > 0;
  return parallel.replicas() > 1 && !parallel.schedule->is_bidirectional();  // which refuses it
}

/// The questions that a scenario raises, in the order in which they are added.
class Questions {
 public:
  Questions(const Scenario& scenario, const Library& library)
      : scenario_(scenario),
        plan_(scenario.plan),
        kinds_(scenario, library),
        stage_times_(stage_times(scenario)) {
    slowest_ =
        static_cast<std::size_t>(std::ranges::max_element(stage_times_) - stage_times_.begin());
    for (const PlanDevice& device : plan_.devices)
      stages_of_node_[device.node.index()].insert(device.stage.index());
  }

  std::vector<WhatIf> collect() {
    for (const NodeKind& kind : kinds_.kinds()) add_nodes(kind);
    add_fabric();
    add_pairs();
    add_stragglers();
    add_stages();
    add_layers();
    add_software();
    add_experts();
    add_training();
    add_schedule();
    add_codecs();
    return std::move(list_);
  }

 private:
  void add(WhatIfKind kind, std::string what, Overrides overrides) {
    list_.push_back({kind, std::move(what), std::move(overrides)});
  }

  // Faster GPUs, links inside nodes and NICs of each kind of node; the fabric; measured pairs of nodes and links with rates of their own.

  bool crosses_nodes() const { return scenario_.nodes.size() > 1; }

  /// Makes nodes of a kind faster: `change` says what to set in a type.
  void add_faster(const NodeKind& kind, WhatIfKind about, std::string what,
                  const std::function<Overrides(const NodeType&)>& change) {
    WhatIf what_if{about, std::move(what), {}, kind.types};
    for (const std::size_t type : kind.types) {
      if (type > 0 && kinds_.has_domains()) continue;
      for (const auto& [key, value] : change(kinds_.type(type)))
        what_if.overrides.emplace_back("/platform/node_types/" + std::to_string(type) + "/" + key,
                                       value);
    }
    list_.push_back(std::move(what_if));
  }

  void add_nodes(const NodeKind& kind) {
    const NodeType& first = kinds_.first_of(kind);
    const std::string of = kinds_.kinds().size() > 1 ? " (" + kinds_.label_of(kind) + ")" : "";
    add_faster(kind, WhatIfKind::gpu, "GPUs 10 % faster" + of, [](const NodeType& type) {
      return Overrides{{"compute_efficiency", exact_number(type.compute_efficiency * faster)}};
    });
    if (first.gpus > 1 && scenario_.plan.num_ranks() > 1) add_inside(kind, of);
    if (crosses_nodes() && can_double(first.nic_rate))
      add_faster(kind, WhatIfKind::nic, "twice the NIC rate" + of, [](const NodeType& type) {
        return Overrides{{"nic_rate", exact_amount(type.nic_rate * 2)}};
      });
  }

  void add_inside(const NodeKind& kind, const std::string& of) {
    const Interconnect& first = kinds_.first_of(kind).interconnect;
    if (can_double(first.saturated_bandwidth) && can_double(first.point_to_point))
      add_faster(
          kind, WhatIfKind::link, "twice the bandwidth inside nodes" + of,
          [](const NodeType& type) {
            const Interconnect& inside = type.interconnect;
            Overrides doubled{
                {"interconnect/saturated_bandwidth", exact_amount(inside.saturated_bandwidth * 2)},
                {"interconnect/point_to_point", exact_amount(inside.point_to_point * 2)}};
            if (inside.all_to_all > BytesPerSecond{0} && can_double(inside.all_to_all))
              doubled.emplace_back("interconnect/all_to_all", exact_amount(inside.all_to_all * 2));
            return doubled;
          });
    add_faster(
        kind, WhatIfKind::link, "half the latency inside nodes" + of, [](const NodeType& type) {
          const Interconnect& inside = type.interconnect;
          return Overrides{{"interconnect/floor_base", exact_amount(inside.floor_base / 2)},
                           {"interconnect/floor_per_gpu", exact_amount(inside.floor_per_gpu / 2)},
                           {"interconnect/point_to_point_latency",
                            exact_amount(inside.point_to_point_latency / 2)}};
        });
  }

  void add_fabric() {
    if (!crosses_nodes()) return;
    const Fabric& fabric = scenario_.platform.fabric;
    add(WhatIfKind::link, "half the latency between nodes",
        {{"/platform/fabric/latency", exact_amount(fabric.latency / 2)},
         {"/platform/fabric/collective_latency", exact_amount(fabric.collective_latency / 2)}});
    add(WhatIfKind::link, "no latency between nodes",
        {{"/platform/fabric/latency", "0 us"}, {"/platform/fabric/collective_latency", "0 us"}});
    if (!fabric.kind->what_ifs) return;
    for (const FabricWhatIf& what_if : fabric.kind->what_ifs(fabric))
      add(WhatIfKind::link, what_if.label,
          {{"/platform/fabric/" + what_if.key,
            text_of(fabric.kind->key(what_if.key), what_if.value)}});
  }

  /// Measured pairs of nodes, and links with a rate of their own.
  void add_pairs() {
    if (!crosses_nodes()) return;
    const Platform& platform = scenario_.platform;
    if (platform.matrix) {
      if (2 * platform.matrix->rails <= most_node_parts)
        add(WhatIfKind::link, "twice the rate between every pair of nodes",
            {{"/platform/bandwidth_matrix/rails", std::to_string(2 * platform.matrix->rails)}});
      add(WhatIfKind::link, "every pair of nodes at NIC rate",
          {{"/platform/bandwidth_matrix", "null"}});
    }
    if (!platform.faults.empty())
      add(WhatIfKind::link, "no faults of NICs", {{"/platform/faults", "null"}});
    for (std::size_t i = 0; i < platform.faults.size() && i < most_slow_groups; ++i)
      if (const NicFault& fault = platform.faults[i]; platform.faults.size() > 1)
        add(WhatIfKind::link,
            "no fault of NIC " + std::to_string(fault.nic) + " of node " +
                std::to_string(fault.node.index()),
            {{"/platform/faults/" + std::to_string(i) + "/share", "1"}});
    if (!platform.neighbours.empty())
      add(WhatIfKind::link, "no neighbours", {{"/neighbours", "null"}});
    if (platform.link_overrides.empty()) return;
    Overrides doubled;
    for (std::size_t i = 0; i < platform.link_overrides.size(); ++i)
      doubled.emplace_back("/platform/link_overrides/" + std::to_string(i) + "/bandwidth",
                           exact_amount(clamped(platform.link_overrides[i].bandwidth * 2)));
    add(WhatIfKind::link, "twice the rate of links with rates of their own", doubled);
    add(WhatIfKind::link, "no links with rates of their own",
        {{"/platform/link_overrides", "null"}});
    add_slow_links();
  }

  /// Links with a rate of their own that NICs would allow more, at NIC rate: all of the node that has most of them, then of the next one.
  void add_slow_links() {
    const std::vector<LinkOverride>& links = scenario_.platform.link_overrides;
    const auto nic_rate = [&](const LinkOverride& link) {
      const NodeType &from = scenario_.nodes[link.from.index()],
                     &to = scenario_.nodes[link.to.index()];
      return std::min(from.effective_nic_rate() * from.nics, to.effective_nic_rate() * to.nics);
    };
    std::vector<std::size_t> slow;
    for (std::size_t i = 0; i < links.size(); ++i)
      if (std::max(links[i].from.index(), links[i].to.index()) < scenario_.nodes.size() &&
          links[i].bandwidth < slower * nic_rate(links[i]))
        slow.push_back(i);
    for (int groups = 0; groups < most_slow_groups && !slow.empty(); ++groups) {
      std::map<NodeId, int> count;
      for (const std::size_t i : slow)
        for (const NodeId node : {links[i].from, links[i].to}) ++count[node];
      const NodeId node =
          std::ranges::max_element(count, {}, [](auto& each) { return each.second; })->first;
      const std::string number = std::to_string(node.index());
      std::string name = "slow links of node " + number;
      Overrides at_nic_rate;
      std::erase_if(slow, [&](std::size_t i) {
        const LinkOverride& link = links[i];
        if (link.from != node && link.to != node) return false;
        at_nic_rate.emplace_back("/platform/link_overrides/" + std::to_string(i) + "/bandwidth",
                                 exact_amount(nic_rate(link)));
        if (count[node] == 1)
          name = "link from node " + std::to_string(link.from.index()) + " to " +
                 std::to_string(link.to.index());
        return true;
      });
      add(WhatIfKind::link, name + " at NIC rate", std::move(at_nic_rate));
    }
  }

  // Stragglers, nodes all of one kind, a stage's nodes faster, a layer on another stage.

  void add_speeds(WhatIfKind kind, std::string what,
                  const std::function<double(std::size_t)>& factor) {
    if (const auto types = kinds_.types_with(factor))
      add(kind, std::move(what), {{"/platform/node_types", *types}});
  }

  /// A node 10 % slower than its type: the first, and one of the slowest stage; none where the slowest of unequal nodes is in the time already. And all
  /// nodes of one type.
  void add_stragglers() {
    if (!crosses_nodes() || kinds_.has_domains()) return;
    std::set<std::size_t> stragglers;
    if (scenario_.nodes.front().pass_spread == 0) {
      stragglers.insert(0);
      const auto slow = std::ranges::find_if(
          stages_of_node_, [this](const auto& node) { return node.second.count(slowest_) > 0; });
      if (slow != stages_of_node_.end()) stragglers.insert(slow->first);
    }
    for (const std::size_t straggler : stragglers)
      add_speeds(WhatIfKind::straggler, "node " + std::to_string(straggler) + " 10 % slower",
                 [=](std::size_t node) { return node == straggler ? slower : 1; });
    add_one_kind();
  }

  double speed_of(const NodeKind& kind) const {
    const NodeType& type = kinds_.first_of(kind);
    return type.compute_efficiency * type.device.gemm.peak_fraction *
           (type.device.peak.at(plan_.training.precision) / FlopsPerSecond{1});
  }

  void add_one_kind() {
    const std::vector<NodeKind>& kinds = kinds_.kinds();
    if (kinds.size() <= most_kinds_each) {
      for (const NodeKind& kind : kinds) add_one_kind(kind);
      return;
    }
    const auto frequent = std::ranges::max_element(kinds, {}, &NodeKind::num_nodes);
    const auto fast = std::ranges::max_element(
        kinds, [this](const NodeKind& a, const NodeKind& b) { return speed_of(a) < speed_of(b); });
    add_one_kind(*frequent);
    if (fast != frequent) add_one_kind(*fast);
  }

  void add_one_kind(const NodeKind& kind) {
    const std::vector<NodeKind>& kinds = kinds_.kinds();
    const int gpus = kinds_.first_of(kind).gpus;
    const bool alike = std::ranges::all_of(
        kinds, [&](const NodeKind& other) { return kinds_.first_of(other).gpus == gpus; });
    if (kinds.size() < 2 || !alike) return;
    if (const auto types = kinds_.all_of(kind))
      add(WhatIfKind::straggler, "every node as " + kinds_.label_of(kind),
          {{"/platform/node_types", *types}});
  }

  /// A stage's nodes 10 % faster, where they are its own.
  void add_stages() {
    const int stages = plan_.parallel.pipeline;
    if (stages == 1 || !crosses_nodes()) return;
    for (std::size_t s = 0; s < stage_times_.size(); ++s) {
      const bool each =
          stages <= most_stages_each || s == 0 || s == slowest_ || s + 1 == stage_times_.size();
      const bool alone = std::ranges::all_of(stages_of_node_, [s](const auto& node) {
        return node.second.count(s) == 0 || node.second.size() == 1;
      });
      if (each && alone)
        add_speeds(WhatIfKind::stage, "stage " + std::to_string(s) + " 10 % faster",
                   [this, s](std::size_t node) {
                     const auto found = stages_of_node_.find(node);
                     return found != stages_of_node_.end() && found->second.count(s) > 0 ? faster
                                                                                         : 1;
                   });
    }
  }

  /// A layer from the first, the last, the slowest and the fullest stage to the one that is fastest.
  void add_layers() {
    const Parallel& parallel = plan_.parallel;
    if (parallel.pipeline == 1 || parallel.virtual_pipeline > 1) return;
    const auto fastest =
        static_cast<std::size_t>(std::ranges::min_element(stage_times_) - stage_times_.begin());
    const auto fullest = static_cast<std::size_t>(std::ranges::max_element(plan_.stage_layers) -
                                                  plan_.stage_layers.begin());
    for (const std::size_t from :
         std::set<std::size_t>{0, slowest_, fullest, stage_times_.size() - 1})
      move_layer(from, fastest);
  }
  void move_layer(std::size_t from, std::size_t to) {
    std::vector<int> layers = plan_.stage_layers;
    if (layers[from] < 2 || from == to) return;
    --layers[from];
    ++layers[to];
    JsonValue::Array list;
    for (const int count : layers) list.emplace_back(std::int64_t{count});
    add(WhatIfKind::stage,
        "a layer of stage " + std::to_string(from) + " on stage " + std::to_string(to),
        {{"/parallel/stage_layers", canonical_text(JsonValue(std::move(list)))}});
  }

  // The software, where experts' tokens go, the microbatch, recomputation and attention, schedule and exchange habits.

  bool knows_flash() const {
    const Training& training = plan_.training;
    return std::ranges::all_of(scenario_.nodes, [&](const NodeType& node) {
      return scenario_.software.knows_attention(node.device, training.attention_kernel,
                                                training.precision);
    });
  }

  void add_software() {
    const auto& launch = scenario_.software.launch;
    if (launch.kernel + launch.collective > Seconds{0})
      add(WhatIfKind::software, "no launch floor (CUDA graphs)",
          {{"/software/launch/kernel", "0 us"}, {"/software/launch/collective", "0 us"}});
    if (scenario_.software.host_gathers && plan_.parallel.zero_stage == 3)
      add(WhatIfKind::software, "no host time for gathered tensors",
          {{"/software/host_gathers/per_tensor", "0 us"},
           {"/software/host_gathers/per_rank", "0 us"}});
  }

  /// Adds what-ifs about uneven tokens, and about sending one copy of a token per node.
  void add_experts() {
    if (!scenario_.model.moe || expert_group_size(plan_.parallel) == 1) return;
    if (!scenario_.model.moe->balance.is_even())
      add(WhatIfKind::training, "tokens spread evenly over experts",
          {{"/model/moe/balance", "balanced"}});
    const SoftwareProfile& stack = scenario_.software;
    if (stack.experts_elsewhere.empty() &&
        stack.experts.dispatch != ExpertDispatch::one_copy_per_node && scenario_.nodes.size() > 1)
      add(WhatIfKind::software, "one copy of a token a node",
          {{"/software/experts/dispatch", "one_copy_per_node"}});
  }

  void add_training() {
    const Training& training = plan_.training;
    const int size = training.micro_batch;
    const auto sized = [this](const char* what, int samples) {
      add(WhatIfKind::training, std::string(what) + " (" + std::to_string(samples) + ")",
          {{"/training/micro_batch", std::to_string(samples)}});
    };
    const bool any_number = !plan_.parallel.schedule->written;  // its file says how many
    if (any_number && plan_.microbatches % 2 == 0) sized("microbatches twice as large", 2 * size);
    if (any_number && size % 2 == 0) sized("microbatches half as large", size / 2);
    if (training.recompute != Recompute::none) {
      Overrides none{{"/training/recompute", "none"}};
      if (!training.recompute_layers.are_all())
        none.emplace_back("/training/recompute_layers", "null");
      if (training.recompute == Recompute::selective &&
          training.recompute_modules != RecomputedModules::of_selective())
        none.emplace_back("/training/recompute_modules", "null");
      add(WhatIfKind::training, "no recomputation", none);
    }
    if (training.recompute == Recompute::full)
      add(WhatIfKind::training, "selective recomputation", {{"/training/recompute", "selective"}});
    if (training.attention == Attention::standard && knows_flash())
      add(WhatIfKind::training, "FlashAttention", {{"/training/attention", "flash"}});
  }

  void add_schedule() {
    const Parallel& parallel = plan_.parallel;
    if (parallel.pipeline > 1) {
      const bool eager = parallel.pipeline_send == PipelineSend::eager;
      if (!eager || parallel.schedule->sends == ScheduleSends::as_stack)
        add(WhatIfKind::schedule,
            eager ? "exchanges in blocking pairs" : "messages that leave by themselves",
            {{"/parallel/pipeline_send", eager ? "blocking_pairs" : "eager"}});
      if (!parallel.schedule->written) add_orders();
    }
    if (parallel.replicas() > 1 && !parallel.overlap_gradient_reduce && parallel.zero_stage < 3)
      add(WhatIfKind::schedule, "gradient reduction overlapped with the backward pass",
          {{"/parallel/overlap_gradient_reduce", "true"}});
  }

  /// The other orders of passes. Two chunks a device need layers and microbatches that divide.
  void add_orders() {
    std::vector<SchedulePtr> others = named_schedules();
    std::erase_if(others, [this](const SchedulePtr& each) {
      const bool is_idle = each->overlaps_passes && plan_.parallel.expert == 1;  // hides nothing
      return !each->is_what_if || is_idle || each == plan_.parallel.schedule;
    });
    for (const SchedulePtr& each : others)
      if (!each->takes(2)) add_order(*each, "schedule " + each->name, 1);
    for (const SchedulePtr& each : others)
      if (each->takes(2) && fits_two_chunks(*each))
        add_order(*each, "schedule " + each->name + ", two chunks per device", 2);
  }
  bool fits_two_chunks(const Schedule& schedule) const {
    const Parallel& parallel = plan_.parallel;
    const int cuts = schedule.is_bidirectional() ? 1 : 2;  // of what a stage has
    const int held = parallel.schedule->is_bidirectional() ? 2 : 1;
    const bool even = std::ranges::all_of(plan_.stage_layers, [&](int layers) {
      return layers % (cuts * held) == 0 && layers == plan_.stage_layers.front();
    });
    const bool sums = schedule.is_bidirectional() &&
                      (parallel.zero_stage == 2 || parallel.overlap_gradient_reduce);
    return even && !sums &&
           schedule.misfit({parallel.pipeline, plan_.microbatches, 2, schedule.chunk_path}).empty();
  }
  void add_order(const Schedule& schedule, std::string title, int chunks) {
    Overrides overrides{{"/parallel/schedule", schedule.name},
                        {"/parallel/virtual_pipeline", std::to_string(chunks)}};
    const PipelineSend now = plan_.parallel.pipeline_send;
    const PipelineSend then = send_with(schedule, plan_.parallel, scenario_.software);
    if (then != now) {
      const bool eager = then == PipelineSend::eager;
      title += eager ? ", messages that leave by themselves" : ", exchanges in blocking pairs";
      overrides.emplace_back("/parallel/pipeline_send", eager ? "eager" : "blocking_pairs");
    }
    keep_recomputed(schedule, chunks, title, overrides);
    add(WhatIfKind::schedule, std::move(title), std::move(overrides));
  }
  /// Chunks of another size recompute the same share of their layers, to the next whole one: "first" counts in each chunk.
  void keep_recomputed(const Schedule& schedule, int chunks, std::string& title,
                       Overrides& overrides) const {
    const int first = plan_.training.recompute_layers.first;
    const int parts = plan_.chunk_map().num_positions(),
              others =
                  ChunkMap(plan_.parallel.pipeline, chunks, schedule.chunk_path).num_positions();
    const int in_chunk = (scenario_.model.layers + parts - 1) / parts;
    const int kept = (std::min(first, in_chunk) * parts + others - 1) / others;
    if (first == 0 || kept * others == first * parts) return;
    title += ", the first " + std::to_string(kept) + " layers of each chunk recomputed";
    overrides.emplace_back("/training/recompute_layers",
                           R"({"first":)" + std::to_string(kept) + "}");
  }

  /// For each traffic class of the plan: one run without its codec, one with every other codec, and one at half the bytes for nothing.
  void add_codecs() {
    const Parallel& parallel = plan_.parallel;
    const JsonValue* compression = scenario_.resolved.find("compression");
    if (compression != nullptr && !compression->is_object()) compression = nullptr;
    for (const char* name : compression_classes) {
      const JsonValue* entry = compression == nullptr ? nullptr : compression->find(name);
      const bool compressed = entry != nullptr && !entry->is_null();
      const std::string pointer = std::string("/compression/") + name,
                        words = detail::with_spaces(name);
      if (compressed) add(WhatIfKind::codec, "no compression of " + words, {{pointer, "null"}});
      if (std::string_view(name) == "embedding_sync") {
        if (!compressed && parallel.replicas() > 1 &&
            synchronises_embedding(scenario_.model, plan_))
          add(WhatIfKind::codec, "fused embedding sync", {{pointer, R"({"fused":true})"}});
        continue;
      }
      if (!is_in_use(name, scenario_)) continue;
      const JsonValue* codec = compressed ? entry->find("codec") : nullptr;
      const TrialTraffic traffic = trial_traffic(name, scenario_);
      for (const Codec* candidate : candidates(name, plan_)) {
        if (codec != nullptr && codec->string() == candidate->name()) continue;
        const CodecTrial trial = candidate->trial(traffic);
        add(WhatIfKind::codec, words + ": " + trial.what,
            {{pointer, setting_text(*candidate, trial)}});
      }
    }
  }

  const Scenario& scenario_;
  const Plan& plan_;
  NodeKinds kinds_;
  std::vector<Seconds> stage_times_;
  std::size_t slowest_ = 0;
  std::map<std::size_t, std::set<std::size_t>> stages_of_node_;
  std::vector<WhatIf> list_;
};

}  // namespace

std::vector<WhatIfResult> simulate_what_ifs(const Scenario& scenario, const Library& library,
                                            const std::vector<WhatIf>& changes, std::size_t at_once,
                                            const std::function<void(std::size_t)>& on_done,
                                            const std::function<bool()>& is_over) {
  // Changed GPUs have their stages balanced anew, as the command of the change has them.
  JsonValue asked = scenario.resolved;
  if (scenario.balances_stages)
    find_at(asked, "/parallel/stage_layers")->content = std::string("balanced");
  struct Answer {  // neither: over budget
    std::optional<PlanFigures> figures;
    std::string obstacle;  ///< why no file can have the change
  };
  Tasks<Answer> tasks;
  tasks.count = changes.size();
  tasks.at_once = at_once;
  tasks.on_done = on_done;
  tasks.work = [&](std::size_t i) -> Answer {
    if (is_over && is_over()) return {};
    try {
      const Scenario changed =
          read_scenario(asked, library.root, library, {changes[i].overrides, scenario.seed});
      PlanFigures figures = simulate_plan(changed, changed.plan);
      if (!figures.memory.fits && changed.plan.parallel.no_sync) {
        Overrides overrides = changes[i].overrides;
        for (const char* key : {"/parallel/no_sync", "/parallel/overlap_gradient_reduce"})
          overrides.emplace_back(key, "false");
        const Scenario scattered =
            read_scenario(asked, library.root, library, {overrides, scenario.seed});
        const Plan& plan = scattered.plan;
        if (account_memory(scattered, plan, count_in_flight(plan)).fits)
          figures.memory.advice = "fits with no_sync false";
      }
      return {std::move(figures), {}};
    } catch (const InputError& error) {
      return {std::nullopt, error.problems().front().message};
    }
  };
  std::vector<WhatIfResult> results;
  for (const auto& outcome : run_tasks(tasks)) {
    WhatIfResult& result = results.emplace_back();
    result.change = changes[results.size() - 1];
    if (const auto* failure = std::get_if<ChildFailure>(&outcome)) {
      result.failure = failure->text;
      result.fate = WhatIfFate::failed;
      continue;
    }
    const auto& [figures, obstacle] = std::get<Answer>(outcome);
    if (!obstacle.empty()) {
      result.failure = "not possible: " + obstacle;
      result.fate = WhatIfFate::failed;
      continue;
    }
    if (!figures) {
      result.failure = "not simulated: the budget was spent";
      result.fate = WhatIfFate::over_budget;
      continue;
    }
    result.iteration_time = figures->iteration_time;
    result.breakdown = figures->breakdown;
    result.fits = figures->memory.fits;
    result.memory_advice = figures->memory.advice;
  }
  return results;
}

Explained explain(const Scenario& scenario, const Library& library, const ExplainOptions& options) {
  return Explainer(scenario, library, options).explain();
}

std::vector<WhatIf> what_ifs(const Scenario& scenario, const Library& library) {
  return Questions(scenario, library).collect();
}

std::string run_command_line(const AskedRun& asked, const Scenario& scenario,
                             const Overrides& changes) {
  Overrides later;
  if (!scenario.placement_note.empty())
    later.emplace_back("/parallel/placement",
                       canonical_text(*find_at(scenario.resolved, "/parallel/placement")));
  later = laid_over(later, changes, scenario.resolved);
  std::vector<std::string> words{"windtunnel", "run", asked.file};
  for (const auto& [pointer, value] : laid_over(asked.overrides, later, scenario.resolved))
    words.insert(words.end(), {"--set", pointer + "=" + value});
  if (asked.seed != 0) words.insert(words.end(), {"--seed", std::to_string(asked.seed)});
  if (!asked.engine.empty() && asked.engine != "simgrid")
    words.insert(words.end(), {"--engine", asked.engine});
  return shell_line(words);
}

void add_commands(const AskedRun& asked, const Scenario& scenario, Explanation& explanation) {
  explanation.command = run_command_line(asked, scenario);
  for (WhatIfResult& result : explanation.what_ifs)
    result.command = run_command_line(asked, scenario, result.change.overrides);
}

}  // namespace windtunnel
