#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/json_build.hpp"
#include "core/option_error.hpp"
#include "core/quantile.hpp"
#include "core/text_list.hpp"
#include "core/utf8.hpp"
#include "importers/base_platform.hpp"
#include "importers/importer.hpp"
#include "importers/log_text.hpp"
#include "importers/rate_matrix.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "units/amount_range.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel::formats {
namespace {

/// Rates between all pairs of processes (or nodes), as a file shows them; the diagonal means nothing.
struct RateTable {
  /// "Send": row i, column j is what i sends to j; "Recv": what i receives from j; empty: the file does not say.
  std::string kind;
  std::vector<std::string> labels;  ///< of rows and columns: "agpu1475:0", "agpu1475"
  std::vector<std::vector<std::optional<double>>> rates;  ///< [row][column]; none: not measured
  Origin origin;                                          ///< of the first rate
};

constexpr const char* write_missing =
    "write N/A where a pair was not measured, to have it inferred";

/// A rate off the diagonal must be a number above 0 that a platform can have, or say that it was not measured; "nan" is what a division
/// by no time gave.
std::optional<double> read_rate(const LogText& log, const LogLine& line, const LogWord& word,
                                BytesPerSecond unit) {
  const std::optional<double> rate = number_in(word.text);
  if (!rate && is_missing(word.text) && lower_case(word.text) != "nan") return std::nullopt;
  if (!rate) {
    log.problem(line, word, "\"" + word.text + "\" is no rate", write_missing);
  } else if (*rate <= 0) {
    log.problem(line, word, "a rate of " + word.text + " between two nodes: rates are above 0",
                write_missing);
  } else if (const RangeSide side = side_of(unit * *rate); side != RangeSide::inside) {
    log.problem(line, word,
                "a rate of " + to_text(unit * *rate) + " between two nodes is too " +
                    (side == RangeSide::below ? "small" : "large"),
                range_suggestion<BytesPerSecond>() + ", or N/A to have the pair inferred");
    return std::nullopt;
  }
  return rate;
}

/// A table as it is written.
struct WrittenTable {
  std::string kind;  ///< as in RateTable
  const LogLine* header = nullptr;
  std::vector<LogWord> labels;
  struct Row {
    const LogLine* line;
    LogWord name;
    std::vector<LogWord> values;
  };
  std::vector<Row> rows;
};

RateTable read_rates(const WrittenTable& written, const LogText& log, BytesPerSecond unit) {
  RateTable table;
  table.kind = written.kind;
  std::map<std::string, std::size_t> row_of;
  for (const LogWord& label : written.labels) {
    if (row_of.contains(label.text))
      log.problem(*written.header, label, "\"" + label.text + "\" stands twice in the header");
    row_of[label.text] = table.labels.size();
    table.labels.push_back(label.text);
  }
  const std::size_t size = table.labels.size();
  table.rates.resize(size);
  for (const auto& [line, name, values] : written.rows) {
    const auto row = row_of.find(name.text);
    if (row == row_of.end()) {
      log.problem(*line, name, "\"" + name.text + "\" has a row, but no column");
      continue;
    }
    std::vector<std::optional<double>>& rates = table.rates[row->second];
    if (!rates.empty()) {
      log.problem(*line, name, "a second row of \"" + name.text + "\"");
      continue;
    }
    rates.resize(size);
    if (values.size() != size)
      log.problem(*line, values.empty() ? name : values.back(),
                  "the row of " + name.text + " has " + std::to_string(values.size()) +
                      " rates, the header names " + std::to_string(size) + " of them",
                  "the file may be truncated");
    else
      for (std::size_t i = 0; i < size; ++i)
        if (i != row->second) rates[i] = read_rate(log, *line, values[i], unit);
    if (row->second == 0 && !values.empty()) table.origin = log.at(*line, values.front());
  }
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < size; ++i)
    if (table.rates[i].empty()) missing.push_back(table.labels[i]);
  constexpr std::size_t most_named = 4;
  if (!missing.empty())
    log.problem(log.at(*written.header),
                "the header names " + std::to_string(size) + " rows, but there are none of " +
                    listed(missing, {}, most_named, ", ..."),
                "the file may be truncated");
  return table;
}

/// Content of an mpiGraph log; other lines are noise.
struct MpigraphLog {
  std::string version;                      ///< "1.5"; empty where the log does not say
  long long message_bytes = 0;              ///< 0: not said
  std::map<std::string, RateTable> tables;  ///< by kind
  bool has_end = false;                     ///< the line "END mpiGraph"
};

MpigraphLog read_mpigraph_log(const LogText& log, BytesPerSecond unit) {
  MpigraphLog result;
  std::vector<WrittenTable> tables;
  for (const LogLine& line : log.lines()) {
    const std::vector<LogWord>& words = line.words;
    const std::string& first = words.front().text;
    const std::string second = words.size() > 1 ? words[1].text : std::string();
    const auto words_from = [&](std::ptrdiff_t at) {
      return std::vector<LogWord>(words.begin() + at, words.end());
    };
    if (first == "START" && second == "mpiGraph" && words.size() > 2)
      result.version = words[2].text.substr(words[2].text.starts_with('v') ? 1 : 0);
    else if (first == "END" && second == "mpiGraph")
      result.has_end = true;
    else if (first == "MsgSize" && words.size() == 2)
      result.message_bytes = count_in(second).value_or(0);
    else if ((first == "Send" || first == "Recv") && words.size() > 2 && second != "max" &&
             second != "avg")  // "Send max 14493.3" is no header
      tables.push_back({first, &line, words_from(1), {}});
    else if (!tables.empty() && second == (tables.back().kind == "Send" ? "to" : "from"))
      tables.back().rows.push_back({&line, words.front(), words_from(2)});
  }
  for (const WrittenTable& written : tables) {
    if (result.tables.contains(written.kind))
      log.problem(log.at(*written.header), "a second " + written.kind + " table",
                  "the file holds several runs: import one of them");
    result.tables[written.kind] = read_rates(written, log, unit);
  }
  if (tables.empty() && log.problems().empty())
    log.problem(log.end(),
                "no table of mpiGraph in the file: no line begins with \"Send\" or \"Recv\" "
                "and names of nodes",
                "the file may be truncated, or be something else");
  return result;
}

/// The separator of a table: the first of these that its first line holds.
char separator_of(const LogLine& line) {
  for (const char c : {',', ';', '\t'})
    if (line.text.find(c) != std::string::npos) return c;
  return '\0';
}

/// Reads a table: a first line with the names of the nodes, then a line for each with its name and
/// its rates, separated by commas, semicolons or tabs. The kind is what the first cell says
/// ("Send", "Recv"), if it says one.
RateTable read_rate_csv(const LogText& log, BytesPerSecond unit) {
  WrittenTable table;
  const char separator = separator_of(log.lines().front());
  for (const LogLine& line : log.lines()) {
    std::vector<LogWord> cells = split_words(line, std::string_view(&separator, 1));
    for (LogWord& cell : cells) {
      const std::size_t from = std::min(cell.text.find_first_not_of(" \""), cell.text.size());
      cell.text = cell.text.substr(from, cell.text.find_last_not_of(" \"") + 1 - from);
    }
    const LogWord first = cells.front();
    cells.erase(cells.begin());
    if (table.header != nullptr) {
      table.rows.push_back({&line, first, std::move(cells)});
      continue;
    }
    table = {first.text, &line, std::move(cells), {}};
    if (!first.text.empty() && first.text != "Send" && first.text != "Recv")
      log.problem(line, first, "the first cell is \"" + first.text + "\"",
                  "leave it empty, or write Send or Recv");
  }
  return read_rates(table, log, unit);
}

/// Puts the processes of a node together: the rate of a node pair is the mean over its process
/// pairs, each of which had its share of the network cards. "agpu1475:0" is process 0, of node
/// agpu1475. Nodes with different numbers of processes are a problem.
NodeRates rates_of_nodes(const RateTable& table, Problems& problems) {
  NodeRates result;
  std::vector<std::size_t> node_of_label;
  std::vector<int> processes;
  std::map<std::string, std::size_t> index;
  for (const std::string& label : table.labels) {
    const std::size_t colon = std::min(label.rfind(':'), label.size() - 1);
    const bool has_number = count_in(std::string_view(label).substr(colon + 1)).has_value();
    const auto [node, is_new] =
        index.emplace(has_number ? label.substr(0, colon) : label, result.nodes.size());
    if (is_new) {
      result.nodes.push_back(node->first);
      processes.push_back(0);
    }
    ++processes[node->second];
    node_of_label.push_back(node->second);
  }
  const auto [least, most] = std::ranges::minmax_element(processes);
  if (*least != *most)
    add_problem(problems, table.origin,
                "nodes have different numbers of processes, from " + std::to_string(*least) +
                    " to " + std::to_string(*most),
                "run mpiGraph with as many on each");
  if (result.nodes.size() < 2)
    add_problem(problems, table.origin,
                "the table is of one node, " + result.nodes.front() +
                    ": there is no rate between nodes in it",
                "run mpiGraph on two nodes or more");
  result.processes_per_node = *most;

  const std::size_t n = result.nodes.size();
  std::vector<std::vector<double>> sum(n, std::vector<double>(n)), count = sum;
  for (std::size_t i = 0; i < table.rates.size(); ++i) {
    for (std::size_t j = 0; j < table.rates[i].size(); ++j) {
      std::size_t from = node_of_label[i], to = node_of_label[j];
      if (from == to) continue;
      if (table.kind == "Recv") std::swap(from, to);
      if (const std::optional<double> rate = table.rates[i][j]) {
        sum[from][to] += *rate;
        count[from][to] += 1;
      } else {
        ++result.missing_process_pairs;
      }
    }
  }
  result.rate.assign(n, std::vector<std::optional<double>>(n));
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      if (count[i][j] > 0) result.rate[i][j] = sum[i][j] / count[i][j];
  return result;
}

/// mpiGraph heads its rates "MB/s" and divides by 1024 * 1024 (mpiGraph.c, MBsec).
constexpr const char* mpigraph_unit = "MiB/s";
constexpr double largest_inferred_share = 0.25;  ///< of all pairs; beyond, it is no measurement
constexpr int most_rails = 1024;                 ///< of a node, as its reader has it
constexpr int written_digits = 6;                ///< means of many processes have no more
/// Number of pairs or nodes that a text names before "...".
constexpr std::size_t most_listed = 8;

/// Basis of the rate of a pair that was not measured.
std::string basis_text(const InferredPair& pair) {
  return pair.basis == InferredPair::Basis::reverse ? "the other direction"
                                                    : "the median of both nodes' rates";
}

/// One import of a table of rates, step by step.
class MpigraphImport : PlatformImport {
 public:
  MpigraphImport(const ImportRequest& request, const Library& library)
      : PlatformImport(request, library),
        options_(request.options),
        is_cleaned_(options_.clean == "phase"),
        unit_name_(options_.unit.empty() ? mpigraph_unit : options_.unit),
        asked_(options_.table.empty()     ? ""
               : options_.table == "recv" ? "Recv"
                                          : "Send") {}

  Imported run() {
    if (!options_.clean.empty() && options_.clean != "phase")
      throw option_error("--clean", options_.clean, "there is nothing of that name to clean",
                         "write --clean phase");
    if (!options_.table.empty() && options_.table != "send" && options_.table != "recv")
      throw option_error("--table", options_.table, "there is no such table",
                         "write --table send or --table recv");
    std::string why, suggestion;
    const auto unit = parse_quantity<BytesPerSecond>("1 " + unit_name_, why, suggestion);
    if (!unit)
      throw option_error("--unit", unit_name_, "\"" + unit_name_ + "\" is no unit of bandwidth",
                         "such as MiB/s, MB/s or GB/s");
    unit_ = *unit;
    if (options_.unit.empty())
      note(file_ + ": rates taken as MiB/s, which is what mpiGraph's MB/s are (--unit changes it)");
    const LogText log(read_source_or_stdin(request_.inputs.front()), problems_,
                      [](std::string_view text) {
                        return std::min(text.find("START mpiGraph"),
                                        text.find("MsgSize"));  // where the first line was lost
                      });
    problems_.throw_if_any();
    const char separator = log.lines().empty() ? '\0' : separator_of(log.lines().front());
    // A log of mpiGraph that was cut down to one table begins with a word before the first tab.
    const bool is_csv =
        separator == '\t' ? log.lines().front().text.front() == '\t' : separator != '\0';
    const RateTable table = is_csv ? table_of_csv(log) : table_of_log(log);
    kind_ = table.kind;
    rates_ = rates_of_nodes(table, problems_);
    problems_.throw_if_any();
    statistics_ = statistics_of(rates_);
    rails_ = options_.rails > 0 ? options_.rails : rates_.processes_per_node;
    if (rails_ > most_rails)
      throw option_error("--rails", std::to_string(rails_), "no node has so many network cards",
                         "at most " + std::to_string(most_rails));
    artefact_ = find_phase_artefact(rates_);
    if (artefact_ && is_cleaned_) {
      clean_phase_artefact(*artefact_, rates_);
      note(count_text(artefact_->ring.size(), "pair") +
           " of the phase artefact set to the median of the node's other rates");
    } else if (artefact_) {
      note("the slowest " + partner() + " of each node make one ring through all " +
           std::to_string(rates_.nodes.size()) +
           ": an effect of mpiGraph's ring steps and not of links; it is kept "
           "(--clean phase puts the median of the node's other rates there)");
    } else if (is_cleaned_) {
      note("no phase artefact found, so nothing is cleaned");
    }

    handle_missing(table.origin);
    const auto& types = base_.platform().node_types;
    const auto type =
        std::ranges::find_if(types, [](const NodeType& each) { return each.nics > 1; });
    if (options_.rails == 0 && rails_ == 1 && type != types.end())
      note("a pair of nodes carries the rate of one process; " + base_.name() + " has " +
           std::to_string(type->nics) +
           " network cards a node: if the process had one of them, give --rails " +
           std::to_string(type->nics));
    write_document();
    describe();
    return finished();
  }

 private:
  std::string rate_text(double rate) const { return to_text(unit_ * rate); }
  /// "node1 to node2"
  std::string pair_text(std::size_t from, std::size_t to) const {
    return rates_.nodes[from] + " to " + rates_.nodes[to];
  }
  /// Role of each node's slowest partners.
  std::string partner() const { return artefact_->of_senders ? "targets" : "sources"; }

  RateTable table_of_csv(const LogText& log) {
    RateTable table = read_rate_csv(log, unit_);
    problems_.throw_if_any();
    if (table.kind.empty() && asked_.empty())
      throw option_error("import", "mpigraph",
                         file_ + " does not say whether its rows send or receive",
                         "give --table send (row i, column j is what i sends to j) or --table "
                         "recv; or write Send or Recv into its first cell");
    if (table.kind.empty()) table.kind = asked_;
    if (!asked_.empty() && asked_ != table.kind)
      throw option_error("--table", options_.table,
                         file_ + " says that it is the " + table.kind + " table", {});
    tool_ = "table of mpiGraph, " + table.kind;
    return table;
  }

  RateTable table_of_log(const LogText& log) {
    MpigraphLog logged = read_mpigraph_log(log, unit_);
    problems_.throw_if_any();
    const std::string kind = !asked_.empty()                  ? asked_
                             : logged.tables.contains("Send") ? "Send"
                                                              : "Recv";
    const std::string other = kind == "Send" ? "Recv" : "Send";
    if (!logged.tables.contains(kind))
      throw option_error("--table", options_.table, file_ + " has no such table",
                         "it has the " + other + " table");
    RateTable& chosen = logged.tables.at(kind);
    if (!logged.has_end)
      note(file_ + ": no line \"END mpiGraph\"; what stands before was complete");
    if (logged.tables.contains(other)) {
      // The Send and the Recv table time the same messages at their two ends.
      const NodeRates one = rates_of_nodes(chosen, problems_),
                      two = rates_of_nodes(logged.tables.at(other), problems_);
      problems_.throw_if_any();
      std::vector<double> differences;
      for (std::size_t i = 0; one.nodes == two.nodes && i < one.nodes.size(); ++i)
        for (std::size_t j = 0; j < one.nodes.size(); ++j)
          if (i != j && one.rate[i][j] && two.rate[i][j])
            differences.push_back(std::abs(*one.rate[i][j] / *two.rate[i][j] - 1));
      if (!differences.empty()) difference_of_tables_ = median_of(std::move(differences));
    }
    tool_ =
        "mpiGraph" + (logged.version.empty() ? "" : " v" + logged.version) + ", " + kind + " table";
    if (logged.message_bytes > 0)
      tool_ += ", messages of " + std::to_string(logged.message_bytes) + " B";
    return std::move(chosen);
  }

  void handle_missing(const Origin& place) {
    const std::size_t n = rates_.nodes.size(), pairs = n * (n - 1);
    inferred_ = infer_missing(rates_);
    std::vector<std::string> without;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        if (i != j && !rates_.rate[i][j]) without.push_back(pair_text(i, j));
    const char* const suggestion = "measure again, or leave the nodes out";
    if (!without.empty())
      problem(place, "no rate from which to infer " + listed(without, {}, most_listed, ", ..."),
              suggestion);
    else if (static_cast<double>(inferred_.size()) >
             largest_inferred_share * static_cast<double>(pairs))
      problem(place,
              std::to_string(inferred_.size()) + " of " + std::to_string(pairs) +
                  " pairs were not measured, more than a quarter",
              suggestion);
    problems_.throw_if_any();
    for (std::size_t i = 0; i < inferred_.size() && i < most_listed; ++i)
      note(pair_text(inferred_[i].from, inferred_[i].to) + " was not measured: " +
           rate_text(inferred_[i].rate) + " inferred from " + basis_text(inferred_[i]));
    if (inferred_.size() > most_listed)
      note("... and " + std::to_string(inferred_.size() - most_listed) + " pairs more (--json)");
    if (rates_.missing_process_pairs > 0 && rates_.processes_per_node > 1)
      note(count_text(rates_.missing_process_pairs, "pair") +
           " of processes not measured; the others of these nodes stand for them");
  }

  // The platform.

  void write_document() {
    if (base_.platform().domain_nodes > 1)
      throw base_error(base_.name() + " has NVLink domains of " +
                           std::to_string(base_.platform().domain_nodes) +
                           " nodes, and rates between nodes do not say what a domain does",
                       "name a base whose nodes share no NVLink");
    constexpr std::size_t most_named = 64;
    const auto& nodes = rates_.nodes;
    describe_document(" with the rates between nodes of " + file_ + "; nodes in order: " +
                      (nodes.size() <= most_named ? listed(nodes)
                                                  : nodes.front() + " to " + nodes.back() + ", " +
                                                        std::to_string(nodes.size()) + " nodes"));
    JsonValue& document = base_.document();
    // The rows are of the base's kinds of node, in order; of one kind, or of the last where it has no number, are the rest.
    const auto& types = base_.platform().node_types;
    const std::size_t n = nodes.size();
    std::vector<std::size_t> ends;  // of the rows of each kind
    for (const NodeType& type : types)
      ends.push_back((ends.empty() ? 0 : ends.back()) + static_cast<std::size_t>(type.count));
    if (types.size() == 1 || (types.back().count == 0 && ends.back() < n)) ends.back() = n;
    if (ends.back() != n)
      throw base_error(base_.name() + " has " + std::to_string(ends.back()) + " nodes of " +
                           std::to_string(types.size()) + " kinds, the table " + std::to_string(n),
                       "name a base with as many, or with one kind of node");
    for (std::size_t t = 0; t < types.size(); ++t) {
      JsonValue& type = document.find("node_types")->array()[t];
      const std::size_t first = t == 0 ? 0 : ends[t - 1];
      set_number(type, "count", ends[t] - first, "measured: nodes in " + file_);
      raise_nic_efficiency(type, types[t], first, ends[t]);
    }
    if (document.erase("link_overrides"))
      note("link_overrides of " + base_.name() + " left out: they name nodes of another cluster");
    JsonValue rows = array_of(rates_.rate, [](const auto& row) {
      return array_of(row, [](const std::optional<double>& rate) {
        return rate ? JsonValue(rounded_to(*rate, written_digits)) : JsonValue(std::int64_t{0});
      });
    });
    std::string source = "measured: " + tool_ + ", " + file_;
    const std::string processes = std::to_string(rates_.processes_per_node);
    if (rates_.processes_per_node > 1)
      source += ", mean over " + processes + " x " + processes + " processes a pair of nodes";
    if (artefact_)
      source += "; " + std::to_string(artefact_->ring.size()) +
                (is_cleaned_ ? " rates of mpiGraph's phase artefact replaced by medians"
                             : " rates lowered by mpiGraph's phase artefact are in it");
    const auto pair_text_of = [&](const InferredPair& pair) {
      return pair_text(pair.from, pair.to);
    };
    if (!inferred_.empty())
      source += "; not measured but inferred: " + std::to_string(inferred_.size()) + " pairs (" +
                listed(inferred_, pair_text_of, most_listed, ", ...") + ")";
    document.set("bandwidth_matrix", object_of({{"unit", unit_name_},
                                                {"rails", rails_},
                                                {"source", source},
                                                {"rows", std::move(rows)}}));
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
    const BytesPerSecond attained = unit_ * most * rails_;
    if (attained > nominal)
      throw base_error(file_ + " has " + to_text(attained) + " for " + pair_text(from, to) + " (" +
                           count_text(rails_, "rail") + "), but the " + std::to_string(type.nics) +
                           " network cards of " + base_.name() + " carry " + to_text(nominal),
                       "another base, --unit or --rails");
    if (attained <= type.effective_nic_rate() * type.nics) return;
    constexpr double steps = 1000;  // three decimals, rounded up so that the matrix decides
    const double efficiency = std::min(1.0, std::ceil(attained / nominal * steps) / steps);
    set_number(type_json, "nic_efficiency", efficiency,
               "measured: " + tool_ + ", " + file_ + ": the fastest pair carries " +
                   to_text(attained) + " of " + to_text(nominal) + ", so that the matrix decides");
    note("nic_efficiency raised from " + significant_text(type.nic_efficiency, 3) + " to " +
         significant_text(efficiency, 3) + ": the fastest pair carries " + to_text(attained));
  }

  // Describes the findings.

  void describe() {
    std::string& text = imported_.text;
    text = file_ + ": " + tool_ + ", " + count_text(rates_.nodes.size(), "node");
    if (rates_.processes_per_node > 1)
      text += " of " + std::to_string(rates_.processes_per_node) + " processes";
    text += "\n\n  a pair, one rail   median " + rate_text(statistics_.median) + ", from " +
            rate_text(statistics_.least) + " to " + rate_text(statistics_.most) + ", spread " +
            percent_text(statistics_.spread) + "\n  rails              " + std::to_string(rails_) +
            "\n  two directions     differ by " + percent_text(statistics_.mean_asymmetry) +
            " on average, " + percent_text(statistics_.most_asymmetry) + " at most\n";
    if (difference_of_tables_)
      text +=
          "  Send and Recv      differ by " + percent_text(*difference_of_tables_) + " (median)\n";
    const auto rate = [&](double number) { return unit_ * number / BytesPerSecond{1}; };
    const auto node_name = [&](std::size_t node) { return rates_.nodes[node]; };
    text += "  phase artefact     ";
    JsonValue artefact;
    if (artefact_) {
      const auto& ring = artefact_->ring;
      text += "the slowest " + partner() + " make one ring, " +
              joined(std::span(ring).first(std::min(ring.size(), most_listed)), " → ", node_name) +
              " → " + (ring.size() > most_listed ? "… → " : "") + node_name(ring.front()) +
              "\n                     " + rate_text(artefact_->mean_rate) + " on it against " +
              rate_text(artefact_->usual_rate) + "; " +
              (is_cleaned_ ? "replaced by medians" : "kept") + "\n";
      artefact = object_of({{"ring", array_of(ring, node_name)},
                            {"slowest", partner()},
                            {"mean_bytes_per_s", rate(artefact_->mean_rate)},
                            {"usual_bytes_per_s", rate(artefact_->usual_rate)},
                            {"chance", artefact_->chance},
                            {"cleaned", is_cleaned_}});
    } else {
      text += rates_.nodes.size() < 6 ? "not judged below 6 nodes\n" : "none\n";
    }
    text += "  pairs inferred     " +
            (inferred_.empty() ? "none" : std::to_string(inferred_.size())) + "\n";
    imported_.found = object_of({{"table", kind_},
                                 {"nodes", array_of(rates_.nodes)},
                                 {"processes_per_node", rates_.processes_per_node},
                                 {"rails", rails_},
                                 {"median_bytes_per_s", rate(statistics_.median)},
                                 {"least_bytes_per_s", rate(statistics_.least)},
                                 {"most_bytes_per_s", rate(statistics_.most)},
                                 {"spread", statistics_.spread},
                                 {"mean_asymmetry", statistics_.mean_asymmetry},
                                 {"most_asymmetry", statistics_.most_asymmetry},
                                 {"send_recv_difference", difference_of_tables_},
                                 {"phase_artefact", artefact},
                                 {"inferred", array_of(inferred_, [&](const InferredPair& pair) {
                                    return object_of({{"from", rates_.nodes[pair.from]},
                                                      {"to", rates_.nodes[pair.to]},
                                                      {"bytes_per_s", rate(pair.rate)},
                                                      {"basis", basis_text(pair)}});
                                  })}});
  }

  const ImportOptions& options_;
  const bool is_cleaned_;        ///< of the artefact
  const std::string unit_name_;  ///< of the rates
  const std::string asked_;      ///< the kind of table that --table asks for; empty: any
  std::string tool_;             ///< what wrote the table: "mpiGraph v1.5, Send table"
  std::string kind_;             ///< "Send" or "Recv"
  BytesPerSecond unit_{};
  int rails_ = 1;
  NodeRates rates_;
  RateStatistics statistics_;  ///< of what was measured
  std::optional<PhaseArtefact> artefact_;
  std::optional<double> difference_of_tables_;  ///< median of |send/recv - 1|
  std::vector<InferredPair> inferred_;
};

}  // namespace

Importer mpigraph() {
  return {"mpigraph",
          "mpiGraph's bandwidth between all pairs of nodes, to a platform",
          "a log of mpiGraph, or a table of its rates (CSV)",
          {"--base", "--clean", "--table", "--unit", "--rails"},
          import_by<MpigraphImport>};
}

}  // namespace windtunnel::formats
