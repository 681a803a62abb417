#include <cstdint>
#include <string>

#include "core/json_value.hpp"
#include "search/launch_arguments.hpp"

namespace windtunnel {

std::string deepspeed_config(const Plan& plan) {
  const auto whole = [](int number) { return JsonValue(std::int64_t{number}); };
  const auto enabled = [] {
    JsonValue value(JsonValue::Object{});
    value.set("enabled", JsonValue(true));
    return value;
  };
  JsonValue config(JsonValue::Object{});
  config.set("train_batch_size", whole(plan.training.global_batch));
  config.set("train_micro_batch_size_per_gpu", whole(plan.training.micro_batch));
  config.set("gradient_accumulation_steps", whole(plan.microbatches));
  JsonValue zero(JsonValue::Object{});
  zero.set("stage", whole(plan.parallel.zero_stage));
  zero.set("overlap_comm", JsonValue(plan.parallel.overlap_gradient_reduce));
  config.set("zero_optimization", std::move(zero));
  if (plan.training.precision == Precision::fp16) config.set("fp16", enabled());
  if (base_precision(plan.training.precision) == Precision::bf16) config.set("bf16", enabled());
  return pretty_text(config) + "\n";
}

}  // namespace windtunnel
