#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/json_value.hpp"
#include "evidence/evidence.hpp"
#include "scenario/scenario.hpp"
#include "simulate/tasks.hpp"
#include "sweep/sweep.hpp"

namespace windtunnel {

/// A row that was read.
struct Row {
  std::size_t point = 0;
  bool ok = false;
  JsonValue content;
  std::string line;  ///< as it was written
};
/// Reads a row; nothing when the text is none.
std::optional<Row> parse_row(const std::string& line);

inline constexpr const char* time_interval_key = "iteration_time_interval_s";
inline constexpr const char* speedup_interval_key = "speedup_interval";
inline constexpr const char* speedup_verdict_key = "speedup_verdict";
/// Both ends of such an interval of 90 %; nothing where there is no evidence for one.
std::optional<std::pair<double, double>> interval_of(const JsonValue& row, const char* key);
/// A figure of a row; 0 where it has none.
double figure(const JsonValue& row, const std::string& key);
/// A text as it is, other values as JSON; empty where there is none.
std::string text_at(const JsonValue& object, const std::string& key);
/// True if the point of a row fits in memory.
bool fits(const JsonValue& row);
/// "≥ " where the memory of a row is a lower bound, and whether the point fits is not known; else empty.
const char* memory_mark(const JsonValue& row);
/// "at risk" or "not known" where it is not sure that the point of a row fits, which is at most that; else empty.
const char* doubt_of_fit(const JsonValue& row);

/// Name of a row among those with these columns: its label, or "nodes 128, platform dgx-h100".
std::string point_name(const JsonValue& row, const std::vector<std::string>& columns);

/// Penalty of a row that has figures: the least is the best by the sweep's objective.
double penalty_of(const Sweep& sweep, const JsonValue& row);

/// Members of an object on one line, in the order given: the inside of a row.
std::string line_text(const JsonValue& object);
/// `row`, an object, with its checksum as a row of the sweep.
std::string with_checksum(const std::string& row, const std::string& sweep_hash);
/// A row that RowMaker made, with the members of an object before the checksum.
std::string with_members(const std::string& row, const JsonValue& more,
                         const std::string& sweep_hash);
/// Reads a row that RowMaker made for the sweep; for any other line, why it is none: "its checksum does not match, …".
std::variant<Row, std::string> read_row(const std::string& line, const Sweep& sweep);

/// One line of results, a JSON object without a line end. The same for the same point, whoever computes it:
///   {"point": 3, "id": "…", "/nodes": 8, "ok": true, "gpus": 64, "iteration_time_s": 16.31, …, "fits": true, "checksum": "…"}
///   {"point": 4, "id": "…", "/nodes": 16, "ok": false, "failure": "bad_input", "error": "…", "checksum": "…"}
/// Errors become part of the row. The checksum covers the row before it and the sweep.
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

  const Sweep* sweep_;
  ChildLimits limits_;
  MeasuredErrors evidence_;
};

/// The id of a point that cannot be read: of its values, where the others' is of the resolved scenario.
std::string id_of_unreadable(const Sweep& sweep, std::size_t point);

}  // namespace windtunnel
