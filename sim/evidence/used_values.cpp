#include "evidence/used_values.hpp"

#include <algorithm>
#include <concepts>
#include <numeric>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "core/text_list.hpp"
#include "cost/collective_cost.hpp"
#include "platform/platform_json.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// Tolerances, as shares of what was measured.
constexpr double counted = 1e-9;  ///< counts: what rounding makes of them
/// Makers round: 2039 GB/s is also sold as 2 TB/s, 1555 GB/s as 1.6 TB/s.
constexpr double published = 0.03;
/// The best peak fraction of matrix products is 0.80 to 0.86 by measurement set, around 0.83 (docs/accuracy.md).
constexpr double efficiency = 0.05;
/// The attained share of equal network cards was fitted as 0.80 and 0.85; fits of NCCL's tables miss by up to 4 %.
constexpr double attained = 0.10;
/// Launch floors of one stack differed by 18 % between two hosts (platforms/aws-16xt4.json); latencies and half sizes
/// are as weakly identified.
constexpr double weak = 0.25;

/// Collects values; one that several nodes have spans all of theirs.
class ValueCollector {
 public:
  void add(const std::string& key, const std::string& label, double tolerance, double number,
           bool is_used = true, ValueUnit unit = ValueUnit::ratio) {
    const auto [entry, is_new] = values_.numbers.try_emplace(
        key, UsedNumber{label, unit, tolerance, is_used, number, number});
    UsedNumber& value = entry->second;
    value.low = std::min(value.low, number);
    value.high = std::max(value.high, number);
  }
  void add(const std::string& key, const std::string& label, int count, bool is_used = true) {
    add(key, label, counted, count, is_used, ValueUnit::count);
  }
  void add(const std::string& key, const std::string& label, double tolerance, Seconds time,
           bool is_used = true) {
    add(key, label, tolerance, time / Seconds{1}, is_used, ValueUnit::time);
  }
  void add(const std::string& key, const std::string& label, double tolerance, BytesPerSecond rate,
           bool is_used = true) {
    add(key, label, tolerance, rate / BytesPerSecond{1}, is_used, ValueUnit::data_rate);
  }
  void add(const std::string& key, const std::string& label, double tolerance,
           FlopsPerSecond rate) {
    add(key, label, tolerance, rate / FlopsPerSecond{1}, true, ValueUnit::flop_rate);
  }
  void add_habit(const char* key, const char* label, std::string word, bool is_used = true) {
    values_.habits[key] = {label, is_used, std::move(word)};
  }
  /// For a bool alone: a word, being an address, would convert to one.
  void add_habit(const char* key, const char* label, std::same_as<bool> auto habit,
                 bool is_used = true) {
    add_habit(key, label, std::string(habit ? "yes" : "no"), is_used);
  }
  UsedValues take() { return std::move(values_); }

 private:
  UsedValues values_;
};

/// The types of the nodes in use, in the order of the platform's file.
std::vector<const NodeType*> types_in_use(const Scenario& scenario) {
  std::vector<const NodeType*> types;
  std::size_t nodes = 0;
  for (const NodeType& type : scenario.platform.node_types) {
    if (nodes >= scenario.nodes.size()) break;
    types.push_back(&type);
    nodes = type.count == 0 ? scenario.nodes.size() : nodes + static_cast<std::size_t>(type.count);
  }
  return types;
}

std::string name_of(ScatteredMessages messages) {
  switch (messages) {
    case ScatteredMessages::none:
      return "no";
    case ScatteredMessages::activations:
      return "activations";
    case ScatteredMessages::all:
      return "yes";
  }
  WT_UNREACHABLE();
}

void add_launch(const SoftwareProfile::LaunchFloor& launch, const Parallel& parallel,
                ValueCollector& values) {
  values.add("launch/kernel", "launching a kernel", weak, launch.kernel);
  values.add("launch/collective", "launching a collective", weak, launch.collective,
             parallel.tensor > 1);
  values.add("launch/collective_per_rank", "launching a collective, for each rank", weak,
             launch.collective_per_rank,
             parallel.tensor > 1 &&
                 (parallel.pipeline > 1 || launch.per_rank_in == DelayedLaunches::jobs));
  values.add("launch/sharpness", "sharpness of the launch floor", weak, launch.sharpness);
}

/// Bus bandwidth of an all-reduce of `payload` over the first `gpus` of a node.
BytesPerSecond bus_bandwidth(const NodeType& node, int gpus, Bytes payload) {
  std::vector<int> group(static_cast<std::size_t>(gpus));
  std::iota(group.begin(), group.end(), 0);
  return ring_all_reduce_volume(payload, gpus) /
         in_node_all_reduce(node.interconnect, group, payload);
}

/// Adds the bandwidths that collectives attain, not the constants of their formula: these trade off against each other from fit to fit.
void add_interconnect(const NodeType& node, bool is_used, ValueCollector& values) {
  if (node.gpus < 2) return;
  values.add("interconnect/bandwidth", "in-node bandwidth", attained,
             bus_bandwidth(node, node.gpus, 1_GiB), is_used);
  values.add("interconnect/bandwidth_of_32_mib", "in-node bandwidth at 32 MiB", attained,
             bus_bandwidth(node, node.gpus, 32_MiB), is_used);
  values.add("interconnect/bandwidth_of_1_mib", "in-node bandwidth at 1 MiB", weak,
             bus_bandwidth(node, node.gpus, 1_MiB), is_used);
  values.add("interconnect/bandwidth_of_two", "in-node bandwidth of two GPUs", attained,
             bus_bandwidth(node, 2, 1_GiB), is_used);
  values.add("interconnect/point_to_point", "bandwidth from GPU to GPU", attained,
             node.interconnect.point_to_point, is_used);
  values.add("interconnect/point_to_point_latency", "latency from GPU to GPU", weak,
             node.interconnect.point_to_point_latency, is_used);
}

void add_node(const NodeType& node, const Plan& plan, ValueCollector& values) {
  const bool has_peers = plan.num_ranks() > 1;
  const bool has_network = plan.num_nodes > 1;
  values.add("gpus", "GPUs per node", node.gpus, has_peers);
  values.add("compute_efficiency", "speed of this cluster's GPUs", efficiency,
             node.compute_efficiency);
  values.add("in_node_collective_slowdown", "slowdown of in-node collectives", attained,
             node.in_node_collective_slowdown, plan.parallel.tensor > 1);
  values.add("collective_overhead_factor", "share of the overhead of tensor collectives", weak,
             node.collective_overhead_factor, plan.parallel.tensor > 1);
  values.add("launch_slowdown", "launch slowdown of this cluster's hosts", weak,
             node.launch_slowdown);
  if (node.pass_spread > 0)  // none on most clusters
    values.add("pass_spread", "spread of passes between equal nodes", weak, node.pass_spread,
               has_network);
  add_interconnect(node, has_peers, values);
  values.add("nics", "NICs per node", node.nics, has_network);
  values.add("nic_rate", "attained NIC rate", attained, node.effective_nic_rate(), has_network);
  if (!node.nic_of_gpu.empty())  // in order on all measured clusters
    values.add_habit("nic_of_gpu", "NICs of GPUs", "given one by one", has_network);
  const Training& training = plan.training;
  const bool offloads = training.optimizer_offload > 0 || training.activation_offload > 0;
  if (!node.host || !offloads) return;
  values.add("host/link", "attained rate between a GPU and its host", attained,
             node.host->effective_link());
  values.add("host/memory_bandwidth", "attained rate of a GPU's share of the host's memory",
             attained, node.host->effective_memory(), training.optimizer_offload > 0);
}

/// NICs of nodes in use that carry less than they should, and other jobs on links. Where there are none, nothing is said of them.
void add_faults(const Scenario& scenario, ValueCollector& values) {
  for (const NicFault& fault : scenario.platform.faults)
    if (fault.node.index() < scenario.nodes.size())
      values.add("nic_share", "share of its rate that a faulty NIC carries", attained, fault.share,
                 scenario.nodes.size() > 1);
  for (const NeighbourFlow& flow : scenario.platform.neighbours)
    values.add("neighbours", "what a neighbour sends over " + flow.link, attained,
               flow.rate * flow.busy, scenario.nodes.size() > 1);
}

/// Pairs of nodes with a rate of their own, of those in use.
void add_pairs(const Scenario& scenario, ValueCollector& values) {
  const Platform& platform = scenario.platform;
  const std::size_t nodes = scenario.nodes.size();
  const auto add_rate = [&](BytesPerSecond rate) {
    values.add("pair_rate", "measured rate of a pair of nodes", attained, rate, nodes > 1);
  };
  if (platform.matrix)
    for (std::size_t from = 0; from < nodes; ++from)
      for (std::size_t to = 0; to < nodes; ++to)
        if (from != to) add_rate(platform.matrix->rate[from][to] * platform.matrix->rails);
  for (const LinkOverride& link : platform.link_overrides)
    if (std::max(link.from.index(), link.to.index()) < nodes) add_rate(link.bandwidth);
  values.add_habit("pairs", "pairs of nodes with rates of their own",
                   platform.matrix.has_value() || !platform.link_overrides.empty(), nodes > 1);
}

/// Adds the rates of memory-bound kernels, if the stack has its own.
void add_memory_rates(const Scenario& scenario, ValueCollector& values) {
  for (const NodeType* type : types_in_use(scenario)) {
    const auto* rates = scenario.software.memory_rates_on(type->device);
    if (rates == nullptr) continue;
    values.add("memory_rates/forward", "memory rate of the stack's kernels forward", efficiency,
               rates->forward);
    values.add("memory_rates/backward", "memory rate of the stack's kernels backward", efficiency,
               rates->backward);
  }
}

/// Adds habits that distinguish stacks although no job's time depends on them, or although the job states them itself
/// (ScenarioTraits::choices).
void tell_apart(const SoftwareProfile& stack, ValueCollector& values) {
  values.add_habit("gradient_type", "type of gradients", name_of(stack.gradient_type), false);
  values.add_habit("pipeline_send", "blocking exchanges",
                   stack.pipeline_send == PipelineSend::blocking_pairs, false);
  values.add("memory/states_fp16/gradients", "bytes of a gradient", counted,
             stack.states_fp16.gradients, false);
  values.add("memory/states_bf16/gradients", "bytes of a bf16 gradient", counted,
             stack.states_bf16.gradients, false);
}

}  // namespace

UsedValues stack_values(const Scenario& scenario) {
  const SoftwareProfile& stack = scenario.software;
  const Parallel& parallel = scenario.plan.parallel;
  const bool splits_tensors = parallel.tensor > 1, has_stages = parallel.pipeline > 1;
  const bool has_flash = scenario.plan.training.attention == Attention::flash;
  ValueCollector values;
  add_launch(stack.launch, parallel, values);
  values.add("compute_efficiency", "computing speed of the stack", efficiency,
             stack.compute_efficiency);
  values.add("in_node_collective_slowdown", "slowdown of in-node collectives", attained,
             stack.in_node_collective_slowdown, splits_tensors);
  values.add("tensor_collective_overhead", "overhead of a tensor collective", weak,
             stack.tensor_collective_overhead, splits_tensors);
  values.add("gradient_accumulation_bytes", "bytes to accumulate a gradient", efficiency,
             stack.accumulation_bytes(scenario.plan.training.precision));
  values.add("optimizer_bytes", "bytes of an optimizer step", efficiency, stack.optimizer_bytes);
  values.add("broadcast_tensors", "tensors of a layer with one owner", stack.broadcast_tensors,
             parallel.zero_stage == 1);
  values.add("gradient_bucket", "gradients reduced at once", weak, stack.gradient_bucket,
             parallel.overlap_gradient_reduce);
  values.add("cross_entropy_bytes", "bytes of the loss", efficiency, stack.cross_entropy_bytes);
  values.add("iteration_overhead", "overhead of an iteration", weak, stack.iteration_overhead);
  if (stack.exposed_gather_factor)
    values.add("exposed_gather_factor", "share that collectives take from kernels", efficiency,
               *stack.exposed_gather_factor,
               parallel.gathers_in_passes() || parallel.overlap_gradient_reduce);
  values.add("row_cast_efficiency", "rate of casts by rows", efficiency,
             stack.row_cast_efficiency.value_or(0), scenario.plan.training.scales_rows());
  if (stack.flash_forward_efficiency)
    values.add("flash_forward_efficiency", "efficiency of flash attention forward", efficiency,
               *stack.flash_forward_efficiency, has_flash);
  if (stack.flash_backward_efficiency)
    values.add("flash_backward_efficiency", "efficiency of flash attention backward", efficiency,
               *stack.flash_backward_efficiency, has_flash);
  add_memory_rates(scenario, values);
  values.add_habit("overlap_backward_tensor_collectives", "hidden backward tensor collectives",
                   stack.overlap_backward_tensor_collectives, splits_tensors);
  values.add_habit("scatter_pipeline_messages", "scattered messages",
                   name_of(stack.scatter_pipeline_messages), has_stages && splits_tensors);
  values.add_habit("gather_scattered_messages", "gathered messages",
                   stack.gather_scattered_messages, has_stages && splits_tensors);
  values.add_habit("regathers_outputs", "outputs gathered again", stack.regathers_outputs,
                   has_stages && splits_tensors);
  const SoftwareProfile::BatchRead read = stack.batch_read.value_or(SoftwareProfile::BatchRead{});
  values.add("batch_read/kernels", "launches to read a microbatch", read.kernels);
  values.add("batch_read/collectives", "broadcasts of a microbatch", read.collectives);
  values.add_habit("batch_read/on_every_stage", "microbatches read on every stage",
                   read.on_every_stage, has_stages && stack.batch_read.has_value());
  values.add_habit("sends_mask", "masks sent with messages", stack.sends_mask, has_stages);
  values.add_habit("fused_kernels", "fused kernels", stack.fused_kernels);
  values.add_habit("embedding_gradient_type", "type of embedding gradients",
                   name_of(stack.embedding_gradient_type.value_or(stack.gradient_type)),
                   synchronises_embedding(scenario.model, scenario.plan));
  tell_apart(stack, values);
  return values.take();
}

namespace {

/// Products with quantised operands; elsewhere they are no part of the job.
void add_quantized(const Scenario& scenario, const Device& gpu, ValueCollector& values) {
  const Precision precision = scenario.plan.training.precision;
  if (!is_quantized(precision)) return;
  values.add("gemm/" + std::string(name_of(precision)) + "_peak_fraction",
             "attained share of the peak in " + std::string(name_of(precision)), efficiency,
             gpu.gemm.peak_fraction_of(precision));
  values.add("peak/bf16", "peak rate in bf16", published, gpu.peak.at(base_precision(precision)));
}

/// Fused attention at the device's own rates.
void add_attention(const Scenario& scenario, const Device& gpu, ValueCollector& values) {
  const bool is_used = scenario.plan.training.attention == Attention::flash &&
                       !scenario.software.flash_rates(gpu, scenario.plan.training.attention_kernel);
  if (!is_used) return;
  const Training& training = scenario.plan.training;
  const Precision precision = training.attention_kernel == FlashKernel::fp8
                                  ? Precision::fp8
                                  : base_precision(training.precision);
  for (std::size_t i = 0; i < gpu.attention.size(); ++i) {
    const AttentionKernel& kernel = gpu.attention[i];
    if (!kernel.is(training.attention_kernel, precision)) continue;
    const std::string place = "attention/" + std::to_string(i) + "/",
                      what = " of attention at head size " +
                             value_text(kernel.head_size, ValueUnit::count);
    values.add(place + "forward_rate", "forward rate" + what, efficiency, kernel.forward.rate);
    values.add(place + "backward_rate", "backward rate" + what, efficiency, kernel.backward.rate);
  }
}

/// A key of the fabric. Of a list each number, of cables their rates, of what is no number the word.
void add_fabric_key(const Fabric& fabric, const FabricKey& key, bool is_used,
                    ValueCollector& values) {
  using Type = FabricKey::Type;
  const std::string name = "fabric/" + key.name;
  switch (key.type) {
    case Type::whole:
      return values.add(name, key.label, counted, fabric.number(key.name), is_used,
                        ValueUnit::count);
    case Type::number:
      return values.add(name, key.label, efficiency, fabric.number(key.name), is_used);
    case Type::data_rate:
      return values.add(name, key.label, published, fabric.rate(key.name), is_used);
    case Type::yes_no:
    case Type::word:
      return values.add_habit(name.c_str(), key.label.c_str(), text_of(key, fabric.value(key.name)),
                              is_used);
    case Type::wholes:
    case Type::numbers: {
      const bool is_count = key.type == Type::wholes;
      const std::vector<double>& numbers = fabric.list(key.name);
      for (std::size_t i = 0; i < numbers.size(); ++i)
        values.add(name + "/" + std::to_string(i), key.label + ", " + std::to_string(i + 1),
                   is_count ? counted : efficiency, numbers[i], is_used,
                   is_count ? ValueUnit::count : ValueUnit::ratio);
      return;
    }
    case Type::cables:
      for (const FabricCable& cable : fabric.cables(key.name))
        values.add(name, key.label, published, cable.bandwidth, is_used);
  }
}

}  // namespace

UsedValues gpu_values(const Scenario& scenario) {
  constexpr int aligned = 8;
  const bool is_misaligned = scenario.plan.training.attention == Attention::standard &&
                             scenario.model.head_size() % aligned != 0;
  const Precision precision = scenario.plan.training.precision;
  const bool in_16_bits = precision == Precision::fp16 || precision == Precision::bf16;
  ValueCollector values;
  for (const NodeType* type : types_in_use(scenario)) {
    const Device& gpu = type->device;
    values.add("peak", "peak rate", published, gpu.peak.at(precision));
    values.add("memory/bandwidth", "memory bandwidth", published, gpu.memory_bandwidth);
    values.add("memory/bandwidth_efficiency", "attained share of memory bandwidth", efficiency,
               gpu.memory_efficiency);
    values.add("multiprocessors", "multiprocessors", gpu.multiprocessors);
    values.add("collective_multiprocessors", "multiprocessors of a collective", weak,
               gpu.collective_multiprocessors,
               scenario.plan.parallel.gathers_in_passes() ||
                   scenario.plan.parallel.overlap_gradient_reduce);
    values.add("gemm/long_run_factor", "speed of long runs in 16 bits", efficiency,
               gpu.gemm.long_run_factor, in_16_bits);
    values.add("kernel_overhead", "overhead of a kernel", weak, gpu.kernel_overhead);
    values.add("gemm/peak_fraction", "attained share of the peak", efficiency,
               gpu.gemm.peak_fraction);
    add_quantized(scenario, gpu, values);
    add_attention(scenario, gpu, values);
    values.add("gemm/inner_half_size", "half size of inner dimensions", weak,
               gpu.gemm.inner_half_size);
    values.add("gemm/wave_half_size", "half size of waves", weak, gpu.gemm.wave_half_size);
    values.add("gemm/head_factor", "efficiency of the output head", efficiency,
               gpu.gemm.head_factor);
    values.add("gemm/misaligned_factor", "efficiency of misaligned head sizes", efficiency,
               gpu.gemm.misaligned_factor, is_misaligned);
  }
  return values.take();
}

UsedValues cluster_values(const Scenario& scenario) {
  const Fabric& fabric = scenario.platform.fabric;
  const bool has_network = scenario.plan.num_nodes > 1;
  ValueCollector values;
  for (const NodeType* type : types_in_use(scenario)) add_node(*type, scenario.plan, values);
  values.add("domain_nodes", "nodes that NVLink joins", scenario.platform.domain_nodes,
             has_network);
  values.add("fabric/latency", "latency between nodes", weak, fabric.latency, has_network);
  values.add("fabric/collective_latency", "latency of a ring step between nodes", weak,
             fabric.collective_latency, has_network);
  if (fabric.kind != &fabric_kinds().front())  // that of all measured clusters
    values.add_habit("fabric/kind", "fabric", fabric.kind->name, has_network);
  for (const FabricKey& key : fabric.kind->keys)
    add_fabric_key(fabric, key, has_network && (!key.matters || key.matters(fabric)), values);
  add_pairs(scenario, values);
  add_faults(scenario, values);
  return values.take();
}

std::string value_text(double number, ValueUnit unit) {
  constexpr int digits = 4;
  switch (unit) {
    case ValueUnit::count:
    case ValueUnit::ratio:
      return significant_text(number, digits);
    case ValueUnit::time:
      return to_text(Seconds{number});
    case ValueUnit::data_rate:
      return to_text(BytesPerSecond{number});
    case ValueUnit::flop_rate:
      return to_text(FlopsPerSecond{number});
  }
  WT_UNREACHABLE();
}

namespace {

using Range = std::pair<double, double>;

bool lies_in(const UsedNumber& value, const Range& measured) {
  return value.low >= measured.first * (1 - value.tolerance) &&
         value.high <= measured.second * (1 + value.tolerance);
}

/// "attained NIC rate 25.0 GB/s, measured 21.2 GB/s"
std::string difference_text(const UsedNumber& value, const Range* measured) {
  if (measured == nullptr)
    return value.label + " " + value_text(value.low, value.unit) + ", never measured";
  const auto& [lowest, highest] = *measured;
  const bool is_below = value.low < lowest * (1 - value.tolerance);
  return value.label + " " + value_text(is_below ? value.low : value.high, value.unit) +
         ", measured " + value_text(lowest, value.unit) +
         (lowest == highest ? "" : " to " + value_text(highest, value.unit));
}

/// "optimizer fused, measured foreach, none"; `measured` is null where nothing was.
std::string difference_text(const UsedHabit& habit, const std::set<std::string>* measured) {
  return habit.label + " " + habit.word +
         (measured == nullptr ? ", never measured" : ", measured " + listed(*measured));
}

/// Looks up keys that are asked for in ascending order, in one walk through a map.
template <class Value>
class Walk {
 public:
  explicit Walk(const std::map<std::string, Value>& map) : at_(map.begin()), end_(map.end()) {}
  /// Null where the map has no such key.
  const Value* at(const std::string& key) {
    for (; at_ != end_; ++at_) {
      const int order = at_->first.compare(key);
      if (order >= 0) return order == 0 ? &at_->second : nullptr;
    }
    return nullptr;
  }

 private:
  typename std::map<std::string, Value>::const_iterator at_, end_;
};

/// The text of what is used; the rest is counted.
template <class Value, class Measured>
void note(const Value& value, const Measured* measured, ValueDifferences& differences) {
  if (value.is_used)
    differences.used.push_back([&value, measured] { return difference_text(value, measured); });
  else
    ++differences.unused;
}

}  // namespace

void MeasuredValues::include(const UsedValues& values) {
  for (const auto& [key, value] : values.numbers) {
    Range& range = numbers.try_emplace(key, value.low, value.high).first->second;
    range = {std::min(range.first, value.low), std::max(range.second, value.high)};
  }
  for (const auto& [key, habit] : values.habits) habits[key].insert(habit.word);
}

ValueDifferences MeasuredValues::differences(const UsedValues& values) const {
  ValueDifferences differences;
  Walk number(numbers);
  for (const auto& [key, value] : values.numbers) {
    const Range* const range = number.at(key);
    if (range == nullptr || !lies_in(value, *range)) note(value, range, differences);
  }
  Walk words_of(habits);
  for (const auto& [key, habit] : values.habits) {
    const std::set<std::string>* const words = words_of.at(key);
    if (words == nullptr || !words->contains(habit.word)) note(habit, words, differences);
  }
  return differences;
}

}  // namespace windtunnel
