#include "platform/software_json.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

#include "core/object_reader.hpp"
#include "platform/device_json.hpp"
#include "platform/source_json.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr double least_ratio = 1e-3;     ///< of an efficiency or factor
constexpr double most_factor = 1e3;      ///< no factor of a stack is larger
constexpr int most_layers = 1'000'000;   ///< nor any model
constexpr double most_state_bytes = 64;  ///< nor any state, in bytes a parameter
constexpr int most_launches = 1'000;     ///< of what reads a microbatch

void read_launch(ObjectReader reader, SoftwareProfile& profile) {
  SoftwareProfile::LaunchFloor& launch = profile.launch;
  launch.kernel = required_quantity<Seconds>(reader, "kernel");
  launch.collective = required_quantity<Seconds>(reader, "collective");
  launch.sharpness = reader.optional_number("sharpness", 4, 1, 100);
  profile.sources.merge(read_sources(reader, "launch/"));
  reader.reject_unknown_keys();
}

void read_layer_traffic(ObjectReader reader, SoftwareProfile& profile) {
  const auto read = [&reader](const char* key, double& value) {
    value = reader.optional_number(key, value, 0, most_factor);
  };
  LayerTraffic& traffic = profile.layer_traffic;
  read("forward_hidden", traffic.forward_hidden);
  read("forward_split", traffic.forward_split);
  read("forward_scores", traffic.forward_scores);
  read("backward_hidden", traffic.backward_hidden);
  read("backward_split", traffic.backward_split);
  read("backward_scores", traffic.backward_scores);
  profile.sources.merge(read_sources(reader, "layer_traffic/"));
  reader.reject_unknown_keys();
}

void read_host_gathers(ObjectReader reader, SoftwareProfile& profile) {
  SoftwareProfile::HostGathers gathers;
  gathers.rate = required_quantity<BytesPerSecond>(reader, "rate");
  gathers.per_rank = required_quantity<Seconds>(reader, "per_rank");
  gathers.tensors_per_layer = reader.required_int("tensors_per_layer", 1, 1'000);
  profile.host_gathers = gathers;
  profile.sources.merge(read_sources(reader, "host_gathers/"));
  reader.reject_unknown_keys();
}

constexpr int most_multiprocessors = 1'000;
constexpr double most_slowdown = 1'000;

std::vector<std::string> read_names(ObjectReader& reader, std::string_view key, const char* what) {
  std::vector<std::string> names;
  const JsonValue* list = reader.take(key);
  if (list == nullptr) return names;
  const auto is_name = [](const JsonValue& each) { return each.is_string(); };
  if (!list->is_array() || list->array().empty() ||
      !std::all_of(list->array().begin(), list->array().end(), is_name)) {
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
  const auto known = {Precision::fp32, Precision::tf32,  Precision::fp16, Precision::bf16,
                      Precision::fp8,  Precision::mxfp8, Precision::nvfp4};
  std::vector<Precision> precisions;
  for (const std::string& name : read_names(reader, "precisions", "precision")) {
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](Precision each) { return name == name_of(each); });
    if (found == known.end())
      reader.problem("precisions", "there is no precision \"" + name + "\"");
    else
      precisions.push_back(*found);
  }
  return precisions;
}

const std::vector<std::pair<std::string, ExpertDispatch>> dispatches = {
    {"all_to_all", ExpertDispatch::all_to_all},
    {"one_copy_per_node", ExpertDispatch::one_copy_per_node}};

/// How kernels of experts are launched, and what runs beside exchanges.
void read_launches(ObjectReader& reader, SoftwareProfile::Experts& experts) {
  if (reader.take("kernels") != nullptr)
    experts.kernels = reader.required_enum<ExpertKernels>(
        "kernels",
        {{"each_expert", ExpertKernels::each_expert}, {"all_experts", ExpertKernels::all_experts}});
  if (const auto time = given_quantity<Seconds>(reader, "loop_launch")) experts.loop_launch = *time;
  if (reader.take("overlap_exchanges") != nullptr)
    experts.overlap_exchanges = reader.optional_bool("overlap_exchanges", false);
  if (reader.take("exchange_slowdown") != nullptr)
    experts.exchange_slowdown = reader.required_number("exchange_slowdown", 1, most_slowdown);
  if (reader.take("pads_tokens") != nullptr)
    experts.pads_tokens = reader.optional_bool("pads_tokens", false);
  if (reader.take("adds_biases") != nullptr)
    experts.adds_biases = reader.optional_bool("adds_biases", false);
}

/// Names are for people: models are told by their sizes, since scenarios may hold them without a name.
std::vector<RecipeModel> read_models(ObjectReader& reader) {
  std::vector<RecipeModel> models;
  JsonValue* list = reader.take("models");
  if (list == nullptr) return models;
  if (!list->is_array() || list->array().empty()) {
    reader.problem("models", "expected a list of at least one model's sizes");
    return models;
  }
  for (std::size_t i = 0; i < list->array().size(); ++i) {
    ObjectReader entry(list->array()[i], reader.pointer() + "/models/" + std::to_string(i),
                       reader.problems());
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
  JsonValue* list = reader.take("elsewhere");
  if (list == nullptr) return;
  if (!list->is_array()) return reader.problem("elsewhere", "expected a list of exceptions");
  profile.experts_elsewhere.clear();
  for (std::size_t i = 0; i < list->array().size(); ++i) {
    const std::string place = "elsewhere/" + std::to_string(i);
    ObjectReader entry(list->array()[i], reader.pointer() + "/" + place, reader.problems());
    SoftwareProfile::ExpertsElsewhere other{read_models(entry), read_devices(entry, "devices"),
                                            read_precisions(entry), profile.experts};
    if (entry.take("dispatch") != nullptr)
      other.experts.dispatch = entry.required_enum<ExpertDispatch>("dispatch", dispatches);
    if (entry.take("exchange_multiprocessors") != nullptr)
      other.experts.exchange_multiprocessors =
          entry.required_int("exchange_multiprocessors", 0, most_multiprocessors);
    read_launches(entry, other.experts);
    profile.sources.merge(read_sources(entry, "experts/" + place + "/"));
    entry.reject_unknown_keys();
    profile.experts_elsewhere.push_back(std::move(other));
  }
}

void read_experts(ObjectReader reader, SoftwareProfile& profile) {
  SoftwareProfile::Experts& experts = profile.experts;
  experts.dispatch = reader.optional_enum<ExpertDispatch>("dispatch", experts.dispatch, dispatches);
  experts.fp8_dispatch = reader.optional_bool("fp8_dispatch", experts.fp8_dispatch);
  experts.fp8_gradient_dispatch =
      reader.optional_bool("fp8_gradient_dispatch", experts.fp8_gradient_dispatch);
  experts.overlap_shared = reader.optional_bool("overlap_shared", experts.overlap_shared);
  experts.exchange_multiprocessors = reader.optional_int(
      "exchange_multiprocessors", experts.exchange_multiprocessors, 0, most_multiprocessors);
  read_launches(reader, experts);
  read_elsewhere(reader, profile);
  profile.sources.merge(read_sources(reader, "experts/"));
  reader.reject_unknown_keys();
}

/// "26.04.01" as its numbers; empty: no release.
std::vector<int> numbers_of(const std::string& release) {
  std::vector<int> numbers;
  std::istringstream in(release);
  for (std::string part; std::getline(in, part, '.');) {
    constexpr std::size_t most_digits = 4;
    const bool is_number =
        !part.empty() && part.size() <= most_digits &&
        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
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

std::vector<std::pair<std::string, GradientType>> gradient_types() {
  return {{"fp16", GradientType::fp16}, {"bf16", GradientType::bf16}, {"fp32", GradientType::fp32}};
}

/// With the states that they are laid over, if there are any.
StateBytes read_states(ObjectReader reader, const std::string& prefix, Sources& sources,
                       const StateBytes* base = nullptr) {
  StateBytes states;
  const auto read = [&](const char* key, double StateBytes::*bytes) {
    if (base != nullptr && reader.take(key) == nullptr)
      states.*bytes = base->*bytes;
    else
      states.*bytes = reader.required_number(key, 0, most_state_bytes);
  };
  read("weights", &StateBytes::weights);
  read("gradients", &StateBytes::gradients);
  read("optimizer", &StateBytes::optimizer);
  states.stale_gradients = reader.optional_number("stale_gradients", 0, 0, most_state_bytes);
  states.step_temporary = reader.optional_number("step_temporary", 0, 0, most_state_bytes);
  states.gradients_freed_each_step = reader.optional_bool("gradients_freed_each_step", true);
  sources.merge(read_sources(reader, prefix));
  reader.reject_unknown_keys();
  return states;
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
/// Where no release is asked for, the newest of all is meant.
void read_releases(ObjectReader& reader, SoftwareProfile& profile) {
  JsonValue* list = reader.take("releases");
  if (list != nullptr && !list->is_array())
    return reader.problem("releases", "expected a list of releases");
  const std::string newest_known = list == nullptr ? std::string() : newest_release(*list);
  if (!newest_known.empty()) reader.set_default("release", newest_known);
  const std::vector<int> release = read_release(reader, "release");
  if (list == nullptr) return;
  SoftwareProfile chosen = profile;
  std::map<std::vector<int>, std::string> places;  // of the entries, by where they begin
  std::vector<int> newest;                         // that is no newer than `release`
  for (std::size_t i = 0; i < list->array().size(); ++i) {
    const std::string place = "releases/" + std::to_string(i);
    ObjectReader entry(list->array()[i], reader.pointer() + "/" + place, reader.problems());
    SoftwareProfile read = profile;
    entry.required_string("from");
    const std::vector<int> from = read_release(entry, "from");
    entry.optional_text("description", "");
    if (entry.take("experts") != nullptr) read_experts(entry.child("experts"), read);
    for (auto [key, recipe] : {std::pair{"sequence_parallel", &read.sequence_parallel},
                               std::pair{"overlap_gradient_reduce", &read.overlap_gradient_reduce},
                               std::pair{"scales_gradients", &read.scales_gradients},
                               std::pair{"in_place_cross_entropy", &read.in_place_cross_entropy}})
      if (entry.take(key) != nullptr) *recipe = entry.optional_bool(key, false);
    if (entry.take("cross_entropy_bytes") != nullptr)
      read.cross_entropy_bytes = entry.required_number("cross_entropy_bytes", 0, most_factor);
    if (entry.take("attention_kernel") != nullptr)
      read.attention_kernel = entry.required_enum<FlashKernel>("attention_kernel", flash_kernels());
    if (entry.take("gradient_type") != nullptr)
      read.gradient_type = entry.required_enum<GradientType>("gradient_type", gradient_types());
    if (entry.take("states_bf16") != nullptr)
      read.states_bf16 = read_states(entry.child("states_bf16"), place + "/states_bf16/",
                                     read.sources, &profile.states_bf16);
    entry.reject_unknown_keys();
    if (const auto [same, is_new] = places.emplace(from, place); !from.empty() && !is_new)
      entry.problem("from",
                    "the release is that of " + reader.pointer() + "/" + same->second + " too");
    if (from.empty() || from > release || from < newest) continue;
    newest = from;
    chosen = std::move(read);
  }
  profile = std::move(chosen);
}

/// Yes or no for all of them, or which.
ScatteredMessages read_scattered(ObjectReader& reader) {
  constexpr const char* key = "scatter_pipeline_messages";
  const JsonValue* value = reader.take(key);
  if (value == nullptr || value->is_bool())
    return reader.optional_bool(key, true) ? ScatteredMessages::all : ScatteredMessages::none;
  if (value->is_string() && value->string() == "activations") return ScatteredMessages::activations;
  reader.problem(key, R"(expected true, false or "activations")");
  return ScatteredMessages::all;
}

void read_messages(ObjectReader& reader, SoftwareProfile& profile) {
  profile.scatter_pipeline_messages = read_scattered(reader);
  profile.gather_scattered_messages = reader.optional_bool("gather_scattered_messages", false);
  if (reader.take("regathers_outputs") != nullptr)
    profile.regathers_outputs = reader.optional_bool("regathers_outputs", false);
  if (reader.take("sends_mask") != nullptr)
    profile.sends_mask = reader.optional_bool("sends_mask", false);
}

void read_batch_read(ObjectReader reader, SoftwareProfile& profile) {
  SoftwareProfile::BatchRead read;
  read.kernels = reader.required_int("kernels", 0, most_launches);
  read.collectives = reader.required_int("collectives", 0, most_launches);
  read.on_every_stage = reader.optional_bool("on_every_stage", true);
  profile.batch_read = read;
  profile.sources.merge(read_sources(reader, "batch_read/"));
  reader.reject_unknown_keys();
}

void read_communication(ObjectReader& reader, SoftwareProfile& profile) {
  profile.in_node_collective_slowdown =
      reader.optional_number("in_node_collective_slowdown", 1, 1, most_factor);
  profile.tensor_collective_overhead =
      optional_quantity<Seconds>(reader, "tensor_collective_overhead", "0 s", {"0 s", "1 s"});
  profile.overlap_backward_tensor_collectives =
      reader.optional_bool("overlap_backward_tensor_collectives", true);
  if (reader.take("copies_tensor_collectives") != nullptr)
    profile.copies_tensor_collectives = reader.optional_bool("copies_tensor_collectives", false);
  if (reader.take("fp8_tensor_gathers") != nullptr)
    profile.fp8_tensor_gathers = reader.optional_bool("fp8_tensor_gathers", false);
  profile.regathers_inputs = reader.optional_bool("regathers_inputs", true);
  profile.pipeline_send = reader.optional_enum<PipelineSend>(
      "pipeline_send", PipelineSend::eager,
      {{"eager", PipelineSend::eager}, {"blocking_pairs", PipelineSend::blocking_pairs}});
  read_messages(reader, profile);
  profile.gradient_type =
      reader.optional_enum<GradientType>("gradient_type", GradientType::fp32, gradient_types());
  if (reader.take("bf16_gradient_type") != nullptr)
    profile.bf16_gradient_type =
        reader.required_enum<GradientType>("bf16_gradient_type", gradient_types());
  if (reader.take("embedding_gradient_type") != nullptr)
    profile.embedding_gradient_type =
        reader.required_enum<GradientType>("embedding_gradient_type", gradient_types());
  if (reader.take("exposed_gather_factor") != nullptr)
    profile.exposed_gather_factor = reader.required_number("exposed_gather_factor", 0, most_factor);
}

std::optional<double> optional_ratio(ObjectReader& reader, std::string_view key) {
  if (reader.take(key) == nullptr) return std::nullopt;
  return reader.required_number(key, least_ratio, 1);
}

/// Reads the entries of list `key`, each for the devices that it names, with `read_rates`.
template <class Rates>
std::vector<Rates> read_rates_of_devices(ObjectReader& reader, const char* key,
                                         void (*read_rates)(ObjectReader&, Rates&),
                                         Sources& sources) {
  std::vector<Rates> found;
  JsonValue* list = reader.take(key);
  if (list == nullptr) return found;
  if (!list->is_array() || list->array().empty()) {
    reader.problem(key, "expected a list of at least one pair of rates");
    return found;
  }
  for (std::size_t i = 0; i < list->array().size(); ++i) {
    const std::string place = std::string(key) + "/" + std::to_string(i);
    ObjectReader entry(list->array()[i], reader.pointer() + "/" + place, reader.problems());
    Rates& rates = found.emplace_back();
    read_rates(entry, rates);
    rates.devices = read_devices(entry, "devices");
    if (rates.devices.empty() && entry.are_sound({"devices"}))
      entry.require("devices", "a list of devices' names");
    sources.merge(read_sources(entry, place + "/"));
    entry.reject_unknown_keys();
  }
  return found;
}

/// Names of devices; nothing is written back where there are none.
void read_flash(ObjectReader& reader, SoftwareProfile& profile) {
  using Rates = SoftwareProfile::FlashRates;
  profile.flash_forward_efficiency = optional_ratio(reader, "flash_forward_efficiency");
  profile.flash_backward_efficiency = optional_ratio(reader, "flash_backward_efficiency");
  profile.flash_devices = read_devices(reader, "flash_devices");
  profile.flash_elsewhere = read_rates_of_devices<Rates>(
      reader, "flash_elsewhere",
      [](ObjectReader& entry, Rates& rates) {
        rates.forward = entry.required_number("forward_efficiency", least_ratio, 1);
        rates.backward = entry.required_number("backward_efficiency", least_ratio, 1);
      },
      profile.sources);
}

void read_memory_rates(ObjectReader& reader, SoftwareProfile& profile) {
  using Rates = SoftwareProfile::MemoryRates;
  profile.memory_rates = read_rates_of_devices<Rates>(
      reader, "memory_rates",
      [](ObjectReader& entry, Rates& rates) {
        rates.forward = required_quantity<BytesPerSecond>(entry, "forward");
        rates.backward = rates.forward;
        if (entry.take("backward") != nullptr)
          rates.backward = required_quantity<BytesPerSecond>(entry, "backward");
      },
      profile.sources);
}

void read_compute(ObjectReader& reader, SoftwareProfile& profile) {
  profile.compute_efficiency =
      reader.optional_number("compute_efficiency", 1, least_ratio, most_factor);
  profile.embedding_and_head_as_layers =
      reader.optional_bool("embedding_and_head_as_layers", false);
  profile.gradient_accumulation_bytes =
      reader.optional_number("gradient_accumulation_bytes", 6, 0, most_factor);
  if (reader.take("bf16_gradient_accumulation_bytes") != nullptr)
    profile.bf16_gradient_accumulation_bytes =
        reader.required_number("bf16_gradient_accumulation_bytes", 0, most_factor);
  profile.optimizer_bytes = reader.optional_number("optimizer_bytes", 30, 0, most_factor);
  for (auto [key, does] : {std::pair{"zeroes_gradients", &profile.zeroes_gradients},
                           std::pair{"scales_gradients", &profile.scales_gradients},
                           std::pair{"in_place_cross_entropy", &profile.in_place_cross_entropy}})
    if (reader.take(key) != nullptr) *does = reader.optional_bool(key, false);
  profile.cross_entropy_bytes = reader.optional_number("cross_entropy_bytes", 30, 0, most_factor);
  profile.fused_kernels = reader.optional_bool("fused_kernels", true);
  profile.iteration_overhead =
      optional_quantity<Seconds>(reader, "iteration_overhead", "2 ms", {"0 s", "1 h"});
  read_flash(reader, profile);
  read_memory_rates(reader, profile);
  profile.current_scaling =
      reader.optional_enum<bool>("fp8_scaling", false, {{"delayed", false}, {"current", true}});
  profile.fp8_parameters = reader.optional_bool("fp8_parameters", false);
  profile.attention_kernel =
      reader.optional_enum<FlashKernel>("attention_kernel", FlashKernel::cudnn, flash_kernels());
  if (reader.take("recomputed_unit") != nullptr)
    profile.recomputed_unit = reader.required_enum<RecomputedUnit>(
        "recomputed_unit",
        {{"modules", RecomputedUnit::modules}, {"operations", RecomputedUnit::operations}});
  if (reader.take("ring_merging") != nullptr)
    profile.ring_merging = reader.required_enum<RingMerging>(
        "ring_merging", {{"uncounted", RingMerging::uncounted},
                         {"fused", RingMerging::fused},
                         {"by_operation", RingMerging::by_operation}});
  profile.nvfp4_first_bf16_layers =
      reader.optional_int("nvfp4_first_bf16_layers", 0, 0, most_layers);
  profile.nvfp4_last_bf16_layers = reader.optional_int("nvfp4_last_bf16_layers", 0, 0, most_layers);
}

void read_memory(ObjectReader reader, SoftwareProfile& profile) {
  profile.states_fp16 =
      read_states(reader.child("states_fp16"), "memory/states_fp16/", profile.sources);
  profile.states_bf16 =
      read_states(reader.child("states_bf16"), "memory/states_bf16/", profile.sources);
  profile.allocator_slack = reader.optional_number("allocator_slack", 1.206, 1, 10);
  profile.fragmentation = reader.optional_number("fragmentation", 1.065, 1, 10);
  profile.fixed_work = optional_quantity<Bytes>(reader, "fixed_work", "46 MiB");
  if (reader.take("extra_context") != nullptr)
    profile.extra_context = required_quantity<Bytes>(reader, "extra_context");
  if (reader.take("frees_outputs") != nullptr)
    profile.frees_outputs = reader.optional_bool("frees_outputs", false);
  profile.sources.merge(read_sources(reader, "memory/"));
  reader.reject_unknown_keys();
}

}  // namespace

SoftwareProfile read_software(JsonValue& value, const std::string& pointer, Problems& problems) {
  ObjectReader reader(value, pointer, problems);
  SoftwareProfile profile;
  profile.name = reader.required_string("name");
  read_preamble(reader);
  profile.profiled = reader.optional_bool("profiled", false);
  read_compute(reader, profile);
  read_communication(reader, profile);
  profile.sources.merge(read_sources(reader));
  read_launch(reader.child("launch"), profile);
  if (reader.take("layer_traffic") != nullptr)
    read_layer_traffic(reader.child("layer_traffic"), profile);
  if (reader.take("host_gathers") != nullptr)
    read_host_gathers(reader.child("host_gathers"), profile);
  if (reader.take("batch_read") != nullptr) read_batch_read(reader.child("batch_read"), profile);
  if (reader.take("experts") != nullptr) read_experts(reader.child("experts"), profile);
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
