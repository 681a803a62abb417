#include "importers/mpigraph_table.hpp"

#include <cmath>
#include <utility>

#include "core/file_io.hpp"
#include "core/option_error.hpp"
#include "importers/rate_matrix.hpp"

namespace windtunnel {
namespace {

class TableReader {
 public:
  TableReader(const ImportRequest& request, std::vector<std::string>& notes)
      : request_(request), file_(file_name_of(request.inputs.front())), notes_(notes) {}

  MeasuredTable read() {
    const LogText log(read_source_or_stdin(request_.inputs.front()), problems_,
                      find_mpigraph_start);
    problems_.throw_if_any();
    if (looks_like_csv(log))
      read_csv(log);
    else
      read_log(log);
    problems_.throw_if_any();
    return std::move(read_);
  }

 private:
  void note(std::string text) { notes_.push_back(std::move(text)); }

  void read_csv(const LogText& log) {
    CsvTable csv = read_rate_csv(log, problems_);
    problems_.throw_if_any();
    read_.table = std::move(csv.table);
    if (!csv.says_kind && request_.options.table.empty())
      throw option_error("import", "mpigraph",
                         file_ + " does not say whether its rows send or receive",
                         "give --table send (row i, column j is what i sends to j) or --table "
                         "recv; or write Send or Recv into its first cell");
    const TableKind asked = request_.options.table == "recv" ? TableKind::recv : TableKind::send;
    if (!csv.says_kind)
      read_.table.kind = asked;
    else if (!request_.options.table.empty() && asked != read_.table.kind)
      throw option_error("--table", request_.options.table,
                         file_ + " says that it is the " + name_of(read_.table.kind) + " table",
                         {});
    read_.tool = std::string("table of mpiGraph, ") + name_of(read_.table.kind);
  }

  void read_log(const LogText& log) {
    MpigraphLog logged = read_mpigraph_log(log, problems_);
    problems_.throw_if_any();
    const bool wants_recv =
        request_.options.table == "recv" || (request_.options.table.empty() && !logged.send);
    auto& chosen = wants_recv ? logged.recv : logged.send;
    if (!chosen)
      throw option_error("--table", request_.options.table, file_ + " has no such table",
                         wants_recv ? "it has the Send table" : "it has the Recv table");
    if (!logged.has_end)
      note(file_ + ": no line \"END mpiGraph\"; what stands before was complete");
    auto& other = wants_recv ? logged.send : logged.recv;
    if (other) compare(*chosen, *other);
    read_.table = std::move(*chosen);
    read_.tool = "mpiGraph" + (logged.version.empty() ? "" : " v" + logged.version) + ", " +
                 name_of(read_.table.kind) + " table";
    if (logged.message_bytes > 0)
      read_.tool += ", messages of " + std::to_string(logged.message_bytes) + " B";
  }

  /// The Send and the Recv table time the same messages at their two ends.
  void compare(const RateTable& a, const RateTable& b) {
    const NodeRates one = rates_of_nodes(a, problems_), two = rates_of_nodes(b, problems_);
    problems_.throw_if_any();
    if (one.nodes != two.nodes) return;
    std::vector<double> differences;
    for (std::size_t i = 0; i < one.nodes.size(); ++i)
      for (std::size_t j = 0; j < one.nodes.size(); ++j)
        if (i != j && one.rate[i][j] && two.rate[i][j])
          differences.push_back(std::abs(*one.rate[i][j] / *two.rate[i][j] - 1));
    if (!differences.empty()) read_.difference = median_of(std::move(differences));
  }

  const ImportRequest& request_;
  std::string file_;
  std::vector<std::string>& notes_;
  Problems problems_;
  MeasuredTable read_;
};

}  // namespace

MeasuredTable read_measured_table(const ImportRequest& request, std::vector<std::string>& notes) {
  return TableReader(request, notes).read();
}

}  // namespace windtunnel
