#include "report/report_words.hpp"

#include <algorithm>

#include "report/figures.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel::detail {

std::string counted(int number, const char* thing, const char* plural) {
  return grouped_text(number) + " " + thing + (number == 1 ? "" : plural);
}

std::vector<std::string> speed_items(const Report& report) {
  std::vector<std::string> items;
  for (const Figure* figure : shown_figures(report)) items.push_back(text_of(*figure, report));
  return items;
}

std::string job_text(const Report& report) {
  const std::string cluster = counted(report.num_gpus, "GPU") + " of " + report.platform_name;
  return report.model_name + " (" + parameter_text(report.parameters) + " parameters) on " +
         cluster + " with " + report.software_name;
}

std::vector<std::string> plan_items(const Report& report) {
  const Parallel& parallel = report.plan.parallel;
  const Training& training = report.plan.training;
  std::string schedule = parallel.schedule->name;
  if (parallel.virtual_pipeline > 1)
    schedule += " with " + counted(parallel.virtual_pipeline, "chunk");
  const std::string cut =
      parallel.context > 1 ? " × context " + std::to_string(parallel.context) : "";
  std::vector<std::string> items{"tensor " + std::to_string(parallel.tensor) + cut +
                                     " × pipeline " + std::to_string(parallel.pipeline) +
                                     " × data " + std::to_string(parallel.data),
                                 schedule,
                                 counted(report.plan.microbatches, "microbatch", "es") + " of " +
                                     counted(training.micro_batch, "sample"),
                                 name_of(training.precision)};
  if (parallel.sequence_parallel) items.emplace_back("sequence parallel");
  if (parallel.zero_stage > 0)
    items.push_back("ZeRO-" + std::to_string(parallel.zero_stage) +
                    (sharding_ways(parallel) < parallel.replicas()
                         ? " in groups of " + std::to_string(parallel.zero_group)
                         : ""));
  if (training.attention == Attention::flash) items.emplace_back("flash attention");
  if (training.recompute == Recompute::full) items.emplace_back("full recompute");
  if (training.recompute == Recompute::selective) items.emplace_back("selective recompute");
  return items;
}

std::string verdict_text(const MemoryAccount& memory, const StageMemory& worst) {
  const std::string stage = "stage " + std::to_string(memory.worst_stage.index());
  const std::string use =
      stage + " uses " + to_text(worst.total) + " of " + to_text(memory.capacity);
  switch (memory.verdict) {
    case MemoryVerdict::fits:
      return "fits: " + use;
    case MemoryVerdict::tight:
      return "tight: " + use + "; it runs only because the allocator gives its cache back";
    case MemoryVerdict::does_not_fit:
      break;
  }
  const std::string shortage = stage + " needs " + to_text(worst.required) + ", the GPU has " +
                               to_text(worst.usable) + ": " +
                               to_text(worst.required - worst.usable) + " too much";
  return "DOES NOT FIT: " + (memory.advice.empty() ? shortage : memory.advice);
}

std::string short_plan_text(const Plan& plan) {
  const Parallel& parallel = plan.parallel;
  std::string text = "tensor " + std::to_string(parallel.tensor);
  if (parallel.context > 1) text += ", context " + std::to_string(parallel.context);
  text +=
      ", pipeline " + std::to_string(parallel.pipeline) + ", data " + std::to_string(parallel.data);
  if (parallel.expert > 1) text += ", expert " + std::to_string(parallel.expert);
  return text + ", microbatch " + std::to_string(plan.training.micro_batch);
}

std::string inputs_text(const Report& report) {
  struct Kind {
    Evidence evidence;
    const char* name;
  };
  std::string kinds;
  for (const Kind kind : {Kind{Evidence::measured, "measured"},
                          {Evidence::datasheet, "from datasheets"},
                          {Evidence::fitted, "fitted"},
                          {Evidence::assumed, "assumed"}}) {
    const auto count = std::count_if(
        report.assumptions.begin(), report.assumptions.end(),
        [&](const Assumption& assumption) { return assumption.evidence == kind.evidence; });
    if (count > 0) kinds += (kinds.empty() ? "" : ", ") + std::to_string(count) + " " + kind.name;
  }
  return counted(static_cast<int>(report.assumptions.size()), "input") + ": " + kinds;
}

}  // namespace windtunnel::detail
