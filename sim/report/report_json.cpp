#include "report/report_json.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "report/figures.hpp"
#include "report/json_object.hpp"
#include "report/report_words.hpp"

namespace windtunnel {
namespace {

JsonValue stage_value(const StageMemory& stage, TensorList tensors) {
  const auto tensor = [](const HeldTensor& each) {
    return object_of({{"name", name_of(each)},
                      {"line", name_of(line_of(each.kind))},
                      {"bytes", each.bytes},
                      {"count", each.count},
                      {"bytes_of_one", each.size()}});
  };
  return object_of({{"stage", stage.stage.index()},
                    {"weights", stage.weights},
                    {"gradients", stage.gradients},
                    {"optimizer", stage.optimizer},
                    {"activations", stage.activations},
                    {"buffers", stage.buffers},
                    {"allocated", stage.allocated},
                    {"reserved", stage.reserved},
                    {"context", stage.context},
                    {"total", stage.total},
                    {"verdict", name_of(stage.verdict)},
                    {"set_by", stage.peak == Moment::step ? "optimizer step" : "backward pass"},
                    {"microbatches_in_flight", stage.microbatches_in_flight},
                    {"activation_per_microbatch", stage.activation_per_microbatch},
                    {"parameters", stage.parameters},
                    {"required", stage.required},
                    {"usable", stage.usable},
                    {"codec", only_if(stage.at_peak(HeldKind::codec) > Bytes{0},
                                      stage.at_peak(HeldKind::codec))},
                    {"tensors", only_if(tensors == TensorList::written,
                                        array_of(stage.tensors_at_peak(), tensor))}});
}

/// Bytes by class; with `every`, of those that are always written too.
template <class BytesByClass>
JsonValue traffic_value(const BytesByClass& bytes, bool every) {
  JsonValue object = empty_object();
  for (const Traffic traffic : published_traffic) {
    const Bytes each = bytes[static_cast<std::size_t>(traffic)];
    if (each > Bytes{0} || (every && is_always_written(traffic)))
      object.set(name_of(traffic), json_of(each));
  }
  return object;
}

JsonValue links_value(const Report& report) {
  JsonValue::Array hottest;
  double utilisation = 0;
  for (const LinkUse& link : report.links) {
    const double of_link = link.utilisation(report.iteration_time);
    utilisation += of_link;
    if (hottest.size() < most_links)
      hottest.push_back(object_of({{"name", link.name},
                                   {"bandwidth_bytes_per_s", link.bandwidth.value()},
                                   {"bytes", total_of(link.carried)},
                                   {"utilisation", of_link},
                                   {"traffic_bytes", traffic_value(link.carried, false)}}));
  }
  const std::size_t in_use = report.links.size();
  return object_of(
      {{"in_use", in_use},
       {"mean_utilisation", in_use == 0 ? 0.0 : utilisation / static_cast<double>(in_use)},
       {"hottest", JsonValue(std::move(hottest))}});
}

JsonValue stage_times_value(const Report& report) {
  return array_of(report.stage_times, [&](const StageTime& time) {
    JsonValue object = object_of({{"stage", time.stage.index()}, {"end", time.end}});
    for (const Line line : all_lines)
      if (has_line(report, line)) object.set(name_of(line), json_of(time.breakdown.of(line)));
    return object;
  });
}

JsonValue job_value(const Report& report) {
  const Parallel& parallel = report.plan.parallel;
  const auto& release = report.software_release;
  return object_of(
      {{"model", report.model_name},
       {"parameters", report.parameters},
       {"platform", report.platform_name},
       {"software", report.software_name},
       {"software_release_known",
        only_if(release && !release->description.empty(), release ? release->description : "")},
       {"gpus", report.num_gpus},
       {"gpu_family", report.gpu_family},
       {"tensor", parallel.tensor},
       {"pipeline", parallel.pipeline},
       {"data", parallel.data},
       {"context", only_if(parallel.context > 1, parallel.context)},
       {"schedule", parallel.schedule->name},
       {"global_batch", report.plan.training.global_batch},
       {"micro_batch", report.plan.training.micro_batch},
       {"microbatches", report.plan.microbatches},
       {"plan", detail::plan_text(report.plan.training, report.plan.parallel)},
       {"compressed_stages", only_if(report.plan.compression.data_gradients.has_value(),
                                     array_of(report.compressed_stages, json_of<int>))}});
}

JsonValue domains_value(const DomainUse& use) {
  const auto groups = [](const StraddlingGroups& each) {
    return object_of({{"group", name_of(each.axis)},
                      {"gpus", each.gpus},
                      {"domains", each.domains},
                      {"exposed_s", each.exposed}});
  };
  return object_of({{"nodes_used", use.nodes_used},
                    {"nodes", use.nodes},
                    {"idle_nodes", use.idle_nodes},
                    {"straddling", array_of(use.straddling, groups)}});
}

JsonValue neighbours_value(const Report& report) {
  const auto value = [](const NeighbourCost& cost) {
    return object_of({{"name", cost.name},
                      {"first_node", cost.first_node},
                      {"nodes", cost.nodes},
                      {"shared_links", cost.shared_links},
                      {"fits", cost.fits},
                      {"iteration_time_s", cost.together},
                      {"iteration_time_alone_s", cost.alone}});
  };
  return object_of({{"iteration_time_alone_s", report.time_alone},
                    {"jobs", array_of(report.neighbours, value)}});
}

void erase_wall_times(JsonValue& value) {
  if (value.is_array())
    for (JsonValue& element : value.array()) erase_wall_times(element);
  if (!value.is_object()) return;
  if (JsonValue* engine = value.find("engine")) engine->erase("wall_s");
  for (JsonValue::Member& member : value.object()) erase_wall_times(member.value);
}

}  // namespace

bool has_line(const Report& report, Line line) {
  const auto has_time = [&](const StageTime& time) { return time.breakdown.of(line) > 0_s; };
  return is_always_written(line) || report.breakdown.of(line) > 0_s ||
         std::ranges::any_of(report.stage_times, has_time);
}

JsonValue breakdown_value(const Breakdown& breakdown) {
  JsonValue object = empty_object();
  for (const Line line : all_lines)
    if (is_always_written(line) || breakdown.of(line) > 0_s)
      object.set(name_of(line), json_of(breakdown.of(line)));
  return object;
}

JsonValue report_value(const Report& report, TensorList tensors) {
  JsonValue object = object_of({{"schema", "windtunnel/report-v1"},
                                {"name", report.name},
                                {"version", report.version},
                                {"scenario_hash", report.scenario_hash},
                                {"seed", report.seed},
                                {"iteration_time_s", report.iteration_time},
                                {"iteration_time_interval_s", report.iteration_time_interval}});
  for (const Figure& figure : figures()) object.set(figure.key, JsonValue(figure.value(report)));
  JsonValue lines = empty_object();
  for (const Line line : all_lines)
    if (has_line(report, line)) lines.set(name_of(line), json_of(report.breakdown.of(line)));
  JsonValue messages = empty_object();
  for (const Traffic traffic : published_traffic) {
    if (!is_always_written(traffic)) continue;  // no messages
    const MessageCount& count = report.messages[static_cast<std::size_t>(traffic)];
    messages.set(name_of(traffic), object_of({{"compressed", count.compressed},
                                              {"uncompressed", count.uncompressed}}));
  }
  const auto stage = [tensors](const StageMemory& each) { return stage_value(each, tensors); };
  const auto assumption = [](const Assumption& each) {
    return object_of({{"what", each.what},
                      {"value", each.value},
                      {"source", name_of(each.evidence)},
                      {"note", each.note}});
  };
  const MemoryAccount& memory = report.memory;
  const int microbatches = report.simulated_microbatches, replicas = report.simulated_replicas;
  add_members(
      object,
      {{"breakdown_s", lines},
       {"memory", object_of({{"capacity_bytes", memory.capacity},
                             {"usable_bytes", memory.usable},
                             {"max_bytes", memory.max_total},
                             {"fits", memory.fits},
                             {"per_stage", array_of(memory.stages, stage)},
                             {"verdict", name_of(memory.verdict)},
                             {"worst_stage", memory.worst_stage.index()},
                             {"advice", memory.advice}})},
       {"traffic_bytes", traffic_value(report.traffic, true)},
       {"messages", messages},
       {"assumptions", array_of(report.assumptions, assumption)},
       {"engine", object_of({{"name", report.engine},
                             {"activities", report.activities},
                             {"flows", report.flows},
                             {"played_microbatches", only_if(microbatches > 0, microbatches)},
                             {"played_replicas", only_if(replicas > 0, replicas)},
                             {"wall_s", report.wall}})},
       {"software_release",
        report.software_release ? JsonValue(report.software_release->name) : JsonValue()},
       {"warnings", array_of(report.warnings)},
       {"job", job_value(report)},
       {"nvlink_domains",
        report.domains ? std::optional(domains_value(*report.domains)) : std::nullopt},
       {"neighbours", only_if(!report.neighbours.empty(), neighbours_value(report))},
       {"timers_s", object_of({{"microbatch_forward", report.forward_time},
                               {"microbatch_backward", report.backward_time},
                               {"last_stage_forward", report.last_stage_forward},
                               {"last_stage_backward", report.last_stage_backward}})},
       {"stage_times_s", stage_times_value(report)},
       {"links", links_value(report)}});
  return object;
}

std::string to_json(const Report& report, TensorList tensors) {
  return pretty_text(report_value(report, tensors)) + "\n";
}

JsonValue without_wall_time(JsonValue document) {
  erase_wall_times(document);
  return document;
}

std::string without_wall_time(std::string_view json) {
  Problems problems;
  JsonValue report = parse_json(
      std::make_shared<const SourceText>(SourceText{"report.json", std::string(json)}), problems);
  problems.throw_if_any();
  return pretty_text(without_wall_time(std::move(report))) + "\n";
}

}  // namespace windtunnel
