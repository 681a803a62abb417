#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/json_value.hpp"
#include "evidence/evidence.hpp"
#include "simulate/built_scenario.hpp"
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
  Report report_of(const Scenario& scenario) const;
  std::string figures(const Scenario& as_read) const;
  /// Of a scenario that could be read: figures, or what stopped its child.
  std::string outcome_of(const Scenario& scenario) const;

  const Sweep* sweep_;
  ChildLimits limits_;
  MeasuredErrors evidence_;
};

/// The id of a point that cannot be read: of its values, where the others' is of the resolved scenario.
std::string id_of_unreadable(const Sweep& sweep, std::size_t point);

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

/// `row`, an object, with its checksum as a row of the sweep.
std::string with_checksum(const std::string& row, const std::string& sweep_hash);
/// A row that RowMaker made, with the members of an object before the checksum.
std::string with_members(const std::string& row, const JsonValue& more,
                         const std::string& sweep_hash);
/// Reads a row that RowMaker made for the sweep; for any other line, why it is none: "its checksum does not match, …".
std::variant<Row, std::string> read_row(const std::string& line, const Sweep& sweep);

/// Rows on their way to disk, in a file of this process's own: DIR/parts/<host>-<process>-<n>.jsonl. A row is there as soon as
/// append() returns, whatever happens to the process then; and on the disk itself a second later. A forked child may go on writing while its
/// parent does not.
class PartWriter {
 public:
  explicit PartWriter(std::filesystem::path directory) : directory_(std::move(directory)) {}
  ~PartWriter();
  PartWriter(const PartWriter&) = delete;
  PartWriter& operator=(const PartWriter&) = delete;

  /// Throws EnvironmentError; what was appended before stays, and no half of the row.
  void append(const std::string& row);
  /// Throws EnvironmentError when the rows cannot be brought to the disk.
  void flush_to_disk();

 private:
  void open();
  [[noreturn]] void refuse(const char* deed) const;

  std::filesystem::path directory_;
  std::filesystem::path path_;
  int descriptor_ = -1;
  double last_flush_ = 0;
};

/// A whole line that does not count.
struct RefusedRow {
  std::string place;  ///< "out/parts/host-12-0.jsonl:3"
  std::string why;    ///< "its checksum does not match, …"
};

/// The rows found in DIR/parts, one a point: of several, one that is ok, else the one that sorts first.
struct PartRows {
  std::map<std::size_t, Row> by_point;
  std::size_t num_failed = 0;
  std::size_t num_torn = 0;  ///< last lines that a killed process did not finish
  std::vector<RefusedRow> refused;
  std::vector<std::filesystem::path>
      no_files;  ///< in parts/, called as part files are, but pipes, folders and the like
  std::uintmax_t num_bytes = 0;  ///< of the part files, as far as they were read
};

/// Reads all part files as far as they go at the moment; none is no error. EnvironmentError when one cannot be read.
PartRows read_parts(const std::filesystem::path& directory, const Sweep& sweep);

/// Bytes in all part files: whether somebody has added a row since.
std::uintmax_t size_of_parts(const std::filesystem::path& directory);

/// The rows with their speed-ups over the sweep's baseline; as they are where it has none, or where the baseline was not simulated.
PartRows with_speedups(PartRows rows, const Sweep& sweep);

/// The rows as a table: point, id, label where some row has one, a column a swept pointer, ok, then the figures, failure and error, and what the sweep `asked` for. Absent
/// values are empty.
std::string results_csv(const PartRows& rows, const std::vector<std::string>& columns,
                        const std::vector<std::string>& asked = {});

/// Writes DIR/results.jsonl, results.csv and sweep.svg from what DIR/parts holds, each whole or not at all; and once or twice more where
/// somebody added rows in the meantime, but never for as long as they come. Returns the rows. The picture is left out, and an old one removed, when there is nothing to draw.
PartRows merge_results(const std::filesystem::path& directory, const Sweep& sweep);

/// Writes DIR/manifest.json, or makes sure that the one which is there belongs to this very sweep and version. Throws InputError, with what to
/// do, when it does not, and EnvironmentError when it cannot be read or written.
///   {"schema": "windtunnel/sweep-manifest-v2", "name": …, "sweep_hash": …, "version": …, "points": 12}
void open_manifest(const std::filesystem::path& directory, const Sweep& sweep,
                   const std::string& version);
/// The same for looking only: no folder is made. Throws EnvironmentError when there is no manifest.
void expect_manifest(const std::filesystem::path& directory, const Sweep& sweep,
                     const std::string& version);

}  // namespace windtunnel
