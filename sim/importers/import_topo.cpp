#include <algorithm>
#include <utility>

#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/option_error.hpp"
#include "importers/base_platform.hpp"
#include "importers/gpu_model.hpp"
#include "importers/importer.hpp"
#include "importers/topo_table.hpp"
#include "platform/mesh_rings.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using Kind = Interconnect::Kind;

/// NVLinks that one GPU has at most (H100 and B200, NVIDIA's datasheets; A100 12, V100 6), where the base does not tell its own. Where
/// the bonds of a GPU to all its peers need more, they go through a switch and share its links.
constexpr int most_links_of_a_gpu = 18;

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::nvswitch:
      return "nvswitch";
    case Kind::mesh:
      return "mesh";
    case Kind::pcie:
      return "pcie";
  }
  return "";
}

const char* name_of(PathKind kind) {
  switch (kind) {
    case PathKind::self:
      return "X";
    case PathKind::nvlink:
      return "NVLink";
    case PathKind::pix:
      return "PIX";
    case PathKind::pxb:
      return "PXB";
    case PathKind::phb:
      return "PHB";
    case PathKind::node:
      return "NODE";
    case PathKind::sys:
      return "SYS";
  }
  return "";
}

/// What the table says of the links between GPUs.
struct GpuLinks {
  Kind kind = Kind::pcie;
  std::vector<std::vector<int>> lanes;
  int bonded_pairs = 0;       ///< pairs with NVLinks
  bool is_ambiguous = false;  ///< two GPUs only: switch and bridge look the same
};

GpuLinks links_of(const TopoTable& table, int links_of_a_gpu) {
  GpuLinks links;
  const auto n = static_cast<std::size_t>(table.gpus);
  links.lanes.assign(n, std::vector<int>(n));
  std::vector<int> all(n);
  int most_of_a_gpu = 0;
  for (std::size_t i = 0; i < n; ++i) {
    int sum = 0;
    all[i] = static_cast<int>(i);
    for (std::size_t j = 0; j < n; ++j) {
      const int lanes = i == j ? 0 : table.between_gpus[i][j].lanes;
      links.lanes[i][j] = lanes;
      sum += lanes;
      if (i < j && lanes > 0) ++links.bonded_pairs;
    }
    most_of_a_gpu = std::max(most_of_a_gpu, sum);
  }
  Interconnect mesh;
  mesh.kind = Kind::mesh;
  mesh.lanes = links.lanes;
  if (most_of_a_gpu > links_of_a_gpu)
    links.kind = Kind::nvswitch;
  else if (n > 1 && num_relayed_rings(mesh, all) > 0)
    links.kind = Kind::mesh;
  links.is_ambiguous = n == 2 && links.bonded_pairs > 0;
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

class TopoImport {
 public:
  TopoImport(const ImportRequest& request, const Library& library)
      : request_(&request),
        library_(&library),
        file_(file_name_of(request.inputs.front())),
        base_(request.options.base, library) {}

  Imported run() {
    Problems problems;
    const LogText log(read_source_or_stdin(request_->inputs.front()), problems, find_topo_header);
    problems.throw_if_any();
    table_ = read_topo(log, problems);
    problems.throw_if_any();
    base_.only_node_type();
    const int links = links_of_a_gpu();
    links_ = links_of(table_, links > 0 ? links : most_links_of_a_gpu);
    near_ = near_cards(table_);
    check_bonds();
    check_kind();
    write_document();
    say_what_is_not_known();
    say_affinity();
    read_back(imported_.document, *library_);
    describe();
    return std::move(imported_);
  }

 private:
  void note(std::string text) { imported_.notes.push_back(std::move(text)); }

  /// NVLinks of the base's GPU; 0: not known. The name of a platform may say more than its device: H800s compute as H100s.
  int links_of_a_gpu() const {
    for (const std::string& name : {base_.name(), base_.only_node().device.name})
      if (const GpuModel* model = gpu_model_in(name); model != nullptr && model->nvlinks > 0)
        return model->nvlinks;
    return 0;
  }

  /// The table names no GPU, but a bond of more NVLinks than the base's GPU has is another GPU's.
  void check_bonds() {
    const std::string& device = base_.only_node().device.name;
    const int links = links_of_a_gpu();
    if (links == 0) return;
    const std::string text = "a bond of " + std::to_string(table_.most_lanes) + " NVLinks, but " +
                             base_.name() + " has " + device + " GPUs of " + std::to_string(links) +
                             " NVLinks each";
    if (table_.most_lanes > links)
      throw InputError(std::vector<Problem>{
          {table_.widest_bond, {}, text, "name a --base with the GPUs of this node"}});
    // A switch shows all links of a GPU to every peer; two GPUs may be joined by a bridge of a few instead.
    const bool all_are_seen =
        links_.kind == Kind::nvswitch ||
        (links_.is_ambiguous && base_.only_node().interconnect.kind == Kind::nvswitch);
    if (all_are_seen && table_.most_lanes < links)
      imported_.warnings.push_back(file_and_line(table_.widest_bond) + ": " + text +
                                   (links_.is_ambiguous
                                        ? ": are these other GPUs, joined by a bridge?"
                                        : ": are these other GPUs, or are links down?"));
  }

  /// Constants of a switch mean nothing for a mesh, and the other way round.
  void check_kind() {
    const Kind base_kind = base_.only_node().interconnect.kind;
    if (links_.is_ambiguous && base_kind != Kind::pcie) links_.kind = base_kind;
    if (links_.kind == base_kind) return;
    if (table_.most_lanes == 0)
      throw option_error("--base", request_->options.base,
                         file_ + " shows no NVLink, but " + base_.name() + " is of kind " +
                             name_of(base_kind) + "; nvidia-smi topo -mp leaves NVLinks out",
                         "import the output of nvidia-smi topo -m; if the node has none, name a "
                         "base of kind pcie");
    throw option_error("--base", request_->options.base,
                       file_ + " shows " + kind_text() + ", but " + base_.name() + " is of kind " +
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
    JsonValue& document = base_.document();
    JsonValue& type = base_.only_node_type();
    document.set("name", JsonValue(request_->output.stem().string()));
    document.set("description",
                 JsonValue(base_.name() + " with GPUs, links and network cards of " + file_));
    const std::string source = "measured: nvidia-smi topo -m, " + file_;
    set_number(type, "gpus", JsonValue(std::int64_t{table_.gpus}), source);
    if (!near_.cards.empty() && takes_number())
      set_number(type, "nics", JsonValue(static_cast<std::int64_t>(near_.cards.size())),
                 source + ", cards at " + name_of(near_.distance) + " or nearer to a GPU");
    if (links_.kind == Kind::mesh) {
      JsonValue::Array rows;
      for (const std::vector<int>& lanes : links_.lanes) {
        JsonValue::Array row;
        for (const int count : lanes) row.emplace_back(std::int64_t{count});
        rows.emplace_back(std::move(row));
      }
      set_number(*type.find("interconnect"), "lanes", JsonValue(std::move(rows)), source);
    }
    imported_.document = document;
  }

  /// The table has no rate of a card. Fewer cards than the base has are as fast as its own, as far as anyone knows; more may be ports
  /// of the same cards, or those for storage.
  bool takes_number() const {
    return near_.cards.size() <= static_cast<std::size_t>(base_.only_node().nics);
  }

  void say_other_cards() {
    const NodeType& node = base_.only_node();
    const std::string count = std::to_string(near_.cards.size());
    const std::string of_base = std::to_string(node.nics) + " of " + to_text(node.nic_rate) + ", " +
                                to_text(node.nic_rate * node.nics) + " a node";
    const bool is_told = near_.distance < PathKind::phb;
    imported_.warnings.push_back(
        file_ + " shows " + count + " network cards " +
        (is_told ? std::string("near the GPUs")
                 : "that are all as far from the GPUs (" + std::string(name_of(near_.distance)) +
                       "), those for storage and management included") +
        ", without their rates; " + base_.name() + " has " + of_base +
        ": number and rate stay those of the base. A card may be one port of two. If it is not so, "
        "write nics and nic_rate into the result, or name a --base with these cards");
  }

  void say_what_is_not_known() {
    const NodeType& node = base_.only_node();
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

  std::string far_cards() const {
    std::string list;
    for (std::size_t i = 0; i < table_.nics.size(); ++i)
      if (std::count(near_.cards.begin(), near_.cards.end(), i) == 0)
        list += (list.empty() ? "" : ", ") + table_.nics[i];
    return list;
  }

  /// Says where the rule "GPU g uses card floor(g * nics / gpus)" gives a GPU a card that is not its
  /// nearest.
  void say_affinity() {
    if (near_.cards.empty() || !takes_number()) return;
    std::string list;
    for (int g = 0; g < table_.gpus; ++g) {
      const auto gpu = static_cast<std::size_t>(g);
      const std::size_t given = near_.cards[static_cast<std::size_t>(g) * near_.cards.size() /
                                            static_cast<std::size_t>(table_.gpus)];
      const std::size_t nearest = nearest_card(gpu);
      if (class_of(table_.to_nics[gpu][given]) == class_of(table_.to_nics[gpu][nearest])) continue;
      list += (list.empty() ? "GPU" : ", GPU") + std::to_string(g) + " (" + table_.nics[nearest] +
              ", not " + table_.nics[given] + ")";
    }
    if (!list.empty())
      note(
          "the simulation gives GPU g the card floor(g * nics / gpus) in the table's order, which "
          "is not the nearest of: " +
          list);
  }

  std::size_t nearest_card(std::size_t gpu) const {
    return *std::min_element(near_.cards.begin(), near_.cards.end(),
                             [&](std::size_t a, std::size_t b) {
                               return table_.to_nics[gpu][a] < table_.to_nics[gpu][b];
                             });
  }

  void describe() {
    imported_.text =
        file_ + ": " + std::to_string(table_.gpus) + " GPUs, laid into " + base_.name() +
        "\n\n  between GPUs    " + kind_text() + "\n  network cards   " +
        std::to_string(near_.cards.size()) + " near the GPUs, of " +
        std::to_string(table_.nics.size()) +
        (near_.cards.empty() || takes_number()
             ? ""
             : "; " + std::to_string(base_.only_node().nics) + " as in " + base_.name()) +
        "\n  nearest card   ";
    for (std::size_t g = 0; g < static_cast<std::size_t>(table_.gpus) && !near_.cards.empty();
         ++g) {
      const std::size_t card = nearest_card(g);
      imported_.text += " GPU" + std::to_string(g) + " " + table_.nics[card] + " (" +
                        name_of(table_.to_nics[g][card]) + ")" +
                        (g + 1 < static_cast<std::size_t>(table_.gpus) ? "," : "");
    }
    imported_.text += "\n";
    describe_as_json();
  }

  void describe_as_json() {
    JsonValue& found = imported_.found;
    found.set("gpus", JsonValue(std::int64_t{table_.gpus}));
    found.set("interconnect", JsonValue(std::string(name_of(links_.kind))));
    found.set("most_nvlinks_of_a_pair", JsonValue(std::int64_t{table_.most_lanes}));
    JsonValue::Array cards, gpus;
    for (std::size_t i = 0; i < table_.nics.size(); ++i) {
      JsonValue card(JsonValue::Object{});
      card.set("name", JsonValue(table_.nics[i]));
      card.set("counted", JsonValue(takes_number() &&
                                    std::count(near_.cards.begin(), near_.cards.end(), i) > 0));
      cards.push_back(std::move(card));
    }
    for (std::size_t g = 0; g < table_.to_nics.size(); ++g) {
      JsonValue gpu(JsonValue::Object{});
      if (!table_.numa[g].empty()) gpu.set("numa", JsonValue(table_.numa[g]));
      if (!near_.cards.empty()) {
        gpu.set("nearest_card", JsonValue(table_.nics[nearest_card(g)]));
        gpu.set("distance", JsonValue(std::string(name_of(table_.to_nics[g][nearest_card(g)]))));
      }
      gpus.push_back(std::move(gpu));
    }
    found.set("network_cards", JsonValue(std::move(cards)));
    found.set("affinity", JsonValue(std::move(gpus)));
  }

  const ImportRequest* request_;
  const Library* library_;
  std::string file_;
  BasePlatform base_;
  TopoTable table_;
  GpuLinks links_;
  NearCards near_;
  Imported imported_;
};

}  // namespace

Imported import_topo(const ImportRequest& request, const Library& library) {
  return TopoImport(request, library).run();
}

}  // namespace windtunnel
