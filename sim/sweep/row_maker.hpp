#pragma once

#include <cstddef>
#include <string>

#include "evidence/evidence.hpp"
#include "scenario/scenario.hpp"
#include "simulate/tasks.hpp"
#include "sweep/sweep.hpp"

namespace windtunnel {

/// One line of results, a JSON object without a line end. The same for the same point, whoever computes it:
///   {"point": 3, "id": "…", "/nodes": 8, "ok": true, "gpus": 64, "iteration_time_s": 16.31, …, "fits": true, "checksum": "…"}
///   {"point": 4, "id": "…", "/nodes": 16, "ok": false, "failure": "bad_input", "error": "…", "checksum": "…"}
/// What goes wrong becomes part of the row. The checksum is of the row before it and of the sweep.
class RowMaker {
 public:
  RowMaker(const Sweep& sweep, const ChildLimits& limits);
  /// Reads the point and simulates it; in a child process where its time or memory is limited.
  std::string row(std::size_t point) const;
  /// The row of a point that no process survived.
  std::string failed_row(std::size_t point, const ChildFailure& failure) const;

 private:
  /// The row of a point of which the simulation, or what stopped it, says `outcome`.
  std::string whole_row(std::size_t point, const std::string& id, const std::string& outcome) const;
  std::string figures(const Scenario& as_read) const;
  /// Of a scenario that could be read: figures, or what stopped its child.
  std::string outcome_of(const Scenario& scenario) const;

  const Sweep* sweep_;
  ChildLimits limits_;
  MeasuredErrors evidence_;
};

/// The id of a point that cannot be read: of its values, where the others' is of the resolved scenario.
std::string id_of_unreadable(const Sweep& sweep, std::size_t point);

}  // namespace windtunnel
