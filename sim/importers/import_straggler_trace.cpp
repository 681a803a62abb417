#include <algorithm>

#include "importers/importer.hpp"
#include "importers/straggler_causes.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

std::string time_text(double seconds) { return to_text(Seconds{seconds}); }

std::string of_each_step(const StragglerAnalysis& analysis, double saved) {
  return time_text(saved) + " of each " + time_text(analysis.step_time) + " step";
}

std::string name_of(const WorkerPace& worker) {
  return "data-parallel rank " + std::to_string(worker.data_rank) + ", stage " +
         std::to_string(worker.stage);
}

/// Workers that are slower than their peers by what makes a job straggle.
std::vector<WorkerPace> slow_workers(const StragglerAnalysis& analysis) {
  std::vector<WorkerPace> slow;
  for (const WorkerPace& worker : analysis.workers)
    if (worker.ratio >= straggling_slowdown) slow.push_back(worker);
  return slow;
}

std::string slow_worker_sentence(const StragglerAnalysis& analysis, const CauseCost& cost) {
  const std::vector<WorkerPace> slow = slow_workers(analysis);
  if (slow.size() == 1)
    return "the worker of " + name_of(slow.front()) + " takes " +
           fixed_text(slow.front().ratio, 2) + " times as long as its peers and costs " +
           of_each_step(analysis, cost.saved);
  std::string list;
  constexpr std::size_t most_named = 4;
  for (std::size_t i = 0; i < std::min(slow.size(), most_named); ++i)
    list += (i > 0 ? "; " : "") + name_of(slow[i]);
  if (slow.size() > most_named) list += "; …";
  return (slow.empty()
              ? std::string("workers that are a little slower than their peers")
              : std::to_string(slow.size()) + " workers slower than their peers (" + list + ")") +
         " cost " + of_each_step(analysis, cost.saved);
}

/// Whether a stage has more than one worker.
bool has_peers(const StragglerAnalysis& analysis) {
  return std::any_of(analysis.workers.begin(), analysis.workers.end(),
                     [](const WorkerPace& worker) { return worker.data_rank > 0; });
}

std::string uneven_stages_sentence(const StragglerAnalysis& analysis, const CauseCost& cost) {
  const auto longest = std::max_element(analysis.stage_ratios.begin(), analysis.stage_ratios.end());
  const auto stage = longest - analysis.stage_ratios.begin();
  const bool is_last = longest + 1 == analysis.stage_ratios.end();
  return std::string(is_last ? "the last stage" : "stage " + std::to_string(stage)) + " of " +
         std::to_string(analysis.stage_ratios.size()) + " has too much to do: its passes take " +
         percent_text(*longest - 1) +
         " longer than the mean of the stages; an even partition would save " +
         of_each_step(analysis, cost.saved) +
         (has_peers(analysis) ? ""
                              : " (or its one worker is slow: with one data-parallel rank nothing "
                                "tells these apart)");
}

bool are_sequence_lengths(const StragglerAnalysis& analysis) {
  return analysis.forward_backward_correlation >= sequence_length_correlation;
}

std::string uneven_batches_sentence(const StragglerAnalysis& analysis, const CauseCost& cost) {
  return std::string(are_sequence_lengths(analysis)
                         ? "microbatches hold sequences of different lengths: "
                         : "passes of one worker take uneven times: ") +
         "passes differ by " + percent_text(analysis.forward_scatter) + " forward and " +
         percent_text(analysis.backward_scatter) + " backward, " +
         (are_sequence_lengths(analysis) ? "those of one microbatch alike"
                                         : "whatever the microbatch") +
         " (correlation " + fixed_text(analysis.forward_backward_correlation, 2) +
         "); even ones would save " + of_each_step(analysis, cost.saved);
}

std::string sentence(const StragglerAnalysis& analysis, const CauseCost& cost) {
  switch (cost.cause) {
    case StragglerCause::slow_worker:
      return slow_worker_sentence(analysis, cost);
    case StragglerCause::uneven_stages:
      return uneven_stages_sentence(analysis, cost);
    case StragglerCause::uneven_batches:
      return uneven_batches_sentence(analysis, cost);
    case StragglerCause::communication:
      return "transfers that take longer than most of their kind cost " +
             of_each_step(analysis, cost.saved);
  }
  return {};
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

const char* words_for(const StragglerAnalysis& analysis, StragglerCause cause) {
  switch (cause) {
    case StragglerCause::slow_worker:
      return "slow workers";
    case StragglerCause::uneven_stages:
      return "uneven stages";
    case StragglerCause::uneven_batches:
      return are_sequence_lengths(analysis) ? "uneven sequence lengths" : "uneven passes";
    case StragglerCause::communication:
      return "slow transfers";
  }
  return "";
}

constexpr int name_width = 28, number_width = 12;

std::string row(const std::string& name, const std::string& a, const std::string& b,
                const std::string& c) {
  return "  " + left_aligned(name, name_width) + right_aligned(a, number_width) +
         right_aligned(b, number_width) + right_aligned(c, number_width) + "\n";
}

std::string text_of(const JobTrace& trace, const StragglerAnalysis& analysis) {
  std::string text =
      std::filesystem::path(trace.file).filename().string() + ": a job of " +
      std::to_string(trace.num_data_ranks) + " data-parallel ranks × " +
      std::to_string(trace.num_stages) + (trace.num_stages == 1 ? " stage, " : " stages, ") +
      std::to_string(trace.steps.size()) + (trace.steps.size() == 1 ? " step, " : " steps, ") +
      grouped_text(static_cast<double>(trace.operations.size())) + " operations\n\n";
  text += "  " + left_aligned("a step, replayed", name_width) +
          right_aligned(time_text(analysis.step_time), number_width) + "\n";
  text += "  " + left_aligned("without stragglers", name_width) +
          right_aligned(time_text(analysis.ideal_time), number_width) + "\n";
  text += "  " + left_aligned("slowdown by stragglers", name_width) +
          right_aligned(fixed_text(analysis.slowdown(), 3), number_width) + "\n\n";
  text += row("removed alone", "saves", "", "of the loss");
  for (const CauseCost& cost : analysis.causes)
    text += row(words_for(analysis, cost.cause), time_text(cost.saved),
                "± " + time_text(cost.standard_error), percent_text(analysis.share(cost)));
  const std::vector<CauseCost> named = causes_to_name(analysis);
  text += "\nVerdict\n";
  for (const CauseCost& cost : named) text += "  " + sentence(analysis, cost) + "\n";
  if (named.empty())
    text += "  none: stragglers make a step less than " + percent_text(straggling_slowdown - 1) +
            " longer\n";
  return text;
}

JsonValue json_of(const StragglerAnalysis& analysis, const CauseCost& cost) {
  JsonValue value(JsonValue::Object{});
  value.set("cause", JsonValue(std::string(windtunnel::name_of(cost.cause))));
  value.set("saved_s", JsonValue(cost.saved));
  value.set("standard_error_s", JsonValue(cost.standard_error));
  value.set("share", JsonValue(analysis.share(cost)));
  return value;
}

JsonValue json_of(const WorkerPace& worker) {
  JsonValue value(JsonValue::Object{});
  value.set("data_rank", JsonValue(std::int64_t{worker.data_rank}));
  value.set("stage", JsonValue(std::int64_t{worker.stage}));
  value.set("time_over_peers", JsonValue(worker.ratio));
  if (worker.saved > 0) value.set("saved_s", JsonValue(worker.saved));
  return value;
}

JsonValue json_of(const JobTrace& trace, const StragglerAnalysis& analysis) {
  JsonValue value(JsonValue::Object{});
  value.set("file", JsonValue(trace.file));
  value.set("data_ranks", JsonValue(std::int64_t{trace.num_data_ranks}));
  value.set("stages", JsonValue(std::int64_t{trace.num_stages}));
  value.set("steps", JsonValue(static_cast<std::int64_t>(trace.steps.size())));
  value.set("operations", JsonValue(static_cast<std::int64_t>(trace.operations.size())));
  value.set("step_time_s", JsonValue(analysis.step_time));
  value.set("ideal_time_s", JsonValue(analysis.ideal_time));
  value.set("slowdown", JsonValue(analysis.slowdown()));
  JsonValue::Array causes, verdict, workers, stages;
  for (const CauseCost& cost : analysis.causes) causes.push_back(json_of(analysis, cost));
  for (const WorkerPace& worker : analysis.workers) workers.push_back(json_of(worker));
  for (const double ratio : analysis.stage_ratios) stages.emplace_back(ratio);
  for (const CauseCost& cost : causes_to_name(analysis)) {
    JsonValue each = json_of(analysis, cost);
    each.set("text", JsonValue(sentence(analysis, cost)));
    verdict.push_back(std::move(each));
  }
  JsonValue works(JsonValue::Object{});
  for (std::size_t i = 0; i < analysis.slowdown_by_work.size(); ++i)
    if (analysis.slowdown_by_work[i] > 0)
      works.set(windtunnel::name_of(static_cast<JobWork>(i)),
                JsonValue(analysis.slowdown_by_work[i]));
  value.set("verdict", JsonValue(std::move(verdict)));
  value.set("causes", JsonValue(std::move(causes)));
  value.set("slowdown_by_operation", std::move(works));
  value.set("workers", JsonValue(std::move(workers)));
  value.set("stage_time_over_mean", JsonValue(std::move(stages)));
  value.set("forward_backward_correlation", JsonValue(analysis.forward_backward_correlation));
  return value;
}

}  // namespace

Imported import_straggler_trace(const ImportRequest& request, const Library&) {
  TextInput input(request.inputs.front());
  const JobTrace trace = read_job_trace(input);
  const StragglerAnalysis analysis = analyse_stragglers(trace);
  Imported imported;
  imported.found = json_of(trace, analysis);
  imported.text = text_of(trace, analysis);
  if (!trace.incomplete_steps.empty())
    imported.notes.push_back(std::to_string(trace.incomplete_steps.size()) +
                             " steps left out, in which workers lack operations that others have");
  return imported;
}

}  // namespace windtunnel
