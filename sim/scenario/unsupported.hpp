#pragma once

#include "core/problem.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// The scenario is correct, but asks for what this version does not simulate. Thrown only when nothing else is wrong, so
/// that a measurement set can list the point as skipped, with the reason.
class UnsupportedError : public InputError {
 public:
  using InputError::InputError;
};

/// Everything `scenario` asks for that this version does not simulate; `tree` is its resolved form, still with the nulls.
/// Nothing a user writes is silently ignored: what is not simulated is refused here, and only here.
Problems unsupported_requests(const Scenario& scenario, JsonValue& tree,
                              const ReadOptions& options);

}  // namespace windtunnel
