#include "questions/break_even.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "core/contracts.hpp"
#include "cost/codec_cost.hpp"
#include "cost/collective_cost.hpp"
#include "cost/end_of_iteration.hpp"
#include "lower/codec_plan.hpp"
#include "lower/program_builder.hpp"
#include "report/number_text.hpp"
#include "simulate/simulate.hpp"
#include "simulate/tasks.hpp"
#include "units/amount_range.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// The scenario's plan without compression, built: the sizes and routes of what is to be compressed.
struct UncompressedPlan {
  explicit UncompressedPlan(const Scenario& scenario) : plan(scenario.plan) {
    plan.compression = {};
    built = build_programs(
        {&scenario.model, &scenario.platform, &scenario.nodes, &scenario.software, &plan});
  }
  Plan plan;
  BuiltPrograms built;
};

/// Bandwidth that a rank of the slowest pair of stages attains, alone.
BytesPerSecond message_bandwidth(const UncompressedPlan& uncompressed) {
  const Network& network = uncompressed.built.network;
  std::optional<BytesPerSecond> slowest;
  for (const Channel& channel : uncompressed.built.programs.channels) {
    const BytesPerSecond whole =
        channel.in_node ? channel.bandwidth : network.rate_alone({channel.up, channel.down});
    const BytesPerSecond rank =
        whole / static_cast<double>(uncompressed.plan.devices[channel.from.index()].num_gpus());
    if (!slowest || rank < *slowest) slowest = rank;
  }
  return slowest.value_or(BytesPerSecond{});
}

/// Time of a collective's transfers on an idle network: the part in the node, or the most loaded link.
Seconds transfer_alone(const Network& network, const Collective& collective) {
  std::map<LinkId, Bytes> load;
  for (const CollectiveFlow& flow : collective.flows)
    for (const PathId path : {flow.up, flow.down})
      for (const LinkId link : network.path(path)) load[link] += flow.bytes;
  Seconds longest = collective.fixed;
  for (const auto& [link, bytes] : load)
    longest = std::max(longest, bytes / network.links()[link.index()].bandwidth);
  return longest;
}

/// Bytes that a rank of the device sends in its collective, over the time that takes alone.
BytesPerSecond collective_bandwidth(const UncompressedPlan& uncompressed, DeviceId device,
                                    std::uint32_t slot, Bytes volume) {
  const ProgramSet& set = uncompressed.built.programs;
  const std::optional<CollectiveId> id = set.devices[device.index()].collectives[slot];
  if (!id) return {};
  const Seconds time = transfer_alone(uncompressed.built.network, set.collectives[id->index()]);
  return time > 0_s ? volume / time : BytesPerSecond{};
}

CodecBreakEven break_even(Traffic traffic, Bytes saved, Seconds codec, BytesPerSecond now) {
  std::optional<BytesPerSecond> bandwidth;
  if (codec > 0_s) bandwidth = std::max(saved, Bytes{}) / codec;
  return {.traffic = traffic, .saved = saved, .codec = codec, .bandwidth = bandwidth, .now = now};
}

/// Bytes of an encoded collective that take the way of its payload, and its codec work.
Bytes encoded_payload(const EncodedCollective& encoded) {
  return encoded.payload + encoded.second_payload;
}
Seconds codec_work(const EncodedCollective& encoded) {
  return encoded.encode + encoded.between + encoded.decode;
}

/// The classes of one scenario, one after the other.
class Classes {
 public:
  explicit Classes(const Scenario& scenario)
      : scenario_(scenario),
        plan_(with_stages_chosen(scenario.plan)),
        codecs_(scenario.model, plan_, scenario.software),
        uncompressed_(scenario) {}

  std::vector<CodecBreakEven> all() {
    const Compression& compression = plan_.compression;
    add_messages(Traffic::pipeline_forward, compression.pipeline_forward);
    add_messages(Traffic::pipeline_backward, compression.pipeline_backward);
    if (compression.data_gradients) add_gradients();
    if (compression.tensor_activations) add_activations();
    if (compression.zero_gather) add_gathers();
    return found_;
  }

 private:
  /// Stages that are chosen by trying make no difference to where compressing one of them pays.
  static Plan with_stages_chosen(Plan plan) {
    if (plan.compression.gradient_stages.kind == CompressedStages::Kind::automatic)
      plan.compression.gradient_stages = {};
    return plan;
  }

  void add_messages(Traffic traffic, const std::optional<Compressor>& compressor) {
    if (!compressor || plan_.parallel.pipeline == 1) return;
    const Device& device = scenario_.nodes.front().device;
    const Label label =
        traffic == Traffic::pipeline_forward ? Label::activation_message : Label::gradient_message;
    const CodecMessage message = stage_message(scenario_.model, plan_, scenario_.software, label);
    if (!is_compressed(*compressor, message.size)) return;
    const EncodedMessage encoded = encode_message(*compressor, device, message);
    found_.push_back(break_even(traffic, message.size - encoded.size(),
                                encoded.encode + encoded.decode, message_bandwidth(uncompressed_)));
  }

  /// The first stage whose gradients are compressed.
  StageId first_stage() const {
    for (int stage = 0; stage < plan_.parallel.pipeline; ++stage)
      if (compresses_gradients(plan_.compression, stage)) return StageId{stage};
    return StageId{0};
  }

  DeviceId first_device(StageId stage) const { return plan_.device(0, stage, 0); }

  CodecStage codec_stage(DeviceId id) const {
    const PlanDevice& device = plan_.devices[id.index()];
    return {device.stage, &scenario_.nodes[device.node.index()].device,
            &uncompressed_.built.cost_of_device[id.index()], device.num_gpus()};
  }

  /// Share of its payload that a member sends in half an all-reduce.
  static double half_share(int members) { return static_cast<double>(members - 1) / members; }

  void add_gradients() {
    const Parallel& parallel = plan_.parallel;
    if (parallel.replicas() == 1 || parallel.scatters_in_passes()) return;
    const DeviceId id = first_device(first_stage());
    const CodecStage stage = codec_stage(id);
    const bool by_chunk = reduces_by_chunk(plan_);
    const Reduction reduction{by_chunk ? 0 : at_the_end};
    const EncodedCollective encoded = codecs_.reduced(stage, reduction);
    const double share =
        half_share(plan_.reducing_replicas()) * (plan_.scatters_gradients() ? 1 : 2);
    const Bytes payload = by_chunk ? stage.cost->chunks.front().reductions.front().payload /
                                         static_cast<double>(gradient_buckets(plan_, stage.stage))
                                   : stage.cost->gradients;
    found_.push_back(break_even(
        Traffic::data_gradients, (payload - encoded_payload(encoded)) * share, codec_work(encoded),
        collective_bandwidth(uncompressed_, id, slot_of(ReductionSlot::first, reduction),
                             payload * share)));
  }

  void add_activations() {
    const Parallel& parallel = plan_.parallel;
    if (parallel.tensor == 1) return;
    const DeviceId id = first_device(StageId{0});
    const PlanDevice& device = plan_.devices[id.index()];
    const NodeType& node = scenario_.nodes[device.node.index()];
    const Bytes payload = uncompressed_.built.cost_of_device[id.index()].tensor_payload;
    const EncodedCollective encoded =
        encode_ring(*plan_.compression.tensor_activations, node.device, RingKind::all_reduce,
                    payload, element_size(plan_.training.precision), parallel.tensor);
    const Bytes volume = ring_all_reduce_volume(payload, parallel.tensor);
    const BytesPerSecond now =
        plan_.nodes_per_tensor_group > 1
            ? BytesPerSecond{}
            : volume / (in_node_all_reduce(node.interconnect, device.gpus, payload) *
                        (scenario_.software.in_node_collective_slowdown *
                         node.in_node_collective_slowdown));
    found_.push_back(break_even(Traffic::tensor_activations,
                                volume - ring_all_reduce_volume(encoded.payload, parallel.tensor),
                                codec_work(encoded), now));
  }

  void add_gathers() {
    const Parallel& parallel = plan_.parallel;
    if (parallel.replicas() == 1 || parallel.zero_stage == 0) return;
    const DeviceId id = first_device(StageId{0});
    const CodecStage stage = codec_stage(id);
    const bool by_layer = parallel.gathers_in_passes();
    const StageCost& cost = *stage.cost;
    const Bytes payload = by_layer
                              ? find(cost.chunks.front().operations->at(Direction::forward).layer,
                                     Label::gather_layer)
                                    ->payload
                              : find_parameter_gather(cost.end)->payload;
    const EncodedCollective encoded =
        encode_ring(*plan_.compression.zero_gather, *stage.device, RingKind::all_gather, payload,
                    element_size(plan_.training.precision), sharding_group_size(parallel));
    const double share = half_share(sharding_group_size(parallel));
    const BytesPerSecond now =
        by_layer ? BytesPerSecond{}
                 : collective_bandwidth(uncompressed_, id,
                                        slot_of(CollectiveSlot::parameter_gather), payload * share);
    found_.push_back(break_even(Traffic::zero_gather, (payload - encoded.payload) * share,
                                codec_work(encoded), now));
  }

  const Scenario& scenario_;
  Plan plan_;
  CodecPlan codecs_;
  UncompressedPlan uncompressed_;
  std::vector<CodecBreakEven> found_;
};

constexpr int digits = 17;  ///< that every double survives

/// "200 Gbps" times `factor`, as text in bytes per second, as far as a file may say it.
void scale_rate(JsonValue& object, const char* key, double factor) {
  JsonValue* const value = object.find(key);
  if (value == nullptr || !value->is_string()) return;
  std::string problem, suggestion;
  const auto rate = parse_quantity<BytesPerSecond>(value->string(), problem, suggestion);
  WT_EXPECT(rate.has_value());
  value->content = significant_text(clamped(*rate * factor) / BytesPerSecond{1}, digits) + " B/s";
}

void scale_number(JsonValue& value, double factor) {
  if (const auto* integer = std::get_if<std::int64_t>(&value.content))
    value.content = static_cast<double>(*integer) * factor;
  else if (const auto* number = std::get_if<double>(&value.content))
    value.content = *number * factor;
}

/// Does something to each element of list `key`, where there is one.
template <class Change>
void for_each_in(JsonValue& object, const char* key, Change change) {
  JsonValue* const list = object.find(key);
  if (list == nullptr || !list->is_array()) return;
  for (JsonValue& element : list->array()) change(element);
}

void scale_between_nodes(JsonValue& platform, double factor) {
  for_each_in(platform, "node_types",
              [=](JsonValue& node) { scale_rate(node, "nic_rate", factor); });
  for_each_in(platform, "link_overrides",
              [=](JsonValue& link) { scale_rate(link, "bandwidth", factor); });
  JsonValue* const matrix = platform.find("bandwidth_matrix");
  if (matrix == nullptr) return;
  for_each_in(*matrix, "rows", [=](JsonValue& row) {
    for (JsonValue& cell : row.array()) scale_number(cell, factor);
  });
}

void scale_inside_nodes(JsonValue& platform, double factor) {
  for_each_in(platform, "node_types", [=](JsonValue& node) {
    JsonValue* const interconnect = node.find("interconnect");
    if (interconnect == nullptr) return;
    for (const char* rate : {"saturated_bandwidth", "small_bandwidth", "point_to_point"})
      scale_rate(*interconnect, rate, factor);
  });
}

/// -1: the second is faster; 1: slower; 0: as fast.
int sign_of(Seconds first, Seconds second) {
  if (std::abs(second / first - 1) < equal_within) return 0;
  return second < first ? -1 : 1;
}

/// The search of one question: the range that is left, as logarithms of the factor, and the signs at its ends.
struct Bracket {
  double low, high;
  int low_sign = 0, high_sign = 0;
  double middle() const { return (low + high) / 2; }
  bool is_open(double tolerance) const {
    return low_sign != high_sign && high - low > std::log1p(tolerance);
  }
  void narrow(int middle_sign) {
    if (middle_sign == low_sign)
      low = middle();
    else
      high = middle();
  }
};

BreakEven::Outcome outcome_of(const Bracket& bracket) {
  if (bracket.low_sign != bracket.high_sign) return BreakEven::Outcome::crosses;
  if (bracket.low_sign == 0) return BreakEven::Outcome::always_equal;
  return bracket.low_sign < 0 ? BreakEven::Outcome::always_faster
                              : BreakEven::Outcome::always_slower;
}

BreakEven answer_of(const BreakEvenQuestion& question, const Bracket& bracket,
                    const BreakEvenSearch& search) {
  BreakEven found{.what = question.what,
                  .part = question.part,
                  .outcome = outcome_of(bracket),
                  .bandwidth_now = question.bandwidth_now,
                  .lowest = search.lowest,
                  .highest = search.highest};
  if (found.outcome != BreakEven::Outcome::crosses) return found;
  found.factor = std::exp(bracket.middle());
  found.bandwidth = question.bandwidth_now * found.factor;
  found.faster_below = bracket.low_sign < bracket.high_sign;
  return found;
}

/// A question at one factor.
struct Probe {
  std::size_t question;
  double log_factor;
};

/// The signs at the probes, all simulated together.
std::vector<int> signs_at(const std::vector<Probe>& probes,
                          const std::vector<BreakEvenQuestion>& questions, const Library& library,
                          const BreakEvenSearch& search, std::uint64_t seed) {
  std::vector<JsonValue> trees;
  for (const Probe& probe : probes) {
    const BreakEvenQuestion& question = questions[probe.question];
    const double factor = std::exp(probe.log_factor);
    trees.push_back(with_scaled_network(question.first, question.part, factor));
    trees.push_back(with_scaled_network(question.second, question.part, factor));
  }
  const std::vector<Seconds> times =
      iteration_times(trees, library, {"searching the break-even bandwidth", search.at_once, seed});
  std::vector<int> signs;
  for (std::size_t i = 0; i < times.size(); i += 2)
    signs.push_back(sign_of(times[i], times[i + 1]));
  return signs;
}

}  // namespace

std::vector<CodecBreakEven> codec_break_evens(const Scenario& scenario) {
  return Classes(scenario).all();
}

CodecSpeeds slow_codecs(CodecSpeeds speeds) {
  constexpr double slower = 2, slower_columns = 5;
  const auto is_assumed = [&](const std::string& key) {
    const auto source = speeds.sources.find(key);
    return source == speeds.sources.end() || source->second.evidence == Evidence::assumed;
  };
  if (is_assumed("launch")) speeds.launch = speeds.launch * slower;
  if (speeds.column_step && is_assumed("column_step"))
    speeds.column_step = *speeds.column_step * slower_columns;
  const auto slow = [&](const std::string& key, std::optional<BytesPerSecond>& rate) {
    if (rate && is_assumed(key)) rate = *rate * (1 / slower);
  };
  slow("selection", speeds.selection);
  slow("mpc_encode", speeds.mpc_encode);
  slow("mpc_decode", speeds.mpc_decode);
  for (std::size_t i = 0; i < speeds.zfp.size(); ++i) {
    const std::string place = "zfp/" + std::to_string(i) + "/";
    if (is_assumed(place + "encode")) speeds.zfp[i].encode = speeds.zfp[i].encode * (1 / slower);
    if (is_assumed(place + "decode")) speeds.zfp[i].decode = speeds.zfp[i].decode * (1 / slower);
  }
  return speeds;
}

std::vector<Seconds> iteration_times(const std::vector<JsonValue>& resolved, const Library& library,
                                     const TimedSimulations& how) {
  const auto outcomes = run_tasks<Seconds>(
      {.count = resolved.size(), .at_once = how.at_once, .work = [&](std::size_t i) {
         Scenario scenario = read_scenario(resolved[i], {}, library, {{}, how.seed});
         for (NodeType& node : scenario.nodes)
           if (how.has_slow_codecs && node.device.codecs)
             node.device.codecs = slow_codecs(*node.device.codecs);
         return simulate(scenario).report.iteration_time;
       }});
  std::vector<Seconds> times;
  for (const TaskOutcome<Seconds>& outcome : outcomes) {
    if (const auto* failure = std::get_if<ChildFailure>(&outcome))
      throw_failure(*failure, how.what_for);
    times.push_back(std::get<Seconds>(outcome));
  }
  return times;
}

JsonValue with_scaled_network(JsonValue resolved, NetworkPart part, double factor) {
  JsonValue* const platform = resolved.find("platform");
  WT_EXPECT(platform != nullptr && platform->is_object());
  if (part == NetworkPart::between_nodes)
    scale_between_nodes(*platform, factor);
  else
    scale_inside_nodes(*platform, factor);
  return resolved;
}

BytesPerSecond network_bandwidth(const Scenario& scenario, NetworkPart part) {
  const NodeType& node = scenario.nodes.front();
  return part == NetworkPart::between_nodes ? node.effective_nic_rate() * node.nics
                                            : node.interconnect.point_to_point;
}

std::vector<BreakEven> find_break_evens(const std::vector<BreakEvenQuestion>& questions,
                                        const Library& library, const BreakEvenSearch& search,
                                        std::uint64_t seed) {
  const auto signs = [&](const std::vector<Probe>& probes) {
    return signs_at(probes, questions, library, search, seed);
  };
  std::vector<Bracket> brackets(questions.size(),
                                {std::log(search.lowest), std::log(search.highest)});
  std::vector<Probe> ends;
  for (std::size_t i = 0; i < questions.size(); ++i)
    for (const double end : {brackets[i].low, brackets[i].high}) ends.push_back({i, end});
  const std::vector<int> at_ends = signs(ends);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    brackets[i].low_sign = at_ends[2 * i];
    brackets[i].high_sign = at_ends[2 * i + 1];
  }
  for (;;) {
    std::vector<Probe> probes;
    for (std::size_t i = 0; i < questions.size(); ++i)
      if (brackets[i].is_open(search.tolerance)) probes.push_back({i, brackets[i].middle()});
    if (probes.empty()) break;
    const std::vector<int> found = signs(probes);
    for (std::size_t i = 0; i < probes.size(); ++i) brackets[probes[i].question].narrow(found[i]);
  }
  std::vector<BreakEven> answers;
  for (std::size_t i = 0; i < questions.size(); ++i)
    answers.push_back(answer_of(questions[i], brackets[i], search));
  return answers;
}

}  // namespace windtunnel
