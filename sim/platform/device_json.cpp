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
    {"fp16", Precision::fp16},  {"bf16", Precision::bf16}, {"tf32", Precision::tf32},
    {"fp32", Precision::fp32},  {"fp8", Precision::fp8},   {"mxfp8", Precision::mxfp8},
    {"nvfp4", Precision::nvfp4}};

void read_peak(ObjectReader reader, Device& device) {
  for (const auto& [key, precision] : precision_keys)
    if (reader.take(key) != nullptr)
      device.peak[precision] = required_quantity<FlopsPerSecond>(reader, key);
  device.sources.merge(read_sources(reader, "peak/"));
  reader.reject_unknown_keys();
  if (device.peak.empty() &&
      reader.are_sound({"fp16", "bf16", "tf32", "fp32", "fp8", "mxfp8", "nvfp4"}))
    reader.problem(
        "", "no peak rate: at least one of fp16, bf16, tf32, fp32, fp8, mxfp8, nvfp4 is needed");
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

/// What only some devices say; nothing is written back where it is absent.
void read_quantized_gemm(ObjectReader& reader, GemmEfficiency& gemm) {
  constexpr double most_tile = 1e5;
  if (reader.has("tile_rows")) gemm.tile_rows = reader.required_number("tile_rows", 1, most_tile);
  if (reader.has("tile_columns"))
    gemm.tile_columns = reader.required_number("tile_columns", 1, most_tile);
  for (const auto& [key, precision] : precision_keys) {
    const std::string fraction = std::string(key) + "_peak_fraction";
    if (is_quantized(precision) && reader.has(fraction))
      gemm.quantized_peak_fraction[precision] = reader.required_number(fraction, least_ratio, 1);
  }
  if (reader.has("quantized_inner_half_size"))
    gemm.quantized_inner_half_size = reader.required_number("quantized_inner_half_size", 0, 1e6);
  if (reader.has("grouped_factor"))
    gemm.grouped_factor = reader.required_number("grouped_factor", least_ratio, 1);
  if (reader.has("grouped_half_rows"))
    gemm.grouped_half_rows = reader.required_number("grouped_half_rows", 0, 1e6);
}

AttentionRate read_attention_rate(ObjectReader& reader, const std::string& direction) {
  constexpr double most_queries = 1e6, most_waves = 1e3;
  return {.rate = reader.required_number(direction + "_rate", least_ratio, 1),
          .half_sequence = reader.required_number(direction + "_half_sequence", 0, most_queries),
          .half_waves = reader.required_number(direction + "_half_waves", 0, most_waves)};
}

/// Whose rates they are. Where nothing is said, cuDNN's.
std::vector<FlashKernel> read_kernels(ObjectReader& reader, Precision precision) {
  if (is_quantized(precision)) return {FlashKernel::fp8};
  const JsonValue* list = reader.take("kernels");
  if (list == nullptr) return {FlashKernel::cudnn};
  const auto& known = flash_kernels();
  std::vector<FlashKernel> kernels;
  if (list->is_array())
    for (const JsonValue& name : list->array())
      for (const auto& [text, kernel] : known)
        if (name.is_string() && name.string() == text && kernel != FlashKernel::fp8)
          kernels.push_back(kernel);
  if (!list->is_array() || kernels.empty() || kernels.size() != list->array().size())
    reader.problem("kernels", R"(expected a list of "flash2", "flash3" and "cudnn")");
  return kernels;
}

AttentionKernel read_attention_kernel(ObjectReader reader, const std::string& prefix,
                                      Sources& sources) {
  constexpr double most_head_size = 1e5;
  const std::vector<std::pair<std::string, Precision>> precisions(precision_keys.begin(),
                                                                  precision_keys.end());
  AttentionKernel kernel;
  kernel.precision = reader.required_enum<Precision>("precision", precisions);
  kernel.kernels = read_kernels(reader, kernel.precision);
  kernel.head_size = reader.required_number("head_size", 1, most_head_size);
  kernel.forward = read_attention_rate(reader, "forward");
  kernel.backward = read_attention_rate(reader, "backward");
  sources.merge(read_sources(reader, prefix));
  reader.reject_unknown_keys();
  return kernel;
}

void read_attention(ObjectReader& reader, Device& device) {
  JsonValue* list = reader.take("attention");
  if (list == nullptr) return;
  if (!list->is_array() || list->array().empty())
    return reader.problem("attention", "expected a list of at least one fused attention kernel");
  for (std::size_t i = 0; i < list->array().size(); ++i) {
    const std::string place = "attention/" + std::to_string(i);
    const AttentionKernel kernel = read_attention_kernel(
        ObjectReader(list->array()[i], reader.pointer() + "/" + place, reader.problems()),
        place + "/", device.sources);
    const bool rises = device.attention.empty() ||
                       device.attention.back().precision != kernel.precision ||
                       device.attention.back().kernels != kernel.kernels ||
                       kernel.head_size > device.attention.back().head_size;
    if (!rises && reader.are_sound({"attention"}))
      reader.problem("attention", "the head sizes of one precision and its kernels must rise");
    device.attention.push_back(kernel);
  }
}

void read_gemm(ObjectReader reader, Device& device) {
  device.gemm.peak_fraction = reader.required_number("peak_fraction", least_ratio, 1);
  device.gemm.inner_half_size = reader.required_number("inner_half_size", 0, 1e6);
  device.gemm.wave_half_size = reader.required_number("wave_half_size", 0, 1e3);
  device.gemm.misaligned_factor = reader.optional_number("misaligned_factor", 1, least_ratio, 1);
  device.gemm.head_factor = reader.optional_number("head_factor", 1, least_ratio, 1);
  read_quantized_gemm(reader, device.gemm);
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

std::vector<std::pair<std::string, FlashKernel>> flash_kernels() {
  std::vector<std::pair<std::string, FlashKernel>> kernels;
  for (const FlashKernel each :
       {FlashKernel::flash2, FlashKernel::flash3, FlashKernel::cudnn, FlashKernel::fp8})
    kernels.emplace_back(name_of(each), each);
  return kernels;
}

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
  read_attention(reader, device);
  if (auto codecs = reader.optional_child("codecs")) device.codecs = read_codecs(*codecs);
  reader.reject_unknown_keys();
  return device;
}

}  // namespace windtunnel
