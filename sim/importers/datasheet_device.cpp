#include "importers/datasheet_device.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "platform/platform_json.hpp"
#include "scenario/scenario_files.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// A device of the library: what its file says, and what that means.
struct KnownDevice {
  JsonValue document;
  Device device;
};

template <class Amount>
std::optional<Amount> amount_at(const JsonValue& sheet, const std::string& pointer) {
  const JsonValue* value = find_at(sheet, pointer);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  std::string problem, suggestion;
  return parse_quantity<Amount>(value->string(), problem, suggestion);
}

/// Figures that a data sheet must have for anything to be scaled.
struct Nominal {
  FlopsPerSecond peak{};
  Precision precision = Precision::bf16;
  BytesPerSecond bandwidth{};
  Bytes capacity{};
};

Nominal nominal_of(const JsonValue& sheet) {
  Problems problems;
  const auto missing = [&](const char* pointer, const char* what) {
    problems.add({sheet.origin, pointer, std::string("a data sheet gives ") + what, {}});
  };
  const auto bf16 = amount_at<FlopsPerSecond>(sheet, "/peak/bf16"),
             fp16 = amount_at<FlopsPerSecond>(sheet, "/peak/fp16");
  const auto bandwidth = amount_at<BytesPerSecond>(sheet, "/memory/bandwidth");
  const auto capacity = amount_at<Bytes>(sheet, "/memory/capacity");
  if (!bf16 && !fp16)
    missing("/peak", "the dense rate in bf16 or fp16, as in \"bf16\": \"989 TFLOPS\"");
  if (!bandwidth) missing("/memory/bandwidth", "the memory bandwidth, as in \"3350 GB/s\"");
  if (!capacity) missing("/memory/capacity", "the memory, as in \"80 GiB\"");
  problems.throw_if_any();
  return {bf16 ? *bf16 : *fp16, bf16 ? Precision::bf16 : Precision::fp16, *bandwidth, *capacity};
}

KnownDevice nearest_device(const Nominal& nominal, const Library& library) {
  std::optional<KnownDevice> nearest;
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& name : library.names(device_files.name)) {
    Problems problems;
    JsonValue value(name);
    ScenarioFiles(library, {}, problems).expand(value, device_files, {});
    if (!problems.empty()) continue;
    JsonValue document = value;
    const Device device = read_device(value, {}, problems);
    if (!problems.empty()) continue;
    const Evidence evidence = device.sources.at("gemm/peak_fraction").evidence;
    if (evidence != Evidence::fitted && evidence != Evidence::measured) continue;
    const auto peak = device.peak.find(nominal.precision);
    const double distance =
        peak == device.peak.end()
            ? std::numeric_limits<double>::infinity()
            : std::abs(std::log(nominal.peak / peak->second)) +
                  std::abs(std::log(nominal.bandwidth / device.memory_bandwidth));
    if (nearest && distance >= least) continue;
    nearest = {std::move(document), device};
    least = distance;
  }
  if (!nearest)
    throw EnvironmentError("no device of the library has measured matrix products to scale from");
  return *nearest;
}

/// Rates of `object` in proportion to the memory bandwidth; times and settings as they are.
void scale_rates(JsonValue& object, double ratio, const std::string& source) {
  for (JsonValue::Member& member : object.object())
    if (const auto rate = amount_at<BytesPerSecond>(object, pointer_join("", member.key));
        rate && member.key != "source")
      member.value = JsonValue(to_text(*rate * ratio));
  object.set("source", JsonValue(source + ", rates in proportion to the memory bandwidth"));
}

}  // namespace

DatasheetDevice complete_device(JsonValue given, const Library& library) {
  const Nominal nominal = nominal_of(given);
  const KnownDevice near = nearest_device(nominal, library);
  DatasheetDevice result{std::move(given), near.device.name, near.device.name, {}};
  if (const JsonValue* description = near.document.find("description"))
    result.description += " (" + description->string() + ")";
  JsonValue& sheet = result.document;
  const std::string source = "assumed: scaled from " + near.device.name;
  const auto add = [&](const std::string& pointer, JsonValue value, const std::string& how) {
    if (find_at(sheet, pointer) != nullptr) return;
    set_at(sheet, pointer, std::move(value));
    const std::size_t slash = pointer.rfind('/');
    set_source(*find_at(sheet, pointer.substr(0, slash)), pointer.substr(slash + 1), source + how);
    result.added.push_back(pointer);
  };
  const auto copy = [&](const std::string& pointer) {
    if (const JsonValue* value = find_at(near.document, pointer))
      add(pointer, JsonValue(value->content), "");
  };
  copy("/kernel_overhead");
  const double capacity = nominal.capacity / near.device.memory_capacity;
  add("/memory/usable", JsonValue(to_text(near.device.usable_memory * capacity)),
      ", in proportion to the capacity");
  copy("/memory/context");
  copy("/memory/bandwidth_efficiency");
  for (const JsonValue::Member& member : near.document.find("gemm")->object()) {
    // An efficiency of products may be one of a format that the device lacks: "fp8_…".
    const std::string format = member.key.substr(0, member.key.find('_'));
    const bool is_of_format = format == "fp8" || format == "mxfp8" || format == "nvfp4";
    if (member.key != "source" && (!is_of_format || sheet.find("peak")->find(format) != nullptr))
      copy("/gemm/" + member.key);
  }
  /// A part of the device; a null pointer where the sheet has it, or the device has not.
  const auto copy_whole = [&](const std::string& key) -> JsonValue* {
    const JsonValue* known = near.document.find(key);
    if (known == nullptr || sheet.find(key) != nullptr) return nullptr;
    result.added.push_back("/" + key);
    return &sheet.set(key, JsonValue(known->content));
  };
  if (JsonValue* attention = copy_whole("attention"))
    for (JsonValue& kernel : attention->array()) kernel.set("source", JsonValue(source));
  if (JsonValue* codecs = copy_whole("codecs")) {
    const double bandwidth = nominal.bandwidth / near.device.memory_bandwidth;
    scale_rates(*codecs, bandwidth, source);
    if (JsonValue* zfp = codecs->find("zfp"))
      for (JsonValue& speed : zfp->array()) scale_rates(speed, bandwidth, source);
  }
  Problems problems;
  JsonValue read = sheet;
  read_device(read, {}, problems);
  problems.throw_if_any();
  return result;
}

}  // namespace windtunnel
