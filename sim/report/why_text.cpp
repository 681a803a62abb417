#include "report/why_text.hpp"

#include <algorithm>
#include <functional>

#include "report/number_text.hpp"
#include "report/report_words.hpp"
#include "report/terminal_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using detail::counted;
using detail::time_text;
using detail::with_spaces;

std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z')
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

Bytes sent(const Report& report, Traffic traffic) {
  return report.traffic[static_cast<std::size_t>(traffic)];
}

std::string compute_text(const Report& report) {
  const double microbatches = report.plan.microbatches;
  const Seconds slowest = (report.forward_time + report.backward_time) * microbatches;
  return counted(report.plan.microbatches, "microbatch", "es") +
         " pass through every stage; on the slowest one each takes " +
         to_text(report.forward_time) + " forward and " + to_text(report.backward_time) +
         (report.plan.training.recompute == Recompute::full
              ? " backward, the forward pass done again included"
              : " backward") +
         ". That alone is " + to_text(slowest) +
         (report.plan.parallel.tensor > 1 ? ", tensor-parallel communication included." : ".");
}

std::string tensor_text(const Report& report) {
  const Plan& plan = report.plan;
  const std::string where = plan.nodes_per_tensor_group > 1
                                ? ", which spans " + counted(plan.nodes_per_tensor_group, "node") +
                                      ": its links are part of every layer"
                                : ", inside a node";
  return "Activations are reduced twice a layer in each direction among the " +
         std::to_string(plan.parallel.tensor) + " GPUs of a tensor group" + where +
         ". All groups together move " + to_text(sent(report, Traffic::tensor_activations)) +
         " per iteration.";
}

std::string bubble_text(const Report& report) {
  const Plan& plan = report.plan;
  const double ideal = ideal_bubble_share(plan);
  std::string text = "Waiting for messages that have not been sent yet: the pipeline of " +
                     counted(plan.parallel.pipeline, "stage") + " fills and drains around " +
                     counted(plan.microbatches, "microbatch", "es") + ".";
  if (ideal > 0)
    text += " With equal stages and instant messages it would be " + percent_text(ideal) +
            " of the time of all passes, (p - 1) / (v m + p - 1); uneven stages and messages on "
            "the way add to it.";
  return text + " More microbatches" +
         (plan.parallel.virtual_pipeline == 1 ? ", more chunks per device" : "") +
         " or fewer stages shrink it.";
}

std::string pipeline_text(const Report& report) {
  return "Waiting for activations and gradients that are on the way between stages: " +
         to_text(sent(report, Traffic::pipeline_forward)) + " forward and " +
         to_text(sent(report, Traffic::pipeline_backward)) + " backward in all pipelines together.";
}

std::string expert_text(const Report& report) {
  return "Tokens go to their experts on " + counted(report.plan.parallel.expert, "GPU") +
         " and come back: " + to_text(sent(report, Traffic::expert_dispatch)) + " there and " +
         to_text(sent(report, Traffic::expert_combine)) + " back, of all GPUs together.";
}

std::string data_text(const Report& report) {
  const Bytes gathers = sent(report, Traffic::zero_gather);
  const bool each_microbatch =
      report.plan.parallel.zero_stage == 2 || report.plan.parallel.scatters_in_passes();
  std::string text = "Gradients are reduced among " +
                     counted(report.plan.parallel.replicas(), "replica") +
                     (each_microbatch ? " on every microbatch, " : ", ") +
                     to_text(sent(report, Traffic::data_gradients)) + " in all";
  if (gathers > Bytes{0}) text += ", and sharded parameters gathered, " + to_text(gathers);
  text += report.plan.parallel.overlap_gradient_reduce
              ? "; only what does not hide behind the backward pass counts here."
              : "; counted is what the device waits for.";
  const bool plays_links = !report.plan.parallel.gathers_in_passes();
  if (plays_links && !report.links.empty()) {
    const LinkUse& hottest = report.links.front();
    text += " The busiest link, " + hottest.name + ", needs " +
            to_text(total_of(hottest.carried) / hottest.bandwidth) + " for everything it carries.";
  }
  return text;
}

std::string text_of(Line line, const Report& report) {
  switch (line) {
    case Line::compute:
      return compute_text(report);
    case Line::tensor_comm:
      return tensor_text(report);
    case Line::expert_comm:
      return expert_text(report);
    case Line::pipeline_comm:
      return pipeline_text(report);
    case Line::pipeline_bubble:
      return bubble_text(report);
    case Line::data_comm:
      return data_text(report);
    case Line::context_comm:
      return "Keys and values, or heads, travel among the " +
             counted(report.plan.parallel.context, "GPU") +
             " that have the parts of a sequence; counted is what attention does not hide.";
    case Line::embedding_sync:
      return "The first and the last stage share the embedding, and add up its gradients.";
    case Line::peer_wait:
      return "Waiting for slower GPUs that hold the same stage: they have not entered a collective "
             "yet, because of more tokens, a slower node or a slower link.";
    case Line::codec:
      return "Compressing and decompressing messages on the GPU.";
    case Line::optimizer:
      return "The optimizer's step over the parameters that each GPU holds.";
    case Line::other:
      return "Launching kernels where the CPU is slower than the GPU, and what the software does "
             "once an iteration.";
  }
  return "";
}

}  // namespace

double ideal_bubble_share(const Plan& plan) {
  const bool known = plan.parallel.schedule->idles_only_at_the_ends;
  const double fill = plan.parallel.pipeline - 1;
  const double work = static_cast<double>(plan.parallel.virtual_pipeline) * plan.microbatches;
  return known && work > 0 ? fill / (work + fill) : 0;
}

std::vector<Reason> reasons_for_time(const Report& report) {
  constexpr double least_share = 0.01;
  const Seconds total = report.breakdown.total();
  std::vector<Reason> reasons;
  if (!(total > 0_s)) return reasons;
  for (const Line line : all_lines) {
    const Seconds time = report.breakdown.of(line);
    if (time < least_share * total) continue;
    reasons.push_back({line, time,
                       capitalised(with_spaces(name_of(line))) + ": " + time_text(time, total) +
                           ", " + percent_text(time / total),
                       text_of(line, report)});
  }
  std::ranges::stable_sort(reasons, std::greater<>{}, &Reason::time);
  return reasons;
}

JsonValue reasons_value(const Report& report) {
  JsonValue object(JsonValue::Object{});
  for (const Reason& reason : reasons_for_time(report))
    object.set(name_of(reason.line), JsonValue(reason.text));
  return object;
}

}  // namespace windtunnel
