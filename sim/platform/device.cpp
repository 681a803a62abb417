#include "platform/device.hpp"

#include <algorithm>

#include "core/mapped.hpp"
#include "platform/software_profile.hpp"

namespace windtunnel {

double GemmEfficiency::peak_fraction_of(Precision precision) const {
  return value_in(quantized_peak_fraction, precision, peak_fraction);
}

double GemmEfficiency::inner_half_size_of(Precision precision) const {
  return is_quantized(precision) ? quantized_inner_half_size.value_or(inner_half_size)
                                 : inner_half_size;
}

bool AttentionKernel::is(FlashKernel kernel, Precision other) const {
  const auto is_half = [](Precision each) {
    return each == Precision::bf16 || each == Precision::fp16;  // one rate on all tensor cores
  };
  return std::ranges::find(kernels, kernel) != kernels.end() &&
         (precision == other || (is_half(precision) && is_half(other)));
}

double Device::taken_by_collectives() const {
  return static_cast<double>(std::min(collective_multiprocessors, multiprocessors - 1)) /
         multiprocessors;
}

bool Device::has_attention(FlashKernel kernel, Precision precision) const {
  return std::ranges::any_of(
      attention, [&](const AttentionKernel& each) { return each.is(kernel, precision); });
}

const SoftwareProfile::MemoryRates* SoftwareProfile::memory_rates_on(const Device& device) const {
  for (const MemoryRates& rates : memory_rates)
    if (std::ranges::find(rates.devices, device.name) != rates.devices.end()) return &rates;
  return nullptr;
}

const SoftwareProfile::Experts& SoftwareProfile::experts_on(const Device& device,
                                                            Precision precision,
                                                            const Transformer& model) const {
  const auto has = [](const auto& list, const auto& value) {
    return list.empty() || std::ranges::find(list, value) != list.end();
  };
  for (const ExpertsElsewhere& other : experts_elsewhere) {
    const auto is_model = [&](const RecipeModel& each) { return each.is(model); };
    const bool for_model = other.models.empty() || std::ranges::any_of(other.models, is_model);
    if (for_model && has(other.devices, device.name) && has(other.precisions, precision))
      return other.experts;
  }
  return experts;
}

std::optional<SoftwareProfile::FlashRates> SoftwareProfile::flash_rates(const Device& device,
                                                                        FlashKernel kernel) const {
  if (kernel != attention_kernel || kernel == FlashKernel::fp8) return std::nullopt;
  if (!flash_forward_efficiency || !flash_backward_efficiency) return std::nullopt;
  const auto names = [&device](const std::vector<std::string>& devices) {
    return std::ranges::find(devices, device.name) != devices.end();
  };
  for (const FlashRates& rates : flash_elsewhere)
    if (names(rates.devices)) return rates;
  if (!device.attention.empty() && !flash_devices.empty() && !names(flash_devices))
    return std::nullopt;
  return FlashRates{*flash_forward_efficiency, *flash_backward_efficiency, flash_devices};
}

bool SoftwareProfile::knows_attention(const Device& device, FlashKernel kernel,
                                      Precision precision) const {
  if (kernel == FlashKernel::fp8) return device.has_attention(kernel, Precision::fp8);
  return flash_rates(device, kernel).has_value() ||
         device.has_attention(kernel, base_precision(precision));
}

}  // namespace windtunnel
