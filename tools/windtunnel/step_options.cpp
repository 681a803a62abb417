#include "windtunnel/step_options.hpp"

#include "simulate/forked.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {

StepOptions step_options(const CommandLine& line) {
  StepOptions options;
  options.steps = static_cast<std::size_t>(line.steps);
  options.seed = line.seed;
  options.engine = line.engine.value_or(engine_of_many);
  options.detail = line.by_layer ? Detail::layer : Detail::pass;
  options.at_once = line.jobs == 0 ? default_at_once() : line.jobs;
  return options;
}

}  // namespace windtunnel
