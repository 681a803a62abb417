#include "report/report_json.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "core/contracts.hpp"
#include "core/json_build.hpp"
#include "report/figures.hpp"
#include "report/report_words.hpp"

namespace windtunnel {
namespace {

/// Builds an object key by key.
class ObjectWriter {
 public:
  ObjectWriter& add(const char* key, JsonValue value) {
    object_.push_back({key, {}, std::move(value)});
    return *this;
  }
  ObjectWriter& add(const char* key, std::string text) {
    return add(key, JsonValue(std::move(text)));
  }
  ObjectWriter& add(const char* key, const char* text) { return add(key, std::string(text)); }
  ObjectWriter& add(const char* key, bool flag) { return add(key, JsonValue(flag)); }
  ObjectWriter& add(const char* key, int number) {
    return add(key, JsonValue(static_cast<std::int64_t>(number)));
  }
  ObjectWriter& add(const char* key, std::uint64_t number) {
    constexpr auto largest = std::numeric_limits<std::int64_t>::max();
    return number <= static_cast<std::uint64_t>(largest)
               ? add(key, JsonValue(static_cast<std::int64_t>(number)))
               : add(key, static_cast<double>(number));
  }
  ObjectWriter& add(const char* key, double number) {
    WT_EXPECT(std::isfinite(number));
    return add(key, JsonValue(number));
  }
  ObjectWriter& add(const char* key, Seconds time) { return add(key, time.value()); }
  /// Whole bytes as an integer.
  ObjectWriter& add(const char* key, Bytes bytes) {
    constexpr double whole_number_limit = 9007199254740992.0;  // 2^53
    const double number = bytes.value();
    return std::abs(number) <= whole_number_limit && std::trunc(number) == number
               ? add(key, JsonValue(static_cast<std::int64_t>(number)))
               : add(key, number);
  }
  JsonValue take() { return JsonValue(std::move(object_)); }

 private:
  JsonValue::Object object_;
};

JsonValue stage_value(const StageMemory& stage) {
  ObjectWriter object;
  object.add("stage", static_cast<int>(stage.stage.index()))
      .add("weights", stage.weights)
      .add("gradients", stage.gradients)
      .add("optimizer", stage.optimizer)
      .add("activations", stage.activations)
      .add("buffers", stage.buffers)
      .add("allocated", stage.allocated)
      .add("reserved", stage.reserved)
      .add("context", stage.context)
      .add("total", stage.total)
      .add("verdict", name_of(stage.verdict))
      .add("set_by", stage.set_by_step ? "optimizer step" : "backward pass")
      .add("microbatches_in_flight", stage.microbatches_in_flight)
      .add("activation_per_microbatch", stage.activation_per_microbatch)
      .add("parameters", stage.parameters)
      .add("required", stage.required)
      .add("usable", stage.usable);
  if (stage.codec > Bytes{0}) object.add("codec", stage.codec);
  return object.take();
}

JsonValue memory_value(const MemoryAccount& memory) {
  return ObjectWriter()
      .add("capacity_bytes", memory.capacity)
      .add("max_bytes", memory.max_total)
      .add("fits", memory.fits)
      .add("per_stage", array_of(memory.stages, stage_value))
      .add("verdict", name_of(memory.verdict))
      .add("worst_stage", static_cast<int>(memory.worst_stage.index()))
      .add("advice", memory.advice)
      .take();
}

JsonValue traffic_value(const Report& report) {
  ObjectWriter object;
  for (const Traffic traffic : published_traffic)
    if (const Bytes bytes = report.traffic[static_cast<std::size_t>(traffic)];
        is_always_written(traffic) || bytes > Bytes{0})
      object.add(name_of(traffic), bytes);
  return object.take();
}

JsonValue traffic_value(const TrafficBytes& bytes) {
  ObjectWriter object;
  for (const Traffic traffic : published_traffic)
    if (const Bytes each = bytes[static_cast<std::size_t>(traffic)]; each > Bytes{0})
      object.add(name_of(traffic), each);
  return object.take();
}

JsonValue link_value(const LinkUse& link, Seconds time) {
  return ObjectWriter()
      .add("name", link.name)
      .add("bandwidth_bytes_per_s", link.bandwidth.value())
      .add("bytes", total_of(link.carried))
      .add("utilisation", link.utilisation(time))
      .add("traffic_bytes", traffic_value(link.carried))
      .take();
}

JsonValue links_value(const Report& report) {
  JsonValue::Array hottest;
  double utilisation = 0;
  for (const LinkUse& link : report.links) {
    utilisation += link.utilisation(report.iteration_time);
    if (hottest.size() < most_links) hottest.push_back(link_value(link, report.iteration_time));
  }
  const auto in_use = static_cast<std::uint64_t>(report.links.size());
  return ObjectWriter()
      .add("in_use", in_use)
      .add("mean_utilisation", in_use == 0 ? 0.0 : utilisation / static_cast<double>(in_use))
      .add("hottest", JsonValue(std::move(hottest)))
      .take();
}

JsonValue stage_times_value(const Report& report) {
  return array_of(report.stage_times, [&](const StageTime& time) {
    ObjectWriter object;
    object.add("stage", static_cast<int>(time.stage.index())).add("end", time.end);
    for (int i = 0; i < num_lines; ++i) {
      const auto line = static_cast<Line>(i);
      if (has_line(report, line)) object.add(name_of(line), time.breakdown.of(line));
    }
    return object.take();
  });
}

JsonValue messages_value(const Report& report) {
  ObjectWriter object;
  for (const Traffic traffic : published_traffic) {
    if (!is_always_written(traffic)) continue;  // no messages
    const MessageCount& count = report.messages[static_cast<std::size_t>(traffic)];
    object.add(name_of(traffic), ObjectWriter()
                                     .add("compressed", count.compressed)
                                     .add("uncompressed", count.uncompressed)
                                     .take());
  }
  return object.take();
}

JsonValue assumptions_value(const std::vector<Assumption>& assumptions) {
  return array_of(assumptions, [](const Assumption& assumption) {
    return ObjectWriter()
        .add("what", assumption.what)
        .add("value", assumption.value)
        .add("source", name_of(assumption.evidence))
        .add("note", assumption.note)
        .take();
  });
}

JsonValue interval_value(const std::pair<Seconds, Seconds>& interval) {
  return array_of(std::array{interval.first.value(), interval.second.value()});
}

JsonValue job_value(const Report& report) {
  const Parallel& parallel = report.plan.parallel;
  ObjectWriter object;
  object.add("model", report.model_name)
      .add("parameters", report.parameters)
      .add("platform", report.platform_name)
      .add("software", report.software_name);
  if (const auto& release = report.software_release; release && !release->description.empty())
    object.add("software_release_known", release->description);
  object.add("gpus", report.num_gpus)
      .add("tensor", parallel.tensor)
      .add("pipeline", parallel.pipeline)
      .add("data", parallel.data);
  if (parallel.context > 1) object.add("context", parallel.context);
  object.add("schedule", parallel.schedule->name)
      .add("global_batch", report.plan.training.global_batch)
      .add("micro_batch", report.plan.training.micro_batch)
      .add("microbatches", report.plan.microbatches)
      .add("plan", detail::plan_text(report.plan.training, report.plan.parallel));
  if (report.plan.compression.data_gradients)
    object.add("compressed_stages",
               array_of(report.compressed_stages, [](int stage) { return std::int64_t{stage}; }));
  return object.take();
}

JsonValue domains_value(const DomainUse& use) {
  return ObjectWriter()
      .add("nodes_used", use.nodes_used)
      .add("nodes", use.nodes)
      .add("idle_nodes", use.idle_nodes)
      .add("straddling", array_of(use.straddling,
                                  [](const StraddlingGroups& groups) {
                                    return ObjectWriter()
                                        .add("group", name_of(groups.axis))
                                        .add("gpus", groups.gpus)
                                        .add("domains", groups.domains)
                                        .add("exposed_s", groups.exposed)
                                        .take();
                                  }))
      .take();
}

JsonValue timers_value(const Report& report) {
  return ObjectWriter()
      .add("microbatch_forward", report.forward_time)
      .add("microbatch_backward", report.backward_time)
      .add("last_stage_forward", report.last_stage_forward)
      .add("last_stage_backward", report.last_stage_backward)
      .take();
}

JsonValue engine_value(const Report& report) {
  ObjectWriter object;
  object.add("name", report.engine).add("activities", report.activities).add("flows", report.flows);
  if (report.played_microbatches > 0) object.add("played_microbatches", report.played_microbatches);
  if (report.played_replicas > 0) object.add("played_replicas", report.played_replicas);
  return object.add("wall_s", report.wall).take();
}

}  // namespace

bool has_line(const Report& report, Line line) {
  const auto has_time = [&](const StageTime& time) { return time.breakdown.of(line) > 0_s; };
  return is_always_written(line) || report.breakdown.of(line) > 0_s ||
         std::any_of(report.stage_times.begin(), report.stage_times.end(), has_time);
}

JsonValue breakdown_value(const Breakdown& breakdown) {
  ObjectWriter object;
  for (int i = 0; i < num_lines; ++i) {
    const auto line = static_cast<Line>(i);
    if (is_always_written(line) || breakdown.of(line) > 0_s)
      object.add(name_of(line), breakdown.of(line));
  }
  return object.take();
}

JsonValue report_value(const Report& report) {
  ObjectWriter object;
  object.add("schema", "windtunnel/report-v1")
      .add("name", report.name)
      .add("version", report.version)
      .add("scenario_hash", report.scenario_hash)
      .add("seed", report.seed)
      .add("iteration_time_s", report.iteration_time);
  if (report.iteration_time_interval)
    object.add("iteration_time_interval_s", interval_value(*report.iteration_time_interval));
  for (const Figure& figure : figures()) object.add(figure.key.c_str(), figure.value(report));
  ObjectWriter lines;
  for (int i = 0; i < num_lines; ++i)
    if (const auto line = static_cast<Line>(i); has_line(report, line))
      lines.add(name_of(line), report.breakdown.of(line));
  object.add("breakdown_s", lines.take())
      .add("memory", memory_value(report.memory))
      .add("traffic_bytes", traffic_value(report))
      .add("messages", messages_value(report))
      .add("assumptions", assumptions_value(report.assumptions))
      .add("engine", engine_value(report))
      .add("software_release",
           report.software_release ? JsonValue(report.software_release->name) : JsonValue())
      .add("warnings", array_of(report.warnings))
      .add("job", job_value(report));
  if (report.domains) object.add("nvlink_domains", domains_value(*report.domains));
  object.add("timers_s", timers_value(report))
      .add("stage_times_s", stage_times_value(report))
      .add("links", links_value(report));
  return object.take();
}

std::string to_json(const Report& report) { return pretty_text(report_value(report)) + "\n"; }

namespace {

void erase_wall_times(JsonValue& value) {
  if (value.is_array())
    for (JsonValue& element : value.array()) erase_wall_times(element);
  if (!value.is_object()) return;
  if (JsonValue* engine = value.find("engine")) engine->erase("wall_s");
  for (JsonValue::Member& member : value.object()) erase_wall_times(member.value);
}

}  // namespace

std::string without_wall_time(std::string_view json) {
  Problems problems;
  JsonValue report = parse_json(
      std::make_shared<const SourceText>(SourceText{"report.json", std::string(json)}), problems);
  problems.throw_if_any();
  erase_wall_times(report);
  return pretty_text(report) + "\n";
}

}  // namespace windtunnel
