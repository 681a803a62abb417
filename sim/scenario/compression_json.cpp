#include "scenario/compression_json.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

enum class CodecKind { powersgd, zfp, mpc, topk, int8, fixed };
const std::vector<std::pair<std::string, CodecKind>> codecs = {
    {"powersgd", CodecKind::powersgd}, {"zfp", CodecKind::zfp},   {"mpc", CodecKind::mpc},
    {"topk", CodecKind::topk},         {"int8", CodecKind::int8}, {"fixed", CodecKind::fixed}};

constexpr int most_rank = 65536;
constexpr int most_stages = 100'000;
constexpr double most_bits_per_value = 32;  ///< zfp's rate for fp32; more would expand
constexpr double least_ratio = 1e-3, most_ratio = 1e6;
constexpr double least_density = 1e-9;

template <class Amount>
void check_quantity(ObjectReader& reader, std::string_view key) {
  if (reader.take(key) != nullptr) required_quantity<Amount>(reader, key);
}

/// False, with a problem, when it is not known which codec is meant: then neither are its keys.
bool names_codec(ObjectReader& reader) {
  const std::size_t problems_before = reader.problems().size();
  reader.required_enum<CodecKind>("codec", codecs);
  return reader.problems().size() == problems_before;
}

void check_codec(ObjectReader& reader) {
  switch (reader.required_enum<CodecKind>("codec", codecs)) {
    case CodecKind::powersgd:
      reader.required_int("rank", 1, most_rank);
      reader.optional_bool("error_feedback", true);
      break;
    case CodecKind::zfp:
      reader.required_number("rate", 1, most_bits_per_value);
      break;
    case CodecKind::mpc:
      reader.required_number("ratio", least_ratio, most_ratio);
      break;
    case CodecKind::topk:
      reader.required_number("density", least_density, 1);
      reader.optional_bool("error_feedback", true);
      break;
    case CodecKind::int8:
      break;
    case CodecKind::fixed:
      reader.required_number("ratio", least_ratio, most_ratio);
      check_quantity<BytesPerSecond>(reader, "encode_rate");
      check_quantity<BytesPerSecond>(reader, "decode_rate");
      break;
  }
  check_quantity<Bytes>(reader, "threshold");
}

/// "stages": the first so many, or a list of them.
void check_stages(ObjectReader& reader) {
  const JsonValue* stages = reader.take("stages");
  if (stages == nullptr) return;
  if (!stages->is_array()) {
    reader.required_int("stages", 1, most_stages);
    return;
  }
  reader.optional_int_list("stages", 0, most_stages);
  if (stages->array().empty())
    reader.problem("stages", "stages is an empty list", "leave the class out to compress nothing");
}

void check_class(std::string_view name, ObjectReader reader) {
  if (name == "embedding_sync") {
    reader.optional_bool("fused", false);
  } else {
    if (!names_codec(reader)) return;
    check_codec(reader);
    if (name == "pipeline_backward")
      reader.optional_enum<bool>("messages", false, {{"all", false}, {"epilogue", true}});
    if (name == "pipeline_forward") reader.optional_enum<bool>("messages", false, {{"all", false}});
    if (name == "data_gradients") check_stages(reader);
  }
  reader.reject_unknown_keys();
}

}  // namespace

const std::vector<std::string>& codec_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    list.reserve(codecs.size());
    for (const auto& [name, kind] : codecs) list.push_back(name);
    return list;
  }();
  return names;
}

void check_compression(ObjectReader reader) {
  for (const char* name : compression_classes)
    if (auto entry = reader.optional_child(name)) check_class(name, std::move(*entry));
  reader.reject_unknown_keys();
}

}  // namespace windtunnel
