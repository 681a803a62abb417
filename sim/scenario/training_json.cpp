#include "scenario/training_json.hpp"

namespace windtunnel {
namespace {

constexpr int most_samples = 1'000'000'000;

}  // namespace

Training read_training(ObjectReader reader, const SoftwareProfile& software) {
  Training training;
  training.global_batch = reader.required_int("global_batch", 1, most_samples);
  training.micro_batch = reader.required_int("micro_batch", 1, most_samples);
  training.precision = reader.optional_enum<Precision>("precision", Precision::fp16,
                                                       {{"fp32", Precision::fp32},
                                                        {"tf32", Precision::tf32},
                                                        {"fp16", Precision::fp16},
                                                        {"bf16", Precision::bf16}});
  training.gradient_type = reader.optional_enum<GradientType>(
      "gradient_dtype", software.gradient_type,
      {{"fp32", GradientType::fp32}, {"fp16", GradientType::fp16}, {"bf16", GradientType::bf16}});
  training.optimizer = reader.optional_enum<Optimizer>(
      "optimizer", Optimizer::adam, {{"adam", Optimizer::adam}, {"sgd", Optimizer::sgd}});
  training.recompute = reader.optional_enum<Recompute>(
      "recompute", Recompute::none,
      {{"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}});
  training.attention = reader.optional_enum<Attention>(
      "attention", Attention::standard,
      {{"standard", Attention::standard}, {"flash", Attention::flash}});
  reader.reject_unknown_keys();
  return training;
}

}  // namespace windtunnel
