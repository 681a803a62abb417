#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "units/quantity.hpp"

namespace windtunnel {

/// Why a forked child gave no result; decides the exit code of what asked for it.
enum class FailureKind {
  bad_input,      ///< InputError
  unsupported,    ///< UnsupportedError: correct, but not simulated by this version
  environment,    ///< EnvironmentError
  our_bug,        ///< any other exception, an abort or a signal
  out_of_memory,  ///< std::bad_alloc: the machine's memory or ChildLimits::memory is used up; with the latter also an abort
  out_of_time,    ///< ChildLimits::time was over
};

struct ChildFailure {
  FailureKind kind = FailureKind::our_bug;
  std::string text;  ///< what the exception said, or how the child died
};

/// Result of the child's work, byte for byte, or the reason why there is none.
using ChildOutcome = std::variant<std::string, ChildFailure>;

/// Failure of `work`, if it failed. A memory limit is named in it.
std::optional<ChildFailure> failure_in(const std::function<void()>& work,
                                       std::optional<Bytes> most_memory = {});

/// Throws what stopped the child: InputError, EnvironmentError, or std::runtime_error for our own bugs. `what` names the
/// child's task in the message.
[[noreturn]] void throw_failure(const ChildFailure& failure, const std::string& what);

/// Limits of a child; nothing: none. Memory counts the child's allocations on top of the memory that it shares with the parent;
/// its stderr is then silent, since libraries without memory report at length and abort.
struct ChildLimits {
  std::optional<Seconds> time;
  std::optional<Bytes> memory;
};

/// Runs the work in a forked child. One that throws, aborts or crashes costs its outcome and nothing else. To be called while no other
/// thread of this process runs, or only ones that wait for children; EnvironmentError when it cannot fork.
ChildOutcome run_in_child(const std::function<std::string()>& work, const ChildLimits& limits = {});

/// Number of simulations worth running at once: one per core that this process may use.
std::size_t default_at_once();

}  // namespace windtunnel
