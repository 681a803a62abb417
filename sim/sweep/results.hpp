#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "report/ordering.hpp"
#include "sweep/row.hpp"
#include "sweep/sweep.hpp"

namespace windtunnel {

/// Writes DIR/manifest.json, or makes sure that the one which is there belongs to this very sweep and version. Throws InputError, with what to
/// do, when it does not, and EnvironmentError when it cannot be read or written.
///   {"schema": "windtunnel/sweep-manifest-v2", "name": …, "sweep_hash": …, "version": …, "points": 12}
void open_manifest(const std::filesystem::path& directory, const Sweep& sweep,
                   const std::string& version);
/// The same for looking only: no folder is made. Throws EnvironmentError when there is no manifest.
void expect_manifest(const std::filesystem::path& directory, const Sweep& sweep,
                     const std::string& version);

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

/// A point of a sweep whose job has a length and a price.
struct FrontPoint {
  std::size_t point = 0;
  PricedPoint priced;  ///< called by its label, or its swept values
};

/// Points that fit and have days and a cost, by number; those on the Pareto front are marked. Empty where no row has both.
std::vector<FrontPoint> front_of(const PartRows& rows, const std::vector<std::string>& columns);

/// The rows as a table: point, id, label where some row has one, a column a swept pointer, ok, then the figures, failure and error, and what the sweep `asked` for. Absent
/// values are empty.
std::string results_csv(const PartRows& rows, const std::vector<std::string>& columns,
                        const std::vector<std::string>& asked = {});

/// Writes DIR/results.jsonl, results.csv and sweep.svg from what DIR/parts holds, each whole or not at all; and once or twice more where
/// somebody added rows in the meantime, but never for as long as they come. Returns the rows. The picture is left out, and an old one removed, when there is nothing to draw.
PartRows merge_results(const std::filesystem::path& directory, const Sweep& sweep);

}  // namespace windtunnel
