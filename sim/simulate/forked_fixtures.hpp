#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "simulate/forked.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel::testing {

/// work(0) to work(count-1), each in a child of its own: a process has one SimGrid engine.
inline std::vector<ChildOutcome> run_forked(std::size_t count, std::size_t at_once,
                                            const std::function<std::string(std::size_t)>& work) {
  std::vector<ChildOutcome> outcomes(count);
  run_on_threads(count, at_once,
                 [&](std::size_t i) { outcomes[i] = run_in_child([&] { return work(i); }); }, {});
  return outcomes;
}

}  // namespace windtunnel::testing
