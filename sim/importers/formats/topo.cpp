#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "core/count_text.hpp"
#include "core/enum_names.hpp"
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

/// Connection between two devices of a node, nearest first.
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

constexpr int most_lanes_of_a_pair = 1000;
constexpr std::size_t most_devices = 1000;  ///< of a kind, in one node

/// By PathKind, but for NVLinks, whose number belongs to the name; old drivers' name of the last.
constexpr std::array path_names{"X", "NVLink", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC"};
const char* name_of(PathKind kind) { return path_names[static_cast<std::size_t>(kind)]; }

/// PIX and PXB both mean behind the same host bridge.
PathKind class_of(PathKind kind) { return kind == PathKind::pix ? PathKind::pxb : kind; }

/// "NV12" is 12 and "GPU3" is 3, behind their prefix.
std::optional<int> number_behind(std::string_view prefix, std::string_view word) {
  if (!word.starts_with(prefix)) return std::nullopt;
  const auto number = count_in(word.substr(prefix.size()));
  if (!number || *number > most_lanes_of_a_pair) return std::nullopt;
  return static_cast<int>(*number);
}
std::optional<int> gpu_number(const LogWord& word) { return number_behind("GPU", word.text); }

std::optional<TopoCell> cell_of(std::string_view word) {
  if (word == path_names.back()) return TopoCell{PathKind::sys, 0};
  for (const PathKind kind : enumerators<PathKind>())
    if (kind != PathKind::nvlink && word == name_of(kind)) return TopoCell{kind, 0};
  const auto lanes = number_behind("NV", word);
  return lanes && *lanes > 0 ? std::optional(TopoCell{PathKind::nvlink, *lanes}) : std::nullopt;
}

/// "node01:" of a launcher's prefix.
std::string label_of(const LogLine& line) {
  return line.prefix.substr(0, line.prefix.find_last_not_of(" \t") + 1);
}

/// Position of "GPU0 GPU1 ...", the line that names the columns.
std::size_t find_topo_header(std::string_view text) {
  const std::size_t at = text.find("GPU0");
  if (at == std::string_view::npos) return at;
  std::string_view rest = text.substr(at + std::string_view("GPU0").size());
  const std::size_t next = rest.find_first_not_of(" \t");
  if (next == 0) return std::string_view::npos;
  if (next == std::string_view::npos) return at;
  rest.remove_prefix(next);
  return cell_of(rest.substr(0, rest.find_first_of(" \t"))) ? std::string_view::npos : at;
}

/// The row of a GPU.
struct TopoGpu {
  const LogLine* line = nullptr;
  std::vector<int> lanes;         ///< NVLinks to each GPU
  std::vector<PathKind> to_nics;  ///< to each network card
  std::string numa;               ///< NUMA affinity; empty where it is not said
};

using Kind = Interconnect::Kind;

/// NVLinks that one GPU has at most (H100 and B200, NVIDIA's datasheets; A100 12, V100 6), where the base does not tell its own. Where
/// the bonds of a GPU to all its peers need more, they go through a switch and share its links.
constexpr int most_links_of_a_gpu = 18;

/// Reads the table that `nvidia-smi topo -m` prints, among whatever else was printed: GPUs and network cards of one node, and how they
/// reach each other. Tabs or blanks separate cells; a legend of network cards ("NIC0: mlx5_0") gives them their names. Rows of GPUs
/// must be there and agree with each other; rows of network cards may be missing. Tables of several nodes, distinguished by a
/// launcher's labels, must be the same.
class TopoImport : PlatformImport {
 public:
  TopoImport(const ImportRequest& request, const Library& library)
      : PlatformImport(request, library),
        log_(read_source_or_stdin(request.inputs.front()), problems_, find_topo_header) {}

  Imported run() {
    problems_.throw_if_any();
    for (const LogLine& line : log_.lines()) read_line(line);
    if (num_gpus_ == 0)
      log_.problem(log_.end(),
                   "no table of nvidia-smi topo -m in the file: no line that begins with GPU0",
                   "the file may be truncated, or be something else");
    else if (!is_p2p_)
      check_rows();
    for (std::string& nic : nics_)
      if (const auto name = legend_.find(nic); name != legend_.end()) nic = name->second;
    problems_.throw_if_any();
    base_.only_node_type();
    judge_links();
    find_near_cards();
    check_bonds();
    check_kind();
    write_document();
    say_what_is_not_known();
    say_affinity();
    describe();
    return finished();
  }

 private:
  void read_line(const LogLine& line) {
    const std::vector<LogWord>& words = line.words;
    const auto number = gpu_number(words[0]);
    if (num_gpus_ == 0) {
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
      const auto number = gpu_number(word);
      ended = ended || word.text == "CPU" || word.text == "NUMA" || word.text == "GPU";
      if (ended) {
        says_numa_ = says_numa_ || word.text == "NUMA";
      } else if (!number) {
        nics_.push_back(word.text);
      } else if (*number != num_gpus_ || !nics_.empty()) {
        log_.problem(line, word, "GPU" + std::to_string(num_gpus_) + " should stand here",
                     "the table must have all GPUs of the node, in order");
        break;
      } else {
        ++num_gpus_;
      }
    }
    gpus_.resize(static_cast<std::size_t>(num_gpus_));
    if (nics_.size() > most_devices)
      log_.problem(line, line.words.back(),
                   "more than " + std::to_string(most_devices) + " network cards");
  }

  /// Some cells of another table of nvidia-smi: which operations two GPUs can do on each other.
  bool is_of_p2p_table(const LogLine& line) {
    static const std::set<std::string> statuses{"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"};
    const auto status = std::ranges::find_if(
        line.words, [](const LogWord& word) { return statuses.contains(word.text); });
    if (status == line.words.end()) return false;
    log_.problem(
        line, *status,
        "\"" + status->text + "\" is a status of nvidia-smi topo -p2p, a table that shows no links",
        "import the output of nvidia-smi topo -m");
    return true;
  }

  /// A row that is there already: of another node, behind another label of one launcher, it must be the same.
  void read_again(const LogLine& line, const LogLine& first) {
    const LogWord& name = line.words[0];
    if (label_of(line) == label_of(first))
      return log_.problem(line, name, "a second row of " + name.text,
                          "the file holds several tables: import one of them");
    if (!std::ranges::equal(line.words, first.words, {}, &LogWord::text, &LogWord::text))
      log_.problem(
          line, name,
          name.text + " of " + label_of(line) + " has other links than that of " + label_of(first),
          "the nodes differ: import one of them");
  }

  void read_row(const LogLine& line, int number) {
    const std::vector<LogWord>& words = line.words;
    if (is_p2p_ || (is_p2p_ = is_of_p2p_table(line))) return;
    if (words.size() > 1 && gpu_number(words[1]) && label_of(line) != label_of(*header_)) return;
    const std::size_t cells = gpus_.size() + nics_.size();
    if (number >= num_gpus_)
      return log_.problem(line, words[0], words[0].text + " has a row, but no column");
    const auto row = static_cast<std::size_t>(number);
    TopoGpu& gpu = gpus_[row];
    if (gpu.line != nullptr) return read_again(line, *gpu.line);
    gpu.line = &line;
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
      if ((cell->kind == PathKind::self) != (i == row))
        log_.problem(line, word, i == row ? "a GPU is X to itself" : "only a GPU itself is X");
      if (i >= gpus_.size()) {
        gpu.to_nics.push_back(cell->kind);
        continue;
      }
      gpu.lanes.push_back(cell->lanes);
      if (cell->lanes <= most_lanes_) continue;
      most_lanes_ = cell->lanes;
      widest_bond_ = log_.at(line, word);
    }
    if (says_numa_ && words.size() > cells + 2) gpu.numa = words[cells + 2].text;
  }

  void check_rows() {
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < gpus_.size(); ++i)
      if (gpus_[i].line == nullptr) missing.push_back("GPU" + std::to_string(i));
    if (!missing.empty())
      log_.problem(log_.at(*header_), "no row of " + listed(missing), "the file may be truncated");
    if (!problems_.empty()) return;
    for (std::size_t i = 0; i < gpus_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        const LogWord& there = gpus_[i].line->words[j + 1];
        const std::string& back = gpus_[j].line->words[i + 1].text;
        if (cell_of(there.text) == cell_of(back)) continue;
        log_.problem(*gpus_[i].line, there,
                     "GPU" + std::to_string(i) + " to GPU" + std::to_string(j) + " is " +
                         there.text + ", but the other way it is " + back);
      }
  }

  void judge_links() {
    const int links = links_of_a_gpu() > 0 ? links_of_a_gpu() : most_links_of_a_gpu;
    int most_of_a_gpu = 0;
    for (const TopoGpu& gpu : gpus_) {
      lanes_.push_back(gpu.lanes);
      most_of_a_gpu =
          std::max(most_of_a_gpu, std::accumulate(gpu.lanes.begin(), gpu.lanes.end(), 0));
      bonded_pairs_ += std::ranges::count_if(gpu.lanes, [](int lanes) { return lanes != 0; });
    }
    bonded_pairs_ /= 2;  // each is in two rows
    if (most_of_a_gpu > links)
      kind_ = Kind::nvswitch;
    else if (join_all(lanes_))
      kind_ = Kind::mesh;
    is_ambiguous_ = num_gpus_ == 2 && bonded_pairs_ > 0;
  }

  /// Cards that are as near to a GPU as any are those for training; the rest is for storage or management.
  void find_near_cards() {
    std::vector<PathKind> nearest(nics_.size(), PathKind::sys);
    for (const TopoGpu& gpu : gpus_)
      for (std::size_t i = 0; i < gpu.to_nics.size(); ++i)
        nearest[i] = std::min(nearest[i], class_of(gpu.to_nics[i]));
    for (const PathKind kind : nearest) distance_ = std::min(distance_, kind);
    for (std::size_t i = 0; i < nearest.size(); ++i)
      if (nearest[i] == distance_)
        near_.push_back(i);
      else
        far_.push_back(nics_[i]);
  }

  /// The table names no GPU, but a bond of more NVLinks than the base's GPU has is another GPU's.
  void check_bonds() {
    const int links = links_of_a_gpu();
    if (links == 0) return;
    const std::string text = "a bond of " + std::to_string(most_lanes_) + " NVLinks, but " +
                             base_.name() + " has " + node().device.name + " GPUs of " +
                             std::to_string(links) + " NVLinks each";
    if (most_lanes_ > links)
      throw InputError(std::vector<Problem>{
          {widest_bond_, {}, text, "name a --base with the GPUs of this node"}});
    // A switch shows all links of a GPU to every peer; two GPUs may be joined by a bridge of a few instead.
    const bool all_are_seen =
        kind_ == Kind::nvswitch || (is_ambiguous_ && node().interconnect.kind == Kind::nvswitch);
    if (all_are_seen && most_lanes_ < links)
      warn(file_and_line(widest_bond_) + ": " + text +
           (is_ambiguous_ ? ": are these other GPUs, joined by a bridge?"
                          : ": are these other GPUs, or are links down?"));
  }

  /// Constants of a switch mean nothing for a mesh, and the other way round.
  void check_kind() {
    const Kind base_kind = node().interconnect.kind;
    if (is_ambiguous_ && base_kind != Kind::pcie) kind_ = base_kind;
    if (kind_ == base_kind) return;
    if (most_lanes_ == 0)
      throw base_error(file_ + " shows no NVLink, but " + base_.name() + " is of kind " +
                           name_of(base_kind) + "; nvidia-smi topo -mp leaves NVLinks out",
                       "import the output of nvidia-smi topo -m; if the node has none, " +
                           ask_for_base(Kind::pcie));
    throw base_error(file_ + " shows " + kind_text() + ", but " + base_.name() + " is of kind " +
                         name_of(base_kind) + ", whose constants mean something else",
                     ask_for_base(kind_));
  }

  std::string kind_text() const {
    if (kind_ == Kind::nvswitch)
      return "an NVLink switch (NV" + std::to_string(most_lanes_) + " to " +
             count_text(num_gpus_ - 1, "peer") + ")";
    if (kind_ == Kind::mesh) return "a mesh of NVLinks";
    return bonded_pairs_ > 0 ? "PCIe, with NVLinks between some pairs only" : "PCIe only";
  }

  void write_document() {
    JsonValue& type = base_.only_node_type();
    describe_document(" with GPUs, links and network cards of " + file_);
    const std::string source = "measured: nvidia-smi topo -m, " + file_;
    set_number(type, "gpus", num_gpus_, source);
    if (takes_cards())
      set_number(type, "nics", near_.size(),
                 source + ", cards at " + name_of(distance_) + " or nearer to a GPU");
    if (kind_ == Kind::mesh) set_lanes(lanes_, source);
  }

  /// The table has no rate of a card. Fewer cards than the base has are as fast as its own, as far as anyone knows; more may be ports
  /// of the same cards, or those for storage.
  bool takes_cards() const {
    return !near_.empty() && near_.size() <= static_cast<std::size_t>(node().nics);
  }

  void say_what_is_not_known() {
    const NodeType& node = this->node();
    const std::string rate = to_text(node.nic_rate);
    if (!near_.empty() && !takes_cards())
      warn(file_ + " shows " + std::to_string(near_.size()) + " network cards " +
           (distance_ < PathKind::phb
                ? std::string("near the GPUs")
                : "that are all as far from the GPUs (" + std::string(name_of(distance_)) +
                      "), those for storage and management included") +
           ", without their rates; " + base_.name() + " has " + std::to_string(node.nics) + " of " +
           rate + ", " + to_text(node.nic_rate * node.nics) +
           " a node: number and rate stay those of the base. A card may be one port of two. If it "
           "is not so, write nics and nic_rate into the result, or name a --base with these cards");
    note("not in such a table, so as in " + base_.name() + ": the GPU (" + node.device.name +
         "), the rate of a network card (" + rate +
         "), and every bandwidth inside the node (import nccl-tests measures those)");
    if (is_ambiguous_)
      note("two GPUs joined by NVLinks look the same through a switch and directly: taken as " +
           std::string(name_of(kind_)) + ", as the base is");
    if (kind_ == Kind::pcie && bonded_pairs_ > 0)
      note(std::to_string(bonded_pairs_) +
           " pairs of GPUs have NVLinks, which join not all of them: everything is taken at the "
           "rate of PCIe");
    if (nics_.empty())
      note("no network card in the table; " + std::to_string(node.nics) + " a node as in " +
           base_.name());
    if (!far_.empty())
      note(std::to_string(far_.size()) + " of " + std::to_string(nics_.size()) +
           " network cards left out: farther from every GPU than " + name_of(distance_) + " (" +
           listed(far_) + ")");
  }

  /// Says where the rule "GPU g uses card floor(g * nics / gpus)" gives a GPU a card that is not its
  /// nearest.
  void say_affinity() {
    if (!takes_cards()) return;
    std::vector<std::string> others;
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      const std::size_t given = near_[g * near_.size() / gpus_.size()];
      const std::size_t nearest = nearest_card(gpus_[g]);
      if (class_of(gpus_[g].to_nics[given]) != class_of(gpus_[g].to_nics[nearest]))
        others.push_back("GPU" + std::to_string(g) + " (" + nics_[nearest] + ", not " +
                         nics_[given] + ")");
    }
    if (!others.empty())
      note(
          "the simulation gives GPU g the card floor(g * nics / gpus) in the table's order, which "
          "is not the nearest of: " +
          listed(others));
  }

  std::size_t nearest_card(const TopoGpu& gpu) const {
    return *std::ranges::min_element(near_, {},
                                     [&](std::size_t card) { return gpu.to_nics[card]; });
  }

  void describe() {
    const bool has_near = !near_.empty();
    std::string affinity;
    JsonValue::Array cards, gpus;
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      const TopoGpu& gpu = gpus_[g];
      const std::size_t card = has_near ? nearest_card(gpu) : 0;
      const std::string name = has_near ? nics_[card] : "";
      const std::string distance = has_near ? name_of(gpu.to_nics[card]) : "";
      if (has_near)
        affinity +=
            (g > 0 ? ", GPU" : " GPU") + std::to_string(g) + " " + name + " (" + distance + ")";
      gpus.push_back(object_of({{"numa", only_if(!gpu.numa.empty(), gpu.numa)},
                                {"nearest_card", only_if(has_near, name)},
                                {"distance", only_if(has_near, distance)}}));
    }
    for (std::size_t i = 0; i < nics_.size(); ++i)
      cards.push_back(object_of(
          {{"name", nics_[i]}, {"counted", takes_cards() && std::ranges::count(near_, i) > 0}}));
    imported_.text = file_ + ": " + std::to_string(num_gpus_) + " GPUs, laid into " + base_.name() +
                     "\n\n  between GPUs    " + kind_text() + "\n  network cards   " +
                     std::to_string(near_.size()) + " near the GPUs, of " +
                     std::to_string(nics_.size()) +
                     (!has_near || takes_cards()
                          ? ""
                          : "; " + std::to_string(node().nics) + " as in " + base_.name()) +
                     "\n  nearest card   " + affinity + "\n";
    imported_.found = object_of({{"gpus", num_gpus_},
                                 {"interconnect", name_of(kind_)},
                                 {"most_nvlinks_of_a_pair", most_lanes_},
                                 {"network_cards", JsonValue(std::move(cards))},
                                 {"affinity", JsonValue(std::move(gpus))}});
  }

  const LogText log_;
  const LogLine* header_ = nullptr;
  bool says_numa_ = false, is_p2p_ = false;
  std::map<std::string, std::string> legend_;
  int num_gpus_ = 0;
  std::vector<TopoGpu> gpus_;
  std::vector<std::string> nics_;        ///< in the order of the columns: "mlx5_0"
  std::vector<std::vector<int>> lanes_;  ///< NVLinks, [GPU][GPU]
  int most_lanes_ = 0;                   ///< NVLinks of the widest bond
  Origin widest_bond_;                   ///< where it is first named
  Kind kind_ = Kind::pcie;
  std::ptrdiff_t bonded_pairs_ = 0;    ///< pairs with NVLinks
  bool is_ambiguous_ = false;          ///< two GPUs only: switch and bridge look the same
  std::vector<std::size_t> near_;      ///< cards for training, by their place in nics_
  std::vector<std::string> far_;       ///< names of the others
  PathKind distance_ = PathKind::sys;  ///< of the farthest of the near ones to its nearest GPU
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
