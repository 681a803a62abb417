#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/file_io.hpp"
#include "core/option_error.hpp"
#include "importers/bandwidth_table.hpp"
#include "importers/base_platform.hpp"
#include "importers/importer.hpp"
#include "importers/rate_matrix.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// mpiGraph heads its rates "MB/s" and divides by 1024 * 1024 (mpiGraph.c, MBsec).
constexpr const char* mpigraph_unit = "MiB/s";
constexpr double largest_inferred_share = 0.25;  ///< of all pairs; beyond, it is no measurement
constexpr std::size_t most_listed = 8;
constexpr int written_digits = 6;
constexpr int most_rails = 1024;  ///< of a node, as its reader has it

/// `number` as it is written: means of many processes have no more digits than that.
double rounded(double number) {
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                 std::chars_format::general, written_digits)
                       .ptr;
  double result = 0;
  std::from_chars(buffer.data(), end, result);
  return result;
}

std::string count_text(std::size_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

/// One import of a table of rates, step by step.
class MpigraphImport {
 public:
  MpigraphImport(const ImportRequest& request, const Library& library)
      : request_(&request),
        library_(&library),
        options_(&request.options),
        file_(file_name_of(request.inputs.front())),
        base_(request.options.base, library) {}

  Imported run() {
    check_options();
    read_table();
    rates_ = rates_of_nodes(table_, problems_);
    problems_.throw_if_any();
    statistics_ = statistics_of(rates_);
    rails_ = options_->rails > 0 ? options_->rails : rates_.processes_per_node;
    check_rails();
    handle_artefact();
    handle_missing();
    say_rails();
    write_document();
    read_back(imported_.document, *library_);
    describe();
    return std::move(imported_);
  }

 private:
  void note(std::string text) { imported_.notes.push_back(std::move(text)); }
  BytesPerSecond in_bytes(double rate) const { return unit_ * rate; }

  void check_options() {
    if (!options_->clean.empty() && options_->clean != "phase")
      throw option_error("--clean", options_->clean, "there is nothing of that name to clean",
                         "write --clean phase");
    if (!options_->table.empty() && options_->table != "send" && options_->table != "recv")
      throw option_error("--table", options_->table, "there is no such table",
                         "write --table send or --table recv");
    unit_name_ = options_->unit.empty() ? mpigraph_unit : options_->unit;
    std::string problem, suggestion;
    const auto unit = parse_quantity<BytesPerSecond>("1 " + unit_name_, problem, suggestion);
    if (!unit)
      throw option_error("--unit", unit_name_, "\"" + unit_name_ + "\" is no unit of bandwidth",
                         "such as MiB/s, MB/s or GB/s");
    unit_ = *unit;
    if (options_->unit.empty())
      note(file_ + ": rates taken as MiB/s, which is what mpiGraph's MB/s are (--unit changes it)");
  }

  void read_table() {
    const LogText log(read_source_or_stdin(request_->inputs.front()), problems_);
    problems_.throw_if_any();
    if (looks_like_csv(log))
      read_csv(log);
    else
      read_log(log);
    problems_.throw_if_any();
  }

  void read_csv(const LogText& log) {
    CsvTable csv = read_rate_csv(log, problems_);
    problems_.throw_if_any();
    table_ = std::move(csv.table);
    if (!csv.says_kind && options_->table.empty())
      throw option_error("import", "mpigraph",
                         file_ + " does not say whether its rows send or receive",
                         "give --table send (row i, column j is what i sends to j) or --table "
                         "recv; or write Send or Recv into its first cell");
    const TableKind asked = options_->table == "recv" ? TableKind::recv : TableKind::send;
    if (!csv.says_kind)
      table_.kind = asked;
    else if (!options_->table.empty() && asked != table_.kind)
      throw option_error("--table", options_->table,
                         file_ + " says that it is the " + name_of(table_.kind) + " table", {});
    tool_ = std::string("table of mpiGraph, ") + name_of(table_.kind);
  }

  void read_log(const LogText& log) {
    MpigraphLog read = read_mpigraph_log(log, problems_);
    problems_.throw_if_any();
    const bool wants_recv = options_->table == "recv" || (options_->table.empty() && !read.send);
    auto& chosen = wants_recv ? read.recv : read.send;
    if (!chosen)
      throw option_error("--table", options_->table, file_ + " has no such table",
                         wants_recv ? "it has the Send table" : "it has the Recv table");
    if (!read.has_end) note(file_ + ": no line \"END mpiGraph\"; what stands before was complete");
    auto& other = wants_recv ? read.send : read.recv;
    if (other) compare(*chosen, *other);
    table_ = std::move(*chosen);
    tool_ = "mpiGraph" + (read.version.empty() ? "" : " v" + read.version) + ", " +
            name_of(table_.kind) + " table";
    if (read.message_bytes > 0)
      tool_ += ", messages of " + std::to_string(read.message_bytes) + " B";
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
    if (!differences.empty()) difference_of_tables_ = median_of(std::move(differences));
  }

  void check_rails() const {
    if (rails_ > most_rails)
      throw option_error("--rails", std::to_string(rails_), "no node has so many network cards",
                         "at most " + std::to_string(most_rails));
  }

  void handle_artefact() {
    artefact_ = find_phase_artefact(rates_);
    if (artefact_ && options_->clean == "phase") {
      clean_phase_artefact(*artefact_, rates_);
      note(count_text(artefact_->ring.size(), "pair", "pairs") + " of the phase artefact set to " +
           "the median of the node's other rates");
    } else if (artefact_) {
      note("the slowest " + std::string(partner()) + " of each node make one ring through all " +
           std::to_string(rates_.nodes.size()) +
           ": an effect of mpiGraph's ring steps and not of links; it is kept "
           "(--clean phase puts the median of the node's other rates there)");
    } else if (options_->clean == "phase") {
      note("no phase artefact found, so nothing is cleaned");
    }
  }

  const char* partner() const { return artefact_->of_senders ? "targets" : "sources"; }

  void handle_missing() {
    const std::size_t n = rates_.nodes.size(), pairs = n * (n - 1);
    inferred_ = infer_missing(rates_);
    std::string without;
    std::size_t num_without = 0;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        if (i != j && !rates_.rate[i][j] && ++num_without <= most_listed)
          without += (without.empty() ? "" : ", ") + pair_text(i, j);
    const Origin place = table_.cells.front().front().origin;
    if (num_without > 0)
      problems_.add(
          {place,
           {},
           "no rate from which to infer " + without + (num_without > most_listed ? ", ..." : ""),
           "measure again, or leave the nodes out"});
    else if (static_cast<double>(inferred_.size()) >
             largest_inferred_share * static_cast<double>(pairs))
      problems_.add({place,
                     {},
                     std::to_string(inferred_.size()) + " of " + std::to_string(pairs) +
                         " pairs were not measured, more than a quarter",
                     "measure again, or leave the nodes out"});
    problems_.throw_if_any();
    for (std::size_t i = 0; i < inferred_.size() && i < most_listed; ++i)
      note(pair_text(inferred_[i].from, inferred_[i].to) + " was not measured: " +
           to_text(in_bytes(inferred_[i].rate)) + " inferred from " + basis_text(inferred_[i]));
    if (inferred_.size() > most_listed)
      note("... and " + std::to_string(inferred_.size() - most_listed) + " pairs more (--json)");
    if (rates_.missing_process_pairs > 0 && rates_.processes_per_node > 1)
      note(count_text(rates_.missing_process_pairs, "pair", "pairs") +
           " of processes not measured; the others of these nodes stand for them");
  }

  std::string pair_text(std::size_t from, std::size_t to) const {
    return rates_.nodes[from] + " to " + rates_.nodes[to];
  }
  static std::string basis_text(const InferredPair& pair) {
    return pair.basis == InferredPair::Basis::reverse ? "the other direction"
                                                      : "the median of both nodes' rates";
  }

  void say_rails() {
    if (options_->rails > 0 || rails_ > 1) return;
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

  /// The kinds of node, each with how many of the rows are of it. InputError where the base has
  /// another number of nodes.
  std::vector<std::size_t> nodes_of_types() {
    const auto& types = base_.platform().node_types;
    const std::size_t n = rates_.nodes.size();
    if (types.size() == 1) return {n};
    std::vector<std::size_t> counts;
    std::size_t sum = 0;
    for (const NodeType& type : types) {
      counts.push_back(static_cast<std::size_t>(type.count));
      sum += counts.back();
    }
    if (types.back().count == 0 && sum < n) counts.back() = n - sum, sum = n;
    if (sum != n)
      throw option_error("--base", options_->base,
                         base_.name() + " has " + std::to_string(sum) + " nodes of " +
                             std::to_string(types.size()) + " kinds, the table " +
                             std::to_string(n),
                         "name a base with as many, or with one kind of node");
    return counts;
  }

  void write_document() {
    JsonValue& document = base_.document();
    document.set("name", JsonValue(request_->output.stem().string()));
    document.set("description", JsonValue(base_.name() + " with the rates between nodes of " +
                                          file_ + "; nodes in order: " + node_list()));
    const std::vector<std::size_t> counts = nodes_of_types();
    std::size_t first = 0;
    for (std::size_t t = 0; t < counts.size(); ++t) {
      JsonValue& type = document.find("node_types")->array()[t];
      set_number(type, "count", JsonValue(static_cast<std::int64_t>(counts[t])),
                 "measured: nodes in " + file_);
      raise_nic_efficiency(type, base_.platform().node_types[t], first, first + counts[t]);
      first += counts[t];
    }
    if (document.erase("link_overrides"))
      note("link_overrides of " + base_.name() + " left out: they name nodes of another cluster");
    document.set("bandwidth_matrix", matrix_json());
    imported_.document = document;
  }

  /// Cards carried what was measured, so they can: where the base expects less, its efficiency is
  /// raised to the fastest pair. More than the cards' nominal rate is an error.
  void raise_nic_efficiency(JsonValue& type_json, const NodeType& type, std::size_t first,
                            std::size_t last) {
    std::size_t from = first, to = 0;
    double most = 0;
    for (std::size_t i = first; i < last; ++i)
      for (std::size_t j = 0; j < rates_.nodes.size(); ++j)
        if (i != j && *rates_.rate[i][j] > most) most = *rates_.rate[i][j], from = i, to = j;
    const BytesPerSecond nominal = type.nic_rate * type.nics;
    const BytesPerSecond attained = in_bytes(most) * rails_;
    if (attained > nominal)
      throw option_error("--base", options_->base,
                         file_ + " has " + to_text(attained) + " for " + pair_text(from, to) +
                             " (" + std::to_string(rails_) + (rails_ == 1 ? " rail" : " rails") +
                             "), but the " + std::to_string(type.nics) + " network cards of " +
                             base_.name() + " carry " + to_text(nominal),
                         "another base, --unit or --rails");
    if (attained <= type.effective_nic_rate() * type.nics) return;
    constexpr double steps = 1000;  // three decimals, rounded up so that the matrix decides
    const double efficiency = std::min(1.0, std::ceil(attained / nominal * steps) / steps);
    set_number(type_json, "nic_efficiency", JsonValue(efficiency),
               "measured: " + tool_ + ", " + file_ + ": the fastest pair carries " +
                   to_text(attained) + " of " + to_text(nominal) + ", so that the matrix decides");
    note("nic_efficiency raised from " + significant_text(type.nic_efficiency, 3) + " to " +
         significant_text(efficiency, 3) + ": the fastest pair carries " + to_text(attained));
  }

  std::string node_list() const {
    constexpr std::size_t most_named = 64;
    const auto& nodes = rates_.nodes;
    if (nodes.size() > most_named)
      return nodes.front() + " to " + nodes.back() + ", " + std::to_string(nodes.size()) + " nodes";
    std::string list;
    for (const std::string& node : nodes) list += (list.empty() ? "" : ", ") + node;
    return list;
  }

  std::string matrix_source() const {
    std::string source = "measured: " + tool_ + ", " + file_;
    if (rates_.processes_per_node > 1)
      source += ", mean over " + std::to_string(rates_.processes_per_node) + " x " +
                std::to_string(rates_.processes_per_node) + " processes a pair of nodes";
    if (artefact_)
      source +=
          "; " + std::to_string(artefact_->ring.size()) +
          (options_->clean == "phase" ? " rates of mpiGraph's phase artefact replaced by medians"
                                      : " rates lowered by mpiGraph's phase artefact are in it");
    if (!inferred_.empty())
      source += "; not measured but inferred: " + std::to_string(inferred_.size()) + " pairs";
    for (std::size_t i = 0; i < inferred_.size() && i < most_listed; ++i)
      source += (i == 0 ? " (" : ", ") + pair_text(inferred_[i].from, inferred_[i].to);
    if (!inferred_.empty()) source += inferred_.size() > most_listed ? ", ...)" : ")";
    return source;
  }

  JsonValue matrix_json() const {
    JsonValue matrix(JsonValue::Object{});
    matrix.set("unit", JsonValue(unit_name_));
    matrix.set("rails", JsonValue(std::int64_t{rails_}));
    matrix.set("source", JsonValue(matrix_source()));
    JsonValue::Array rows;
    for (std::size_t i = 0; i < rates_.nodes.size(); ++i) {
      JsonValue::Array row;
      for (std::size_t j = 0; j < rates_.nodes.size(); ++j)
        row.push_back(i == j ? JsonValue(std::int64_t{0}) : JsonValue(rounded(*rates_.rate[i][j])));
      rows.emplace_back(std::move(row));
    }
    matrix.set("rows", JsonValue(std::move(rows)));
    return matrix;
  }

  std::string ring_text() const {
    std::string text;
    for (std::size_t i = 0; i < artefact_->ring.size() && i < most_listed; ++i)
      text += rates_.nodes[artefact_->ring[i]] + " → ";
    return text + (artefact_->ring.size() > most_listed ? "… → " : "") +
           rates_.nodes[artefact_->ring.front()];
  }

  void describe() {
    describe_as_json();
    const auto rate = [this](double number) { return to_text(in_bytes(number)); };
    std::string& text = imported_.text;
    text = file_ + ": " + tool_ + ", " + count_text(rates_.nodes.size(), "node", "nodes");
    if (rates_.processes_per_node > 1)
      text += " of " + std::to_string(rates_.processes_per_node) + " processes";
    text += "\n\n  a pair, one rail   median " + rate(statistics_.median) + ", from " +
            rate(statistics_.least) + " to " + rate(statistics_.most) + ", spread " +
            percent_text(statistics_.spread) + "\n  rails              " + std::to_string(rails_) +
            "\n  two directions     differ by " + percent_text(statistics_.mean_asymmetry) +
            " on average, " + percent_text(statistics_.most_asymmetry) + " at most\n";
    if (difference_of_tables_)
      text +=
          "  Send and Recv      differ by " + percent_text(*difference_of_tables_) + " (median)\n";
    text += "  phase artefact     ";
    if (artefact_)
      text += "the slowest " + std::string(partner()) + " make one ring, " + ring_text() +
              "\n                     " + rate(artefact_->mean_rate) + " on it against " +
              rate(artefact_->usual_rate) + "; " +
              (options_->clean == "phase" ? "replaced by medians" : "kept") + "\n";
    else
      text += rates_.nodes.size() < 6 ? "not judged below 6 nodes\n" : "none\n";
    text += "  pairs inferred     " +
            (inferred_.empty() ? std::string("none") : std::to_string(inferred_.size())) + "\n";
  }

  void describe_as_json() {
    JsonValue& found = imported_.found;
    const auto rate = [this](double number) {
      return JsonValue(in_bytes(number) / BytesPerSecond{1});
    };
    JsonValue::Array nodes;
    for (const std::string& node : rates_.nodes) nodes.emplace_back(node);
    found.set("table", JsonValue(std::string(name_of(table_.kind))));
    found.set("nodes", JsonValue(std::move(nodes)));
    found.set("processes_per_node", JsonValue(std::int64_t{rates_.processes_per_node}));
    found.set("rails", JsonValue(std::int64_t{rails_}));
    found.set("median_bytes_per_s", rate(statistics_.median));
    found.set("least_bytes_per_s", rate(statistics_.least));
    found.set("most_bytes_per_s", rate(statistics_.most));
    found.set("spread", JsonValue(statistics_.spread));
    found.set("mean_asymmetry", JsonValue(statistics_.mean_asymmetry));
    found.set("most_asymmetry", JsonValue(statistics_.most_asymmetry));
    if (difference_of_tables_) found.set("send_recv_difference", JsonValue(*difference_of_tables_));
    found.set("phase_artefact", artefact_json());
    JsonValue::Array inferred;
    for (const InferredPair& pair : inferred_) {
      JsonValue item(JsonValue::Object{});
      item.set("from", JsonValue(rates_.nodes[pair.from]));
      item.set("to", JsonValue(rates_.nodes[pair.to]));
      item.set("bytes_per_s", rate(pair.rate));
      item.set("basis", JsonValue(basis_text(pair)));
      inferred.push_back(std::move(item));
    }
    found.set("inferred", JsonValue(std::move(inferred)));
  }

  JsonValue artefact_json() const {
    if (!artefact_) return {};
    JsonValue value(JsonValue::Object{});
    JsonValue::Array ring;
    for (const std::size_t node : artefact_->ring) ring.emplace_back(rates_.nodes[node]);
    value.set("ring", JsonValue(std::move(ring)));
    value.set("slowest", JsonValue(std::string(partner())));
    value.set("mean_bytes_per_s", JsonValue(in_bytes(artefact_->mean_rate) / BytesPerSecond{1}));
    value.set("usual_bytes_per_s", JsonValue(in_bytes(artefact_->usual_rate) / BytesPerSecond{1}));
    value.set("chance", JsonValue(artefact_->chance));
    value.set("cleaned", JsonValue(options_->clean == "phase"));
    return value;
  }

  const ImportRequest* request_;
  const Library* library_;
  const ImportOptions* options_;
  std::string file_;  ///< without its folder, as sources name it
  BasePlatform base_;
  Problems problems_;
  BytesPerSecond unit_{};
  std::string unit_name_, tool_;
  RateTable table_;
  NodeRates rates_;
  RateStatistics statistics_;  ///< of what was measured
  int rails_ = 1;
  std::optional<PhaseArtefact> artefact_;
  std::optional<double> difference_of_tables_;
  std::vector<InferredPair> inferred_;
  Imported imported_;
};

}  // namespace

Imported import_mpigraph(const ImportRequest& request, const Library& library) {
  return MpigraphImport(request, library).run();
}

}  // namespace windtunnel
