#include <vector>

#include "core/object_reader.hpp"
#include "platform/platform_json.hpp"
#include "units/member_reader.hpp"

namespace windtunnel {
namespace {

void read_peak(ObjectReader reader, Device& device) {
  for (const Precision precision : enumerators<Precision>()) {
    std::optional<FlopsPerSecond> rate;
    given(reader, name_of(precision), rate);
    if (rate) device.peak[precision] = *rate;
  }
  end_object(reader, "peak/", device.sources);
  if (device.peak.empty() &&
      reader.are_sound({"fp16", "bf16", "tf32", "fp32", "fp8", "mxfp8", "nvfp4"}))
    reader.problem(
        "", "no peak rate: at least one of fp16, bf16, tf32, fp32, fp8, mxfp8, nvfp4 is needed");
}

void read_memory(ObjectReader reader, Device& device) {
  required(reader, "capacity", device.memory_capacity);
  required(reader, "usable", device.usable_memory);
  required(reader, "context", device.context);
  required(reader, "bandwidth", device.memory_bandwidth, AmountRange{"1 GB/s", "100 TB/s"});
  required(reader, "bandwidth_efficiency", device.memory_efficiency, least_ratio, 1);
  end_object(reader, "memory/", device.sources);
  if (device.usable_memory > device.memory_capacity && reader.are_sound({"usable", "capacity"}))
    reader.problem("usable", "usable memory " + to_text(device.usable_memory) +
                                 " is more than the capacity " + to_text(device.memory_capacity));
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
  std::vector<FlashKernel> kernels;
  if (list->is_array())
    for (const JsonValue& name : list->array())
      if (const auto kernel =
              name.is_string() ? enumerator_named<FlashKernel>(name.string()) : std::nullopt;
          kernel && kernel != FlashKernel::fp8)
        kernels.push_back(*kernel);
  if (!list->is_array() || kernels.empty() || kernels.size() != list->array().size())
    reader.problem("kernels", R"(expected a list of "flash2", "flash3" and "cudnn")");
  return kernels;
}

AttentionKernel read_attention_kernel(ObjectReader reader, const std::string& prefix,
                                      Sources& sources) {
  constexpr double most_head_size = 1e5;
  AttentionKernel kernel;
  kernel.precision = reader.required_enum<Precision>("precision");
  kernel.kernels = read_kernels(reader, kernel.precision);
  kernel.head_size = reader.required_number("head_size", 1, most_head_size);
  kernel.forward = read_attention_rate(reader, "forward");
  kernel.backward = read_attention_rate(reader, "backward");
  end_object(reader, prefix, sources);
  return kernel;
}

void read_attention(ObjectReader& reader, Device& device) {
  for (ObjectReader& entry :
       reader.entries("attention", "expected a list of at least one fused attention kernel")) {
    const AttentionKernel kernel =
        read_attention_kernel(entry, place_in(reader, entry), device.sources);
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
  constexpr double most_tile = 1e5;
  GemmEfficiency& gemm = device.gemm;
  required(reader, "peak_fraction", gemm.peak_fraction, least_ratio, 1);
  required(reader, "inner_half_size", gemm.inner_half_size, 0, 1e6);
  required(reader, "wave_half_size", gemm.wave_half_size, 0, 1e3);
  defaulted(reader, "misaligned_factor", gemm.misaligned_factor, least_ratio, 1);
  defaulted(reader, "head_factor", gemm.head_factor, least_ratio, 1);
  defaulted(reader, "long_run_factor", gemm.long_run_factor, least_ratio, 1);
  given(reader, "tile_rows", gemm.tile_rows, 1, most_tile);
  given(reader, "tile_columns", gemm.tile_columns, 1, most_tile);
  for (const Precision precision : enumerators<Precision>()) {
    std::optional<double> fraction;
    if (is_quantized(precision))
      given(reader, std::string(name_of(precision)) + "_peak_fraction", fraction, least_ratio, 1);
    if (fraction) gemm.quantized_peak_fraction[precision] = *fraction;
  }
  given(reader, "quantized_inner_half_size", gemm.quantized_inner_half_size, 0, 1e6);
  given(reader, "grouped_factor", gemm.grouped_factor, least_ratio, 1);
  given(reader, "grouped_half_rows", gemm.grouped_half_rows, 0, 1e6);
  end_object(reader, "gemm/", device.sources);
}

void read_zfp(ObjectReader& reader, CodecSpeeds& codecs) {
  constexpr double most_bits = 64;  // of a value
  for (ObjectReader& entry :
       reader.entries("zfp", "expected a list of at least one {rate, encode, decode, source}")) {
    ZfpSpeed speed;
    required(entry, "rate", speed.rate, 1, most_bits);
    required(entry, "encode", speed.encode);
    required(entry, "decode", speed.decode);
    end_object(entry, place_in(reader, entry), codecs.sources);
    const bool rises = codecs.zfp.empty() || speed.rate > codecs.zfp.back().rate;
    if (!rises && reader.are_sound({"zfp"})) reader.problem("zfp", "the rates of zfp must rise");
    codecs.zfp.push_back(speed);
  }
}

CodecSpeeds read_codecs(ObjectReader reader) {
  CodecSpeeds codecs;
  required(reader, "launch", codecs.launch);
  given(reader, "column_step", codecs.column_step);
  given(reader, "selection", codecs.selection);
  given(reader, "mpc_encode", codecs.mpc_encode);
  given(reader, "mpc_decode", codecs.mpc_decode);
  read_zfp(reader, codecs);
  end_object(reader, {}, codecs.sources);
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
  required(reader, "multiprocessors", device.multiprocessors, 1, 100'000);
  defaulted(reader, "collective_multiprocessors", device.collective_multiprocessors, 0, 100'000);
  required(reader, "kernel_overhead", device.kernel_overhead);
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
