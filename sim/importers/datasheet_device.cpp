#include "importers/datasheet_device.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "core/file_io.hpp"
#include "platform/device_json.hpp"
#include "platform/source_json.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// A device of the library: what its file says, and what that means.
struct KnownDevice {
  JsonValue document;
  Device device;
};

std::optional<KnownDevice> measured_device(const Library& library, const std::string& name) {
  Problems problems;
  JsonValue value = parse_json(read_source(library_file(library, device_files, name)), problems);
  JsonValue document = value;
  const Device device = read_device(value, {}, problems);
  if (!problems.empty()) return std::nullopt;
  const Evidence evidence = device.sources.at("gemm/peak_fraction").evidence;
  if (evidence != Evidence::fitted && evidence != Evidence::measured) return std::nullopt;
  return KnownDevice{std::move(document), device};
}

template <class Amount>
std::optional<Amount> amount_at(const JsonValue& sheet, const char* pointer) {
  const JsonValue* value = find_at(sheet, pointer);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  std::string problem, suggestion;
  return parse_quantity<Amount>(value->string(), problem, suggestion);
}

/// What a data sheet must say, or nothing can be scaled.
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

double distance(const Nominal& nominal, const Device& device) {
  const auto peak = device.peak.find(nominal.precision);
  if (peak == device.peak.end()) return std::numeric_limits<double>::infinity();
  return std::abs(std::log(nominal.peak / peak->second)) +
         std::abs(std::log(nominal.bandwidth / device.memory_bandwidth));
}

KnownDevice nearest_device(const Nominal& nominal, const Library& library) {
  std::optional<KnownDevice> nearest;
  for (const std::string& name : library.names(device_files.name)) {
    std::optional<KnownDevice> known = measured_device(library, name);
    if (known &&
        (!nearest || distance(nominal, known->device) < distance(nominal, nearest->device)))
      nearest = std::move(known);
  }
  if (!nearest)
    throw EnvironmentError("no device of the library has measured matrix products to scale from");
  return *nearest;
}

/// Puts what the sheet lacks into it.
class Completion {
 public:
  Completion(DatasheetDevice& result, const Nominal& nominal, const KnownDevice& near)
      : result_(&result),
        near_(&near),
        memory_ratio_(nominal.capacity / near.device.memory_capacity),
        bandwidth_ratio_(nominal.bandwidth / near.device.memory_bandwidth) {}

  void run() {
    JsonValue& sheet = result_->document;
    copy(sheet, near_->document, "", "kernel_overhead");
    JsonValue& memory = *sheet.find("memory");
    const JsonValue& near_memory = *near_->document.find("memory");
    add(memory, "/memory", "usable",
        JsonValue(to_text(near_->device.usable_memory * memory_ratio_)),
        ", in proportion to the capacity");
    copy(memory, near_memory, "/memory", "context");
    copy(memory, near_memory, "/memory", "bandwidth_efficiency");
    if (sheet.find("gemm") == nullptr) sheet.set("gemm", JsonValue(JsonValue::Object{}));
    for (const JsonValue::Member& member : near_->document.find("gemm")->object())
      if (belongs(member.key))
        copy(*sheet.find("gemm"), *near_->document.find("gemm"), "/gemm", member.key);
    if (JsonValue* attention = copy_whole("attention"))
      for (JsonValue& kernel : attention->array()) kernel.set("source", JsonValue(source("")));
    if (JsonValue* codecs = copy_whole("codecs")) {
      scale(*codecs);
      if (JsonValue* zfp = codecs->find("zfp"))
        for (JsonValue& speed : zfp->array()) scale(speed);
    }
  }

 private:
  std::string source(const std::string& how) const {
    return "assumed: scaled from " + near_->device.name + how;
  }

  void add(JsonValue& object, const std::string& pointer, const std::string& key, JsonValue value,
           const std::string& how) {
    if (object.find(key) != nullptr) return;
    object.set(key, std::move(value));
    set_source(object, key, source(how));
    result_->added.push_back(pointer_join(pointer, key));
  }

  void copy(JsonValue& object, const JsonValue& from, const std::string& pointer,
            const std::string& key) {
    if (const JsonValue* value = from.find(key))
      add(object, pointer, key, JsonValue(value->content), "");
  }

  /// Whether an efficiency of products is one of a format that the device has; "source" is none.
  bool belongs(const std::string& key) const {
    if (key == "source") return false;
    for (const char* format : {"fp8", "mxfp8", "nvfp4"})
      if (key.starts_with(std::string(format) + "_"))
        return result_->document.find("peak")->find(format) != nullptr;
    return true;
  }

  /// Rates in proportion to the memory bandwidth; times and settings as they are.
  void scale(JsonValue& object) const {
    for (JsonValue::Member& member : object.object()) {
      if (member.key == "source" || !member.value.is_string()) continue;
      std::string problem, suggestion;
      if (const auto rate =
              parse_quantity<BytesPerSecond>(member.value.string(), problem, suggestion))
        member.value = JsonValue(to_text(*rate * bandwidth_ratio_));
    }
    object.set("source", JsonValue(source(", rates in proportion to the memory bandwidth")));
  }

  /// Copies a part of the device; a null pointer where the sheet has it, or the device has not.
  JsonValue* copy_whole(const std::string& key) {
    const JsonValue* known = near_->document.find(key);
    if (known == nullptr || result_->document.find(key) != nullptr) return nullptr;
    result_->added.push_back("/" + key);
    return &result_->document.set(key, JsonValue(known->content));
  }

  DatasheetDevice* result_;
  const KnownDevice* near_;
  double memory_ratio_, bandwidth_ratio_;
};

}  // namespace

DatasheetDevice complete_device(JsonValue sheet, const Library& library) {
  const Nominal nominal = nominal_of(sheet);
  const KnownDevice near = nearest_device(nominal, library);
  DatasheetDevice result{std::move(sheet), near.device.name, {}};
  Completion(result, nominal, near).run();
  Problems problems;
  JsonValue read = result.document;
  read_device(read, {}, problems);
  problems.throw_if_any();
  return result;
}

}  // namespace windtunnel
