#include "importers/bandwidth_table.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace windtunnel {
namespace {

constexpr const char* write_missing =
    "write N/A where a pair was not measured, to have it inferred";

/// A rate off the diagonal must be a number above 0, or say that it was not measured.
RateCell read_cell(const LogText& log, const LogLine& line, const LogWord& word, bool diagonal,
                   Problems& problems) {
  RateCell cell{std::nullopt, log.at(line, word)};
  if (diagonal || is_missing(word.text)) return cell;
  cell.rate = number_in(word.text);
  if (!cell.rate)
    problems.add({cell.origin, {}, "\"" + word.text + "\" is no rate", write_missing});
  else if (*cell.rate <= 0)
    problems.add({cell.origin,
                  {},
                  "a rate of " + word.text + " between two nodes: rates are above 0",
                  write_missing});
  return cell;
}

/// The label of a process without its number: "agpu1475:0" is of node agpu1475.
std::string node_of(const std::string& label) {
  const std::size_t colon = label.rfind(':');
  return colon == std::string::npos || !count_in(std::string_view(label).substr(colon + 1))
             ? label
             : label.substr(0, colon);
}

void check_labels(const LogText& log, const LogLine& line, const std::vector<LogWord>& labels,
                  Problems& problems) {
  std::set<std::string> seen;
  for (const LogWord& label : labels)
    if (!seen.insert(label.text).second)
      problems.add(
          {log.at(line, label), {}, "\"" + label.text + "\" stands twice in the header", {}});
}

/// Collects the rows of one table as they come.
class TableReader {
 public:
  TableReader(const LogText& log, const LogLine& header, std::vector<LogWord> labels,
              TableKind kind, Problems& problems)
      : log_(&log), header_(&header), problems_(&problems) {
    check_labels(log, header, labels, problems);
    table_.kind = kind;
    for (const LogWord& label : labels) {
      row_of_[label.text] = table_.labels.size();
      table_.labels.push_back(label.text);
    }
    table_.cells.resize(table_.labels.size());
  }

  TableKind kind() const { return table_.kind; }

  void add_row(const LogLine& line, const LogWord& name, const std::vector<LogWord>& values) {
    const auto row = row_of_.find(name.text);
    if (row == row_of_.end()) {
      problem(line, name, "row of \"" + name.text + "\", which no column is of", {});
      return;
    }
    std::vector<RateCell>& cells = table_.cells[row->second];
    if (!cells.empty()) {
      problem(line, name, "a second row of \"" + name.text + "\"", {});
      return;
    }
    if (values.size() != table_.labels.size()) {
      problem(line, values.empty() ? name : values.back(),
              "the row of " + name.text + " has " + std::to_string(values.size()) +
                  " rates, the header names " + std::to_string(table_.labels.size()) + " of them",
              "the file may be truncated");
      cells.resize(table_.labels.size());
      return;
    }
    for (std::size_t i = 0; i < values.size(); ++i)
      cells.push_back(read_cell(*log_, line, values[i], i == row->second, *problems_));
  }

  RateTable finish() {
    std::string missing;
    std::size_t count = 0;
    constexpr std::size_t most_named = 4;
    for (std::size_t i = 0; i < table_.cells.size(); ++i)
      if (table_.cells[i].empty() && ++count <= most_named)
        missing += (missing.empty() ? "" : ", ") + table_.labels[i];
    if (count > most_named) missing += ", ...";
    if (count > 0)
      problems_->add({log_->at(*header_),
                      {},
                      "the header names " + std::to_string(table_.labels.size()) +
                          " rows, but there are none of " + missing,
                      "the file may be truncated"});
    return std::move(table_);
  }

 private:
  void problem(const LogLine& line, const LogWord& word, std::string message,
               std::string suggestion) {
    problems_->add({log_->at(line, word), {}, std::move(message), std::move(suggestion)});
  }

  const LogText* log_;
  const LogLine* header_;
  Problems* problems_;
  RateTable table_;
  std::map<std::string, std::size_t> row_of_;
};

/// Reads the lines of an mpiGraph log one by one; those that are none of its are noise.
class MpigraphReader {
 public:
  MpigraphReader(const LogText& log, Problems& problems) : log_(&log), problems_(&problems) {}

  MpigraphLog read() {
    for (const LogLine& line : log_->lines())
      if (!line.words.empty()) read_line(line);
    finish_table();
    if (result_.send || result_.recv) return std::move(result_);
    if (problems_->empty())
      problems_->add({log_->end(),
                      {},
                      "no table of mpiGraph in the file: no line begins with \"Send\" or \"Recv\" "
                      "and names of nodes",
                      "the file may be truncated, or be something else"});
    return std::move(result_);
  }

 private:
  void read_line(const LogLine& line) {
    const std::vector<LogWord>& words = line.words;
    const std::string& first = words.front().text;
    const std::string second = words.size() > 1 ? words[1].text : std::string();
    if (first == "START" && second == "mpiGraph" && words.size() > 2)
      result_.version = words[2].text.substr(words[2].text.starts_with('v') ? 1 : 0);
    else if (first == "END" && second == "mpiGraph")
      result_.has_end = true;
    else if (first == "MsgSize" && words.size() == 2)
      result_.message_bytes = count_in(second).value_or(0);
    else if ((first == "Send" || first == "Recv") && is_header(words))
      begin_table(line, first == "Send" ? TableKind::send : TableKind::recv);
    else if (table_ && second == (table_->kind() == TableKind::send ? "to" : "from"))
      table_->add_row(line, words.front(), {words.begin() + 2, words.end()});
  }

  /// "Send max 14493.3" and "Send avg 12554.0" are no header.
  static bool is_header(const std::vector<LogWord>& words) {
    return words.size() > 2 && words[1].text != "max" && words[1].text != "avg";
  }

  void begin_table(const LogLine& line, TableKind kind) {
    finish_table();
    const auto& old = kind == TableKind::send ? result_.send : result_.recv;
    if (old)
      problems_->add({log_->at(line),
                      {},
                      std::string("a second ") + name_of(kind) + " table",
                      "the file holds several runs: import one of them"});
    table_.emplace(*log_, line, std::vector<LogWord>(line.words.begin() + 1, line.words.end()),
                   kind, *problems_);
  }

  void finish_table() {
    if (!table_) return;
    (table_->kind() == TableKind::send ? result_.send : result_.recv) = table_->finish();
    table_.reset();
  }

  const LogText* log_;
  Problems* problems_;
  MpigraphLog result_;
  std::optional<TableReader> table_;
};

const LogLine* first_line(const LogText& log) {
  for (const LogLine& line : log.lines())
    if (!line.words.empty()) return &line;
  return nullptr;
}

/// The separator of a table: the first of these that its first line holds.
char separator_of(const LogLine& line) {
  for (const char c : {',', ';', '\t'})
    if (line.text.find(c) != std::string::npos) return c;
  return '\0';
}

std::string trimmed(const std::string& text) {
  const std::size_t from = text.find_first_not_of(" \"");
  if (from == std::string::npos) return {};
  return text.substr(from, text.find_last_not_of(" \"") - from + 1);
}

std::vector<LogWord> cells_of(const LogLine& line, char separator) {
  std::vector<LogWord> cells = split_words(line, std::string_view(&separator, 1));
  for (LogWord& cell : cells) cell.text = trimmed(cell.text);
  return cells;
}

}  // namespace

const char* name_of(TableKind kind) { return kind == TableKind::send ? "Send" : "Recv"; }

std::size_t find_mpigraph_start(std::string_view text) {
  return std::min(text.find("START mpiGraph"), text.find("MsgSize"));
}

MpigraphLog read_mpigraph_log(const LogText& log, Problems& problems) {
  return MpigraphReader(log, problems).read();
}

bool looks_like_csv(const LogText& log) {
  const LogLine* first = first_line(log);
  if (first == nullptr) return false;
  const char separator = separator_of(*first);
  if (separator == ',' || separator == ';') return true;
  // A log of mpiGraph that was cut down to one table begins with a word before the first tab.
  return separator == '\t' && first->text.front() == '\t';
}

CsvTable read_rate_csv(const LogText& log, Problems& problems) {
  const LogLine& header = *first_line(log);
  const char separator = separator_of(header);
  std::vector<LogWord> labels = cells_of(header, separator);
  CsvTable csv;
  TableKind kind = TableKind::send;
  if (labels.front().text == "Send" || labels.front().text == "Recv") {
    csv.says_kind = true;
    if (labels.front().text == "Recv") kind = TableKind::recv;
  } else if (!labels.front().text.empty()) {
    problems.add({log.at(header, labels.front()),
                  {},
                  "the first cell is \"" + labels.front().text + "\"",
                  "leave it empty, or write Send or Recv"});
  }
  labels.erase(labels.begin());
  TableReader reader(log, header, std::move(labels), kind, problems);
  for (const LogLine& line : log.lines()) {
    if (&line == &header || line.words.empty()) continue;
    const std::vector<LogWord> cells = cells_of(line, separator);
    reader.add_row(line, cells.front(), {cells.begin() + 1, cells.end()});
  }
  csv.table = reader.finish();
  return csv;
}

NodeRates rates_of_nodes(const RateTable& table, Problems& problems) {
  NodeRates result;
  std::vector<std::size_t> node_of_label;
  std::vector<int> processes;
  std::map<std::string, std::size_t> index;
  for (const std::string& label : table.labels) {
    const auto [node, is_new] = index.emplace(node_of(label), result.nodes.size());
    if (is_new) {
      result.nodes.push_back(node->first);
      processes.push_back(0);
    }
    ++processes[node->second];
    node_of_label.push_back(node->second);
  }
  const Origin place = table.cells.empty() || table.cells.front().empty()
                           ? Origin{}
                           : table.cells.front().front().origin;
  const auto [least, most] = std::minmax_element(processes.begin(), processes.end());
  if (*least != *most)
    problems.add({place,
                  {},
                  "nodes have different numbers of processes, from " + std::to_string(*least) +
                      " to " + std::to_string(*most),
                  "run mpiGraph with as many on each"});
  if (result.nodes.size() < 2)
    problems.add({place,
                  {},
                  "the table is of one node, " + result.nodes.front() +
                      ": there is no rate between nodes in it",
                  "run mpiGraph on two nodes or more"});
  result.processes_per_node = *most;

  const std::size_t n = result.nodes.size();
  std::vector<std::vector<double>> sum(n, std::vector<double>(n)), count = sum;
  for (std::size_t i = 0; i < table.cells.size(); ++i) {
    for (std::size_t j = 0; j < table.cells[i].size(); ++j) {
      std::size_t from = node_of_label[i], to = node_of_label[j];
      if (from == to) continue;
      if (table.kind == TableKind::recv) std::swap(from, to);
      const std::optional<double> rate = table.cells[i][j].rate;
      if (rate) {
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

}  // namespace windtunnel
