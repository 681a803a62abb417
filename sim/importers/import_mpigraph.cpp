#include <utility>

#include "core/file_io.hpp"
#include "core/option_error.hpp"
#include "importers/base_platform.hpp"
#include "importers/importer.hpp"
#include "importers/mpigraph_findings.hpp"
#include "importers/mpigraph_platform.hpp"
#include "importers/mpigraph_table.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// mpiGraph heads its rates "MB/s" and divides by 1024 * 1024 (mpiGraph.c, MBsec).
constexpr const char* mpigraph_unit = "MiB/s";
constexpr double largest_inferred_share = 0.25;  ///< of all pairs; beyond, it is no measurement
constexpr int most_rails = 1024;                 ///< of a node, as its reader has it

/// One import of a table of rates, step by step.
class MpigraphImport {
 public:
  MpigraphImport(const ImportRequest& request, const Library& library)
      : request_(&request),
        library_(&library),
        options_(&request.options),
        base_(request.options.base, library) {
    found_.file = file_name_of(request.inputs.front());
    found_.is_cleaned = options_->clean == "phase";
  }

  Imported run() {
    check_options();
    MeasuredTable read = read_measured_table(*request_, imported_.notes);
    found_.tool = std::move(read.tool);
    found_.kind = read.table.kind;
    found_.difference_of_tables = read.difference;
    found_.rates = rates_of_nodes(read.table, problems_);
    problems_.throw_if_any();
    found_.statistics = statistics_of(found_.rates);
    found_.rails = options_->rails > 0 ? options_->rails : found_.rates.processes_per_node;
    check_rails();
    handle_artefact();
    handle_missing(read.table.cells.front().front().origin);
    say_rails();
    imported_.document = platform_with_rates(base_, found_, *request_, imported_.notes);
    read_back(imported_.document, *library_);
    imported_.text = findings_text(found_);
    imported_.found = findings_json(found_);
    return std::move(imported_);
  }

 private:
  void note(std::string text) { imported_.notes.push_back(std::move(text)); }

  void check_options() {
    if (!options_->clean.empty() && options_->clean != "phase")
      throw option_error("--clean", options_->clean, "there is nothing of that name to clean",
                         "write --clean phase");
    if (!options_->table.empty() && options_->table != "send" && options_->table != "recv")
      throw option_error("--table", options_->table, "there is no such table",
                         "write --table send or --table recv");
    found_.unit_name = options_->unit.empty() ? mpigraph_unit : options_->unit;
    std::string problem, suggestion;
    const auto unit = parse_quantity<BytesPerSecond>("1 " + found_.unit_name, problem, suggestion);
    if (!unit)
      throw option_error("--unit", found_.unit_name,
                         "\"" + found_.unit_name + "\" is no unit of bandwidth",
                         "such as MiB/s, MB/s or GB/s");
    found_.unit = *unit;
    if (options_->unit.empty())
      note(found_.file +
           ": rates taken as MiB/s, which is what mpiGraph's MB/s are (--unit changes it)");
  }

  void check_rails() const {
    if (found_.rails > most_rails)
      throw option_error("--rails", std::to_string(found_.rails),
                         "no node has so many network cards",
                         "at most " + std::to_string(most_rails));
  }

  void handle_artefact() {
    found_.artefact = find_phase_artefact(found_.rates);
    if (found_.artefact && found_.is_cleaned) {
      clean_phase_artefact(*found_.artefact, found_.rates);
      note(count_text(found_.artefact->ring.size(), "pair", "pairs") +
           " of the phase artefact set to " + "the median of the node's other rates");
    } else if (found_.artefact) {
      note("the slowest " + std::string(found_.partner()) +
           " of each node make one ring through all " + std::to_string(found_.rates.nodes.size()) +
           ": an effect of mpiGraph's ring steps and not of links; it is kept "
           "(--clean phase puts the median of the node's other rates there)");
    } else if (found_.is_cleaned) {
      note("no phase artefact found, so nothing is cleaned");
    }
  }

  void handle_missing(const Origin& place) {
    const std::size_t n = found_.rates.nodes.size(), pairs = n * (n - 1);
    found_.inferred = infer_missing(found_.rates);
    std::string without;
    std::size_t num_without = 0;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        if (i != j && !found_.rates.rate[i][j] && ++num_without <= most_listed)
          without += (without.empty() ? "" : ", ") + found_.pair_text(i, j);
    if (num_without > 0)
      problems_.add(
          {place,
           {},
           "no rate from which to infer " + without + (num_without > most_listed ? ", ..." : ""),
           "measure again, or leave the nodes out"});
    else if (static_cast<double>(found_.inferred.size()) >
             largest_inferred_share * static_cast<double>(pairs))
      problems_.add({place,
                     {},
                     std::to_string(found_.inferred.size()) + " of " + std::to_string(pairs) +
                         " pairs were not measured, more than a quarter",
                     "measure again, or leave the nodes out"});
    problems_.throw_if_any();
    for (std::size_t i = 0; i < found_.inferred.size() && i < most_listed; ++i)
      note(found_.pair_text(found_.inferred[i].from, found_.inferred[i].to) +
           " was not measured: " + to_text(found_.in_bytes(found_.inferred[i].rate)) +
           " inferred from " + basis_text(found_.inferred[i]));
    if (found_.inferred.size() > most_listed)
      note("... and " + std::to_string(found_.inferred.size() - most_listed) +
           " pairs more (--json)");
    if (found_.rates.missing_process_pairs > 0 && found_.rates.processes_per_node > 1)
      note(count_text(found_.rates.missing_process_pairs, "pair", "pairs") +
           " of processes not measured; the others of these nodes stand for them");
  }

  void say_rails() {
    if (options_->rails > 0 || found_.rails > 1) return;
    for (const NodeType& type : base_.platform().node_types)
      if (type.nics > 1) {
        note("a pair of nodes carries the rate of one process; " + base_.name() + " has " +
             std::to_string(type.nics) +
             " network cards a node: if the process had one of them, "
             "give --rails " +
             std::to_string(type.nics));
        return;
      }
  }

  const ImportRequest* request_;
  const Library* library_;
  const ImportOptions* options_;
  BasePlatform base_;
  Problems problems_;
  MpigraphFindings found_;
  Imported imported_;
};

}  // namespace

Imported import_mpigraph(const ImportRequest& request, const Library& library) {
  return MpigraphImport(request, library).run();
}

}  // namespace windtunnel
