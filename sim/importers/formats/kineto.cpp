#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/json_build.hpp"
#include "core/mapped.hpp"
#include "core/option_error.hpp"
#include "core/quantile.hpp"
#include "importers/gpu_totals.hpp"
#include "importers/importer.hpp"
#include "importers/rank_verdict.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/report_view.hpp"
#include "scenario/scenario.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel::formats {
namespace {

namespace fs = std::filesystem;

/// A trace with its totals.
struct ReadTrace {
  GpuTrace trace;  ///< its events are dropped once they are summed
  std::size_t num_events = 0;
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();  ///< of its first work
  std::vector<GpuTotals> whole;
  std::vector<std::vector<GpuTotals>> steps;
};

ReadTrace read(const std::filesystem::path& file) {
  TextInput input(file);
  ReadTrace read;
  read.trace = read_gpu_trace(input);
  read.num_events = static_cast<std::size_t>(std::ranges::count_if(read.trace.events, is_work));
  read.whole = totals_of(read.trace);
  for (const TraceStep& step : read.trace.steps)
    read.steps.push_back(totals_of(read.trace, {&step, 1}));
  for (const GpuEvent& event : read.trace.events)
    if (is_work(event)) read.begin = std::min(read.begin, event.begin);
  read.trace.events = {};
  return read;
}

/// The iteration that traces of PyTorch's profiler measured, as a set for `validate` and `calibrate` (windtunnel/measurements-v1): one
/// point, the scenario of --base, which says what no trace does: model, platform and plan. Its time is the median over the marked steps of a rank,
/// the median over ranks. InputError where the traces mark no steps or are simulated, and where the
/// scenario is not right.
void write_set(const std::vector<ReadTrace>& traces, const ImportRequest& request,
               const Library& library, Imported& imported) {
  std::vector<double> times;
  for (const ReadTrace& read : traces) {
    const GpuTrace& trace = read.trace;
    if (trace.kind == TraceKind::simulated)
      throw option_error("-o", trace.file, trace.file + " was simulated, and measures nothing",
                         "leave -o and --base out");
    if (trace.steps.empty())
      throw option_error("-o", trace.file,
                         trace.file + " marks no steps: how long an iteration took is not in it",
                         "call prof.step() after each iteration while it is recorded");
    times.push_back(median_of(mapped(trace.steps, [](const TraceStep& step) {
      return trace_time(step.end - step.begin).value();
    })));
  }
  const double seconds = median_of(std::move(times));
  imported.found.set("iteration_time_s", JsonValue(seconds));
  const std::string& base = request.options.base;
  const fs::path file = looks_like_path(base) || file_type_of(base) != fs::file_type::not_found
                            ? fs::path(base)
                            : library_file(library, scenario_files, base);
  const Scenario scenario = read_scenario(file, library);
  const GpuTrace& first = traces.front().trace;
  const int num_ranks = layout_of(scenario.plan.parallel).num_ranks();
  if (first.world_size >= 0 && first.world_size != num_ranks)
    imported.warnings.push_back("the traces are of " + std::to_string(first.world_size) +
                                " ranks, and " + scenario.name + " is of " +
                                std::to_string(num_ranks) + " GPUs");
  const std::string citation =
      "measured: PyTorch's profiler, " + fs::path(first.file).filename().string() +
      (traces.size() > 1 ? " and " + std::to_string(traces.size() - 1) + " more" : "") +
      ", median of " + count_text(first.steps.size(), "step");
  // As the set names it, wherever that is opened from: relative to the folder of the set.
  std::error_code error;
  fs::path extended =
      fs::relative(fs::absolute(file), fs::absolute(request.output).parent_path(), error);
  if (error || extended.empty()) extended = fs::absolute(file);
  const JsonValue point = object_of({{"id", scenario.name},
                                     {"scenario", empty_object()},
                                     {"measured", object_of({{"iteration_time_s", seconds}})}});
  imported.document =
      object_of({{"schema", "windtunnel/measurements-v1"},
                 {"name", request.output.stem().string()},
                 {"kind", "iteration"},
                 {"source", object_of({{"citation", citation}, {"licence", "none"}})},
                 {"note", "a profiler slows a step down a little"},
                 {"base", object_of({{"extends", extended.string()}})},
                 {"points", JsonValue(JsonValue::Array{point})}});
}

// The ranks of a job compared.

std::string rate_text(double rate) { return significant_text(rate * 1e-9, 3) + " GB/s"; }

std::string group_name(const RankGroup& group) {
  return !group.description.empty() ? group.description : group.name;
}

/// A sentence on what the traces cannot tell of ranks; empty where they can tell.
std::string cannot_judge_text(const RankVerdict& verdict, const std::vector<RankTrace>& ranks) {
  const RankPower& power = verdict.power;
  if (power.can_judge()) return {};
  std::string text = "cannot judge whether a rank is slow: ";
  if (power.num_judged == 0)
    text += "none of the " + std::to_string(ranks.size()) +
            " has two others beside it that do the same work";
  else
    text += "of " + std::to_string(power.num_judged) +
            " that can be compared, one of half the speed could be so by chance";
  if (!power.suspect) return text + ". Add the traces of all ranks of a tensor or data group";
  const RankPace& pace = verdict.ranks[*power.suspect];
  text += ". Suspect rank " + std::to_string(ranks[*power.suspect].rank) +
          ", for which others wait " + html::text_of_time(pace.lag) + " a step: add the traces of ";
  if (power.missing_peers.empty()) return text + "the other ranks of its process groups";
  return text + (power.missing_peers.size() == 1 ? "rank " : "ranks ") +
         rank_list(power.missing_peers) + ", which are in a process group with it";
}

/// The ranks of a job compared, for people:
///
///   calls matched across ranks: 7,168 in 24 groups
///
///   late                  compute   to peers  others wait  comes last
///   rank 11                112 ms   +25.1 %      22.4 ms      100.0 %
///   …
///
///   process groups                    calls       size   bus bandwidth      slowest
///   TENSOR_MODEL_PARALLEL_GROUP     …
///
/// Verdict
///   rank 11 computes 25.1 % slower than its peers and costs 22.4 ms a step
std::vector<document::Section> sections_of(const RankVerdict& verdict,
                                           const std::vector<RankTrace>& ranks) {
  std::vector<RankPace> latest = verdict.ranks;
  std::ranges::stable_sort(latest, std::greater{}, [](const RankPace& pace) {
    return std::pair{pace.lag, pace.compute_over_peers};
  });
  constexpr std::size_t most_shown = 5;
  latest.resize(std::min(most_shown, latest.size()));
  document::Table paces{
      "wrr?rr??",
      {{"latest ranks, of one step", "compute", "to its peers", "others wait", "comes last"}}};
  for (const RankPace& pace : latest)
    paces.rows.push_back({"rank " + std::to_string(ranks[pace.member].rank),
                          html::text_of_time(pace.compute),
                          signed_percent_text(pace.compute_over_peers - 1),
                          html::text_of_time(pace.lag), percent_text(pace.share_last)});
  std::vector<document::Part> compared{
      document::Words("calls matched across ranks: " +
                      grouped_text(static_cast<double>(verdict.matched.calls.size())) + " in " +
                      std::to_string(verdict.matched.groups.size()) + " groups"),
      document::Words(), std::move(paces)};
  using Key = std::tuple<std::string, std::size_t, CollectiveKind, std::int64_t>;
  std::map<Key, std::vector<double>> alike;
  for (const GroupRate& rate : verdict.groups) {
    const RankGroup& group = verdict.matched.groups[rate.group];
    alike[{group_name(group), group.members.size(), rate.kind, rate.bytes}].push_back(
        rate.bus_bandwidth);
  }
  document::Table rates{"wr??lr?rr",
                        {{"process groups", "groups", "call", "size", "bus bandwidth", "slowest"}}};
  for (const auto& [key, of_groups] : alike) {
    const auto& [name, size, kind, bytes] = key;
    rates.rows.push_back(
        {name + ", " + std::to_string(size) + " ranks", std::to_string(of_groups.size()),
         dashed_name(kind), to_text(Bytes{static_cast<double>(bytes)}),
         rate_text(median_of(of_groups)), rate_text(*std::ranges::min_element(of_groups))});
  }
  if (!alike.empty()) {
    compared.emplace_back(document::Words());
    compared.emplace_back(std::move(rates));
  }
  const bool compares_groups = std::ranges::any_of(
      verdict.groups, [](const GroupRate& rate) { return rate.peers_bandwidth > 0; });
  auto judged = mapped<document::Part>(verdict.findings, &RankFinding::text);
  if (const std::string cannot = cannot_judge_text(verdict, ranks); !cannot.empty())
    judged.emplace_back(document::Words(cannot));
  else if (verdict.findings.empty())
    judged.emplace_back(
        document::Words(std::string("none: no rank computes slower") +
                        (compares_groups ? ", and no group moves less," : "") +
                        " than chance explains (a rank would be named that computes " +
                        percent_text(verdict.power.least_named) + " longer than its peers)"));
  if (!compares_groups)
    judged.emplace_back(document::Words("cannot judge whether a link is slow: " +
                                        std::string(verdict.matched.calls.empty()
                                                        ? "no call is matched across ranks"
                                                        : "no three groups make the same call")));
  return {{"ranks", "Ranks", "", compared}, {"verdict", "Verdict", "Verdict", judged}};
}

JsonValue verdict_json(const RankVerdict& verdict, const std::vector<RankTrace>& ranks) {
  const auto rank_of = [&](std::size_t member) { return ranks[member].rank; };
  const auto pace_json = [&](const RankPace& pace) {
    return object_of({{"rank", rank_of(pace.member)},
                      {"compute_s", pace.compute},
                      {"compute_over_peers", pace.compute_over_peers},
                      {"waited_for_s", pace.lag},
                      {"share_last", pace.share_last}});
  };
  const auto rate_json = [&](const GroupRate& rate) {
    const RankGroup& group = verdict.matched.groups[rate.group];
    return object_of(
        {{"group", group_name(group)},
         {"ranks", array_of(group.members, rank_of)},
         {"calls", rate.num_calls},
         {"call", dashed_name(rate.kind)},
         {"bytes", rate.bytes},
         {"bus_bandwidth", rate.bus_bandwidth},
         {"peers_bus_bandwidth", only_if(rate.peers_bandwidth > 0, rate.peers_bandwidth)}});
  };
  const auto finding_json = [](const RankFinding& finding) {
    const bool is_rate = finding.bandwidth > 0;
    return object_of({{"kind", dashed_name(finding.kind)},
                      {"places", array_of(finding.places)},
                      {"cost_s", finding.cost},
                      {"bandwidth", only_if(is_rate, finding.bandwidth)},
                      {"usual_bandwidth", only_if(is_rate, finding.usual_bandwidth)},
                      {"compute_over_peers", only_if(!is_rate, finding.ratio)},
                      {"text", finding.text}});
  };
  const RankPower& power = verdict.power;
  const std::string cannot = cannot_judge_text(verdict, ranks);
  const std::int64_t suspect = power.suspect ? rank_of(*power.suspect) : 0;
  const JsonValue unjudged = object_of({{"text", cannot},
                                        {"suspect", only_if(power.suspect.has_value(), suspect)},
                                        {"add_ranks", array_of(power.missing_peers)}});
  return object_of({{"matched_calls", verdict.matched.calls.size()},
                    {"unmatched_calls", verdict.matched.num_unmatched},
                    {"gpus_per_node", only_if(verdict.gpus_per_node > 0, verdict.gpus_per_node)},
                    {"ranks", array_of(verdict.ranks, pace_json)},
                    {"groups", array_of(verdict.groups, rate_json)},
                    {"verdict", array_of(verdict.findings, finding_json)},
                    {"least_named_slowdown", only_if(cannot.empty(), power.least_named)},
                    {"cannot_judge", only_if(!cannot.empty(), unjudged)}});
}

// All traces.

JsonValue trace_json(const ReadTrace& read) {
  const GpuTrace& trace = read.trace;
  const auto of_gpus = [](const std::vector<GpuTotals>& gpus) {
    return array_of(gpus, [](const GpuTotals& gpu) { return json_of(gpu, 1); });
  };
  JsonValue::Array steps;
  for (std::size_t i = 0; i < read.steps.size(); ++i)
    steps.push_back(object_of({{"name", trace.steps[i].name}, {"gpus", of_gpus(read.steps[i])}}));
  return object_of({{"file", trace.file},
                    {"kind", trace.kind == TraceKind::real ? "real" : "simulated"},
                    {"rank", only_if(trace.rank >= 0, trace.rank)},
                    {"world_size", only_if(trace.world_size >= 0, trace.world_size)},
                    {"gpu", only_if(!trace.gpu.empty(), trace.gpu)},
                    {"events", read.num_events},
                    {"unknown_kernels_share", trace.unknown_share()},
                    {"gpus", of_gpus(read.whole)},
                    {"steps", JsonValue(std::move(steps))}});
}

/// A name and what is said next to it: "128 files: ranks 0 to 127", and a line for each where they are few, or for the first.
void head(document::Document& report, const std::vector<ReadTrace>& traces) {
  constexpr std::size_t few = 8;
  const auto file_name = [](const ReadTrace& read) {
    return fs::path(read.trace.file).filename().string();
  };
  const auto header = [](const ReadTrace& read) {
    return described(read.trace) + "; " + std::to_string(read.num_events) +
           " pieces of GPU work, " + count_text(read.steps.size(), "profiler step");
  };
  const std::size_t count = traces.size();
  const std::int64_t first = traces.front().trace.rank, last = traces.back().trace.rank;
  report.name = count == 1 ? file_name(traces.front()) : std::to_string(count) + " files";
  if (count == 1)
    report.opening = {header(traces.front())};
  else if (first < 0)
    report.opening = {"ranks unknown"};
  else
    report.opening = {"ranks " + std::to_string(first) + " to " + std::to_string(last) +
                      (last - first + 1 > static_cast<std::int64_t>(count) ? " with gaps" : "")};
  for (std::size_t i = 0; count > 1 && i < (count <= few ? count : 1); ++i)
    report.opening.emplace_back((count <= few ? "" : "the first, ") + file_name(traces[i]) + ": " +
                                header(traces[i]));
}

document::Table totals_table(const char* rows) {
  return {"wrrrrr?r??", {{rows, "time", "compute", "exposed", "hidden", "copies", "idle"}}};
}

document::TableRow totals_row(const std::string& what, const GpuTotals& gpu) {
  document::TableRow row{what};
  for (const std::int64_t time : {gpu.window, gpu.compute, gpu.exposed_communication(), gpu.overlap,
                                  gpu.of(TraceLine::copies), gpu.idle()})
    // Overlaps of a nanosecond are rounding of the profiler's.
    row.emplace_back(to_text(trace_time(time > gpu.window / 1'000'000 ? time : 0)));
  return row;
}

/// Judges all ranks together.
void compare_ranks(std::vector<ReadTrace>& traces, document::Document& report,
                   std::vector<std::string>& notes) {
  std::vector<RankTrace> ranks;
  for (ReadTrace& read : traces) {
    const bool is_one_rank = read.trace.rank >= 0 && read.whole.size() == 1;
    // Not the ranks of one job where some are missing or given twice.
    if (!is_one_rank || (!ranks.empty() && ranks.back().rank == read.trace.rank)) return;
    const GpuTotals& gpu = read.whole.front();
    const auto num_steps = static_cast<std::int64_t>(read.steps.size());
    ranks.push_back({read.trace.rank, read.trace.device, gpu.compute,
                     std::max<std::int64_t>(1, num_steps), read.begin, std::move(read.trace.calls),
                     std::move(read.trace.names)});
  }
  if (ranks.size() < 2) return;
  const RankVerdict verdict = judge_ranks(ranks);
  // A simulated trace holds the first rank of each tensor group: the others are meant to be missing.
  const bool is_simulated = traces.front().trace.kind == TraceKind::simulated;
  if (verdict.matched.num_unmatched > 0 && !is_simulated)
    notes.push_back(
        grouped_text(static_cast<double>(verdict.matched.num_unmatched)) +
        " calls of NCCL not matched across ranks: " +
        (verdict.matched.calls.empty() && verdict.matched.groups.empty()
             ? "they do not say their group (PyTorch 2.2 and newer do), or no two ranks of one are "
               "given"
             : "those of other ranks in their group are missing or different"));
  for (document::Section& section : sections_of(verdict, ranks))
    report.sections.push_back(std::move(section));
  report.data.set("across_ranks", verdict_json(verdict, ranks));
}

Imported import_kineto(const ImportRequest& request, const Library& library) {
  // Every file's problems at once; by rank.
  std::vector<ReadTrace> traces;
  Problems problems;
  for (const auto& file : request.inputs) try {
      traces.push_back(read(file));
    } catch (const InputError& error) {
      for (const Problem& problem : error.problems()) problems.add(problem);
    }
  problems.throw_if_any();
  std::ranges::stable_sort(traces, {}, [](const ReadTrace& read) { return read.trace.rank; });
  Imported imported;
  // Reasons why several files may be no traces of one job.
  std::vector<std::string>& doubts = imported.notes;
  std::set<std::int64_t> worlds;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const GpuTrace& trace = traces[i].trace;
    worlds.insert(trace.world_size);
    if (i > 0 && trace.rank == traces[i - 1].trace.rank)
      doubts.push_back(trace.file + " and " + traces[i - 1].trace.file +
                       (trace.rank < 0
                            ? " do not say their ranks"
                            : " both say that they are of rank " + std::to_string(trace.rank)));
  }
  // Of what is true of many files, the one that has most of it.
  const auto note_most = [&](const auto& amount, const auto& note) {
    const auto having = std::ranges::count_if(
        traces, [&](const ReadTrace& read) { return amount(read.trace) > 0; });
    if (having == 0) return;
    const GpuTrace& most = std::ranges::max_element(traces, {}, [&](const ReadTrace& read) {
                             return amount(read.trace);
                           })->trace;
    doubts.push_back(
        most.file +
        (having > 1 ? " and " + count_text(static_cast<std::size_t>(having - 1), "other file") +
                          " with as much or less: "
                    : ": ") +
        note(most));
  };
  note_most([](const GpuTrace& trace) { return trace.unlaunched; },
            [](const GpuTrace& trace) {
              return std::to_string(trace.unlaunched) +
                     " kernels were launched before the trace began; their phase is unknown";
            });
  note_most(std::mem_fn(&GpuTrace::unknown_share), unknown_kernels_note);
  if (worlds.size() > 1) doubts.emplace_back("the files are of jobs of different sizes");
  if (!request.output.empty()) write_set(traces, request, library, imported);
  JsonValue::Array ranks;
  std::size_t num_gpus = 0;
  for (const ReadTrace& read : traces) {
    ranks.push_back(trace_json(read));
    num_gpus += read.whole.size();
  }
  document::Document& report = imported.report.emplace();
  report.data = imported.found;
  report.data.set("traces", JsonValue(std::move(ranks)));
  report.kind = "trace";
  report.command = "windtunnel import kineto --json";
  head(report, traces);
  if (num_gpus == 1) {  // the one GPU of one file, in full
    const ReadTrace& read = traces.front();
    const GpuTotals& gpu = read.whole.front();
    document::Table steps = totals_table("steps");
    for (std::size_t i = 0; i < read.steps.size(); ++i)
      for (const GpuTotals& each : read.steps[i])
        steps.rows.push_back(totals_row(read.trace.steps[i].name, each));
    std::vector<document::Part> totals;
    for (document::Table& table : totals_of_work(json_of(gpu, 1))) {
      if (!totals.empty()) totals.emplace_back(document::Words());
      totals.emplace_back(std::move(table));
    }
    report.sections = {{"time", "Time",
                        gpu_name(read.trace, gpu.device) + ", " + to_text(trace_time(gpu.window)) +
                            " from its first work to its last",
                        std::move(totals)}};
    if (!read.steps.empty()) report.sections.push_back({"steps", "Steps", "", {steps}});
    return imported;
  }
  document::Table totals = totals_table("from first work to last");
  for (const ReadTrace& read : traces)
    for (const GpuTotals& gpu : read.whole) {
      const std::int64_t rank = read.trace.rank;
      const std::string of_rank = "rank " + (rank < 0 ? "?" : std::to_string(rank)) + ", ";
      totals.rows.push_back(totals_row((read.trace.kind == TraceKind::simulated ? "" : of_rank) +
                                           gpu_name(read.trace, gpu.device),
                                       gpu));
    }
  report.sections = {{"time", "Time", "", {totals}}};
  compare_ranks(traces, report, imported.notes);
  return imported;
}

}  // namespace

Importer kineto() {
  return {"kineto",
          "traces of PyTorch's profiler, to where each GPU's time went and what slows the job down",
          "traces of PyTorch's profiler, .json or .json.gz, one a rank",
          {"--base"},
          import_kineto,
          Importer::Result::file_if_asked,
          Importer::Files::several};
}

}  // namespace windtunnel::formats
