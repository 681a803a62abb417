#include "importers/probe_file.hpp"

#include <utility>

#include "core/object_reader.hpp"

namespace windtunnel {
namespace {

constexpr double most_bytes = 1e15, most_dimension = 1e9, most_seconds = 1e4;
constexpr double least_seconds = 1e-9;
constexpr int most_ranks = 1'000'000;

using Names = std::vector<std::pair<std::string, std::string>>;

/// One of a few words.
std::string word(ObjectReader& reader, const char* key, const std::vector<std::string>& words) {
  Names names;
  for (const std::string& each : words) names.emplace_back(each, each);
  return reader.required_enum(key, names);
}

double dimension(ObjectReader& reader, const char* key) {
  return reader.required_number(key, 1, most_dimension);
}

Bytes bytes_of(ObjectReader& reader) {
  return Bytes{reader.required_number("bytes", 1, most_bytes)};
}

Precision precision_of(ObjectReader& reader) {
  static const std::vector<std::pair<std::string, Precision>> names{
      {"fp16", Precision::fp16}, {"bf16", Precision::bf16}, {"fp32", Precision::fp32}};
  return reader.required_enum("precision", names);
}

void read_gemm(ObjectReader& reader, ProbeMeasurement& measured) {
  measured.precision = precision_of(reader);
  measured.gemm = {dimension(reader, "m"), dimension(reader, "n"), dimension(reader, "k"),
                   dimension(reader, "batch")};
}

void read_attention(ObjectReader& reader, ProbeMeasurement& measured) {
  measured.direction = word(reader, "direction", {"forward", "backward"});
  measured.precision = precision_of(reader);
  measured.batch = dimension(reader, "batch");
  measured.heads = dimension(reader, "heads");
  measured.sequence = dimension(reader, "sequence");
  measured.head_size = dimension(reader, "head_size");
}

void read_codec(ObjectReader& reader, ProbeMeasurement& measured) {
  measured.name = word(reader, "codec", {"powersgd", "topk", "int8", "mpc_like", "zfp_like"});
  measured.direction = word(reader, "direction", {"encode", "decode", "orthogonalize"});
  measured.bytes = bytes_of(reader);
  constexpr double least_density = 1e-9, most_bits = 64;
  if (measured.name == "powersgd") {
    for (const char* key : {"rows", "columns"}) dimension(reader, key);
    measured.rank = dimension(reader, "rank");
  }
  if (measured.name == "topk") reader.required_number("density", least_density, 1);
  if (measured.name == "zfp_like") measured.bits = reader.required_number("rate", 1, most_bits);
}

void read_collective(ObjectReader& reader, ProbeMeasurement& measured) {
  measured.name =
      word(reader, "name", {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"});
  measured.ranks = reader.required_int("ranks", 2, most_ranks);
  measured.nodes = reader.required_int("nodes", 1, most_ranks);
  measured.bytes = bytes_of(reader);
  if (measured.ranks % measured.nodes != 0 && reader.are_sound({"ranks", "nodes"}))
    reader.problem("ranks", std::to_string(measured.ranks) + " ranks do not divide among " +
                                std::to_string(measured.nodes) + " nodes");
}

void read_other(ObjectReader& reader, ProbeMeasurement& measured) {
  if (measured.kind == ProbeKind::launch)
    measured.name = word(reader, "name", {"stream", "synchronized", "graph"});
  else
    measured.bytes = bytes_of(reader);
  if (measured.kind == ProbeKind::norm)
    for (const char* key : {"rows", "hidden"}) dimension(reader, key);
  if (measured.kind == ProbeKind::optimizer) {
    measured.name = word(reader, "name", {"adam", "adam_fused"});
    reader.required_number("parameters", 1, most_bytes);
  }
  if (measured.kind == ProbeKind::host_copy)
    measured.direction = word(reader, "direction", {"to_device", "to_host"});
}

ProbeMeasurement read_measurement(ObjectReader reader) {
  static const std::vector<std::pair<std::string, ProbeKind>> kinds{
      {"gemm", ProbeKind::gemm},
      {"copy", ProbeKind::copy},
      {"launch", ProbeKind::launch},
      {"attention", ProbeKind::attention},
      {"norm", ProbeKind::norm},
      {"optimizer", ProbeKind::optimizer},
      {"host_copy", ProbeKind::host_copy},
      {"codec", ProbeKind::codec},
      {"collective", ProbeKind::collective}};
  ProbeMeasurement measured;
  measured.origin = reader.value().origin;
  const std::size_t problems = reader.problems().size();
  measured.kind = reader.required_enum("kind", kinds);
  if (reader.problems().size() > problems) return measured;  // what else it has, nobody knows
  switch (measured.kind) {
    case ProbeKind::gemm:
      read_gemm(reader, measured);
      break;
    case ProbeKind::attention:
      read_attention(reader, measured);
      break;
    case ProbeKind::codec:
      read_codec(reader, measured);
      break;
    case ProbeKind::collective:
      read_collective(reader, measured);
      break;
    default:
      read_other(reader, measured);
  }
  measured.median = Seconds{reader.required_number("median_s", least_seconds, most_seconds)};
  measured.spread = Seconds{reader.required_number("spread_s", 0, most_seconds)};
  measured.count = reader.required_int("count", 1, 1'000'000);
  reader.reject_unknown_keys();
  return measured;
}

void read_measurements(ObjectReader& root, ProbeFile& file) {
  JsonValue* list = root.require("measurements", "the list of what was measured");
  if (list == nullptr) return;
  if (!list->is_array() || list->array().empty())
    return root.problem("measurements", "no measurements: the run may have been stopped");
  for (std::size_t i = 0; i < list->array().size(); ++i)
    file.measurements.push_back(read_measurement(
        ObjectReader(list->array()[i], "/measurements/" + std::to_string(i), root.problems())));
}

void read_skipped(ObjectReader& root, ProbeFile& file) {
  JsonValue* list = root.take("skipped");
  if (list == nullptr) return;
  if (!list->is_array()) return root.problem("skipped", "expected a list of texts");
  for (const JsonValue& each : list->array()) {
    if (!each.is_string()) return root.problem("skipped", "expected a list of texts");
    file.skipped.push_back(each.string());
  }
}

Origin origin_of(const JsonValue& document, const char* key) {
  const JsonValue* value = document.find(key);
  return value == nullptr ? document.origin : value->origin;
}

}  // namespace

ProbeFile read_probe(JsonValue& document, Problems& problems) {
  ObjectReader root(document, {}, problems);
  ProbeFile file;
  const std::size_t before = problems.size();
  word(root, "schema", {"windtunnel/probe-v1"});
  if (problems.size() > before) return file;
  file.device_origin = origin_of(document, "device");
  file.gpu_origin = origin_of(document, "gpu");
  file.device = root.required_enum<ProbeFile::Device>(
      "device", {{"cuda", ProbeFile::Device::cuda}, {"cpu", ProbeFile::Device::cpu}});
  file.gpu = root.optional_string("gpu", "");
  file.driver = root.optional_string("driver", "");
  file.torch = root.required_string("torch");
  file.cuda = root.optional_string("cuda", "");
  file.nccl = root.optional_string("nccl", "");
  file.python = root.optional_string("python", "");
  file.multiprocessors = root.optional_int("multiprocessors", 0, 0, 100'000);
  root.optional_number("memory_bytes", 0, 0, most_bytes);
  precision_of(root);
  file.ranks = root.required_int("ranks", 1, most_ranks);
  file.nodes = root.required_int("nodes", 1, most_ranks);
  root.optional_number("budget_s", 0, 0, most_seconds);
  root.optional_number("elapsed_s", 0, 0, most_seconds);
  read_skipped(root, file);
  read_measurements(root, file);
  root.reject_unknown_keys();
  return file;
}

}  // namespace windtunnel
