#include "windtunnel/step_options.hpp"

#include "simulate/forked.hpp"
#include "simulate/simulate.hpp"
#include "simulate/tasks.hpp"
#include "windtunnel/console.hpp"

namespace windtunnel {

StepOptions step_options(const CommandLine& line) {
  StepOptions options;
  options.steps = static_cast<std::size_t>(line.steps);
  options.seed = line.seed;
  options.detail = line.by_layer ? Detail::layer : Detail::pass;
  options.at_once = line.jobs == 0 ? default_at_once() : line.jobs;
  return options;
}

ExitCode exit_of_steps(const CommandLine& line, const Scenario& scenario) {
  if (simulate(scenario).report.memory.fits) return exit_done;
  if (line.verbosity == Verbosity::normal)
    print_message("warning: the plan does not fit in the memory of its GPUs");
  return exit_negative;
}

}  // namespace windtunnel
