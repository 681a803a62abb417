#include "simulate/compression_report.hpp"

#include <algorithm>
#include <set>

#include "cost/codec_cost.hpp"
#include "cost/collective_cost.hpp"
#include "lower/codec_plan.hpp"
#include "report/number_text.hpp"
#include "schedule/pipeline_program.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// An entry of the compression block.
struct Entry {
  const char* name;
  Traffic traffic;
  const std::optional<Compressor>* compressor;
  bool is_gradient = false;  ///< values are of the gradient type, else of the training precision
};

std::vector<Entry> entries_of(const Compression& c) {
  std::vector<Entry> entries{
      {"pipeline_forward", Traffic::pipeline_forward, &c.pipeline_forward},
      {"pipeline_backward", Traffic::pipeline_backward, &c.pipeline_backward},
      {"data_gradients", Traffic::data_gradients, &c.data_gradients, true},
      {"tensor_activations", Traffic::tensor_activations, &c.tensor_activations},
      {"zero_gather", Traffic::zero_gather, &c.zero_gather}};
  std::erase_if(entries, [](const Entry& entry) { return !entry.compressor->has_value(); });
  return entries;
}

Seconds transfer_time(const Network& network, const Collective& collective) {
  Seconds longest = collective.fixed;
  for (const CollectiveFlow& flow : collective.flows)
    longest = std::max(longest, flow.bytes / network.rate_alone({flow.up, flow.down}));
  return longest;
}

/// Time that a codec takes and time of transfer that it saves.
struct Balance {
  Seconds codec{}, saved{};
};

/// Collectives that a device enters one after the other, and the rows of its work table that encode and decode for them.
struct Reductions {
  std::vector<std::uint32_t> slots;
  std::vector<std::uint16_t> rows;
};

/// Writes what the user should know of each compressed class of traffic.
class CompressionWarner {
 public:
  CompressionWarner(const Scenario& scenario, const BuiltPrograms& built, Report& report)
      : scenario_(scenario),
        plan_(scenario.plan),
        built_(built),
        set_(built.programs),
        report_(report) {}

  void warn(const char* name, const std::string& what) {
    report_.warnings.push_back(std::string("compression of ") + name + " " + what);
  }

  void check(const Entry& entry) {
    if (!changes_traffic(entry)) return;
    if (entry.traffic == Traffic::pipeline_forward || entry.traffic == Traffic::pipeline_backward)
      check_messages(entry);
    if (entry.traffic == Traffic::data_gradients) check_reduction(entry);
    if (entry.traffic == Traffic::tensor_activations && plan_.nodes_per_tensor_group == 1 &&
        !plan_.parallel.gathers_in_passes())
      warn_of_loss(entry, "a microbatch", tensor());
  }

 private:
  /// A message over the slowest of its boundaries.
  Balance message(MessageRow plain, MessageRow first, MessageRow second, DeviceRow encode,
                  DeviceRow decode) const {
    Balance balance;
    const Bytes saved = size(plain) - size(first) - size(second);
    for (const Channel& channel : set_.channels)
      balance.saved =
          std::max(balance.saved,
                   channel.in_node ? saved / channel.bandwidth
                                   : saved / built_.network.rate_alone({channel.up, channel.down}));
    balance.codec = duration(DeviceId{0}, encode) + duration(DeviceId{0}, decode);
    return balance;
  }

  /// Collectives of `stage`'s first device that would move `expansion` times what they move.
  Balance collectives(StageId stage, const Reductions& reductions, double expansion) const {
    const DeviceId device = plan_.device(0, stage, 0);
    const auto& entered = set_.devices[device.index()].collectives;
    Seconds transfer{};
    for (const std::uint32_t slot : reductions.slots)
      if (entered[slot])
        transfer += transfer_time(built_.network, set_.collectives[entered[slot]->index()]);
    Balance balance;
    balance.saved = transfer * (expansion - 1);
    for (const std::uint16_t row : reductions.rows) balance.codec += duration(device, row);
    return balance;
  }

  /// All tensor collectives of a microbatch on the first stage, in the node.
  Balance tensor() const {
    const PlanDevice& device = plan_.devices.front();
    Plan plain = plan_;
    plain.compression.tensor_activations.reset();
    const StageCost without = stage_cost({&scenario_.model,
                                          &plain,
                                          &scenario_.software,
                                          &scenario_.nodes[device.node.index()],
                                          &scenario_.platform.fabric,
                                          device.stage,
                                          device.gpus,
                                          {},
                                          {},
                                          {}});
    Balance balance;
    const std::vector<ChunkCost>& with = built_.cost_of_device.front().chunks;
    for (std::size_t i = 0; i < with.size(); ++i) {
      balance.codec += with[i].forward.of(Part::codec) + with[i].backward.of(Part::codec);
      balance.saved +=
          without.chunks[i].forward.of(Part::tensor_comm) - with[i].forward.of(Part::tensor_comm) +
          without.chunks[i].backward.of(Part::tensor_comm) - with[i].backward.of(Part::tensor_comm);
    }
    return balance;
  }

  Bytes size(MessageRow row) const { return set_.message_bytes[static_cast<std::size_t>(row)]; }
  Seconds duration(DeviceId device, DeviceRow row) const {
    return duration(device, row_of(row, plan_.parallel.virtual_pipeline));
  }
  Seconds duration(DeviceId device, std::uint16_t row) const {
    return set_.work[set_.devices[device.index()].work_base + row].duration;
  }

  void warn_of_loss(const Entry& entry, const std::string& each, const Balance& balance) {
    if (balance.codec <= balance.saved) return;
    warn(entry.name, "loses: " + each + " takes " + to_text(balance.codec) +
                         " to encode and decode and saves " +
                         to_text(std::max(balance.saved, Seconds{0})) + " of transfer");
  }

  /// True if the entry changes any byte; else adds the reason to the warnings.
  bool changes_traffic(const Entry& entry) {
    const Compressor& c = **entry.compressor;
    const Training& training = plan_.training;
    if (report_.traffic[static_cast<std::size_t>(entry.traffic)] == Bytes{0}) {
      warn(entry.name, "does nothing: this plan has no such traffic");
      return false;
    }
    if (c.codec->traits().origin == CodecOrigin::none) return true;
    const std::optional<double> ratio =
        c.codec->ratio(c, entry.is_gradient ? element_size(training.gradient_type)
                                            : element_size(training.precision));
    if (!ratio || *ratio > 1) return true;
    warn(entry.name,
         std::string("saves nothing: ") + c.codec->name() + " makes " +
             (entry.is_gradient ? name_of(training.gradient_type) : name_of(training.precision)) +
             " values " + fixed_text(*ratio, 2) +
             " times smaller, and encoding them still takes its time");
    return false;
  }

  void check_messages(const Entry& entry) {
    if (report_.messages[static_cast<std::size_t>(entry.traffic)].compressed == 0)
      return warn(entry.name, "does nothing: no message reaches the threshold of " +
                                  to_text((*entry.compressor)->threshold));
    warn_of_loss(entry, "a message",
                 entry.traffic == Traffic::pipeline_forward
                     ? message(MessageRow::activation, MessageRow::encoded_activation,
                               MessageRow::encoded_activation_second, DeviceRow::encode_activation,
                               DeviceRow::decode_activation)
                     : message(MessageRow::gradient, MessageRow::encoded_gradient,
                               MessageRow::encoded_gradient_second, DeviceRow::encode_gradient,
                               DeviceRow::decode_gradient));
  }

  /// The reductions of a stage's gradients: after the backward passes, or on each microbatch.
  Reductions reductions() const {
    Reductions all;
    for (const int chunk : reduced_chunks(plan_))
      for (const bool of_experts : {false, true}) {
        for (const ReductionSlot slot : {ReductionSlot::first, ReductionSlot::second})
          all.slots.push_back(slot_of(slot, {chunk, of_experts}));
        for (const ReductionRow row :
             {ReductionRow::encode, ReductionRow::encode_second, ReductionRow::decode})
          all.rows.push_back(row_of(row, {chunk, of_experts}, plan_.parallel.virtual_pipeline));
      }
    return all;
  }

  /// One rank's gradients of experts that others hold too.
  static Bytes reduced_expert_gradients(const StageCost& cost) {
    Bytes gradients{};
    const auto add = [&gradients](const std::vector<Operation>& operations) {
      for (const Operation& operation : operations)
        if (group_of(operation.label) == GroupKind::expert_data &&
            operation.label != Label::gather_expert_parameters)
          gradients += operation.payload;
    };
    add(cost.end);
    for (const ChunkCost& chunk : cost.chunks) add(chunk.reductions);
    return gradients;
  }

  /// Warns if the codec of gradients does nothing, or loses time in a reduction that nothing hides.
  void check_reduction(const Entry& entry) {
    const Parallel& parallel = plan_.parallel;
    if (report_.compressed_stages.empty())
      return warn(entry.name, "does nothing: no stage gains by it");
    if (parallel.overlap_gradient_reduce || parallel.scatters_in_passes()) return;
    const StageId stage{report_.compressed_stages.front()};
    const DeviceId device = plan_.device(0, stage, 0);
    const auto& entered = set_.devices[device.index()].collectives;
    Bytes sent{};
    const Reductions reduced = reductions();
    for (const std::uint32_t slot : reduced.slots)
      if (entered[slot]) {
        const Collective& collective = set_.collectives[entered[slot]->index()];
        sent += collective.traffic_bytes / static_cast<double>(collective.members.size());
      }
    const StageCost& cost = built_.cost_of_device[device.index()];
    const Bytes gradients = stage_gradients(scenario_.model, plan_, stage, cost);
    const Bytes whole =
        (ring_all_reduce_volume(gradients, plan_.reducing_replicas()) +
         ring_all_reduce_volume(reduced_expert_gradients(cost), expert_copies(parallel))) *
        (plan_.devices[device.index()].num_gpus() * (plan_.scatters_gradients() ? 0.5 : 1.0));
    warn_of_loss(entry, "a reduction", collectives(stage, reduced, whole / sent));
  }

  const Scenario& scenario_;
  const Plan& plan_;
  const BuiltPrograms& built_;
  const ProgramSet& set_;
  Report& report_;
};

std::string value_text(const JsonValue* value) {
  if (value == nullptr) return {};
  return value->is_string() ? value->string() : canonical_text(*value);
}

void add_device_codec(const Scenario& scenario, std::size_t type, const std::set<std::string>& keys,
                      Report& report) {
  const Device& device = scenario.platform.node_types[type].device;
  const std::string place = "/platform/node_types/" + std::to_string(type) + "/device/codecs/";
  for (const std::string& key : keys) {
    const auto source = device.codecs->sources.find(key);
    if (source == device.codecs->sources.end()) continue;
    report.assumptions.push_back({"device " + device.name + ": codecs/" + key,
                                  value_text(find_at(scenario.resolved, place + key)),
                                  source->second.text, source->second.evidence});
  }
}

}  // namespace

void add_codec_assumptions(const Scenario& scenario, Report& report) {
  const std::vector<Entry> entries = entries_of(scenario.plan.compression);
  std::set<std::string> named;
  for (std::size_t i = 0; i < scenario.platform.node_types.size(); ++i) {
    const Device& device = scenario.platform.node_types[i].device;
    if (!device.codecs || !named.insert(device.name).second) continue;
    std::set<std::string> keys;
    for (const Entry& entry : entries)
      for (const std::string& key :
           (*entry.compressor)->codec->device_keys(**entry.compressor, *device.codecs))
        keys.insert(key);
    add_device_codec(scenario, i, keys, report);
  }
  for (const Entry& entry : entries) {
    const Compressor& c = **entry.compressor;
    for (const CodecKey& key : c.codec->traits().keys)
      if (key.standing == CodecKey::Standing::assumption)
        report.assumptions.push_back({std::string("compression of ") + entry.name + ": " +
                                          key.name + " of " + c.codec->name(),
                                      fixed_text(c.setting(key.name), 2), "given by the scenario",
                                      Evidence::assumed});
  }
}

void add_compression_warnings(const Scenario& scenario, const BuiltPrograms& built,
                              Report& report) {
  CompressionWarner warner(scenario, built, report);
  for (const Entry& entry : entries_of(built.compression)) warner.check(entry);
  if (scenario.plan.compression.fused_embedding_sync &&
      !fuses_embedding_sync(scenario.model, scenario.plan))
    warner.warn("embedding_sync", "does nothing: this plan synchronises no embeddings");
}

}  // namespace windtunnel
