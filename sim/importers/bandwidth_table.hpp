#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "importers/log_text.hpp"

namespace windtunnel {

/// Meaning of row i, column j of a table of rates.
enum class TableKind {
  send,  ///< what i sends to j
  recv,  ///< what i receives from j
};
const char* name_of(TableKind kind);

/// One rate as printed; nothing where it was not measured. Where it stands is kept for messages.
struct RateCell {
  std::optional<double> rate;
  Origin origin;
};

/// Rates between all pairs of processes (or nodes), as a file shows them; the diagonal means nothing.
struct RateTable {
  TableKind kind = TableKind::send;
  std::vector<std::string> labels;           ///< of rows and columns: "agpu1475:0", "agpu1475"
  std::vector<std::vector<RateCell>> cells;  ///< [row][column]
};

/// Contents of an mpiGraph log. A table is absent where the log has none.
struct MpigraphLog {
  std::string version;          ///< "1.5"; empty where the log does not say
  long long message_bytes = 0;  ///< 0: not said
  std::optional<RateTable> send, recv;
  bool has_end = false;  ///< the line "END mpiGraph"
};

/// Where "START mpiGraph" begins, or "MsgSize" in a log that lost its first line.
std::size_t find_mpigraph_start(std::string_view text);

/// Reads a log of mpiGraph among whatever else was printed to it. What is wrong goes to `problems`.
MpigraphLog read_mpigraph_log(const LogText& log, Problems& problems);

/// Reads a table: a first line with the names of the nodes, then a line for each with its name and
/// its rates, separated by commas, semicolons or tabs. The kind is what the first cell says
/// ("Send", "Recv"), else `kind`.
struct CsvTable {
  RateTable table;
  bool says_kind = false;
};
CsvTable read_rate_csv(const LogText& log, Problems& problems);
/// Whether the file is such a table rather than a log.
bool looks_like_csv(const LogText& log);

/// Rates between nodes, one way: [from][to] in the table's unit.
struct NodeRates {
  std::vector<std::string> nodes;
  std::vector<std::vector<std::optional<double>>> rate;
  int processes_per_node = 1;
  std::size_t missing_process_pairs = 0;
};

/// Puts the processes of a node together: the rate of a node pair is the mean over its process
/// pairs, each of which had its share of the network cards. "agpu1475:0" is process 0, of node
/// agpu1475. Nodes with different numbers of processes are a problem.
NodeRates rates_of_nodes(const RateTable& table, Problems& problems);

}  // namespace windtunnel
