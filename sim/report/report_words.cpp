#include "report/report_words.hpp"

#include <algorithm>
#include <functional>
#include <string_view>

#include "core/text_list.hpp"
#include "report/figures.hpp"
#include "report/number_text.hpp"
#include "scenario/key_table.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel::detail {
namespace {

/// "15, 16 × 6, 15"
std::string runs_text(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0, end = 0; i < numbers.size(); i = end) {
    end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[i]) ++end;
    text += (i == 0 ? "" : ", ") + std::to_string(numbers[i]) +
            (end - i > 1 ? " × " + std::to_string(end - i) : "");
  }
  return text;
}

/// Keys of which plan_items() speaks in words of its own.
constexpr std::string_view keys_with_own_words =
    " global_batch micro_batch precision recompute attention attention_kernel tensor context "
    "sequence_parallel pipeline virtual_pipeline schedule data zero_stage zero_group expert "
    "expert_tensor ";

/// ", release 26.06, the newest that is known: Megatron-Bridge 26.06 and later"; empty for a stack whose releases are not distinguished.
std::string release_text(const std::optional<SoftwareRelease>& release) {
  if (!release) return {};
  std::string text = ", release " + release->name;
  if (release->known_from.empty()) return text + ", older than all that are known";
  if (release->is_newest)
    text += release->name == release->known_from
                ? ", the newest that is known"
                : ", of which is known what holds from " + release->known_from + " on";
  return release->description.empty() ? text : text + ": " + release->description;
}

/// "… h100 GPUs …": what `text` has in place of a part of `other`, by whole words; empty where they do not begin alike, or
/// share less than half of it.
std::string difference_text(std::string_view other, std::string_view text) {
  const auto ends_word = [](std::string_view of, std::size_t at) {
    return at >= of.size() || std::string_view(" ,;:").find(of[at]) != std::string_view::npos;
  };
  const std::size_t shorter = std::min(other.size(), text.size());
  std::size_t begin = 0, end = 0;  // of what differs: characters before and behind it
  while (begin < shorter && other[begin] == text[begin]) ++begin;
  while (begin > 0 && !(ends_word(other, begin) && ends_word(text, begin))) --begin;
  while (end < shorter - begin && other[other.size() - end - 1] == text[text.size() - end - 1])
    ++end;
  while (end > 0 && !ends_word(text, text.size() - end)) --end;
  if (begin == 0 || 2 * (begin + end) < text.size() || begin + end >= text.size()) return "";
  std::string_view rest = text.substr(begin, text.size() - begin - end);
  rest.remove_prefix(std::min(rest.find_first_not_of(" ,;:"), rest.size()));
  return "… " + std::string(rest) + (end > 0 ? " …" : "");
}

}  // namespace

std::vector<std::pair<std::string, std::string>> said_once(
    const std::vector<std::pair<std::string, std::string>>& said) {
  std::vector<std::pair<std::string, std::string>> once;
  for (const auto& [name, text] : said) {
    const auto known = std::ranges::find(once, text, [](const auto& each) { return each.second; });
    if (known == once.end())
      once.emplace_back(name, text);
    else
      known->first += ", " + name;
  }
  for (std::size_t i = once.size(); i-- > 1;)
    for (std::size_t k = 0; k < i; ++k)
      if (const std::string rest = difference_text(once[k].second, once[i].second); !rest.empty()) {
        once[i].second = "as " + once[k].first + ", but \"" + rest + "\"";
        break;
      }
  return once;
}

std::string counted(int number, const char* thing, const char* plural) {
  return grouped_text(number) + " " + thing + (number == 1 ? "" : plural);
}

std::vector<std::string> speed_items(const Report& report) {
  std::vector<std::string> items;
  for (const Figure* figure : shown_figures(report)) {
    items.push_back(text_of(*figure, report));
    if (figure->key == std::string_view("hfu") && report.hfu < report.mfu)
      items.back() += " (counts only the computed half of causal attention)";
  }
  return items;
}

std::string job_text(const Report& report) {
  const std::string cluster = counted(report.num_gpus, "GPU") + " of " + report.platform_name;
  const std::string parameters = parameter_text(report.parameters) + " parameters";
  const std::string model = report.model_name.empty() ? "a model of " + parameters
                                                      : report.model_name + " (" + parameters + ")";
  return model + " on " + cluster + " with " + report.software_name +
         release_text(report.software_release);
}

std::vector<std::string> plan_items(const Training& training, const Parallel& parallel) {
  const auto text = [](int number) { return std::to_string(number); };
  std::string degrees = "tensor " + text(parallel.tensor);
  for (const AxisName axis : cut_axes(parallel))
    degrees += std::string(" × ") + name_of(axis) + " " + text(parallel.size(axis));
  degrees +=
      " × pipeline " + text(parallel.pipeline) +
      (parallel.data == 0 ? " (does not divide the GPUs)" : " × data " + text(parallel.data));
  std::vector<std::string> items{degrees};
  if (parallel.expert > 1) items.push_back("expert " + text(parallel.expert));
  if (parallel.expert_tensor > 1) items.push_back("expert tensor " + text(parallel.expert_tensor));
  items.push_back(parallel.schedule->name);
  if (parallel.virtual_pipeline > 1)
    items.back() += " with " + counted(parallel.virtual_pipeline, "chunk");
  const std::string size = counted(training.micro_batch, "sample");
  items.push_back(parallel.data < 1 || training.micro_batch < 1
                      ? "microbatches of " + size
                      : counted(microbatches_of(training, parallel), "microbatch", "es") + " of " +
                            size);
  items.emplace_back(name_of(training.precision));
  if (parallel.sequence_parallel) items.emplace_back("sequence parallel");
  if (parallel.zero_stage > 0)
    items.push_back("ZeRO-" + text(parallel.zero_stage) +
                    (sharding_group_size(parallel) < parallel.replicas()
                         ? " in groups of " + text(parallel.zero_group)
                         : ""));
  if (training.attention == Attention::flash)
    items.push_back(std::string("flash attention (") + name_of(training.attention_kernel) + ")");
  if (training.recompute != Recompute::none) {
    std::string& item = items.emplace_back(name_of(training.recompute));
    item += " recompute";
    const RecomputedLayers& layers = training.recompute_layers;
    if (layers.first > 0) item += " of the first " + counted(layers.first, "layer");
    if (layers.every > 1) item += " of one layer in " + text(layers.every);
    const RecomputedModules& modules = training.recompute_modules;
    std::string names;
    for (const RecomputedModule module : RecomputedModules::all)
      if (modules.has(module)) names += (names.empty() ? "" : ", ") + std::string(name_of(module));
    if (training.recompute == Recompute::selective && modules != RecomputedModules::of_selective())
      item += " (" + names + ")";
  }
  // Every other key that has not the value of a plan of which nothing is said.
  const PlanChoice choice{training, parallel}, usual;
  for (const Key& key : key_table()) {
    if (key.value.kind == KeyValue::Kind::other ||
        keys_with_own_words.find(" " + key.name() + " ") != std::string_view::npos)
      continue;
    const int value = key.value.get(choice);
    if (value == key.value.get(usual)) continue;
    const bool is_flag = key.value.kind == KeyValue::Kind::flag;
    items.push_back(with_spaces(key.label() + (is_flag ? "" : " " + shown_text(key, value))));
    if (is_flag && value == 0) items.back().insert(0, "no ");
  }
  if (!parallel.position_layers.empty())
    items.push_back("layers by chunk " + runs_text(parallel.position_layers));
  else if (!parallel.stage_layers.empty())
    items.push_back("layers by stage " + runs_text(parallel.stage_layers));
  if (parallel.edge_layers != EdgeLayers{})
    items.push_back("embedding counts as " + counted(parallel.edge_layers.embedding, "layer") +
                    ", loss as " + counted(parallel.edge_layers.loss, "layer"));
  if (!parallel.placement.empty()) items.emplace_back("ranks placed one by one");
  return items;
}

std::vector<std::string> plan_items(const Report& report) {
  std::vector<std::string> items = plan_items(report.plan.training, report.plan.parallel);
  if (report.domains && report.domains->idle_nodes > 0)
    items.push_back(std::to_string(report.domains->nodes_used) + " of the " +
                    counted(report.domains->nodes, "node") + " of each NVLink domain, " +
                    grouped_text(report.domains->idle_nodes) + " idle in all");
  return items;
}

std::vector<std::string> neighbour_texts(const Report& report) {
  if (report.neighbours.empty()) return {};
  const auto slowed = [](Seconds alone, Seconds together) {
    return to_text(together) + " per iteration, " + to_text(alone) + " alone";
  };
  std::vector<std::string> texts{"this job beside its neighbours: " +
                                 slowed(report.time_alone, report.iteration_time)};
  for (const NeighbourCost& cost : report.neighbours)
    texts.push_back("neighbour " + cost.name + " (" + counted(cost.nodes, "node") + " from node " +
                    std::to_string(cost.first_node) + "): " + slowed(cost.alone, cost.together) +
                    "; shares " +
                    (cost.shared_links == 0 ? "no link" : counted(cost.shared_links, "link")) +
                    " with this job" + (cost.fits ? "" : "; does not fit in memory"));
  return texts;
}

std::string plan_text(const Training& training, const Parallel& parallel) {
  return joined(plan_items(training, parallel), ", ");
}

VerdictMark mark_of(MemoryVerdict verdict) {
  if (verdict == MemoryVerdict::fits) return {"✓", Tone::good, "good"};
  if (verdict == MemoryVerdict::does_not_fit) return {"✗", Tone::bad, "bad"};
  return {"~", Tone::doubtful, "doubtful"};
}

std::string verdict_text(const MemoryAccount& memory) {
  if (memory.stages.empty()) return "";
  const StageMemory& worst = memory.stages.at(memory.worst_stage.index());
  const std::string stage = "stage " + std::to_string(memory.worst_stage.index());
  const std::string use =
      stage + " uses " + to_text(worst.total) + " of " + to_text(worst.usable) + " usable";
  if (memory.verdict == MemoryVerdict::fits) return "fits: " + use;
  if (memory.verdict == MemoryVerdict::at_risk)
    return "at risk: " + use + ", " + percent_text(worst.total / worst.usable) + "; " +
           at_risk_meaning;
  if (memory.verdict == MemoryVerdict::lower_bound)
    return "at least: " + use + " with ZeRO 3, whose buffers are not all counted: it may not fit";
  const std::string shortage = stage + " needs " + to_text(worst.required) + ", the GPU has " +
                               to_text(worst.usable) + ": " +
                               to_text(worst.required - worst.usable) + " too much";
  return "DOES NOT FIT: " + (memory.advice.empty() ? shortage : memory.advice);
}

std::string memory_doubt(const MemoryAccount& memory) {
  const std::string text = verdict_text(memory);
  return text.empty() || mark_of(memory.verdict).tone != Tone::doubtful ? "" : "memory " + text;
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
    const auto count = std::ranges::count(report.assumptions, kind.evidence, &Assumption::evidence);
    if (count > 0) kinds += (kinds.empty() ? "" : ", ") + std::to_string(count) + " " + kind.name;
  }
  return counted(static_cast<int>(report.assumptions.size()), "input") + ": " + kinds;
}

}  // namespace windtunnel::detail

namespace windtunnel {
namespace {

using detail::counted;
using detail::time_text;
using detail::with_spaces;

Bytes sent(const Report& report, Traffic traffic) {
  return report.traffic[static_cast<std::size_t>(traffic)];
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

std::string data_text(const Report& report) {
  const Bytes gathers = sent(report, Traffic::zero_gather);
  const bool each_microbatch =
      report.plan.parallel.zero_stage == 2 || report.plan.parallel.scatters_in_passes();
  std::string text =
      "Gradients are reduced among " + counted(report.plan.parallel.replicas(), "replica") +
      (each_microbatch ? " on every microbatch, " : ", ") +
      to_text(sent(report, Traffic::data_gradients) + sent(report, Traffic::zero_scatter)) +
      " in all";
  if (gathers > Bytes{0}) text += ", and sharded parameters gathered, " + to_text(gathers);
  text += report.plan.parallel.overlap_gradient_reduce
              ? "; only what does not hide behind the backward pass counts here."
              : "; counted is what the device waits for.";
  const bool simulates_links = !report.plan.parallel.gathers_in_passes();
  if (simulates_links && !report.links.empty()) {
    const LinkUse& hottest = report.links.front();
    text += " The busiest link, " + hottest.name + ", needs " +
            to_text(total_of(hottest.carried) / hottest.bandwidth) + " for everything it carries.";
  }
  return text;
}

std::string text_of(Line line, const Report& report) {
  const Plan& plan = report.plan;
  switch (line) {
    case Line::compute:
      return counted(plan.microbatches, "microbatch", "es") +
             " pass through every stage; on the slowest one each takes " +
             to_text(report.forward_time) + " forward and " + to_text(report.backward_time) +
             (plan.training.recompute == Recompute::full
                  ? " backward, the forward pass done again included"
                  : " backward") +
             ". That alone is " +
             to_text((report.forward_time + report.backward_time) *
                     static_cast<double>(plan.microbatches)) +
             (plan.parallel.tensor > 1 ? ", tensor-parallel communication included." : ".");
    case Line::tensor_comm:
      return "Activations are reduced twice a layer in each direction among the " +
             std::to_string(plan.parallel.tensor) + " GPUs of a tensor group" +
             (plan.nodes_per_tensor_group > 1
                  ? ", which spans " + counted(plan.nodes_per_tensor_group, "node") +
                        ": its links are part of every layer"
                  : ", inside a node") +
             ". All groups together move " + to_text(sent(report, Traffic::tensor_activations)) +
             " per iteration.";
    case Line::expert_comm:
      return "Tokens go to their experts on " + counted(plan.parallel.expert, "GPU") +
             " and come back: " + to_text(sent(report, Traffic::expert_dispatch)) + " there and " +
             to_text(sent(report, Traffic::expert_combine)) + " back, of all GPUs together.";
    case Line::pipeline_comm:
      return "Waiting for activations and gradients that are on the way between stages: " +
             to_text(sent(report, Traffic::pipeline_forward)) + " forward and " +
             to_text(sent(report, Traffic::pipeline_backward)) +
             " backward in all pipelines together.";
    case Line::pipeline_bubble:
      return bubble_text(report);
    case Line::data_comm:
      return data_text(report);
    case Line::context_comm:
      return "Keys and values, or heads, travel among the " +
             counted(plan.parallel.context, "GPU") +
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
      return std::string(report.host_gathers
                             ? "The CPU where it is slower than the GPU: its work for each tensor "
                               "that ZeRO 3 gathers or scatters, and launching kernels; and"
                             : "Launching kernels where the CPU is slower than the GPU, and") +
             " what the software does once an iteration.";
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
    std::string title = with_spaces(name_of(line));
    title[0] = static_cast<char>(title[0] - 'a' + 'A');
    reasons.push_back({line, time,
                       title + ": " + time_text(time, total) + ", " + percent_text(time / total),
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
