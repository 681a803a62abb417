#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "core/count_text.hpp"
#include "core/json_build.hpp"
#include "core/mapped.hpp"
#include "core/text_list.hpp"
#include "importers/importer.hpp"
#include "importers/straggler_causes.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/report_view.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel::formats {
namespace {

std::string slowdown_text(double slowdown) { return fixed_text(slowdown, 3); }

std::string worker_name(const WorkerPace& worker) {
  return "data-parallel rank " + std::to_string(worker.data_rank) + ", stage " +
         std::to_string(worker.stage);
}

bool are_sequence_lengths(const StragglerAnalysis& analysis) {
  return analysis.forward_backward_correlation >= sequence_length_correlation;
}

std::string sentence(const StragglerAnalysis& analysis, const CauseCost& cost) {
  const std::string saved = html::text_of_time(cost.saved) + " of each " +
                            html::text_of_time(analysis.step_time) + " step";
  if (cost.cause == StragglerCause::slow_worker) {
    // Workers that are slower than their peers by what makes a job straggle.
    std::vector<WorkerPace> slow;
    for (const WorkerPace& worker : analysis.workers)
      if (worker.ratio >= straggling_slowdown) slow.push_back(worker);
    if (slow.empty()) return "workers that are a little slower than their peers cost " + saved;
    if (slow.size() == 1)
      return "the worker of " + worker_name(slow.front()) + " takes " +
             fixed_text(slow.front().ratio, 2) + " times as long as its peers and costs " + saved;
    constexpr std::size_t most_named = 4;
    return std::to_string(slow.size()) + " workers slower than their peers (" +
           joined(std::span(slow).first(std::min(slow.size(), most_named)), "; ", worker_name) +
           (slow.size() > most_named ? "; …)" : ")") + " cost " + saved;
  }
  if (cost.cause == StragglerCause::uneven_stages) {
    const auto longest = std::ranges::max_element(analysis.stage_ratios);
    const auto stage = longest - analysis.stage_ratios.begin();
    const bool is_last = longest + 1 == analysis.stage_ratios.end();
    const bool has_peers = std::ranges::any_of(
        analysis.workers, [](const WorkerPace& worker) { return worker.data_rank > 0; });
    return std::string(is_last ? "the last stage" : "stage " + std::to_string(stage)) + " of " +
           std::to_string(analysis.stage_ratios.size()) + " has too much to do: its passes take " +
           percent_text(*longest - 1) +
           " longer than the mean of the stages; an even partition would save " + saved +
           (has_peers ? ""
                      : " (or its one worker is slow: with one data-parallel rank nothing "
                        "tells these apart)");
  }
  if (cost.cause == StragglerCause::uneven_batches) {
    const bool lengths = are_sequence_lengths(analysis);
    return std::string(lengths ? "microbatches hold sequences of different lengths: "
                               : "passes of one worker take uneven times: ") +
           "passes differ by " + percent_text(analysis.forward_scatter) + " forward and " +
           percent_text(analysis.backward_scatter) + " backward, " +
           (lengths ? "those of one microbatch alike" : "whatever the microbatch") +
           " (correlation " + fixed_text(analysis.forward_backward_correlation, 2) +
           "); even ones would save " + saved;
  }
  return "transfers that take longer than most of their kind cost " + saved;
}

/// The main cause of a job that straggles, and others that alone would make it straggle.
std::vector<CauseCost> causes_to_name(const StragglerAnalysis& analysis) {
  std::vector<CauseCost> named;
  if (analysis.slowdown() < straggling_slowdown) return named;
  for (const CauseCost& cost : analysis.causes)
    if (named.empty() || cost.saved >= (straggling_slowdown - 1) * analysis.ideal_time)
      named.push_back(cost);
  return named;
}

JsonValue analysis_json(const JobTrace& trace, const StragglerAnalysis& analysis) {
  const auto cause_json = [&](const CauseCost& cost) {
    return object_of({{"cause", dashed_name(cost.cause)},
                      {"saved_s", cost.saved},
                      {"standard_error_s", cost.standard_error},
                      {"share", analysis.share(cost)}});
  };
  const auto verdict_json = [&](const CauseCost& cost) {
    JsonValue each = cause_json(cost);
    each.set("text", JsonValue(sentence(analysis, cost)));
    return each;
  };
  const auto worker_json = [](const WorkerPace& worker) {
    return object_of({{"data_rank", worker.data_rank},
                      {"stage", worker.stage},
                      {"time_over_peers", worker.ratio},
                      {"saved_s", only_if(worker.saved > 0, worker.saved)}});
  };
  JsonValue works = empty_object();
  for (const JobWork work : enumerators<JobWork>())
    if (const double slowdown = analysis.slowdown_by_work[work]; slowdown > 0)
      works.set(dashed_name(work), JsonValue(slowdown));
  return object_of({{"file", trace.file},
                    {"data_ranks", trace.num_data_ranks},
                    {"stages", trace.num_stages},
                    {"steps", trace.steps.size()},
                    {"operations", trace.operations.size()},
                    {"step_time_s", analysis.step_time},
                    {"ideal_time_s", analysis.ideal_time},
                    {"slowdown", analysis.slowdown()},
                    {"verdict", array_of(causes_to_name(analysis), verdict_json)},
                    {"causes", array_of(analysis.causes, cause_json)},
                    {"slowdown_by_operation", works},
                    {"workers", array_of(analysis.workers, worker_json)},
                    {"stage_time_over_mean", array_of(analysis.stage_ratios)},
                    {"forward_backward_correlation", analysis.forward_backward_correlation}});
}

document::Document document_of(const JobTrace& trace, const StragglerAnalysis& analysis) {
  const JsonValue data = analysis_json(trace, analysis);
  const auto cause_figure = [&](std::size_t cause, const char* key, std::string (*format)(double)) {
    return document::figure(data, "/causes/" + std::to_string(cause) + key, format);
  };
  document::Table causes{"wr", {{"removed alone", "saves", "", "of the loss"}}};
  const std::array words{
      "slow workers", "uneven stages",
      are_sequence_lengths(analysis) ? "uneven sequence lengths" : "uneven passes",
      "slow transfers"};
  for (std::size_t i = 0; i < analysis.causes.size(); ++i)
    causes.rows.push_back({words[static_cast<std::size_t>(analysis.causes[i].cause)],
                           cause_figure(i, "/saved_s", html::text_of_time),
                           "± " + cause_figure(i, "/standard_error_s", html::text_of_time),
                           cause_figure(i, "/share", percent_text)});
  auto verdict = mapped<document::Part>(
      causes_to_name(analysis), [&](const CauseCost& cost) { return sentence(analysis, cost); });
  if (verdict.empty())
    verdict.emplace_back(document::Words("none: stragglers make a step less than " +
                                         percent_text(straggling_slowdown - 1) + " longer"));
  return {data,
          "stragglers",
          std::filesystem::path(trace.file).filename().string(),
          {"a job of " + std::to_string(trace.num_data_ranks) + " data-parallel ranks × " +
           count_text(trace.num_stages, "stage") + ", " + count_text(trace.steps.size(), "step") +
           ", " + grouped_text(static_cast<double>(trace.operations.size())) + " operations"},
          "slowdown by stragglers",
          {{"a step, replayed", document::figure(data, "/step_time_s", html::text_of_time)},
           {"without stragglers", document::figure(data, "/ideal_time_s", html::text_of_time)},
           {"slowdown by stragglers", document::figure(data, "/slowdown", slowdown_text)}},
          {{"causes", "Causes", "", {causes}}, {"verdict", "Verdict", "Verdict", verdict}},
          "windtunnel import straggler-trace --json"};
}

Imported import_straggler_trace(const ImportRequest& request, const Library&) {
  TextInput input(request.inputs.front());
  const JobTrace trace = read_job_trace(input);
  const StragglerAnalysis analysis = analyse_stragglers(trace);
  Imported imported;
  imported.report = document_of(trace, analysis);
  if (!trace.incomplete_steps.empty())
    imported.notes.push_back(std::to_string(trace.incomplete_steps.size()) +
                             " steps left out, in which workers lack operations that others have");
  return imported;
}

}  // namespace

Importer straggler_trace() {
  return {"straggler-trace",
          "operations of a job in ByteDance's format, to what stragglers cost it and why",
          "a timeline of ByteDance-Seed/StragglerAnalysis, .json or .json.gz",
          {},
          import_straggler_trace,
          Importer::Result::report};
}

}  // namespace windtunnel::formats
