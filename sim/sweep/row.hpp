#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/json_value.hpp"
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
/// Whether the point of a row fits in memory.
bool fits(const JsonValue& row);
/// "≥ " where the memory of a row is a lower bound, and whether the point fits is not known; else empty.
const char* memory_mark(const JsonValue& row);

/// What a row is called among those with these columns: its label, or "nodes 128, platform dgx-h100".
std::string point_name(const JsonValue& row, const std::vector<std::string>& columns);

/// Of a row that has figures: the least is the best by the sweep's objective.
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

}  // namespace windtunnel
