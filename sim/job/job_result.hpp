#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "job/job_interval.hpp"
#include "job/job_player.hpp"
#include "report/document.hpp"

namespace windtunnel {

struct JobOptions {
  std::size_t draws = 1000;
  std::uint64_t seed = 0;
  std::size_t at_once = 1;  ///< threads; the result is the same for any number
  /// Times of single steps with the scenario's noise, over that of one without, in order; empty where it has none.
  std::vector<double> noisy_steps = {};
  std::function<void(std::size_t)> on_draws =
      {};  ///< with the number of draws played; may be empty
};

/// A figure over all draws.
struct Spread {
  double median = 0, low = 0, high = 0;  ///< 5th and 95th percentile
};
/// The percentiles of `values`, between neighbours on a straight line.
Spread spread_of(std::vector<double> values);
JsonValue spread_json(const Spread& spread);

/// Spare nodes with which the job hardly ever waits for a repair, and how long it then takes.
struct EnoughSpares {
  int nodes = 0;
  double median_days = 0;
};

/// Result of many draws of a job.
struct JobResult {
  Job job;
  std::string name, scenario_hash, platform_name, model_name;
  std::string plan;  ///< detail::plan_text()
  JobOptions options;
  std::vector<JobDraw> draws;
  Spread days, failures;
  Spread goodput;  ///< share of the time that computes steps that count, at full speed
  std::array<double, num_spent> mean_shares{};  ///< of the time of all draws
  std::array<double, num_failing_parts> mean_failures{};
  std::optional<Spread> cost, energy_mwh, tonnes_co2;
  std::optional<Seconds> mtbf, young, daly;  ///< none where nothing fails
  std::optional<IntervalCurve> intervals;
  std::optional<EnoughSpares> enough_spares;  ///< none where the job has enough

  /// Share of the time in which the job lacks nodes: waits for them, or is slower without them.
  double share_without_nodes() const {
    return mean_shares[static_cast<std::size_t>(Spent::idle)] +
           mean_shares[static_cast<std::size_t>(Spent::slower)];
  }
};

/// Plays the job `options.draws` times.
JobResult simulate_job(const Scenario& scenario, const Report& report, const JobOptions& options);

/// Of one draw: money, MWh.
double cost_of(const Job& job, const JobDraw& draw);
double energy_of(const Job& job, const JobDraw& draw);
double days_of(const JobDraw& draw);

document::Document job_document(const JobResult& result);
std::string job_csv(const JobResult& result);  ///< a row for each draw
/// Two decimals below ten, one below a hundred, then none and thousands apart.
std::string amount_text(double amount);

}  // namespace windtunnel
