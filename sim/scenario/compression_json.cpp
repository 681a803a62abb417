#include "scenario/compression_json.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "cost/codec_table.hpp"
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
  std::vector<std::pair<std::string, const Codec*>> names;
  for (const Codec* codec : codecs()) names.emplace_back(codec->name(), codec);
  return reader.required_enum<const Codec*>("codec", names);
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

/// What only messages between stages have.
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

}  // namespace windtunnel
