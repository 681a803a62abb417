#include "importers/traced_iteration.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include "core/file_io.hpp"
#include "core/option_error.hpp"
#include "importers/rate_matrix.hpp"
#include "scenario/library_files.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

double median_step(const GpuTrace& trace) {
  constexpr double nanosecond = 1e-9;
  std::vector<double> times;
  for (const TraceStep& step : trace.steps)
    times.push_back(static_cast<double>(step.end - step.begin) * nanosecond);
  return median_of(std::move(times));
}

void check(const GpuTrace& trace) {
  if (trace.kind == TraceKind::simulated)
    throw option_error("-o", trace.file, trace.file + " was simulated, and measures nothing",
                       "leave -o and --base out");
  if (trace.steps.empty())
    throw option_error("-o", trace.file,
                       trace.file + " marks no steps: how long an iteration took is not in it",
                       "call prof.step() after each iteration while it is recorded");
}

/// As the set names it, wherever that is opened from: relative to the folder of the set.
std::string path_from(const fs::path& set, const fs::path& scenario) {
  std::error_code error;
  const fs::path folder = fs::absolute(set).parent_path();
  const fs::path path = fs::relative(fs::absolute(scenario), folder, error);
  return (error || path.empty() ? fs::absolute(scenario) : path).string();
}

JsonValue point_of(const std::string& id, double seconds) {
  JsonValue measured(JsonValue::Object{}), point(JsonValue::Object{});
  measured.set("iteration_time_s", JsonValue(seconds));
  point.set("id", JsonValue(id));
  point.set("scenario", JsonValue(JsonValue::Object{}));
  point.set("measured", std::move(measured));
  return point;
}

}  // namespace

TracedIteration traced_iteration(const std::vector<const GpuTrace*>& traces,
                                 const ImportRequest& request, const Library& library) {
  std::vector<double> times;
  for (const GpuTrace* trace : traces) {
    check(*trace);
    times.push_back(median_step(*trace));
  }
  TracedIteration iteration;
  iteration.seconds = median_of(std::move(times));
  const std::string& base = request.options.base;
  const fs::path file = looks_like_path(base) || file_type_of(base) != fs::file_type::not_found
                            ? fs::path(base)
                            : library_file(library, scenario_files, base);
  const Scenario scenario = read_scenario(file, library);
  const GpuTrace& first = *traces.front();
  const int num_ranks = layout_of(scenario.plan.parallel).num_ranks();
  if (first.world_size >= 0 && first.world_size != num_ranks)
    iteration.warnings.push_back("the traces are of " + std::to_string(first.world_size) +
                                 " ranks, and " + scenario.name + " is of " +
                                 std::to_string(num_ranks) + " GPUs");
  JsonValue source(JsonValue::Object{}), extended(JsonValue::Object{});
  source.set(
      "citation",
      JsonValue("measured: PyTorch's profiler, " + fs::path(first.file).filename().string() +
                (traces.size() > 1 ? " and " + std::to_string(traces.size() - 1) + " more" : "") +
                ", median of " + std::to_string(first.steps.size()) +
                (first.steps.size() == 1 ? " step" : " steps")));
  source.set("licence", JsonValue(std::string("none")));
  extended.set("extends", JsonValue(path_from(request.output, file)));
  const std::string name = request.output.stem().string();
  JsonValue& set = iteration.set = JsonValue(JsonValue::Object{});
  set.set("schema", JsonValue(std::string("windtunnel/measurements-v1")));
  set.set("name", JsonValue(name));
  set.set("kind", JsonValue(std::string("iteration")));
  set.set("source", std::move(source));
  set.set("note", JsonValue(std::string("a profiler slows a step down a little")));
  set.set("base", std::move(extended));
  set.set("points", JsonValue(JsonValue::Array{point_of(scenario.name, iteration.seconds)}));
  return iteration;
}

}  // namespace windtunnel
