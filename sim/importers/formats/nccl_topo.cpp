#include <algorithm>
#include <array>
#include <boost/property_tree/xml_parser.hpp>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <utility>

#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/json_build.hpp"
#include "core/mapped.hpp"
#include "core/text_list.hpp"
#include "importers/base_platform.hpp"
#include "importers/importer.hpp"
#include "importers/log_text.hpp"
#include "report/json_object.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel::formats {
namespace {

using Tree = boost::property_tree::ptree;

/// Something on PCIe, below the numbers of the elements around it, the processor's first.
struct PcieDevice {
  std::vector<int> path;
  Origin origin;
};
struct TopologyGpu : PcieDevice {
  int number = 0;                    ///< "dev"
  std::string bus_id;                ///< of its PCIe function
  double pcie = 0;                   ///< bytes per second of its PCIe link, one way; 0: not said
  std::map<std::string, int> links;  ///< NVLinks by the bus they lead to
  bool has_switch = false;           ///< whether they lead to bridges, as NVSwitches are

  int links_to(const TopologyGpu& peer) const { return value_in(links, peer.bus_id, 0); }
  int num_links() const {
    return std::accumulate(links.begin(), links.end(), 0,
                           [](int sum, const auto& link) { return sum + link.second; });
  }
};
struct TopologyNic : PcieDevice {
  std::string name;
  double megabits = 0;
};

/// Elements around both: 0 none, 1 a processor, more: PCIe switches.
std::size_t num_shared(const PcieDevice& one, const PcieDevice& other) {
  const auto end =
      std::mismatch(one.path.begin(), one.path.end(), other.path.begin(), other.path.end());
  return static_cast<std::size_t>(end.first - one.path.begin());
}

/// One node as NCCL sees it: <system>, in it a <cpu> for each NUMA node, in these <pci> of switches and devices, which hold <gpu> with <nvlink>, and <nic>
/// with <net> (NCCL, src/graph/xml.cc and topo.cc).
class NcclTopologyImport : PlatformImport {
 public:
  using PlatformImport::PlatformImport;

  Imported run() {
    read();
    problems_.throw_if_any();
    base_.only_node_type();
    describe_document(" with GPUs, links and network cards of " + file_);
    set_number(base_.only_node_type(), "gpus", gpus_.size(), source_);
    set_links();
    choose_nics();
    // The PCIe link of all GPUs, where the base says how a GPU reaches the host.
    const double rate = gpus_.front().pcie;
    JsonValue* const host = base_.only_node_type().find("host");
    const bool is_same = std::ranges::count(gpus_, rate, &TopologyGpu::pcie) ==
                         static_cast<std::ptrdiff_t>(gpus_.size());
    if (rate != 0 && is_same && host != nullptr)
      set_number(*host, "link", exact_number(rate / 1e9) + " GB/s", source_);
    else
      note("host/link is as in " + base_.name() +
           (host == nullptr ? ", which has no host"
                            : ": the PCIe links of the GPUs are not given, or differ"));
    note(
        "not in such a file, so as in " + base_.name() + ": the GPU (" + node().device.name +
        "), and every bandwidth inside the node (import nccl-tests or nvbandwidth measures those)");
    describe();
    return finished();
  }

 private:
  void read() {
    // The library reads elements recursively, however deep; those of a node are some hundred.
    constexpr std::ptrdiff_t most_elements = 1024;
    text_of_file_ = read_source_or_stdin(request_.inputs.front());
    const std::string& text = text_of_file_->text;
    if (std::ranges::count(text, '<') > 2 * most_elements)
      return problem({OriginKind::file, text_of_file_, 0, 0, 0},
                     "the file has more than " + std::to_string(most_elements) + " elements");
    Tree tree;
    try {
      std::istringstream stream(text);
      namespace xml = boost::property_tree::xml_parser;
      xml::read_xml(stream, tree, xml::no_comments);
    } catch (const boost::property_tree::xml_parser_error& error) {
      return problem(
          {OriginKind::file, text_of_file_, static_cast<std::int64_t>(error.line()), 1, 1},
          "no XML: " + error.message(), "the file may be truncated");
    }
    read_below(tree, {}, {});
    if (gpus_.empty() && problems_.empty())
      problem({OriginKind::file, text_of_file_, 1, 1, 1}, "no <gpu> in the file",
              "import what NCCL writes into NCCL_TOPO_DUMP_FILE; a file for NCCL_TOPO_FILE may "
              "leave out what NCCL finds itself");
    std::ranges::sort(gpus_, {}, &TopologyGpu::number);
  }

  /// `pci`: the attributes of the PCIe function around it.
  void read_below(const Tree& tree, const std::vector<int>& path, const Tree& pci) {
    for (const auto& [tag, element] : tree) {
      if (tag == "<xmlattr>" || tag == "<xmltext>") continue;
      const Tree attributes = element.get_child("<xmlattr>", {});
      const Origin origin = next(tag);
      if (tag == "cpu") {
        const std::string host = attributes.get("host_hash", "");
        if (host_.value_or(host) != host)
          problem(origin, "processors of several hosts",
                  "import the topology of a job on one node");
        host_ = host_.value_or(host);
      }
      if (tag == "gpu") read_gpu(element, attributes, pci, path, origin);
      if (tag == "net") read_nic(attributes, path, origin);
      std::vector<int> below = path;
      if (tag == "cpu" || tag == "pci") below.push_back(++num_places_);
      read_below(element, below, tag == "pci" ? attributes : pci);
    }
  }

  /// Origin of the next element with this tag: elements of the tree come in the file's order.
  Origin next(const std::string& tag) {
    std::size_t& from = read_to_[tag];
    for (from = text_of_file_->text.find("<" + tag, from); from != std::string::npos;
         from = text_of_file_->text.find("<" + tag, from + 1)) {
      const std::size_t end = from + tag.size() + 1;
      if (text_of_file_->text.find_first_not_of(" \t\r\n/>", end) == end)
        continue;  // of a longer name
      const std::string_view before = std::string_view(text_of_file_->text).substr(0, from);
      const auto line = std::ranges::count(before, '\n') + 1;
      const std::size_t start = before.rfind('\n') + 1;
      from = end;
      return {OriginKind::file, text_of_file_, line,
              static_cast<std::int64_t>(end - tag.size() - start),
              static_cast<int>(tag.size()) + 1};
    }
    return {OriginKind::file, text_of_file_, 0, 0, 0};
  }

  void read_gpu(const Tree& element, const Tree& attributes, const Tree& pci,
                const std::vector<int>& path, const Origin& origin) {
    constexpr long long most_gpus = 1000;
    TopologyGpu gpu;
    gpu.path = path;
    gpu.origin = origin;
    const auto number = count_in(attributes.get("dev", ""));
    if (!number || *number >= most_gpus)
      return problem(origin, "a <gpu> without its number, as in dev=\"0\"");
    gpu.number = static_cast<int>(*number);
    gpu.bus_id = pci.get("busid", "");
    gpu.pcie = pcie_rate(pci);
    for (const TopologyGpu& other : gpus_)
      if (other.number == gpu.number || other.bus_id == gpu.bus_id)
        return problem(origin,
                       "a second GPU " + std::to_string(gpu.number) + " at \"" + gpu.bus_id + "\"");
    for (const auto& [tag, link] : element) {
      if (tag != "nvlink") continue;
      const auto count = count_in(link.get("<xmlattr>.count", ""));
      const std::string target = link.get("<xmlattr>.target", "");
      if (!count || *count < 1 || *count >= most_gpus || target.empty())
        return problem(origin, "an <nvlink> of GPU " + std::to_string(gpu.number) +
                                   " without its target or count");
      gpu.links[target] += static_cast<int>(*count);
      // PCI's class of bridges (06): NVSwitches, and the NPUs of POWER
      gpu.has_switch = gpu.has_switch || link.get("<xmlattr>.tclass", "").starts_with("0x06");
    }
    gpus_.push_back(std::move(gpu));
  }

  void read_nic(const Tree& attributes, const std::vector<int>& path, const Origin& origin) {
    constexpr double most_megabits = 1e8;
    const auto megabits = number_in(attributes.get("speed", ""));
    if (!megabits || *megabits <= 0 || *megabits > most_megabits)
      return problem(origin, "a <net> without its rate in Mb/s, as in speed=\"400000\"");
    const std::string name = attributes.get("name", "");
    all_nics_.push_back({{path, origin},
                         is_plain_text(name) ? name : "net " + std::to_string(all_nics_.size()),
                         *megabits});
  }

  /// Transfers a second and lane, times lanes, after the code: 8/10 to 5 GT/s, 128/130 to 32 (PCI Express Base Specification).
  static double pcie_rate(const Tree& pci) {
    const std::string speed = pci.get("link_speed", "");  // "32.0 GT/s PCIe"
    const auto transfers = number_in(speed.substr(0, speed.find(' ')));
    const auto width = count_in(pci.get("link_width", ""));
    constexpr std::array<double, 5> known{2.5, 5, 8, 16, 32};
    if (!transfers || !width || *width > 16 || std::ranges::find(known, *transfers) == known.end())
      return 0;
    const double code = *transfers <= 5 ? 8.0 / 10 : 128.0 / 130;
    return *transfers * 1e9 / 8 * code * static_cast<double>(*width);
  }

  void set_links() {
    const TopologyGpu& first = gpus_.front();
    num_links_ = first.num_links();
    if (num_links_ == 0)
      return note("no NVLinks in the file: between GPUs everything is as in " + base_.name());
    const int most = links_of_a_gpu();
    for (const TopologyGpu& gpu : gpus_) {
      const int count = gpu.num_links();
      const std::string text = "GPU " + std::to_string(gpu.number) + " has " +
                               count_text(count, "NVLink") + ", and a GPU of " + base_.name() +
                               " has " + std::to_string(most);
      if (most > 0 && count > most)
        problem(gpu.origin, text, "name a --base with the GPUs of this node");
      if (most > 0 && count < most && gpu.has_switch)
        warn(file_and_line(gpu.origin) + ": " + text + ": are links down?");
    }
    problems_.throw_if_any();
    kind_ = first.has_switch ? Interconnect::Kind::nvswitch : Interconnect::Kind::mesh;
    if (node().interconnect.kind != *kind_)
      throw base_error(file_ + " shows " + kind_text() + ", and " + base_.name() +
                           " joins its GPUs in another way, whose constants mean something else",
                       ask_for_base(*kind_));
    if (!first.has_switch) read_lanes();
  }

  void read_lanes() {
    std::vector<std::vector<int>> lanes;
    for (const TopologyGpu& gpu : gpus_)
      for (std::vector<int>& row = lanes.emplace_back(); const TopologyGpu& peer : gpus_) {
        row.push_back(gpu.links_to(peer));
        if (row.back() != peer.links_to(gpu) || (row.back() > 0 && &gpu == &peer))
          problem(gpu.origin,
                  "the NVLinks from GPU " + std::to_string(gpu.number) + " to GPU " +
                      std::to_string(peer.number) + " are not those back",
                  {});
      }
    problems_.throw_if_any();
    if (!join_all(lanes))
      throw base_error("the NVLinks in " + file_ + " form no ring through all GPUs",
                       ask_for_base(Interconnect::Kind::pcie));
    set_lanes(lanes, source_);
  }

  std::string kind_text() const {
    if (!kind_) return "no NVLinks";
    return *kind_ == Interconnect::Kind::nvswitch
               ? count_text(num_links_, "NVLink") + " a GPU, to NVLink switches"
               : "a mesh of NVLinks, " + std::to_string(num_links_) + " of GPU " +
                     std::to_string(gpus_.front().number);
  }

  /// Cards behind a PCIe switch with a GPU are for training, the rest for storage or management; where there is no such card, all are.
  void choose_nics() {
    const auto shares_switch = [&](const TopologyNic& nic) {
      return std::ranges::any_of(gpus_,
                                 [&](const TopologyGpu& gpu) { return num_shared(nic, gpu) >= 2; });
    };
    const bool has_near = std::ranges::any_of(all_nics_, shares_switch);
    std::vector<std::string> far;
    for (const TopologyNic& nic : all_nics_)
      if (!has_near || shares_switch(nic))
        nics_.push_back(nic);
      else
        far.push_back(nic.name);
    if (!far.empty())
      note(std::to_string(far.size()) + " of " + std::to_string(all_nics_.size()) +
           " network cards left out, behind no PCIe switch with a GPU: " + listed(far));
    if (nics_.empty())
      return note("no network card in the file; " + std::to_string(node().nics) + " a node as in " +
                  base_.name());
    for (const TopologyNic& nic : nics_)
      if (nic.megabits != nics_.front().megabits)
        warn(file_and_line(nic.origin) + ": " + nic.name + " is of another rate than " +
             nics_.front().name + ": all cards are taken at the lowest");
    const double least = std::ranges::min(nics_, {}, &TopologyNic::megabits).megabits;
    set_nics(static_cast<int>(nics_.size()), least / 1000, has_near ? nics_of_gpus() : JsonValue(),
             source_);
    if (!has_near)
      note("no card shares a PCIe switch with a GPU: GPU g has the card floor(g * nics / gpus)");
  }

  std::vector<std::size_t> nearest_nics(const TopologyGpu& gpu) const {
    std::size_t most = 0;
    for (const TopologyNic& nic : nics_) most = std::max(most, num_shared(gpu, nic));
    std::vector<std::size_t> nearest;
    for (std::size_t i = 0; i < nics_.size(); ++i)
      if (num_shared(gpu, nics_[i]) == most) nearest.push_back(i);
    return nearest;
  }

  /// GPUs that are equally near to the same cards share them in order, as floor(g * nics / gpus) does in a node.
  JsonValue nics_of_gpus() const {
    std::map<std::vector<std::size_t>, std::size_t> sharing, before;
    for (const TopologyGpu& gpu : gpus_) ++sharing[nearest_nics(gpu)];
    return array_of(gpus_, [&](const TopologyGpu& gpu) {
      const std::vector<std::size_t> near = nearest_nics(gpu);
      const std::size_t place = before[near]++, all = sharing[near];
      const std::size_t first = place * near.size() / all;
      const std::size_t end = std::max(first + 1, (place + 1) * near.size() / all);
      JsonValue::Array own;
      for (std::size_t i = first; i < end; ++i)
        own.emplace_back(static_cast<std::int64_t>(near[i]));
      return own.size() == 1 ? own.front() : JsonValue(std::move(own));
    });
  }

  void describe() {
    imported_.text =
        file_ + ": " + count_text(gpus_.size(), "GPU") + ", laid into " + base_.name() +
        "\n\n  between GPUs    " + kind_text() + "\n  network cards   " +
        std::to_string(nics_.size()) + ", of " + std::to_string(all_nics_.size()) +
        (nics_.empty() ? "" : ", " + exact_number(nics_.front().megabits / 1000) + " Gb/s") +
        "\n  PCIe of a GPU   " +
        (gpus_.front().pcie > 0 ? to_text(BytesPerSecond{gpus_.front().pcie}) : "not said") + "\n";
    imported_.found =
        object_of({{"gpus", gpus_.size()},
                   {"nvlinks_of_a_gpu", num_links_},
                   {"has_nvlink_switch", gpus_.front().has_switch},
                   {"network_cards", array_of(nics_, [](const TopologyNic& nic) {
                      return object_of({{"name", nic.name}, {"bits_per_s", nic.megabits * 1e6}});
                    })}});
  }

  std::string source_ = "measured: NCCL's topology, " + file_;
  std::shared_ptr<const SourceText> text_of_file_;
  std::optional<std::string> host_;
  int num_places_ = 0;
  std::map<std::string, std::size_t> read_to_;  ///< in the text, by tag
  std::vector<TopologyGpu> gpus_;               ///< by number
  std::vector<TopologyNic> all_nics_;
  std::vector<TopologyNic> nics_;  ///< for training
  int num_links_ = 0;              ///< NVLinks of the first GPU
  std::optional<Interconnect::Kind> kind_;
};

}  // namespace

Importer nccl_topo() {
  return {"nccl-topo",
          "a node as NCCL sees it, to a platform",
          "what NCCL writes into NCCL_TOPO_DUMP_FILE",
          {"--base"},
          import_by<NcclTopologyImport>};
}

}  // namespace windtunnel::formats
