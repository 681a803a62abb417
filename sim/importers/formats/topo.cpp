#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/json_build.hpp"
#include "core/text_list.hpp"
#include "importers/base_platform.hpp"
#include "importers/importer.hpp"
#include "importers/log_text.hpp"
#include "report/json_object.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel::formats {
namespace {

/// How two devices of a node reach each other, nearest first.
enum class PathKind {
  self,
  nvlink,  ///< NV#: a bonded set of # NVLinks
  pix,     ///< at most one PCIe bridge
  pxb,     ///< several PCIe bridges
  phb,     ///< a PCIe host bridge (the processor)
  node,    ///< several host bridges of one NUMA node
  sys,     ///< the interconnect between NUMA nodes; old drivers: SOC
};

/// One cell of the table.
struct TopoCell {
  PathKind kind = PathKind::self;
  int lanes = 0;  ///< of nvlink
  bool operator==(const TopoCell&) const = default;
};

/// Table that `nvidia-smi topo -m` prints: GPUs and network cards of one node, and how they reach each
/// other.
struct TopoTable {
  int gpus = 0;
  std::vector<std::string> nics;               ///< in the order of the columns: "mlx5_0"
  std::vector<std::vector<int>> lanes;         ///< [GPU][GPU]: NVLinks between them
  std::vector<std::vector<PathKind>> to_nics;  ///< [GPU][network card]
  std::vector<std::string> numa;  ///< NUMA affinity of each GPU; empty where it is not said
  int most_lanes = 0;             ///< NVLinks of the widest bond
  Origin widest_bond;             ///< where it is first named
};

constexpr int most_lanes = 1000;
constexpr std::size_t most_devices = 1000;  ///< of a kind, in one node

/// By PathKind, but for NVLinks, whose number belongs to the name; old drivers' name of the last.
constexpr std::array path_names{"X", "NVLink", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC"};
const char* name_of(PathKind kind) { return path_names[static_cast<std::size_t>(kind)]; }

std::optional<TopoCell> cell_of(const std::string& word) {
  if (word == path_names.back()) return TopoCell{PathKind::sys, 0};
  for (const PathKind kind :
       {PathKind::self, PathKind::pix, PathKind::pxb, PathKind::phb, PathKind::node, PathKind::sys})
    if (word == name_of(kind)) return TopoCell{kind, 0};
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

/// Reads the table among whatever else was printed. Tabs or blanks separate cells; a legend of
/// network cards ("NIC0: mlx5_0") gives them their names. Rows of GPUs must be there and agree with
/// each other; rows of network cards may be missing. Tables of several nodes, told apart by a
/// launcher's labels, must be the same.
class TopoReader {
 public:
  explicit TopoReader(const LogText& log) : log_(log) {}

  TopoTable read() {
    for (const LogLine& line : log_.lines()) read_line(line);
    if (table_.gpus == 0) {
      log_.problem(log_.end(),
                   "no table of nvidia-smi topo -m in the file: no line that begins with GPU0",
                   "the file may be truncated, or be something else");
      return std::move(table_);
    }
    check_rows();
    for (std::string& nic : table_.nics)
      if (const auto name = legend_.find(nic); name != legend_.end()) nic = name->second;
    return std::move(table_);
  }

 private:
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
        log_.problem(line, word, "GPU" + std::to_string(table_.gpus) + " should stand here",
                     "the table must have all GPUs of the node, in order");
        break;
      } else {
        ++table_.gpus;
      }
    }
    const auto size = static_cast<std::size_t>(table_.gpus);
    table_.lanes.resize(size);
    table_.to_nics.resize(size);
    table_.numa.resize(size);
    row_lines_.resize(size, nullptr);
    if (table_.nics.size() > most_devices)
      log_.problem(line, line.words.back(),
                   "more than " + std::to_string(most_devices) + " network cards");
  }

  /// Some cells of another table of nvidia-smi: which operations two GPUs can do on each other.
  bool is_of_p2p_table(const LogLine& line) {
    static const std::set<std::string> statuses{"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"};
    for (const LogWord& word : line.words)
      if (statuses.count(word.text) > 0) {
        log_.problem(line, word,
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
    log_.problem(line, line.words[0],
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
      return log_.problem(line, words[0], "row of " + words[0].text + ", which no column is of");
    const auto row = static_cast<std::size_t>(number);
    if (row_lines_[row] != nullptr) {
      if (is_same_of_another_node(line, *row_lines_[row])) return;
      return log_.problem(line, words[0], "a second row of " + words[0].text,
                          "the file holds several tables: import one of them");
    }
    row_lines_[row] = &line;
    if (words.size() < cells + 1)
      return log_.problem(line, words.back(),
                          "the row has " + std::to_string(words.size() - 1) +
                              " cells, the header names " + std::to_string(cells) + " devices",
                          "the file may be truncated");
    for (std::size_t i = 0; i < cells; ++i) {
      const LogWord& word = words[i + 1];
      const auto cell = cell_of(word.text);
      if (!cell) {
        log_.problem(line, word, "\"" + word.text + "\" is no way from one device to another",
                     "X, NV and a number, PIX, PXB, PHB, NODE or SYS");
        continue;
      }
      if (i < gpus && cell->lanes > table_.most_lanes) {
        table_.most_lanes = cell->lanes;
        table_.widest_bond = log_.at(line, word);
      }
      if ((cell->kind == PathKind::self) != (i == row))
        log_.problem(line, word, i == row ? "a GPU is X to itself" : "only a GPU itself is X");
      if (i < gpus)
        table_.lanes[row].push_back(cell->lanes);
      else
        table_.to_nics[row].push_back(cell->kind);
    }
    if (says_numa_ && words.size() > cells + 2) table_.numa[row] = words[cells + 2].text;
  }

  void check_rows() {
    if (is_p2p_) return;
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < row_lines_.size(); ++i)
      if (row_lines_[i] == nullptr) missing.push_back("GPU" + std::to_string(i));
    if (!missing.empty())
      log_.problem(log_.at(*header_), "no row of " + listed(missing), "the file may be truncated");
    if (!log_.problems().empty()) return;
    for (std::size_t i = 0; i < row_lines_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        const LogWord& there = row_lines_[i]->words[j + 1];
        const std::string& back = row_lines_[j]->words[i + 1].text;
        if (cell_of(there.text) == cell_of(back)) continue;
        log_.problem(*row_lines_[i], there,
                     "GPU" + std::to_string(i) + " to GPU" + std::to_string(j) + " is " +
                         there.text + ", but the other way it is " + back);
      }
  }

  const LogText& log_;
  TopoTable table_;
  bool says_numa_ = false, is_p2p_ = false;
  const LogLine* header_ = nullptr;
  std::vector<const LogLine*> row_lines_;
  std::map<std::string, std::string> legend_;
};

/// Where "GPU0 GPU1 ..." begins, the line that names the columns.
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

using Kind = Interconnect::Kind;

/// NVLinks that one GPU has at most (H100 and B200, NVIDIA's datasheets; A100 12, V100 6), where the base does not tell its own. Where
/// the bonds of a GPU to all its peers need more, they go through a switch and share its links.
constexpr int most_links_of_a_gpu = 18;

/// What the table says of the links between GPUs.
struct GpuLinks {
  Kind kind = Kind::pcie;
  int bonded_pairs = 0;       ///< pairs with NVLinks
  bool is_ambiguous = false;  ///< two GPUs only: switch and bridge look the same
};

GpuLinks links_of(const TopoTable& table, int links_of_a_gpu) {
  GpuLinks links;
  int most_of_a_gpu = 0;
  for (const std::vector<int>& of_gpu : table.lanes) {
    most_of_a_gpu = std::max(most_of_a_gpu, std::accumulate(of_gpu.begin(), of_gpu.end(), 0));
    links.bonded_pairs +=
        static_cast<int>(of_gpu.size()) - static_cast<int>(std::ranges::count(of_gpu, 0));
  }
  links.bonded_pairs /= 2;  // each is in two rows
  if (most_of_a_gpu > links_of_a_gpu)
    links.kind = Kind::nvswitch;
  else if (join_all(table.lanes))
    links.kind = Kind::mesh;
  links.is_ambiguous = table.gpus == 2 && links.bonded_pairs > 0;
  return links;
}

/// Cards that are as near to a GPU as any: those for training; the rest is for storage or management.
struct NearCards {
  std::vector<std::size_t> cards;
  PathKind distance = PathKind::sys;  ///< of the farthest of them to its nearest GPU
};

/// PIX and PXB both mean behind the same host bridge.
PathKind class_of(PathKind kind) { return kind == PathKind::pix ? PathKind::pxb : kind; }

NearCards near_cards(const TopoTable& table) {
  std::vector<PathKind> nearest(table.nics.size(), PathKind::sys);
  for (const auto& row : table.to_nics)
    for (std::size_t i = 0; i < row.size(); ++i)
      nearest[i] = std::min(nearest[i], class_of(row[i]));
  NearCards near;
  for (const PathKind kind : nearest) near.distance = std::min(near.distance, kind);
  for (std::size_t i = 0; i < nearest.size(); ++i)
    if (nearest[i] == near.distance) near.cards.push_back(i);
  return near;
}

class TopoImport : PlatformImport {
 public:
  using PlatformImport::PlatformImport;

  Imported run() {
    const LogText log(read_source_or_stdin(request_.inputs.front()), problems_, find_topo_header);
    problems_.throw_if_any();
    table_ = TopoReader(log).read();
    problems_.throw_if_any();
    base_.only_node_type();
    const int links = links_of_a_gpu();
    links_ = links_of(table_, links > 0 ? links : most_links_of_a_gpu);
    near_ = near_cards(table_);
    check_bonds();
    check_kind();
    write_document();
    say_what_is_not_known();
    say_affinity();
    describe();
    return finished();
  }

 private:
  /// The table names no GPU, but a bond of more NVLinks than the base's GPU has is another GPU's.
  void check_bonds() {
    const std::string& device = node().device.name;
    const int links = links_of_a_gpu();
    if (links == 0) return;
    const std::string text = "a bond of " + std::to_string(table_.most_lanes) + " NVLinks, but " +
                             base_.name() + " has " + device + " GPUs of " + std::to_string(links) +
                             " NVLinks each";
    if (table_.most_lanes > links)
      throw InputError(std::vector<Problem>{
          {table_.widest_bond, {}, text, "name a --base with the GPUs of this node"}});
    // A switch shows all links of a GPU to every peer; two GPUs may be joined by a bridge of a few instead.
    const bool all_are_seen = links_.kind == Kind::nvswitch ||
                              (links_.is_ambiguous && node().interconnect.kind == Kind::nvswitch);
    if (all_are_seen && table_.most_lanes < links)
      warn(file_and_line(table_.widest_bond) + ": " + text +
           (links_.is_ambiguous ? ": are these other GPUs, joined by a bridge?"
                                : ": are these other GPUs, or are links down?"));
  }

  /// Constants of a switch mean nothing for a mesh, and the other way round.
  void check_kind() {
    const Kind base_kind = node().interconnect.kind;
    if (links_.is_ambiguous && base_kind != Kind::pcie) links_.kind = base_kind;
    if (links_.kind == base_kind) return;
    if (table_.most_lanes == 0)
      throw base_error(file_ + " shows no NVLink, but " + base_.name() + " is of kind " +
                           name_of(base_kind) + "; nvidia-smi topo -mp leaves NVLinks out",
                       "import the output of nvidia-smi topo -m; if the node has none, name a "
                       "base of kind pcie");
    throw base_error(file_ + " shows " + kind_text() + ", but " + base_.name() + " is of kind " +
                         name_of(base_kind) + ", whose constants mean something else",
                     std::string("name a base of kind ") + name_of(links_.kind));
  }

  std::string kind_text() const {
    switch (links_.kind) {
      case Kind::nvswitch:
        return "an NVLink switch (NV" + std::to_string(table_.most_lanes) + " to " +
               count_text(table_.gpus - 1, "peer") + ")";
      case Kind::mesh:
        return "a mesh of NVLinks";
      case Kind::pcie:
        return links_.bonded_pairs > 0 ? "PCIe, with NVLinks between some pairs only" : "PCIe only";
    }
    return {};
  }

  void write_document() {
    JsonValue& type = base_.only_node_type();
    describe_document(" with GPUs, links and network cards of " + file_);
    const std::string source = "measured: nvidia-smi topo -m, " + file_;
    set_number(type, "gpus", table_.gpus, source);
    if (!near_.cards.empty() && takes_number())
      set_number(type, "nics", near_.cards.size(),
                 source + ", cards at " + name_of(near_.distance) + " or nearer to a GPU");
    if (links_.kind == Kind::mesh) set_lanes(table_.lanes, source);
  }

  /// The table has no rate of a card. Fewer cards than the base has are as fast as its own, as far as anyone knows; more may be ports
  /// of the same cards, or those for storage.
  bool takes_number() const { return near_.cards.size() <= static_cast<std::size_t>(node().nics); }

  void say_other_cards() {
    const NodeType& node = this->node();
    const std::string count = std::to_string(near_.cards.size());
    const std::string of_base = std::to_string(node.nics) + " of " + to_text(node.nic_rate) + ", " +
                                to_text(node.nic_rate * node.nics) + " a node";
    const bool is_told = near_.distance < PathKind::phb;
    warn(
        file_ + " shows " + count + " network cards " +
        (is_told ? std::string("near the GPUs")
                 : "that are all as far from the GPUs (" + std::string(name_of(near_.distance)) +
                       "), those for storage and management included") +
        ", without their rates; " + base_.name() + " has " + of_base +
        ": number and rate stay those of the base. A card may be one port of two. If it is not so, "
        "write nics and nic_rate into the result, or name a --base with these cards");
  }

  void say_what_is_not_known() {
    const NodeType& node = this->node();
    if (!near_.cards.empty() && !takes_number()) say_other_cards();
    note("not in such a table, so as in " + base_.name() + ": the GPU (" + node.device.name +
         "), the rate of a network card (" + to_text(node.nic_rate) +
         "), and every bandwidth inside the node (import nccl-tests measures those)");
    if (links_.is_ambiguous)
      note("two GPUs joined by NVLinks look the same through a switch and directly: taken as " +
           std::string(name_of(links_.kind)) + ", as the base is");
    if (links_.kind == Kind::pcie && links_.bonded_pairs > 0)
      note(std::to_string(links_.bonded_pairs) +
           " pairs of GPUs have NVLinks, which join not all of them: everything is taken at the "
           "rate of PCIe");
    if (table_.nics.empty())
      note("no network card in the table; " + std::to_string(node.nics) + " a node as in " +
           base_.name());
    const std::size_t far = table_.nics.size() - near_.cards.size();
    if (far > 0)
      note(std::to_string(far) + " of " + std::to_string(table_.nics.size()) +
           " network cards left out: farther from every GPU than " + name_of(near_.distance) +
           " (" + far_cards() + ")");
  }

  bool is_near(std::size_t card) const { return std::ranges::count(near_.cards, card) > 0; }

  std::string far_cards() const {
    std::vector<std::string> far;
    for (std::size_t i = 0; i < table_.nics.size(); ++i)
      if (!is_near(i)) far.push_back(table_.nics[i]);
    return listed(far);
  }

  /// Says where the rule "GPU g uses card floor(g * nics / gpus)" gives a GPU a card that is not its
  /// nearest.
  void say_affinity() {
    if (near_.cards.empty() || !takes_number()) return;
    std::vector<std::string> others;
    const std::size_t gpus = table_.to_nics.size();
    for (std::size_t g = 0; g < gpus; ++g) {
      const std::size_t given = near_.cards[g * near_.cards.size() / gpus];
      const std::size_t nearest = nearest_card(g);
      if (class_of(table_.to_nics[g][given]) != class_of(table_.to_nics[g][nearest]))
        others.push_back("GPU" + std::to_string(g) + " (" + table_.nics[nearest] + ", not " +
                         table_.nics[given] + ")");
    }
    if (!others.empty())
      note(
          "the simulation gives GPU g the card floor(g * nics / gpus) in the table's order, which "
          "is not the nearest of: " +
          listed(others));
  }

  std::size_t nearest_card(std::size_t gpu) const {
    return *std::ranges::min_element(near_.cards, [&](std::size_t a, std::size_t b) {
      return table_.to_nics[gpu][a] < table_.to_nics[gpu][b];
    });
  }

  void describe() {
    imported_.text = file_ + ": " + std::to_string(table_.gpus) + " GPUs, laid into " +
                     base_.name() + "\n\n  between GPUs    " + kind_text() +
                     "\n  network cards   " + std::to_string(near_.cards.size()) +
                     " near the GPUs, of " + std::to_string(table_.nics.size()) +
                     (near_.cards.empty() || takes_number()
                          ? ""
                          : "; " + std::to_string(node().nics) + " as in " + base_.name()) +
                     "\n  nearest card   ";
    for (std::size_t g = 0; g < table_.to_nics.size() && !near_.cards.empty(); ++g) {
      const std::size_t card = nearest_card(g);
      imported_.text += (g > 0 ? ", GPU" : " GPU") + std::to_string(g) + " " + table_.nics[card] +
                        " (" + name_of(table_.to_nics[g][card]) + ")";
    }
    imported_.text += "\n";
    JsonValue::Array cards, gpus;
    for (std::size_t i = 0; i < table_.nics.size(); ++i)
      cards.push_back(
          object_of({{"name", table_.nics[i]}, {"counted", takes_number() && is_near(i)}}));
    const bool has_near = !near_.cards.empty();
    for (std::size_t g = 0; g < table_.to_nics.size(); ++g) {
      const std::size_t card = has_near ? nearest_card(g) : 0;
      gpus.push_back(object_of(
          {{"numa", only_if(!table_.numa[g].empty(), table_.numa[g])},
           {"nearest_card", only_if(has_near, has_near ? table_.nics[card] : "")},
           {"distance", only_if(has_near, has_near ? name_of(table_.to_nics[g][card]) : "")}}));
    }
    imported_.found = object_of({{"gpus", table_.gpus},
                                 {"interconnect", name_of(links_.kind)},
                                 {"most_nvlinks_of_a_pair", table_.most_lanes},
                                 {"network_cards", JsonValue(std::move(cards))},
                                 {"affinity", JsonValue(std::move(gpus))}});
  }

  TopoTable table_;
  GpuLinks links_;
  NearCards near_;
};

}  // namespace

Importer topo() {
  return {"topo",
          "links and network cards of a node, to a platform",
          "output of nvidia-smi topo -m",
          {"--base"},
          import_by<TopoImport>};
}

}  // namespace windtunnel::formats
