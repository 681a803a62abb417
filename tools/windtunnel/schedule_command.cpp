#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/json_value.hpp"
#include "core/mapped.hpp"
#include "core/memory_left.hpp"
#include "core/work_note.hpp"
#include "plan/schedule.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "scenario/scenario.hpp"
#include "schedule/in_flight.hpp"
#include "schedule/schedule_check.hpp"
#include "schedule/schedule_drawing.hpp"
#include "schedule/schedule_file_json.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"

namespace windtunnel {
namespace {

constexpr std::int64_t most_passes = 10'000'000;
constexpr double bytes_of_pass = 1000;  // while waits are searched for a ring

std::string text(int number) { return std::to_string(number); }

SchedulePtr known_schedule(const std::string& name) {
  if (SchedulePtr schedule = schedule_named(name)) return schedule;
  const auto names = mapped(named_schedules(), [](const SchedulePtr& each) { return each->name; });
  const std::string nearest = closest_match(name, names);
  throw UsageError("unknown schedule \"" + name + "\" (" +
                   (nearest.empty() ? "there are " + schedule_name_list() + ", and paths"
                                    : "did you mean \"" + nearest + "\"?") +
                   ")");
}

void check_shape(const Schedule& schedule, const OrderShape& shape) {
  if (schedule.fewest_chunks() > 1 && !schedule.takes(shape.chunks))
    throw UsageError(schedule.name + " has " + count_text(schedule.fewest_chunks(), "chunk") +
                     " per device: leave out --virtual");
  if (!schedule.takes(shape.chunks))
    throw UsageError("--virtual " + text(shape.chunks) + " is for " +
                     names_of_chunked_schedules(shape.chunks) + ", not for " + schedule.name);
  if (shape.chunks > 1 && shape.stages == 1)
    throw UsageError(count_text(shape.chunks, "chunk") + " per device need more than one stage");
  if (schedule.fewest_microbatches_of_stage > 0 && !schedule.misfit(shape).empty())
    throw UsageError(schedule.misfit(shape));
  if (shape.microbatches % schedule.microbatch_group(shape.stages, shape.chunks) != 0)
    throw UsageError(schedule.name +
                     " needs microbatches in multiples of stages: " + text(shape.microbatches) +
                     " microbatches on " + text(shape.stages) + " stages");
  const std::int64_t passes = std::int64_t{shape.stages} * shape.microbatches * shape.chunks;
  if (passes > most_passes)
    throw UsageError("more than " + std::to_string(most_passes) + " forward passes");
  expect_memory_for(bytes_of_pass * static_cast<double>(passes),
                    "a schedule of " + std::to_string(passes) + " forward passes",
                    "check fewer stages or microbatches");
}

ScheduleOrders named_orders(const CommandLine& line) {
  const SchedulePtr schedule = known_schedule(line.arguments[1]);
  refuse_if(line.stages == 0 || line.microbatches == 0,
            "a named schedule needs --stages and --microbatches");
  const OrderShape shape{line.stages, line.microbatches,
                         line.chunks == 0 ? schedule->fewest_chunks() : line.chunks};
  check_shape(*schedule, shape);
  return schedule_orders(*schedule, shape);
}

ScheduleOrders orders_of_file(const CommandLine& line) {
  refuse_if(line.stages + line.microbatches + line.chunks != 0,
            "a schedule file says its stages, microbatches and chunks itself");
  const std::filesystem::path path = line.arguments[1];
  Problems problems;
  JsonValue value = parse_json(read_source_or_stdin(path), problems);
  problems.throw_if_any();
  if (value.is_object() && value.find("name") == nullptr)
    value.set("name", JsonValue(name_of_source(path)));
  ScheduleOrders orders = read_schedule_orders(value, {}, problems);
  problems.throw_if_any();
  return orders;
}

JsonValue label_of(const ScheduleOrders& orders) {
  return object_of({{"schema", "windtunnel/schedule-v1"},
                    {"name", orders.name},
                    {"stages", orders.shape.stages},
                    {"microbatches", orders.shape.microbatches},
                    {"chunks", orders.shape.chunks},
                    {"legal", true}});
}

std::vector<int> peaks_of(const ScheduleOrders& orders) {
  return mapped(orders.of_stage, [](const std::vector<Step>& order) {
    return static_cast<int>(count_in_flight(order).all);
  });
}

std::string check_json(const ScheduleOrders& orders) {
  const ScheduleTiming timing = time_schedule(orders);
  JsonValue result = label_of(orders);
  add_members(result, {{"bubble", timing.bubble()},
                       {"peak_in_flight", array_of(peaks_of(orders), json_of<int>)},
                       {"finishes_with_blocking_pairs", !exchange_deadlock(orders).has_value()}});
  return pretty_text(result) + "\n";
}

std::string check_text(const ScheduleOrders& orders) {
  const ScheduleTiming timing = time_schedule(orders);
  const OrderShape& shape = orders.shape;
  std::string result = orders.name + ": legal. " + count_text(shape.stages, "stage") + ", " +
                       count_text(shape.microbatches, "microbatch") + ", " +
                       count_text(shape.chunks, "chunk") + " per device\n";
  result += "bubble          " + fixed_text(100 * timing.bubble(), 2) +
            " % of the time computing, without communication (" +
            (timing.splits ? "F = B = W" : "B = 2 F") + ")\n";
  result += "peak in flight ";
  for (const int peak : peaks_of(orders)) result += " " + text(peak);
  result += std::string(shape.chunks > 1 ? "  (microbatch, chunk) pairs" : "  microbatches") +
            ", by stage\n";
  const auto deadlock = exchange_deadlock(orders);
  return result + "blocking_pairs  " + (deadlock ? "never finishes: " + *deadlock : "finishes") +
         "\n";
}

std::string draw_json(const ScheduleOrders& orders) {
  const ScheduleTiming timing = time_schedule(orders);
  JsonValue::Array stages;
  for (std::size_t stage = 0; stage < orders.of_stage.size(); ++stage) {
    JsonValue::Array passes;
    for (std::size_t i = 0; i < orders.of_stage[stage].size(); ++i) {
      const Step& step = orders.of_stage[stage][i];
      const int begin = timing.begin[stage][i];
      passes.push_back(
          object_of({{"pass", token_of(step)},
                     {"begin", begin},
                     {"end", begin + ScheduleTiming::length_of(step.phase, timing.splits)}}));
    }
    stages.emplace_back(std::move(passes));
  }
  JsonValue result = label_of(orders);
  result.set("passes", JsonValue(std::move(stages)));
  return pretty_text(result) + "\n";
}

void draw(const CommandLine& line, const ScheduleOrders& orders) {
  std::size_t passes = 0;
  for (const std::vector<Step>& order : orders.of_stage) passes += order.size();
  if (passes > most_drawn_passes)
    throw UsageError("a schedule of " + std::to_string(passes) +
                     " passes is not drawn; the limit is " + std::to_string(most_drawn_passes));
  if (!line.svg.empty()) {
    write_file_atomically(line.svg, schedule_svg(orders));
    print_note(line, "wrote " + line.svg);
  }
  print_result(line.format == ResultFormat::json
                   ? draw_json(orders)
                   : schedule_rows(orders, static_cast<std::size_t>(result_width(line))));
}

}  // namespace

ExitCode schedule_command(const CommandLine& line) {
  const std::string& what = line.arguments[1];
  const WorkNoteScope checking("checking the schedule");
  const ScheduleOrders orders =
      is_stdin(what) || looks_like_path(what) ? orders_of_file(line) : named_orders(line);
  if (line.arguments[0] == "draw")
    draw(line, orders);
  else
    print_result(line, line.format == ResultFormat::json ? check_json(orders) : check_text(orders));
  return exit_done;
}

}  // namespace windtunnel
