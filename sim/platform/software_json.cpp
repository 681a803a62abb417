#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

#include "core/object_reader.hpp"
#include "platform/platform_json.hpp"
#include "units/member_reader.hpp"

namespace windtunnel {
namespace {

constexpr int most_layers = 1'000'000;   ///< nor any model
constexpr double most_state_bytes = 64;  ///< nor any state, in bytes a parameter
constexpr double most_values = 1e12;     ///< of a bucket
constexpr int most_launches = 1'000;     ///< of what reads a microbatch

constexpr int most_multiprocessors = 1'000;
constexpr double most_slowdown = 1'000;
constexpr double most_room = 1'000;

using Stack = SoftwareProfile;
using Experts = Stack::Experts;

/// Names of the fp8 scaling recipes; true: current scaling.
const Names<bool> fp8_scalings{{"delayed", false}, {"current", true}};

std::vector<std::string> read_names(ObjectReader& reader, std::string_view key, const char* what) {
  std::vector<std::string> names;
  const JsonValue* list = reader.take(key);
  if (list == nullptr) return names;
  const auto is_name = [](const JsonValue& each) { return each.is_string(); };
  if (!list->is_array() || list->array().empty() || !std::ranges::all_of(list->array(), is_name)) {
    reader.problem(key, std::string("expected a list of at least one ") + what);
    return names;
  }
  for (const JsonValue& each : list->array()) names.push_back(each.string());
  return names;
}

std::vector<std::string> read_devices(ObjectReader& reader, std::string_view key) {
  return read_names(reader, key, "device's name");
}

std::vector<Precision> read_precisions(ObjectReader& reader) {
  std::vector<Precision> precisions;
  for (const std::string& name : read_names(reader, "precisions", "precision"))
    if (const auto precision = enumerator_named<Precision>(name))
      precisions.push_back(*precision);
    else
      reader.problem("precisions", "there is no precision \"" + name + "\"");
  return precisions;
}

/// Reads how kernels of experts are launched, and the work that overlaps with exchanges.
void read_launches(ObjectReader& reader, Experts& experts) {
  given(reader, "kernels", experts.kernels);
  given(reader, "stacked_weights", experts.stacked_weights);
  given(reader, "loop_launch", experts.loop_launch);
  given(reader, "overlap_exchanges", experts.overlap_exchanges);
  given(reader, "exchange_slowdown", experts.exchange_slowdown, 1, most_slowdown);
  given(reader, "pads_tokens", experts.pads_tokens);
  given(reader, "adds_biases", experts.adds_biases);
  given(reader, "activation", experts.activation);
  given(reader, "room", experts.room, 1, most_room);
}

/// Names are for people: models are told by their sizes, since scenarios may hold them without a name.
std::vector<RecipeModel> read_models(ObjectReader& reader) {
  std::vector<RecipeModel> models;
  for (ObjectReader& entry :
       reader.entries("models", "expected a list of at least one model's sizes")) {
    entry.optional_string("name", "");
    constexpr int most = 10'000'000;
    models.push_back({entry.required_int("layers", 1, most), entry.required_int("hidden", 1, most),
                      entry.required_int("experts", 1, most)});
    entry.reject_unknown_keys();
  }
  return models;
}

/// Entries say what differs from the rest of `experts`.
void read_elsewhere(ObjectReader& reader, SoftwareProfile& profile) {
  if (reader.has("elsewhere")) profile.experts_elsewhere.clear();
  for (ObjectReader& entry : reader.entries("elsewhere", "expected a list of exceptions", 0)) {
    SoftwareProfile::ExpertsElsewhere other{read_models(entry), read_devices(entry, "devices"),
                                            read_precisions(entry), profile.experts};
    given(entry, "dispatch", other.experts.dispatch);
    given(entry, "exchange_multiprocessors", other.experts.exchange_multiprocessors, 0,
          most_multiprocessors);
    read_launches(entry, other.experts);
    end_object(entry, "experts/" + place_in(reader, entry), profile.sources);
    profile.experts_elsewhere.push_back(std::move(other));
  }
}

void read_experts(ObjectReader reader, SoftwareProfile& profile) {
  Experts& experts = profile.experts;
  defaulted(reader, "dispatch", experts.dispatch);
  defaulted(reader, "fp8_dispatch", experts.fp8_dispatch);
  defaulted(reader, "fp8_gradient_dispatch", experts.fp8_gradient_dispatch);
  defaulted(reader, "overlap_shared", experts.overlap_shared);
  defaulted(reader, "exchange_multiprocessors", experts.exchange_multiprocessors, 0,
            most_multiprocessors);
  read_launches(reader, experts);
  read_elsewhere(reader, profile);
  end_object(reader, "experts/", profile.sources);
}

/// "26.04.01" as its numbers; empty: no release.
std::vector<int> numbers_of(const std::string& release) {
  std::vector<int> numbers;
  std::istringstream in(release);
  for (std::string part; std::getline(in, part, '.');) {
    constexpr std::size_t most_digits = 4;
    const bool is_number = !part.empty() && part.size() <= most_digits &&
                           std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    if (!is_number) return {};
    numbers.push_back(std::stoi(part));
  }
  return numbers;
}

std::vector<int> read_release(ObjectReader& reader, const char* key) {
  if (reader.take(key) == nullptr) return {};
  const std::string text = reader.required_string(key);
  std::vector<int> numbers = numbers_of(text);
  if (numbers.empty() && reader.are_sound({key}))
    reader.problem(key, "\"" + text + "\" is no release", "such as \"26.04\" or \"26.04.01\"");
  return numbers;
}

/// Laid over other states, which give what is left out; else all of it is needed.
StateBytes read_states(ObjectReader reader, const std::string& prefix, Sources& sources,
                       const StateBytes* base = nullptr) {
  StateBytes states;
  const auto read = [&](const char* key, double StateBytes::*bytes) {
    if (base != nullptr) states.*bytes = base->*bytes;
    base != nullptr ? given(reader, key, states.*bytes, 0, most_state_bytes)
                    : required(reader, key, states.*bytes, 0, most_state_bytes);
  };
  read("weights", &StateBytes::weights);
  read("gradients", &StateBytes::gradients);
  read("optimizer", &StateBytes::optimizer);
  defaulted(reader, "stale_gradients", states.stale_gradients, 0, most_state_bytes);
  defaulted(reader, "step_temporary", states.step_temporary, 0, most_state_bytes);
  given(reader, "pass_gradients", states.pass_gradients, 0, most_state_bytes);
  given(reader, "buckets", states.buckets, 0, most_state_bytes);
  given(reader, "gathered_copies", states.gathered_copies, 0, most_state_bytes);
  defaulted(reader, "gradients_freed_each_step", states.gradients_freed_each_step);
  end_object(reader, prefix, sources);
  return states;
}

/// Yes or no for all of them, or which.
void read_scattered(ObjectReader& reader, Stack& stack) {
  constexpr const char* key = "scatter_pipeline_messages";
  const JsonValue* value = reader.take(key);
  if (value == nullptr || value->is_bool())
    stack.scatter_pipeline_messages =
        reader.optional_bool(key, true) ? ScatteredMessages::all : ScatteredMessages::none;
  else if (value->is_string() && value->string() == "activations")
    stack.scatter_pipeline_messages = ScatteredMessages::activations;
  else
    reader.problem(key, R"(expected true, false or "activations")");
}

/// The entries of list `key`, each for the devices that it names.
template <class Rates, class ReadRates>
std::vector<Rates> read_rates(ObjectReader& reader, const char* key, const ReadRates& read,
                              Sources& sources) {
  std::vector<Rates> found;
  for (ObjectReader& entry : reader.entries(key, "expected a list of at least one pair of rates")) {
    Rates& rates = found.emplace_back();
    read(entry, rates);
    rates.devices = read_devices(entry, "devices");
    if (rates.devices.empty() && entry.are_sound({"devices"}))
      entry.require("devices", "a list of devices' names");
    end_object(entry, place_in(reader, entry), sources);
  }
  return found;
}

void read_flash(ObjectReader& reader, Stack& stack) {
  given(reader, "flash_forward_efficiency", stack.flash_forward_efficiency, least_ratio, 1);
  given(reader, "flash_backward_efficiency", stack.flash_backward_efficiency, least_ratio, 1);
  stack.flash_devices = read_devices(reader, "flash_devices");
  stack.flash_elsewhere = read_rates<Stack::FlashRates>(
      reader, "flash_elsewhere",
      [](ObjectReader& entry, Stack::FlashRates& rates) {
        required(entry, "forward_efficiency", rates.forward, least_ratio, 1);
        required(entry, "backward_efficiency", rates.backward, least_ratio, 1);
      },
      stack.sources);
  stack.memory_rates = read_rates<Stack::MemoryRates>(
      reader, "memory_rates",
      [](ObjectReader& entry, Stack::MemoryRates& rates) {
        required(entry, "forward", rates.forward);
        rates.backward = rates.forward;
        given(entry, "backward", rates.backward);
      },
      stack.sources);
}

void read_compute(ObjectReader& reader, Stack& stack) {
  defaulted(reader, "compute_efficiency", stack.compute_efficiency, least_ratio, most_factor);
  defaulted(reader, "embedding_and_head_as_layers", stack.embedding_and_head_as_layers);
  defaulted(reader, "stages_by_cost", stack.stages_by_cost);
  defaulted(reader, "gradient_accumulation_bytes", stack.gradient_accumulation_bytes, 0,
            most_factor);
  given(reader, "bf16_gradient_accumulation_bytes", stack.bf16_gradient_accumulation_bytes, 0,
        most_factor);
  defaulted(reader, "optimizer_bytes", stack.optimizer_bytes, 0, most_factor);
  given(reader, "zeroes_gradients", stack.zeroes_gradients);
  given(reader, "scales_gradients", stack.scales_gradients);
  given(reader, "copies_gradients", stack.copies_gradients);
  given(reader, "gradient_bucket", stack.gradient_bucket, 0, most_values);
  given(reader, "broadcast_tensors", stack.broadcast_tensors, 0, most_launches);
  defaulted(reader, "cross_entropy", stack.cross_entropy);
  defaulted(reader, "cross_entropy_bytes", stack.cross_entropy_bytes, 0, most_factor);
  defaulted(reader, "fused_kernels", stack.fused_kernels);
  defaulted(reader, "iteration_overhead", stack.iteration_overhead, AmountRange{"0 s", "1 h"});
  read_flash(reader, stack);
  defaulted(reader, "fp8_scaling", stack.current_scaling, fp8_scalings);
  defaulted(reader, "fp8_parameters", stack.fp8_parameters);
  given(reader, "row_cast_efficiency", stack.row_cast_efficiency, least_ratio, 1);
  given(reader, "flash_attention", stack.flash_attention);
  defaulted(reader, "attention_kernel", stack.attention_kernel);
  stack.cudnn_attention_on = read_devices(reader, "cudnn_attention_on");
  given(reader, "recomputed_unit", stack.recomputed_unit);
  given(reader, "ring_merging", stack.ring_merging);
  given(reader, "adapters", stack.adapters);
  defaulted(reader, "nvfp4_first_bf16_layers", stack.nvfp4_first_bf16_layers, 0, most_layers);
  defaulted(reader, "nvfp4_last_bf16_layers", stack.nvfp4_last_bf16_layers, 0, most_layers);
}

void read_communication(ObjectReader& reader, Stack& stack) {
  defaulted(reader, "in_node_collective_slowdown", stack.in_node_collective_slowdown, 1,
            most_factor);
  defaulted(reader, "tensor_collective_overhead", stack.tensor_collective_overhead,
            AmountRange{"0 s", "1 s"});
  defaulted(reader, "overlap_backward_tensor_collectives",
            stack.overlap_backward_tensor_collectives);
  given(reader, "copies_tensor_collectives", stack.copies_tensor_collectives);
  given(reader, "gathers_behind_scatters", stack.gathers_behind_scatters);
  given(reader, "flat_parameters", stack.flat_parameters);
  given(reader, "gathers_by_pat", stack.gathers_by_pat);
  given(reader, "exposed_gather_factor", stack.exposed_gather_factor, 0, most_factor);
  given(reader, "fp8_tensor_gathers", stack.fp8_tensor_gathers);
  given(reader, "no_sync", stack.no_sync);
  defaulted(reader, "regathers_inputs", stack.regathers_inputs);
  defaulted(reader, "pipeline_send", stack.pipeline_send);
  given(reader, "alternates_one_group", stack.alternates_one_group);
  read_scattered(reader, stack);
  defaulted(reader, "gather_scattered_messages", stack.gather_scattered_messages);
  given(reader, "regathers_outputs", stack.regathers_outputs);
  given(reader, "sends_mask", stack.sends_mask);
  defaulted(reader, "gradient_type", stack.gradient_type);
  given(reader, "bf16_gradient_type", stack.bf16_gradient_type);
  given(reader, "embedding_gradient_type", stack.embedding_gradient_type);
}

void read_layer_traffic(ObjectReader reader, const std::string& key, LayerTraffic& traffic,
                        Stack& stack) {
  const auto read = [&reader](const std::string& pass, LayerTraffic::Pass& of) {
    defaulted(reader, pass + "_hidden", of.hidden, 0, most_factor);
    defaulted(reader, pass + "_split", of.split, 0, most_factor);
    defaulted(reader, pass + "_scores", of.scores, 0, most_factor);
    given(reader, pass + "_heads", of.heads, 0, most_factor);
    given(reader, pass + "_latent_heads", of.latent_heads, 0, most_factor);
    defaulted(reader, pass + "_kernels", of.kernels, 0, most_launches);
  };
  read("forward", traffic.forward);
  read("backward", traffic.backward);
  end_object(reader, key + "/", stack.sources);
}

void read_memory(ObjectReader reader, Stack& stack) {
  stack.states_fp16 =
      read_states(reader.child("states_fp16"), "memory/states_fp16/", stack.sources);
  stack.states_bf16 =
      read_states(reader.child("states_bf16"), "memory/states_bf16/", stack.sources);
  defaulted(reader, "allocator_slack", stack.allocator_slack, 1, 10);
  defaulted(reader, "fragmentation", stack.fragmentation, 1, 10);
  defaulted(reader, "reserved_scatter", stack.reserved_scatter, 0, 10);
  defaulted(reader, "fixed_work", stack.fixed_work);
  given(reader, "extra_context", stack.extra_context);
  given(reader, "frees_outputs", stack.frees_outputs);
  given(reader, "transposes_attention", stack.copies.transposes_attention);
  given(reader, "copies_heads", stack.copies.copies_heads);
  given(reader, "repeats_heads", stack.copies.repeats_heads);
  given(reader, "keeps_gate", stack.copies.keeps_gate);
  given(reader, "keeps_norms", stack.copies.keeps_norms);
  given(reader, "sharded_parameters", stack.sharded_parameters);
  given(reader, "live_parameters", stack.live_parameters, 0, most_values);
  given(reader, "foreach_step", stack.foreach_step);
  given(reader, "reentrant_checkpoints", stack.reentrant_checkpoints);
  given(reader, "flattens_adapters", stack.flattens_adapters);
  given(reader, "workspaces", stack.workspaces);
  given(reader, "gather_buffers", stack.gather_buffers, 0, 100);
  given(reader, "waiting_collectives", stack.waiting_collectives, 0, 10'000);
  given(reader, "logs_step_peak", stack.logs_step_peak);
  end_object(reader, "memory/", stack.sources);
}

/// The newest that entries of `releases` begin with, as it is written; empty where there is none.
std::string newest_release(const JsonValue& list) {
  std::string newest;
  for (const JsonValue& entry : list.array()) {
    const JsonValue* from = entry.is_object() ? entry.find("from") : nullptr;
    if (from != nullptr && from->is_string() && numbers_of(from->string()) > numbers_of(newest))
      newest = from->string();
  }
  return newest;
}

/// Lays the newest of `releases` that is no newer than `release` over what the stack does with experts, and over what its recipes set.
/// Without a release asked for, the newest of all applies.
void read_releases(ObjectReader& reader, SoftwareProfile& profile) {
  std::vector<ObjectReader> entries = reader.entries("releases", "expected a list of releases", 0);
  const JsonValue* list = reader.take("releases");
  if (list != nullptr && list->is_array() && !newest_release(*list).empty())
    reader.set_default("release", newest_release(*list));
  const std::vector<int> release = read_release(reader, "release");
  SoftwareProfile chosen = profile;
  std::map<std::vector<int>, std::string> places;  // of the entries, by where they begin
  std::vector<int> newest;                         // that is no newer than `release`
  for (ObjectReader& entry : entries) {
    const std::string place = place_in(reader, entry);
    SoftwareProfile read = profile;
    entry.required_string("from");
    const std::vector<int> from = read_release(entry, "from");
    entry.optional_text("description", "");
    if (entry.take("experts") != nullptr) read_experts(entry.child("experts"), read);
    given(entry, "sequence_parallel", read.sequence_parallel);
    given(entry, "overlap_gradient_reduce", read.overlap_gradient_reduce);
    given(entry, "scales_gradients", read.scales_gradients);
    given(entry, "cross_entropy", read.cross_entropy);
    given(entry, "cross_entropy_bytes", read.cross_entropy_bytes, 0, most_factor);
    given(entry, "attention_kernel", read.attention_kernel);
    given(entry, "gradient_type", read.gradient_type);
    if (entry.take("states_bf16") != nullptr)
      read.states_bf16 = read_states(entry.child("states_bf16"), place + "states_bf16/",
                                     read.sources, &profile.states_bf16);
    entry.reject_unknown_keys();
    if (const auto [same, is_new] = places.emplace(from, entry.pointer()); !from.empty() && !is_new)
      entry.problem("from", "the release is that of " + same->second + " too");
    if (from.empty() || from > release || from < newest) continue;
    newest = from;
    chosen = std::move(read);
  }
  profile = std::move(chosen);
}

}  // namespace

SoftwareProfile read_software(JsonValue& value, const std::string& pointer, Problems& problems) {
  ObjectReader reader(value, pointer, problems);
  SoftwareProfile profile;
  profile.name = reader.required_string("name");
  read_preamble(reader);
  defaulted(reader, "profiled", profile.profiled);
  read_compute(reader, profile);
  read_communication(reader, profile);
  profile.sources.merge(read_sources(reader));
  ObjectReader launch = reader.child("launch");
  required(launch, "kernel", profile.launch.kernel);
  required(launch, "collective", profile.launch.collective);
  defaulted(launch, "collective_per_rank", profile.launch.collective_per_rank);
  defaulted(launch, "collective_per_rank_in", profile.launch.per_rank_in);
  defaulted(launch, "sharpness", profile.launch.sharpness, 1, 100);
  end_object(launch, "launch/", profile.sources);
  if (auto child = reader.optional_child("layer_traffic"))
    read_layer_traffic(*child, "layer_traffic", profile.layer_traffic, profile);
  if (auto child = reader.optional_child("eager_layer_traffic"))
    read_layer_traffic(*child, "eager_layer_traffic", profile.eager_layer_traffic.emplace(),
                       profile);
  if (auto child = reader.optional_child("host_gathers")) {
    Stack::HostGathers& gathers = profile.host_gathers.emplace(Stack::HostGathers{});
    required(*child, "per_tensor", gathers.per_tensor);
    required(*child, "per_rank", gathers.per_rank);
    required(*child, "tensors_per_layer", gathers.tensors_per_layer, 1, 1'000);
    defaulted(*child, "runs_ahead", gathers.runs_ahead);
    end_object(*child, "host_gathers/", profile.sources);
  }
  if (auto child = reader.optional_child("batch_read")) {
    Stack::BatchRead& read = profile.batch_read.emplace(Stack::BatchRead{});
    required(*child, "kernels", read.kernels, 0, most_launches);
    required(*child, "collectives", read.collectives, 0, most_launches);
    defaulted(*child, "on_every_stage", read.on_every_stage);
    end_object(*child, "batch_read/", profile.sources);
  }
  if (auto child = reader.optional_child("experts")) read_experts(*child, profile);
  read_memory(reader.child("memory"), profile);
  reader.take("supports");  // lists of keys of a plan, which the scenario's reader knows
  read_releases(reader, profile);
  reader.reject_unknown_keys();
  return profile;
}

std::optional<SoftwareRelease> release_of(const JsonValue& software) {
  const auto text = [](const JsonValue& object, const char* key) {
    const JsonValue* value = object.find(key);
    return value != nullptr && value->is_string() ? value->string() : std::string();
  };
  const JsonValue* list = software.find("releases");
  SoftwareRelease release{text(software, "release"), {}, {}, false};
  if (release.name.empty() || list == nullptr || !list->is_array()) return std::nullopt;
  for (const JsonValue& entry : list->array()) {
    const std::string from = text(entry, "from");
    if (numbers_of(from) > numbers_of(release.name) ||
        numbers_of(from) < numbers_of(release.known_from))
      continue;
    release.known_from = from;
    release.description = text(entry, "description");
  }
  release.is_newest = release.known_from == newest_release(*list);
  return release;
}

}  // namespace windtunnel
