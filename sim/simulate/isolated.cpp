#include "simulate/isolated.hpp"

#include <cstring>
#include <type_traits>
#include <utility>

#include "core/contracts.hpp"
#include "report/report_json.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

static_assert(std::is_trivially_copyable_v<KeyFigures>);

/// The figures' own bytes, then the report's text.
std::string to_bytes(const Report& report) {
  const KeyFigures figures = key_figures(report);
  return std::string(reinterpret_cast<const char*>(&figures), sizeof figures) + to_json(report);
}

IsolatedResult from_bytes(const std::string& bytes) {
  IsolatedResult result;
  WT_EXPECT(bytes.size() >= sizeof result.figures);
  std::memcpy(&result.figures, bytes.data(), sizeof result.figures);
  result.report_json = bytes.substr(sizeof result.figures);
  return result;
}

}  // namespace

KeyFigures key_figures(const Report& report) {
  return {report.iteration_time, report.memory.max_total, report.memory.fits};
}

IsolatedOutcome simulate_isolated(const Scenario& scenario, const SimulateOptions& options) {
  ForkedWork work;
  work.count = 1;
  work.work = [&](std::size_t) { return to_bytes(simulate(scenario, options).report); };
  ChildOutcome outcome = run_forked(work).front();
  if (auto* failure = std::get_if<ChildFailure>(&outcome)) return std::move(*failure);
  return from_bytes(std::get<std::string>(outcome));
}

}  // namespace windtunnel
