#include "importers/topo_table.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace windtunnel {
namespace {

constexpr int most_lanes = 1000;
constexpr std::size_t most_devices = 1000;  ///< of a kind, in one node

struct PathName {
  const char* name;
  PathKind kind;
};
constexpr std::array<PathName, 7> path_names{{{"X", PathKind::self},
                                              {"PIX", PathKind::pix},
                                              {"PXB", PathKind::pxb},
                                              {"PHB", PathKind::phb},
                                              {"NODE", PathKind::node},
                                              {"SYS", PathKind::sys},
                                              {"SOC", PathKind::sys}}};

std::optional<TopoCell> cell_of(const std::string& word) {
  for (const PathName& each : path_names)
    if (word == each.name) return TopoCell{each.kind, 0};
  if (!word.starts_with("NV")) return std::nullopt;
  const auto lanes = count_in(std::string_view(word).substr(2));
  if (!lanes || *lanes < 1 || *lanes > most_lanes) return std::nullopt;
  return TopoCell{PathKind::nvlink, static_cast<int>(*lanes)};
}

/// "GPU3" is 3.
std::optional<int> gpu_number(const std::string& word) {
  if (!word.starts_with("GPU")) return std::nullopt;
  const auto number = count_in(std::string_view(word).substr(3));
  if (!number || *number > most_lanes) return std::nullopt;
  return static_cast<int>(*number);
}

/// "node01:" of a launcher's prefix.
std::string label_of(const LogLine& line) {
  return line.prefix.substr(0, line.prefix.find_last_not_of(" \t") + 1);
}

class TopoReader {
 public:
  TopoReader(const LogText& log, Problems& problems) : log_(&log), problems_(&problems) {}

  TopoTable read() {
    for (const LogLine& line : log_->lines())
      if (!line.words.empty()) read_line(line);
    if (table_.gpus == 0) {
      problems_->add({log_->end(),
                      {},
                      "no table of nvidia-smi topo -m in the file: no line that begins with GPU0",
                      "the file may be truncated, or be something else"});
      return std::move(table_);
    }
    check_rows();
    name_nics();
    return std::move(table_);
  }

 private:
  void problem(const LogLine& line, const LogWord& word, std::string message,
               std::string suggestion = {}) {
    problems_->add({log_->at(line, word), {}, std::move(message), std::move(suggestion)});
  }

  void read_line(const LogLine& line) {
    const std::vector<LogWord>& words = line.words;
    const auto number = gpu_number(words[0].text);
    if (table_.gpus == 0) {
      if (number == 0 && (words.size() == 1 || !cell_of(words[1].text))) read_header(line);
    } else if (number && words.size() > 1 && words[1].text != "Affinity") {
      read_row(line, *number);
    } else if (words.size() == 2 && words[0].text.starts_with("NIC") &&
               words[0].text.ends_with(':')) {
      legend_[words[0].text.substr(0, words[0].text.size() - 1)] = words[1].text;
    }
  }

  /// "GPU0 GPU1 mlx5_0 CPU Affinity NUMA Affinity GPU NUMA ID": GPUs, network cards, then two words
  /// each.
  void read_header(const LogLine& line) {
    table_.header = log_->at(line);
    header_ = &line;
    bool ended = false;
    for (const LogWord& word : line.words) {
      const auto number = gpu_number(word.text);
      ended = ended || word.text == "CPU" || word.text == "NUMA" || word.text == "GPU";
      if (ended) {
        if (word.text == "NUMA") says_numa_ = true;
      } else if (!number) {
        table_.nics.push_back(word.text);
      } else if (*number != table_.gpus || !table_.nics.empty()) {
        problem(line, word, "GPU" + std::to_string(table_.gpus) + " should stand here",
                "the table must have all GPUs of the node, in order");
        break;
      } else {
        ++table_.gpus;
      }
    }
    const auto size = static_cast<std::size_t>(table_.gpus);
    table_.between_gpus.resize(size);
    table_.to_nics.resize(size);
    table_.numa.resize(size);
    row_lines_.resize(size, nullptr);
    if (table_.nics.size() > most_devices)
      problem(line, line.words.back(),
              "more than " + std::to_string(most_devices) + " network cards");
  }

  /// Some cells of another table of nvidia-smi: which operations two GPUs can do on each other.
  bool is_of_p2p_table(const LogLine& line) {
    static const std::set<std::string> statuses{"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"};
    for (const LogWord& word : line.words)
      if (statuses.count(word.text) > 0) {
        problem(line, word,
                "\"" + word.text +
                    "\" is a status of nvidia-smi topo -p2p, a table that shows no links",
                "import the output of nvidia-smi topo -m");
        return true;
      }
    return false;
  }

  /// Several nodes behind the labels of one launcher, all with the same table.
  bool is_same_of_another_node(const LogLine& line, const LogLine& first) {
    if (label_of(line) == label_of(first)) return false;
    const auto same = [](const LogWord& a, const LogWord& b) { return a.text == b.text; };
    if (std::equal(line.words.begin(), line.words.end(), first.words.begin(), first.words.end(),
                   same))
      return true;
    problem(line, line.words[0],
            line.words[0].text + " of " + label_of(line) + " has other links than that of " +
                label_of(first),
            "the nodes differ: import one of them");
    return true;
  }

  void read_row(const LogLine& line, int number) {
    const std::vector<LogWord>& words = line.words;
    if (is_p2p_ || (is_p2p_ = is_of_p2p_table(line))) return;
    const bool is_header = words.size() > 1 && gpu_number(words[1].text).has_value();
    if (is_header && label_of(line) != label_of(*header_)) return;
    const auto gpus = static_cast<std::size_t>(table_.gpus);
    const std::size_t cells = gpus + table_.nics.size();
    if (number >= table_.gpus)
      return problem(line, words[0], "row of " + words[0].text + ", which no column is of");
    const auto row = static_cast<std::size_t>(number);
    if (row_lines_[row] != nullptr) {
      if (is_same_of_another_node(line, *row_lines_[row])) return;
      return problem(line, words[0], "a second row of " + words[0].text,
                     "the file holds several tables: import one of them");
    }
    row_lines_[row] = &line;
    if (words.size() < cells + 1)
      return problem(line, words.back(),
                     "the row has " + std::to_string(words.size() - 1) +
                         " cells, the header names " + std::to_string(cells) + " devices",
                     "the file may be truncated");
    for (std::size_t i = 0; i < cells; ++i) {
      const LogWord& word = words[i + 1];
      const auto cell = cell_of(word.text);
      if (!cell) {
        problem(line, word, "\"" + word.text + "\" is no way from one device to another",
                "X, NV and a number, PIX, PXB, PHB, NODE or SYS");
        continue;
      }
      if (i < gpus && cell->lanes > table_.most_lanes) {
        table_.most_lanes = cell->lanes;
        table_.widest_bond = log_->at(line, word);
      }
      if ((cell->kind == PathKind::self) != (i == row))
        problem(line, word, i == row ? "a GPU is X to itself" : "only a GPU itself is X");
      if (i < gpus)
        table_.between_gpus[row].push_back(*cell);
      else
        table_.to_nics[row].push_back(cell->kind);
    }
    if (says_numa_ && words.size() > cells + 2) table_.numa[row] = words[cells + 2].text;
  }

  void check_rows() {
    if (is_p2p_) return;
    std::string missing;
    for (std::size_t i = 0; i < row_lines_.size(); ++i)
      if (row_lines_[i] == nullptr)
        missing += (missing.empty() ? "GPU" : ", GPU") + std::to_string(i);
    if (!missing.empty())
      problems_->add({table_.header, {}, "no row of " + missing, "the file may be truncated"});
    if (!problems_->empty()) return;
    for (std::size_t i = 0; i < row_lines_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        const TopoCell& here = table_.between_gpus[i][j];
        const TopoCell& there = table_.between_gpus[j][i];
        if (here.kind == there.kind && here.lanes == there.lanes) continue;
        problem(*row_lines_[i], row_lines_[i]->words[j + 1],
                "GPU" + std::to_string(i) + " to GPU" + std::to_string(j) + " is " +
                    row_lines_[i]->words[j + 1].text + ", but the other way it is " +
                    row_lines_[j]->words[i + 1].text);
      }
  }

  void name_nics() {
    for (std::string& nic : table_.nics)
      if (const auto name = legend_.find(nic); name != legend_.end()) nic = name->second;
  }

  const LogText* log_;
  Problems* problems_;
  TopoTable table_;
  bool says_numa_ = false, is_p2p_ = false;
  const LogLine* header_ = nullptr;
  std::vector<const LogLine*> row_lines_;
  std::map<std::string, std::string> legend_;
};

}  // namespace

std::size_t find_topo_header(std::string_view text) {
  const std::size_t at = text.find("GPU0");
  if (at == std::string_view::npos) return at;
  std::string_view rest = text.substr(at + std::string_view("GPU0").size());
  const std::size_t next = rest.find_first_not_of(" \t");
  if (next == 0) return std::string_view::npos;
  if (next == std::string_view::npos) return at;
  rest.remove_prefix(next);
  const bool is_row = cell_of(std::string(rest.substr(0, rest.find_first_of(" \t")))).has_value();
  return is_row ? std::string_view::npos : at;
}

TopoTable read_topo(const LogText& log, Problems& problems) {
  return TopoReader(log, problems).read();
}

}  // namespace windtunnel
