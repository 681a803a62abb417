#include "platform/device_json.hpp"

#include <string_view>
#include <utility>
#include <vector>

#include "core/object_reader.hpp"
#include "platform/source_json.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr double least_ratio = 1e-3;  ///< of an efficiency

const std::vector<std::pair<std::string_view, Precision>> precision_keys = {
    {"fp16", Precision::fp16},
    {"bf16", Precision::bf16},
    {"tf32", Precision::tf32},
    {"fp32", Precision::fp32}};

void read_peak(ObjectReader reader, Device& device) {
  for (const auto& [key, precision] : precision_keys)
    if (reader.take(key) != nullptr)
      device.peak[precision] = required_quantity<FlopsPerSecond>(reader, key);
  device.sources.merge(read_sources(reader, "peak/"));
  reader.reject_unknown_keys();
  if (device.peak.empty() && reader.are_sound({"fp16", "bf16", "tf32", "fp32"}))
    reader.problem("", "no peak rate: at least one of fp16, bf16, tf32, fp32 is needed");
}

void read_memory(ObjectReader reader, Device& device) {
  device.memory_capacity = required_quantity<Bytes>(reader, "capacity");
  device.usable_memory = required_quantity<Bytes>(reader, "usable");
  device.context = required_quantity<Bytes>(reader, "context");
  device.memory_bandwidth =
      required_quantity<BytesPerSecond>(reader, "bandwidth", {"1 GB/s", "100 TB/s"});
  device.memory_efficiency = reader.required_number("bandwidth_efficiency", least_ratio, 1);
  device.sources.merge(read_sources(reader, "memory/"));
  reader.reject_unknown_keys();
  if (device.usable_memory > device.memory_capacity && reader.are_sound({"usable", "capacity"}))
    reader.problem("usable", "usable memory " + to_text(device.usable_memory) +
                                 " is more than the capacity " + to_text(device.memory_capacity));
}

void read_gemm(ObjectReader reader, Device& device) {
  device.gemm.peak_fraction = reader.required_number("peak_fraction", least_ratio, 1);
  device.gemm.inner_half_size = reader.required_number("inner_half_size", 0, 1e6);
  device.gemm.wave_half_size = reader.required_number("wave_half_size", 0, 1e3);
  device.gemm.misaligned_factor = reader.optional_number("misaligned_factor", 1, least_ratio, 1);
  device.gemm.head_factor = reader.optional_number("head_factor", 1, least_ratio, 1);
  device.sources.merge(read_sources(reader, "gemm/"));
  reader.reject_unknown_keys();
}

ZfpSpeed read_zfp_speed(ObjectReader reader, const std::string& prefix, CodecSpeeds& codecs) {
  constexpr double most_bits = 64;  // of a value
  ZfpSpeed speed;
  speed.rate = reader.required_number("rate", 1, most_bits);
  speed.encode = required_quantity<BytesPerSecond>(reader, "encode");
  speed.decode = required_quantity<BytesPerSecond>(reader, "decode");
  codecs.sources.merge(read_sources(reader, prefix));
  reader.reject_unknown_keys();
  return speed;
}

void read_zfp(ObjectReader& reader, CodecSpeeds& codecs) {
  JsonValue* list = reader.take("zfp");
  if (list == nullptr) return;
  if (!list->is_array() || list->array().empty())
    return reader.problem("zfp", "expected a list of at least one {rate, encode, decode, source}");
  for (std::size_t i = 0; i < list->array().size(); ++i) {
    const std::string place = "zfp/" + std::to_string(i);
    const ZfpSpeed speed = read_zfp_speed(
        ObjectReader(list->array()[i], reader.pointer() + "/" + place, reader.problems()),
        place + "/", codecs);
    const bool rises = codecs.zfp.empty() || speed.rate > codecs.zfp.back().rate;
    if (!rises && reader.are_sound({"zfp"})) reader.problem("zfp", "the rates of zfp must rise");
    codecs.zfp.push_back(speed);
  }
}

CodecSpeeds read_codecs(ObjectReader reader) {
  CodecSpeeds codecs;
  codecs.launch = required_quantity<Seconds>(reader, "launch");
  codecs.column_step = given_quantity<Seconds>(reader, "column_step");
  codecs.selection = given_quantity<BytesPerSecond>(reader, "selection");
  codecs.mpc_encode = given_quantity<BytesPerSecond>(reader, "mpc_encode");
  codecs.mpc_decode = given_quantity<BytesPerSecond>(reader, "mpc_decode");
  read_zfp(reader, codecs);
  codecs.sources.merge(read_sources(reader));
  reader.reject_unknown_keys();
  if (codecs.mpc_encode.has_value() != codecs.mpc_decode.has_value() &&
      reader.are_sound({"mpc_encode", "mpc_decode"}))
    reader.problem(codecs.mpc_encode ? "mpc_encode" : "mpc_decode",
                   "mpc_encode and mpc_decode come together");
  return codecs;
}

}  // namespace

Device read_device(JsonValue& value, const std::string& pointer, Problems& problems) {
  ObjectReader reader(value, pointer, problems);
  Device device;
  device.name = reader.required_string("name");
  read_preamble(reader);
  device.multiprocessors = reader.required_int("multiprocessors", 1, 100'000);
  device.kernel_overhead = required_quantity<Seconds>(reader, "kernel_overhead");
  device.sources = read_sources(reader);
  read_peak(reader.child("peak"), device);
  read_memory(reader.child("memory"), device);
  read_gemm(reader.child("gemm"), device);
  if (auto codecs = reader.optional_child("codecs")) device.codecs = read_codecs(*codecs);
  reader.reject_unknown_keys();
  return device;
}

}  // namespace windtunnel
