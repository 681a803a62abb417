#pragma once

#include <vector>

#include "evidence/evidence.hpp"
#include "job/job_result.hpp"
#include "scenario/scenario.hpp"
#include "sweep/sweep.hpp"

namespace windtunnel {

/// A job that was simulated.
struct JobRun {
  JobResult result;
  JudgedRun judged;  ///< its step, compared with others
};

/// Simulates the job of a scenario whose placement is settled, with the plan and the noise that the scenario asks for. The noise of `options` is
/// found here. The interval of its step is that of `errors`, where these have regimes. InputError where no plan fits.
JobRun run_job(Scenario scenario, JobOptions options, const MeasuredErrors& errors);

/// The same for each point of a sweep. A point that cannot be simulated says why.
std::vector<JobPoint> run_job_points(const Sweep& sweep, const JobOptions& options,
                                     const MeasuredErrors& errors);

}  // namespace windtunnel
