#include "scenario/plan_json.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/contracts.hpp"
#include "core/count_text.hpp"
#include "core/json_value.hpp"
#include "core/mapped.hpp"
#include "core/number_in.hpp"
#include "cost/codec_table.hpp"
#include "plan/pipeline_layout.hpp"
#include "plan/plan_check.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule_file_json.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr int most_stages = 100'000;
constexpr int most_chunks = 1024;
/// MVAPICH-Plus compresses messages from 1 MB on, through a buffer of 32 MB (its documentation of zfp, 2024-11-13).
constexpr const char* library_threshold = "1 MB";
constexpr const char* library_buffer = "32 MB";

/// Absent: what the library does that brings the codec, and nothing for the others.
Bytes read_limit(ObjectReader& reader, std::string_view key, const char* of_library,
                 const Codec& codec) {
  if (codec.traits().origin == CodecOrigin::library)
    return optional_quantity<Bytes>(reader, key, of_library);
  return given_quantity<Bytes>(reader, key).value_or(Bytes{0});
}

const Codec* read_codec(ObjectReader& reader) {
  return reader.required_enum<const Codec*>("codec", mapped(codecs(), [](const Codec* codec) {
                                              return std::pair(std::string(codec->name()), codec);
                                            }));
}

/// False, with a problem, when it is not known which codec is meant: then neither are its keys.
bool names_codec(ObjectReader& reader) {
  read_codec(reader);
  if (reader.are_sound({"codec"})) return true;
  if (reader.has("codec")) return false;
  for (const Codec* codec : codecs())
    for (const CodecKey& key : codec->traits().keys) reader.take(key.name);
  for (const char* key :
       {"error_feedback", "threshold", "buffer", "messages", "chunks", "stream", "stages"})
    reader.take(key);
  reader.reject_unknown_keys();  // one of which may be a misspelt "codec"
  return false;
}

/// Nothing for a rate that is left out.
std::optional<double> read_setting(ObjectReader& reader, const CodecKey& key) {
  switch (key.type) {
    case CodecKey::Type::whole_number:
      return reader.required_int(key.name, static_cast<std::int64_t>(key.least),
                                 static_cast<std::int64_t>(key.most));
    case CodecKey::Type::number:
      return reader.required_number(key.name, key.least, key.most);
    case CodecKey::Type::data_rate:
      if (const auto rate = given_quantity<BytesPerSecond>(reader, key.name)) return rate->value();
      return std::nullopt;
  }
  WT_UNREACHABLE();
}

Compressor read_compressor(ObjectReader& reader) {
  Compressor c;
  c.codec = read_codec(reader);
  for (const CodecKey& key : c.codec->traits().keys)
    if (const std::optional<double> value = read_setting(reader, key))
      c.settings[key.name] = *value;
  if (c.codec->needs_sums()) c.error_feedback = reader.optional_bool("error_feedback", true);
  c.threshold = read_limit(reader, "threshold", library_threshold, *c.codec);
  c.buffer = read_limit(reader, "buffer", library_buffer, *c.codec);
  return c;
}

/// "stages": the first so many, a list of them, or "auto".
CompressedStages read_stages(ObjectReader& reader) {
  CompressedStages chosen;
  const JsonValue* stages = reader.take("stages");
  if (stages == nullptr) return chosen;
  if (stages->is_string() && stages->string() == "auto") {
    chosen.kind = CompressedStages::Kind::automatic;
    return chosen;
  }
  chosen.kind = CompressedStages::Kind::listed;
  if (!stages->is_array()) {
    const int count = reader.required_int("stages", 1, most_stages);
    for (int stage = 0; stage < count; ++stage) chosen.listed.push_back(stage);
    return chosen;
  }
  chosen.listed = reader.optional_int_list("stages", 0, most_stages);
  if (stages->array().empty())
    reader.problem("stages", "stages is an empty list", "leave the class out to compress nothing");
  return chosen;
}

/// Keys that only messages between stages have.
void read_message_keys(ObjectReader& reader, Compressor& compressor) {
  compressor.chunks = reader.optional_int("chunks", 1, 1, most_chunks);
  if (compressor.codec->sends_factors() && compressor.chunks > 1)
    reader.problem("chunks",
                   "chunks is " + std::to_string(compressor.chunks) + ", and " +
                       compressor.codec->name() +
                       " needs a whole message before it can send any of it",
                   "leave chunks out, or take another codec");
  compressor.stream = reader.optional_enum("stream", CodecStream::compute);
}

/// The entry of a class with a codec; nothing when it is absent, or when its codec is not known.
std::optional<Compressor> read_class(ObjectReader& block, const char* name,
                                     Compression& compression) {
  std::optional<ObjectReader> reader = block.optional_child(name);
  if (!reader || !names_codec(*reader)) return std::nullopt;
  const std::string_view key = name;
  Compressor compressor = read_compressor(*reader);
  if (key == "pipeline_backward")
    compression.backward_messages = reader->optional_enum("messages", CompressedMessages::all);
  if (key == "pipeline_forward") reader->optional_enum<bool>("messages", false, {{"all", false}});
  if (key == "pipeline_backward" || key == "pipeline_forward")
    read_message_keys(*reader, compressor);
  if (key == "data_gradients") compression.gradient_stages = read_stages(*reader);
  reader->reject_unknown_keys();
  return compressor;
}

/// Origin of `column` of a string, if the string was written without escapes.
Origin origin_in(const JsonValue& string, std::size_t column) {
  Origin origin = string.origin;
  const int quotes = origin.kind == OriginKind::file ? 2 : 0;
  if (origin.length != static_cast<int>(string.string().size()) + quotes) return origin;
  origin.column += static_cast<std::int64_t>(column) + quotes / 2;
  origin.length = 1;
  return origin;
}

/// Megatron-LM's pipeline layout in place of a list.
PipelineLayout read_layout(ObjectReader& reader, const JsonValue& value) {
  auto layout = read_pipeline_layout(value.string());
  if (auto* parts = std::get_if<PipelineLayout>(&layout)) return std::move(*parts);
  const auto& fault = std::get<LayoutFault>(layout);
  reader.problems().add(
      {origin_in(value, fault.column), pointer_join(reader.pointer(), "stage_layers"),
       fault.message + ", column " + std::to_string(fault.column + 1) + " of the layout",
       fault.suggestion});
  return {};
}

/// A list for each stage, of a number for each of its chunks.
void read_chunk_layers(ObjectReader& reader, const JsonValue::Array& stages, ParallelBlock& block) {
  const std::string pointer = pointer_join(reader.pointer(), "stage_layers");
  const auto refuse = [&reader](const JsonValue& value, const std::string& place,
                                const std::string& why) {
    reader.problems().add({value.origin, place, why, "one list a stage, with one number a chunk"});
  };
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const std::string place = pointer_join(pointer, std::to_string(stage));
    std::vector<int>& chunks = block.chunk_layers.emplace_back();
    if (!stages[stage].is_array()) {
      refuse(stages[stage], place, text_for_message(stages[stage]) + " is no list");
      continue;
    }
    for (const JsonValue& number : stages[stage].array()) {
      const auto* const count = std::get_if<std::int64_t>(&number.content);
      if (count != nullptr && *count >= 0 && *count <= most_layers)
        chunks.push_back(static_cast<int>(*count));
      else
        refuse(number, pointer_join(place, std::to_string(chunks.size())),
               text_for_message(number) + (count == nullptr ? " is no number of layers"
                                           : *count < 0     ? " is negative"
                                                            : " is too large, the most is 100000"));
    }
  }
}

void read_edge_layers(ObjectReader& reader, Parallel& parallel) {
  std::optional<ObjectReader> edges = reader.optional_child("edge_layers");
  if (!edges) return;
  parallel.edge_layers.embedding = edges->optional_int("embedding", 0, 0, most_layers);
  parallel.edge_layers.loss = edges->optional_int("loss", 0, 0, most_layers);
  edges->reject_unknown_keys();
}

void read_stage_layers(ObjectReader& reader, ParallelBlock& block) {
  const JsonValue* const value = reader.take("stage_layers");
  block.gives_layers = value != nullptr;
  if (value == nullptr || asks_for_balance(reader)) return;
  if (value->is_string()) {
    block.layout = read_layout(reader, *value);
    return;
  }
  if (value->is_array() && !value->array().empty() && value->array().front().is_array()) {
    read_chunk_layers(reader, value->array(), block);
    return;
  }
  std::vector<int> layers = reader.optional_int_list("stage_layers", 0, most_layers);
  if (value->is_array() && value->array().empty())
    reader.problem("stage_layers", "stage_layers is an empty list", "one number a stage");
  if (layers.size() > most_layers) {
    reader.problem("stage_layers", "stage_layers has more than 100000 entries");
    layers.clear();
  }
  block.parallel.stage_layers = std::move(layers);
}

/// "3:7" as node and GPU.
std::optional<std::pair<int, int>> place_in(const JsonValue& entry) {
  const std::string_view text = entry.is_string() ? std::string_view(entry.string()) : "";
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto node = number_in<int>(text.substr(0, colon));
  const auto gpu = number_in<int>(text.substr(std::min(colon + 1, text.size())));
  if (!node || !gpu || *node < 0 || *gpu < 0) return std::nullopt;
  return std::pair{*node, *gpu};
}

std::string why_no_gpu(const JsonValue& entry, const std::pair<int, int>& place,
                       const ClusterShape& cluster) {
  const std::string subject = text_for_message(entry);
  const int nodes = static_cast<int>(cluster.gpus_by_node.size());
  if (place.first >= nodes)
    return subject + " names node " + std::to_string(place.first) + ", but the nodes are 0 to " +
           std::to_string(nodes - 1);
  const int gpus = cluster.gpus_by_node[static_cast<std::size_t>(place.first)];
  if (place.second >= gpus)
    return subject + " names GPU " + std::to_string(place.second) +
           ", but the node has GPUs 0 to " + std::to_string(gpus - 1);
  return {};
}

/// node * gpus + gpu names a GPU only where all nodes have as many.
void expect_equal_nodes(ObjectReader& reader, const ClusterShape& cluster) {
  const auto [fewest, most] = std::ranges::minmax_element(cluster.gpus_by_node);
  if (*fewest != *most)
    reader.problem("placement",
                   "a placement by rank needs nodes with equally many GPUs, these have " +
                       std::to_string(*fewest) + " to " + std::to_string(*most));
}

/// Keys that say how parameters are sharded, where they are not, and keys that would change nothing where they are.
void reject_sharding_keys(ObjectReader& reader, const Parallel& parallel,
                          const SoftwareProfile& software) {
  const auto reject = [&](const char* key, int value, int fallback, int least = 3) {
    if (parallel.zero_stage < least && value != fallback && reader.are_sound({key, "zero_stage"}))
      reader.problem(key,
                     std::string(key) + " is for zero_stage " + (least == 3 ? "3" : "1 to 3") +
                         ", but zero_stage is " + std::to_string(parallel.zero_stage),
                     "leave it out");
  };
  if (parallel.scatters_in_passes() && parallel.overlap_gradient_reduce &&
      reader.are_sound({"overlap_gradient_reduce", "zero_stage"}))
    reader.problem(
        "overlap_gradient_reduce",
        "zero_stage 3 scatters the gradients of each layer during the backward pass in any "
        "case",
        "leave it out");
  if (parallel.zero_stage == 3 && parallel.zero_prefetch > 0 && software.waits_for_gathers() &&
      reader.are_sound({"zero_prefetch", "zero_stage"}))
    reader.problem("zero_prefetch",
                   "with " + software.name +
                       " the host gathers one parameter after another: nothing is gathered ahead",
                   "leave it out");
  reject("zero_prefetch", parallel.zero_prefetch, software.waits_for_gathers() ? 0 : 1);
  reject("zero_group", parallel.zero_group, Parallel{}.zero_group, 1);
  reject("reshard_after_forward", parallel.reshard_after_forward, true);
  reject("no_sync", parallel.no_sync, false);
  if (parallel.no_sync && parallel.zero_stage == 3 && parallel.pipeline > 1 &&
      reader.are_sound({"no_sync", "zero_stage", "pipeline"}))
    reader.problem("no_sync", "the stages of a pipeline add up whole gradients in any case",
                   "leave it out");
  if (parallel.no_sync && parallel.zero_stage == 3 &&
      software.sharded_parameters == ShardedParameters::uncounted &&
      reader.are_sound({"no_sync", "zero_stage"}))
    reader.problem("no_sync",
                   software.name + " scatters the gradients of every microbatch with zero_stage 3",
                   "leave it out");
}

}  // namespace

Compression read_compression(ObjectReader reader) {
  Compression compression;
  compression.pipeline_forward = read_class(reader, "pipeline_forward", compression);
  compression.pipeline_backward = read_class(reader, "pipeline_backward", compression);
  compression.data_gradients = read_class(reader, "data_gradients", compression);
  if (auto entry = reader.optional_child("embedding_sync")) {
    compression.fused_embedding_sync = entry->optional_bool("fused", false);
    entry->reject_unknown_keys();
  }
  compression.tensor_activations = read_class(reader, "tensor_activations", compression);
  compression.zero_gather = read_class(reader, "zero_gather", compression);
  reader.reject_unknown_keys();
  return compression;
}

void read_schedule(ObjectReader& reader, const Key& key, PlanChoice& choice) {
  JsonValue* const value = reader.take("schedule");
  if (value != nullptr && value->is_object()) {
    const std::string pointer = pointer_join(reader.pointer(), "schedule");
    choice.parallel.schedule =
        written_schedule(read_schedule_orders(*value, pointer, reader.problems()));
  } else if (value == nullptr || !value->is_string() || !looks_like_path(value->string())) {
    read_value(reader, key, choice);
  }
}

void read_placement(ObjectReader& reader, const Key& key, PlanChoice& choice) {
  const JsonValue* value = reader.take("placement");
  if (value == nullptr || !value->is_array()) {
    read_value(reader, key, choice);
    return;
  }
  const std::string pointer = pointer_join(reader.pointer(), "placement");
  const JsonValue::Array& entries = value->array();
  for (std::size_t rank = 0; rank < entries.size(); ++rank)
    if (!place_in(entries[rank]))
      reader.problems().add({entries[rank].origin,
                             pointer_join(pointer, std::to_string(rank)),
                             text_for_message(entries[rank]) + " is no \"node:gpu\"",
                             {}});
}

ParallelBlock read_parallel(ObjectReader& reader, const SoftwareProfile& software,
                            bool has_experts) {
  ParallelBlock block;
  block.gives_data = reader.has("data");
  PlanChoice choice;
  // No stack runs experts in tensor groups whose tokens are whole (check_experts()).
  const JsonValue* tensor = has_experts ? reader.value().find("tensor") : nullptr;
  if (tensor != nullptr && number_of(tensor).value_or(1) > 1)
    reader.set_default("sequence_parallel", true);
  read_keys(reader, choice, software);
  block.parallel = std::move(choice.parallel);
  block.parallel.alternates_one_group = software.alternates_one_group;
  read_stage_layers(reader, block);
  read_edge_layers(reader, block.parallel);
  reject_misplaced_keys(reader);
  reader.reject_unknown_keys();
  reject_sharding_keys(reader, block.parallel, software);
  return block;
}

std::string why_no_data(const Parallel& parallel, const GivenGpus& gpus) {
  const std::int64_t ranks = parallel.ranks_of_replica();
  if (gpus.count % ranks == 0) return {};
  return "data is not given, and " + gpus.text + " are no multiple of " +
         product_text(factors_of_replica(parallel));
}

void split_by_layout(ObjectReader& reader, ParallelBlock& block) {
  const Parallel& parallel = block.parallel;
  const auto p = static_cast<std::size_t>(parallel.pipeline);
  const auto v = static_cast<std::size_t>(parallel.virtual_pipeline);
  const auto text = [](std::size_t number) { return std::to_string(number); };
  const std::vector<int>& parts = block.layout.layers;
  if (parallel.schedule->is_bidirectional()) {  // check_stage_layers counts them
    block.parallel.stage_layers = parts;
    return;
  }
  if (parts.size() != p * v)
    return reader.problem("stage_layers", "the layout has " + text(parts.size()) +
                                              " stages, but pipeline * virtual_pipeline = " +
                                              text(p) + " * " + text(v) + " = " + text(p * v));
  LayerSplit split = split_of(parts, chunk_map_of(parallel));
  block.parallel.stage_layers = std::move(split.stages);
  block.parallel.position_layers = std::move(split.positions);
}

void split_by_chunks(ObjectReader& reader, ParallelBlock& block) {
  const Parallel& parallel = block.parallel;
  const auto text = [](std::size_t number) { return std::to_string(number); };
  const auto p = static_cast<std::size_t>(parallel.pipeline);
  if (parallel.schedule->is_bidirectional())
    return reader.problem(
        "stage_layers",
        "two stages hold each part of the model under schedule " + parallel.schedule->name,
        "write one list: the layers of each part, in order");
  if (block.chunk_layers.size() != p)
    return reader.problem("stage_layers", "stage_layers has lists for " +
                                              count_text(block.chunk_layers.size(), "stage") +
                                              ", but pipeline is " + text(p));
  const ChunkMap map = chunk_map_of(parallel);
  std::vector<int> positions(static_cast<std::size_t>(map.num_positions()));
  for (std::size_t stage = 0; stage < p; ++stage) {
    const std::vector<int>& chunks = block.chunk_layers[stage];
    if (static_cast<int>(chunks.size()) != parallel.virtual_pipeline)
      return reader.problem("stage_layers", "stage " + text(stage) + " has layers for " +
                                                count_text(chunks.size(), "chunk") +
                                                ", but virtual_pipeline is " +
                                                std::to_string(parallel.virtual_pipeline));
    for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk)
      positions[static_cast<std::size_t>(map.position({StageId{stage}, static_cast<int>(chunk)}))] =
          chunks[chunk];
  }
  LayerSplit split = split_of(std::move(positions), map);
  block.parallel.stage_layers = std::move(split.stages);
  block.parallel.position_layers = std::move(split.positions);
}

bool asks_for_balance(ObjectReader& reader) {
  const JsonValue* value = reader.take("stage_layers");
  return value != nullptr && value->is_string() && value->string() == "balanced";
}

std::vector<int> place_ranks(ObjectReader& reader, int num_ranks, const ClusterShape& cluster) {
  const JsonValue* value = reader.take("placement");
  const bool is_list = value != nullptr && value->is_array();
  const bool is_search = value != nullptr && value->is_string() && value->string() == "search";
  if (is_list || is_search) expect_equal_nodes(reader, cluster);
  if (!is_list || reader.problems().is_spoiled(pointer_join(reader.pointer(), "placement")))
    return {};
  const JsonValue::Array& entries = value->array();
  if (static_cast<int>(entries.size()) != num_ranks) {
    if (!reader.are_sound({"placement"})) return {};
    reader.problem("placement", "placement names " + std::to_string(entries.size()) +
                                    " GPUs, but tensor * pipeline * data is " +
                                    std::to_string(num_ranks));
    return {};
  }
  std::vector<int> placement;
  std::set<std::pair<int, int>> used;
  const std::string pointer = pointer_join(reader.pointer(), "placement");
  for (std::size_t rank = 0; rank < entries.size(); ++rank) {
    const JsonValue& entry = entries[rank];
    const auto place = place_in(entry);
    if (!place) continue;  // which has been said
    std::string why = why_no_gpu(entry, *place, cluster);
    if (why.empty() && !used.insert(*place).second)
      why = text_for_message(entry) + " is used twice";
    if (why.empty())
      placement.push_back(place->first * cluster.gpus_by_node.front() + place->second);
    else
      reader.problems().add({entry.origin, pointer_join(pointer, std::to_string(rank)), why, {}});
  }
  return placement;
}

}  // namespace windtunnel
