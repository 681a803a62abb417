#include <algorithm>
#include <array>
#include <string>
#include <tuple>

#include "core/count_text.hpp"
#include "core/json_build.hpp"
#include "core/mapped.hpp"
#include "job/job_result.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/report_view.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using document::Document;
using document::figure;
using document::Figure;
using document::Words;

/// A use of time: its key, its name for people, and its colour in the page's style sheet.
struct Use {
  const char *key, *words, *colour;
};
constexpr EnumArray<Spent, Use> uses{{{
    {"start", "first start", "codec"},
    {"compute", "training that counts", "compute"},
    {"noise", "steps slower than the fastest", "context_comm"},
    {"slower", "slower on fewer nodes", "tensor_comm"},
    {"evaluation", "evaluation", "optimizer"},
    {"checkpoint", "waiting for checkpoints", "data_comm"},
    {"lost", "training lost to failures", "pipeline_comm"},
    {"detection", "failure not yet noticed", "embedding_sync"},
    {"restart", "starting again", "other"},
    {"idle", "waiting for nodes", "pipeline_bubble"},
}}};

std::string time_text(double seconds) { return interval_text(Seconds{seconds}); }
std::string tenths_text(double number) { return fixed_text(number, 1); }
std::string share_text(double share) { return fixed_text(100 * share, 2) + " %"; }

JsonValue checkpoint_json(const JobResult& result) {
  const Job& job = result.job;
  std::optional<Seconds> best;
  std::optional<JsonValue> best_steps;
  std::optional<JsonValue> curve;
  if (result.intervals) {
    best = job.step_time * result.intervals->best_steps;
    if (const auto& step = result.step_interval)
      best_steps = array_of(std::array{*best / step->second, *best / step->first});
    curve = array_of(result.intervals->points, [&](const IntervalPoint& point) {
      return object_of({{"every_s", job.step_time * static_cast<double>(point.steps)},
                        {"mean_s", point.mean_seconds}});
    });
  }
  return object_of({{"bytes", job.checkpoint / Bytes{1}},
                    {"stall_s", to_seconds(job.model.stall)},
                    {"safe_after_s", to_seconds(job.model.stall + job.model.write)},
                    {"read_s", to_seconds(job.model.read)},
                    {"every_steps", job.model.checkpoint_every},
                    {"every_s", job.step_time * static_cast<double>(job.model.checkpoint_every)},
                    {"young_s", result.young},
                    {"daly_s", result.daly},
                    {"best_s", best},
                    {"best_steps", best_steps},
                    {"curve", curve}});
}

JsonValue job_data(const JobResult& result) {
  const Job& job = result.job;
  JsonValue shares = object_of({}), parts = object_of({});
  for (const Spent kind : enumerators<Spent>())
    shares.set(uses[kind].key, JsonValue(result.mean_shares[kind]));
  for (const FailingPart part : enumerators<FailingPart>())
    parts.set(name_of(part), JsonValue(result.mean_failures[part]));
  std::optional<JsonValue> spares, cost = figure_json(result.cost, result);
  if (const auto& enough = result.enough_spares)
    spares = object_of({{"spare_nodes", enough->nodes},
                        {"least_spare_nodes", enough->least},
                        {"most_spare_nodes", enough->most},
                        {"median_days", enough->median_days}});
  if (cost) cost->set("currency", JsonValue(job.block.price->currency));
  return object_of(
      {{"schema", "windtunnel/job-v1"},
       {"name", result.name},
       {"version", WINDTUNNEL_VERSION},
       {"scenario_hash", result.scenario_hash},
       {"seed", result.options.seed},
       {"draws", result.options.draws},
       {"gpus", job.gpus},
       {"plan", result.plan},
       {"fits", result.fits()},
       {"memory_verdict", name_of(result.memory_verdict)},
       {"step_s", job.step_time},
       {"step_interval_s", result.step_interval},
       {"steps", job.model.steps},
       {"tokens", job.tokens_per_step * static_cast<double>(job.model.steps)},
       {"days", figure_json(result.days, result)},
       {"with_enough_spares", spares},
       {"goodput", spread_json(result.goodput)},
       {"mean_shares", shares},
       {"failures", object_of({{"count", spread_json(result.failures)},
                               {"mean_by_part", parts},
                               {"mean_time_between_s", result.mtbf}})},
       {"checkpoint", checkpoint_json(result)},
       {"cost", cost},
       {"energy_mwh", figure_json(result.energy_mwh, result)},
       {"tonnes_co2", figure_json(result.tonnes_co2, result)},
       {"warnings", array_of(result.warnings)},
       {"assumptions", array_of(job.assumptions, [](const Assumption& each) {
          return object_of(
              {{"what", each.what},
               {"value", each.value},
               {"note", each.note},
               {"evidence", each.evidence == Evidence::measured ? "measured" : "assumed"}});
        })}});
}

constexpr double hours_per_day = 24, minutes_per_day = 1440;
constexpr LengthUnit length_units[] = {
    {"days", 1, amount_text},
    {"hours", hours_per_day, [](double days) { return amount_text(hours_per_day * days); }},
    {"minutes", minutes_per_day, [](double days) { return amount_text(minutes_per_day * days); }},
};

const LengthUnit& unit_of(const JobResult& result) { return length_unit(result.days.median); }

/// Number of draws that end in each span of time.
Chart days_chart(const JobResult& result) {
  constexpr std::size_t num_bars = 41;
  constexpr double least_width = 1e-3;  // of the days
  const auto& [unit, per_day, text] = unit_of(result);
  std::vector<double> days = mapped(result.draws, days_of);
  for (double& each : days) each *= per_day;
  const auto [low, high] = std::ranges::minmax_element(days);
  Chart chart =
      histogram(std::string("How long the draws take, in ") + unit, days,
                {*low, std::max(*high, *low * (1 + least_width)), number_mark,
                 std::string(unit) + (result.step_interval ? " at the predicted step" : "")},
                num_bars, "draw");
  const Spread& run = result.days.of_run;
  chart.rules = {
      {run.low * per_day, "5th"}, {run.median * per_day, "median"}, {run.high * per_day, "95th"}};
  return chart;
}

/// Between which lengths 90 % of runs lie: over both errors, and by each alone.
Chart bands_chart(const JobResult& result) {
  const auto& [unit, per_day, text] = unit_of(result);
  const JobFigure& days = result.days;
  Chart chart{"Length of 90 % of runs",
              Chart::Shape::dots,
              {std::min(days.low, days.of_step.low) * per_day,
               std::max(days.high, days.of_step.high) * per_day, number_mark,
               std::string(unit) + "; line: 90 % of runs, dot: at the predicted step"},
              {0, 4, nullptr, "what may differ"}};
  double row = 3;
  for (const auto& [name, band] : {std::pair<const char*, Spread>{"both", days},
                                   {"error of the step", days.of_step},
                                   {"failures and noise", days.of_run}}) {
    chart.points.push_back({days.median * per_day, row, name});
    chart.points.back().error = Chart::Error{band.low * per_day, row, band.high * per_day, row};
    --row;
  }
  return chart;
}

/// Mean length by interval of checkpoints, with the formulas' intervals.
Chart interval_chart(const JobResult& result) {
  const auto& points = result.intervals->points;
  const double seconds = result.job.step_time / Seconds{1};  // a step
  const bool in_minutes = double(points.front().steps) * seconds >= 60;
  const double unit = in_minutes ? 60 : 1, step = seconds / unit;
  const LengthUnit& length = unit_of(result);
  const double of_length = length.per_day / seconds_per_day;
  Chart chart{
      "Mean length of the job by interval of checkpoints",
      Chart::Shape::line,
      {double(points.front().steps) * step, double(points.back().steps) * step, number_mark,
       std::string(in_minutes ? "minutes" : "seconds") +
           " between checkpoints, all with the same failures",
       true},
      {points.front().mean_seconds * of_length, (points.front().mean_seconds + 1) * of_length,
       number_mark, std::string("mean ") + length.name}};
  for (const IntervalPoint& point : points) {
    const double days = point.mean_seconds * of_length;
    chart.points.push_back({double(point.steps) * step, days});
    chart.y.low = std::min(chart.y.low, days);
    chart.y.high = std::max(chart.y.high, days);
  }
  for (const auto& [interval, name] :
       {std::pair{result.intervals->best_steps * seconds, "best, simulated "},
        std::pair{*result.young / Seconds{1}, "Young "},
        std::pair{*result.daly / Seconds{1}, "Daly "}})
    chart.rules.push_back({interval / unit, name + time_text(interval)});
  return chart;
}

document::Bars time_bars(const JobResult& result, const JsonValue& data) {
  const LengthUnit& unit = unit_of(result);
  document::Bars bars{{"lrr", {{"what", "share", unit.name}}}, {}};
  for (const Spent kind : enumerators<Spent>()) {
    const double share = result.mean_shares[kind];
    if (share <= 0) continue;
    const auto& [key, words, colour] = uses[kind];
    bars.table.rows.push_back({words, figure(data, std::string("/mean_shares/") + key, share_text),
                               unit.text(share * result.days.median)});
    bars.bars.push_back({share, colour});
  }
  return bars;
}

/// The figures with each of the two errors alone; left out where the step has no interval.
document::Section how_sure(const JobResult& result, const JsonValue& data) {
  document::Section section{"sure", "How sure", "How sure the figures are", {}};
  if (!result.step_interval) return section;
  document::Table table{"wrr",
                        {{"90 % of runs", "by the error of the step", "by failures and noise"}}};
  const std::string currency =
      result.job.block.price ? ", " + result.job.block.price->currency : std::string();
  const LengthUnit& unit = unit_of(result);
  using Row = std::tuple<std::string, std::string, std::string (*)(double)>;
  for (const auto& [label, key, text] : {Row{unit.name, "/days", unit.text},
                                         {"cost" + currency, "/cost", amount_text},
                                         {"energy, MWh", "/energy_mwh", amount_text},
                                         {"emissions, t CO2", "/tonnes_co2", amount_text}}) {
    const auto between = [&, &pointer = key, &format = text](const std::string& part) {
      return job_figure(data, pointer + part + "/p5", format) + " to " +
             job_figure(data, pointer + part + "/p95", format);
    };
    if (find_at(data, key) != nullptr)
      table.rows.push_back({label, between("/of_which_step"), between("/of_which_run")});
  }
  if (!result.step_evidence.empty())
    section.parts.emplace_back("The interval of the step rests on " + result.step_evidence + ".");
  section.parts.emplace_back(std::move(table));
  section.parts.emplace_back(bands_chart(result));
  return section;
}

}  // namespace

std::string amount_text(double amount) {
  constexpr double few = 10, many = 100;
  if (amount < few) return fixed_text(amount, 2);
  return amount < many ? fixed_text(amount, 1) : grouped_text(amount);
}

const LengthUnit& length_unit(double days) {
  return days >= 1                   ? length_units[0]
         : hours_per_day * days >= 1 ? length_units[1]
                                     : length_units[2];
}

Words job_figure(const JsonValue& data, const std::string& pointer, std::string (*format)(double)) {
  const Words words = figure(data, pointer, format);
  return format == length_units[1].text || format == length_units[2].text ? Words(words.text())
                                                                          : words;
}

JsonValue figure_json(const JobFigure& figure, const JobResult& result) {
  JsonValue value = spread_json(figure);
  if (!result.step_interval) return value;
  for (const auto& [key, part] :
       {std::pair{"of_which_step", &figure.of_step}, {"of_which_run", &figure.of_run}})
    value.set(key, object_of({{"p5", part->low}, {"p95", part->high}}));
  return value;
}

std::optional<JsonValue> figure_json(const std::optional<JobFigure>& figure,
                                     const JobResult& result) {
  return figure ? std::optional(figure_json(*figure, result)) : std::nullopt;
}

JsonValue spread_json(const Spread& spread) {
  return object_of({{"median", spread.median}, {"p5", spread.low}, {"p95", spread.high}});
}

Document job_document(const JobResult& result) {
  const Job& job = result.job;
  JsonValue data = job_data(result);
  const auto at = [&](const std::string& pointer, std::string (*format)(double)) {
    return job_figure(data, pointer, format);
  };
  const LengthUnit& unit_of_length = unit_of(result);
  const auto between = [&](const std::string& pointer, std::string (*format)(double)) {
    return at(pointer + "/p5", format) + " to " + at(pointer + "/p95", format);
  };
  const auto spread = [&](const char* label, const std::string& pointer,
                          std::string (*format)(double), const std::string& unit = "") {
    return Figure{label, at(pointer + "/median", format),
                  unit + (result.step_interval ? "at the predicted step, " : "") +
                      "5th to 95th percentile " + between(pointer, format)};
  };
  const auto uncertain = [&](const char* label, const std::string& pointer,
                             std::string (*format)(double), const std::string& unit = "") {
    if (!result.step_interval) return spread(label, pointer, format, unit);
    return Figure{label, at(pointer + "/median", format),
                  unit + "90 % of runs: " + between(pointer, format)};
  };
  const double draws = static_cast<double>(result.options.draws);
  Words step_note;
  if (result.step_interval)
    step_note = ", 90 % between " + at("/step_interval_s/0", html::text_of_time) + " and " +
                at("/step_interval_s/1", html::text_of_time);
  std::vector<Words> opening{
      result.model_name + " on " + at("/gpus", grouped_text) + " GPUs (" + result.platform_name +
          "), " + parameter_text(job.tokens_per_step * static_cast<double>(job.model.steps)) +
          " tokens in " + at("/steps", grouped_text) +
          (job.model.steps == 1 ? " step of " : " steps of ") + to_text(job.step_time) + step_note +
          "; " + grouped_text(draws) + (draws == 1 ? " draw" : " draws"),
      (job.block.plan == JobPlan::best ? "best plan: " : "plan: ") + result.plan};
  if (!result.memory.empty()) opening.push_back("memory " + result.memory);
  Words spares_note;
  if (const auto& enough = result.enough_spares; enough && enough->least < enough->most)
    spares_note = "; how many are enough is not sure, from " +
                  at("/with_enough_spares/least_spare_nodes", grouped_text) + " to " +
                  at("/with_enough_spares/most_spare_nodes", grouped_text) +
                  " over the interval of the step";
  if (result.enough_spares)
    opening.push_back(
        (job.model.spare_nodes == 0 ? "without spare nodes"
                                    : "with " + count_text(job.model.spare_nodes, "spare node")) +
        ", the job waits for nodes in " + percent_text(result.share_without_nodes()) +
        " of its time, mean of all draws; with " +
        at("/with_enough_spares/spare_nodes", grouped_text) + " (--set /job/restart/spare_nodes=" +
        at("/with_enough_spares/spare_nodes", [](double nodes) { return fixed_text(nodes, 0); }) +
        ") it takes " + at("/with_enough_spares/median_days", unit_of_length.text) + " " +
        unit_of_length.name + spares_note);

  document::Figures failures;
  for (const auto& [part, unused] : all_names<FailingPart>())
    failures.push_back({part, at("/failures/mean_by_part/" + part, tenths_text)});
  Words best_note;
  if (result.intervals && result.step_interval)
    best_note = at("/checkpoint/best_steps/0", grouped_text) + " to " +
                at("/checkpoint/best_steps/1", grouped_text) +
                " steps over the interval of the step";
  document::Section checkpoints{"checkpoints", "Checkpoints", "How often to save", {}};
  checkpoints.parts.push_back(document::Figures{
      {"size of a checkpoint", at("/checkpoint/bytes", html::text_of_bytes)},
      {"training waits", at("/checkpoint/stall_s", time_text),
       job.model.write > 0 ? "written after another " + interval_text(to_seconds(job.model.write))
                           : ""},
      {"interval in this run", at("/checkpoint/every_s", time_text),
       at("/checkpoint/every_steps", grouped_text) + " steps"},
      {"best interval, simulated", at("/checkpoint/best_s", time_text), best_note},
      {"by Young's formula", at("/checkpoint/young_s", time_text)},
      {"by Daly's formula", at("/checkpoint/daly_s", time_text)}});
  if (result.intervals && result.intervals->points.size() > 1)
    checkpoints.parts.emplace_back(interval_chart(result));
  document::Section inputs{
      "inputs", "Numbers not given", "Numbers that the file leaves to windtunnel", {}};
  if (!job.assumptions.empty()) {
    document::Table table{"www", {{"what", "value", "source"}}};
    for (const Assumption& each : job.assumptions)
      table.rows.push_back({each.what, each.value,
                            (each.evidence == Evidence::measured ? "" : "assumed: ") + each.note});
    inputs.parts.emplace_back(std::move(table));
  }
  document::Section scenario{
      "scenario",
      "Scenario",
      "Scenario",
      {document::Details{"The whole scenario, with the origin of each value", result.scenario}}};
  return {data,
          "job",
          result.name,
          opening,
          unit_of_length.name,
          {uncertain(unit_of_length.name, "/days", unit_of_length.text),
           spread("goodput", "/goodput", percent_text, "of the time counts in the median draw, "),
           spread("failures", "/failures/count", grouped_text),
           {"mean time between failures", at("/failures/mean_time_between_s", time_text)},
           uncertain("cost", "/cost", amount_text,
                     job.block.price ? job.block.price->currency + ", " : ""),
           uncertain("energy", "/energy_mwh", amount_text, "MWh, "),
           uncertain("emissions", "/tonnes_co2", amount_text, "t CO2, ")},
          {how_sure(result, data),
           {"time", "Time", "Where the time went, mean of all draws", {time_bars(result, data)}},
           {"days", "Days", "How long it may take", {days_chart(result)}},
           checkpoints,
           {"failures", "Failures", "What fails, mean of all draws", {failures}},
           inputs,
           scenario},
          "windtunnel job --json",
          result.warnings};
}

std::string job_csv(const JobResult& result) {
  std::string text = "draw,days";
  for (const Use& use : uses) text += std::string(",") + use.key + "_ns";
  text += ",total_ns";
  for (const auto& [part, unused] : all_names<FailingPart>()) text += ",failures_" + part;
  text += ",checkpoints,cost,energy_mwh\n";
  for (std::size_t i = 0; i < result.draws.size(); ++i) {
    const JobDraw& draw = result.draws[i];
    text += std::to_string(i) + "," + exact_number(days_of(draw));
    for (const Ticks ticks : draw.spent) text += "," + std::to_string(ticks);
    text += "," + std::to_string(draw.total);
    for (const std::int64_t failures : draw.failures) text += "," + std::to_string(failures);
    text += "," + std::to_string(draw.checkpoints) + ",";
    if (result.cost) text += exact_number(cost_of(result.job, draw));
    text += ",";
    if (result.energy_mwh) text += exact_number(energy_of(result.job, draw));
    text += "\n";
  }
  return text;
}

}  // namespace windtunnel
