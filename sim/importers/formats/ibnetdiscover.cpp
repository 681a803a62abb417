#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/json_build.hpp"
#include "core/quantile.hpp"
#include "core/text_list.hpp"
#include "importers/base_platform.hpp"
#include "importers/importer.hpp"
#include "importers/log_text.hpp"
#include "report/json_object.hpp"

namespace windtunnel::formats {
namespace {

/// One cabled port, as its own block lists it.
struct IbPort {
  std::string peer;  ///< "S-0002c9030058f6f0": a switch (S), a channel adapter (H) or a router (R)
  int peer_port = 0;
  std::string rate;  ///< "4xHDR"
  double gigabits = 0;
  Origin origin;
};

/// A switch, channel adapter or router.
struct IbBlock {
  std::string description;      ///< "MF0;leaf-1:MQM8700/U1", "node001 mlx5_0"
  std::map<int, IbPort> ports;  ///< by number
  Origin origin;
};
using IbBlocks = std::map<std::string, IbBlock>;  ///< by type and GUID, as in IbPort::peer

/// Gb/s that a link carries, each way, after its line code: lanes times signalling rate times 8/10 up to QDR, 64/66 from FDR10 on, nothing off from HDR on, whose
/// name is of the payload (InfiniBand Architecture Specification, volume 2; IBTA, InfiniBand Roadmap).
std::optional<double> ib_gigabits(std::string_view link) {
  constexpr std::pair<const char*, double> lanes[]{{"SDR", 2.5 * 8 / 10},
                                                   {"DDR", 5.0 * 8 / 10},
                                                   {"QDR", 10.0 * 8 / 10},
                                                   {"FDR10", 10.3125 * 64 / 66},
                                                   {"FDR", 14.0625 * 64 / 66},
                                                   {"EDR", 25.78125 * 64 / 66},
                                                   {"HDR", 50},
                                                   {"NDR", 100},
                                                   {"XDR", 200}};
  for (const int width : {1, 2, 4, 8, 12})
    for (const auto& [speed, gigabits] : lanes)
      if (link == std::to_string(width) + "x" + speed) return width * gigabits;
  return std::nullopt;
}

bool is_ib_name(const std::string& word) {
  return word.size() > 2 && word[1] == '-' && std::string_view("SHR").find(word[0]) < 3;
}

/// A port of a host's adapter.
struct IbNic {
  std::string adapter;  ///< "mlx5_0"
  const IbPort* port;
};

/// `name` such that "node10" comes after "node9" in the order of texts.
std::string ib_order(const std::string& name) {
  constexpr std::size_t width = 20;  // more digits than a number has in any name
  std::string order;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t digits = std::min(name.find_first_not_of("0123456789", at), name.size()) - at;
    if (digits > 0 && digits < width) order.append(width - digits, '0');
    order += name.substr(at, std::max<std::size_t>(digits, 1));
    at += std::max<std::size_t>(digits, 1);
  }
  return order;
}

/// Reads the blocks (man ibnetdiscover, "TOPOLOGY FILE FORMAT"): a line of type, number of ports, name and description, then one for each port that
/// has a cable. Grouped output (-g) and that with more (-f) differ in what is not read.
class IbnetdiscoverImport : PlatformImport {
 public:
  IbnetdiscoverImport(const ImportRequest& request, const Library& library)
      : PlatformImport(request, library),
        log_(read_source_or_stdin(request.inputs.front()), problems_,
             [](std::string_view text) { return text.find("vendid="); }) {}

  Imported run() {
    problems_.throw_if_any();
    for (const LogLine& line : log_.lines()) {
      const std::string& type = line.words[0].text;
      if (line.text.starts_with('['))
        read_port(line);
      else if (type == "Switch" || type == "Ca" || type == "Rt")
        begin_block(line);
    }
    if (blocks_.empty())
      log_.problem(log_.end(),
                   "no map of a fabric in the file: no line such as Switch 40 \"S-0002c9...\"",
                   "import what ibnetdiscover prints without -l and -p");
    for (const auto& [name, block] : blocks_)
      for (const auto& [number, port] : block.ports) check(name, number, port);
    problems_.throw_if_any();
    base_.only_node_type();
    find_hosts();
    choose_nodes();
    join_switches();
    problems_.throw_if_any();
    write_document();
    return finished();
  }

 private:
  void begin_block(const LogLine& line) {
    const std::vector<LogWord> words = split_words(line, " \t\"");
    block_ = nullptr;
    if (words.size() < 3 || !is_ib_name(words[2].text))
      return log_.problem(log_.at(line), "no name such as \"S-0002c9...\" behind " + words[0].text,
                          "the file may be damaged");
    const auto [at, is_new] = blocks_.try_emplace(words[2].text);
    if (!is_new)
      return log_.problem(line, words[2], "a second block of " + words[2].text,
                          "the file holds several maps: import one of them");
    block_ = &at->second;
    block_->origin = log_.at(line, words[2]);
    const std::size_t begin = line.text.find("# \""), end = line.text.rfind('"');
    if (begin != std::string::npos && end > begin + 2)
      block_->description = line.text.substr(begin + 3, end - begin - 3);
  }

  /// "[1](506b4b03) "S-ec0d9a03"[7] # lid 4 lmc 0 "leaf-1" lid 2 4xHDR"
  void read_port(const LogLine& line) {
    const std::vector<LogWord> words = split_words(line, " \t\"[]()#");
    if (block_ == nullptr)
      return log_.problem(log_.at(line), "a port, but no switch or adapter before it",
                          "the file may be truncated");
    const auto peer =
        std::ranges::find_if(words, [](const LogWord& word) { return is_ib_name(word.text); });
    const auto link = std::find_if(words.rbegin(), words.rend(), [](const LogWord& word) {
      return ib_gigabits(word.text).has_value();
    });
    if (peer == words.end() || peer + 1 == words.end() || link == words.rend())
      return log_.problem(log_.at(line),
                          "a port without its peer and port there, or without width and speed of "
                          "the link",
                          "a line such as [1] \"S-0002c9...\"[7] # \"leaf-1\" lid 2 4xHDR");
    const auto number = port_in(line, words.front()), there = port_in(line, *(peer + 1));
    if (!number || !there) return;
    IbPort port{peer->text, *there, link->text, *ib_gigabits(link->text), log_.at(line, *peer)};
    if (!block_->ports.emplace(*number, std::move(port)).second)
      log_.problem(line, words.front(), "a second line of port " + words.front().text);
  }

  std::optional<int> port_in(const LogLine& line, const LogWord& word) {
    constexpr long long most_ports = 254;  // of eight bits, with 0 for management and 255 for none
    const auto number = count_in(word.text);
    if (number && *number >= 1 && *number <= most_ports) return static_cast<int>(*number);
    log_.problem(line, word, "\"" + word.text + "\" is no port's number");
    return std::nullopt;
  }

  /// Both ends of a cable list it.
  void check(const std::string& name, int number, const IbPort& port) {
    const auto block = blocks_.find(port.peer);
    if (block == blocks_.end())
      return log_.problem(port.origin, "no block of " + port.peer + ", where this cable ends",
                          "the file may be truncated");
    const auto back = block->second.ports.find(port.peer_port);
    if (back == block->second.ports.end() || back->second.peer != name ||
        back->second.peer_port != number)
      return log_.problem(port.origin,
                          "port " + std::to_string(port.peer_port) + " of " + port.peer +
                              " does not list this cable",
                          "the file may be truncated, or was cabled anew while it was written");
    if (back->second.rate != port.rate)
      log_.problem(port.origin, "the link is " + port.rate + " here and " + back->second.rate +
                                    " in the block of " + port.peer);
  }

  /// Sorts adapters by their host: the node description that Linux sets is "HOST ADAPTER".
  void find_hosts() {
    for (const auto& [name, block] : blocks_) {
      if (name.front() == 'S') continue;
      const std::string& text = block.description;
      const std::size_t blank = std::min(text.find(' '), text.size());
      const bool names_host =
          is_plain_text(text) && blank > 0 && text.find(' ', blank + 1) == std::string::npos;
      std::vector<IbNic> nics;
      for (const auto& [number, port] : block.ports)
        if (port.peer.front() == 'S')
          nics.push_back({text.substr(std::min(blank + 1, text.size())), &port});
      if (name.front() != 'H' || !names_host || nics.empty()) {
        others_.push_back(is_plain_text(text) ? text : name);
        continue;
      }
      std::vector<IbNic>& all = hosts_[{ib_order(text.substr(0, blank)), text.substr(0, blank)}];
      all.insert(all.end(), nics.begin(), nics.end());
    }
    for (auto& [host, nics] : hosts_)
      std::ranges::stable_sort(nics, [](const IbNic& one, const IbNic& other) {
        return ib_order(one.adapter) < ib_order(other.adapter);
      });
  }

  /// Nodes are the hosts with as many ports as the base has NICs; where there are no two of them, those with the commonest number.
  void choose_nodes() {
    std::map<std::size_t, int> hosts_with;
    for (const auto& [host, nics] : hosts_) ++hosts_with[nics.size()];
    num_nics_ = static_cast<std::size_t>(node().nics);
    if (hosts_with[num_nics_] < 2)
      for (const auto& [ports, hosts] : hosts_with)
        if (hosts >= hosts_with[num_nics_]) num_nics_ = ports;
    for (const auto& [host, nics] : hosts_)
      if (nics.size() == num_nics_)
        nodes_.push_back({host.second, &nics});
      else
        others_.push_back(host.second + " (" + count_text(nics.size(), "port") + ")");
    if (nodes_.size() < 2)
      problem(blocks_.begin()->second.origin,
              "no two hosts with equal numbers of cabled ports: an adapter is of the host that its "
              "description begins with, as in \"node001 mlx5_0\"",
              "the names may be set by the service rdma-ndd of the hosts");
  }

  /// Numbers what the first node reaches through switches.
  void join_switches() {
    if (nodes_.size() < 2) return;
    std::vector<std::string> found{nodes_.front().second->front().port->peer};
    reached_.insert(found.front());
    for (std::size_t i = 0; i < found.size(); ++i)
      for (const auto& [number, port] : blocks_.at(found[i]).ports)
        if (port.peer.front() == 'S' && reached_.insert(port.peer).second)
          found.push_back(port.peer);
    for (const auto& [host, nics] : nodes_)
      for (const IbNic& nic : *nics)
        if (reached_.count(nic.port->peer) == 0)
          return problem(nic.port->origin,
                         "no cables lead from " + nic.port->peer + " to " + found.front() +
                             ", where " + nodes_.front().first + " is plugged in",
                         "import the map of one fabric");
    std::map<std::string, int> uses;
    for (const auto& [name, block] : blocks_) ++uses[short_name(block)];
    for (const std::string& name : found) {
      const std::string text = short_name(blocks_.at(name));
      names_[name] =
          is_plain_text(text) && uses[text] == 1 && !text.starts_with("node") ? text : name;
    }
  }

  /// Without "MF0;", with which the description of a managed switch begins.
  static std::string short_name(const IbBlock& block) {
    return block.description.substr(block.description.starts_with("MF0;") ? 4 : 0);
  }

  JsonValue cable(const std::string& from, const std::string& to, double gigabits,
                  int count) const {
    const std::string rate = exact_number(gigabits) + " Gbps";
    return array_of(std::vector<std::string>{
        from, to, count > 1 ? std::to_string(count) + " x " + rate : rate});
  }

  void write_document() {
    describe_document(" with the fabric of " + file_);
    const std::string source = "measured: ibnetdiscover, " + file_;
    std::map<double, std::pair<int, std::string>> rates;
    JsonValue::Array links;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      for (std::size_t k = 0; k < num_nics_; ++k) {
        const IbPort& port = *(*nodes_[i].second)[k].port;
        links.push_back(cable("node" + std::to_string(i) + " nic" + std::to_string(k),
                              names_.at(port.peer), port.gigabits, 1));
        auto& [count, name] = rates[port.gigabits];
        ++count;
        name = port.rate;
      }
    num_cables_ = links.size();
    // Cables between two switches side by side are one entry.
    std::map<std::pair<std::string, std::string>, std::vector<double>> trunks;
    for (const std::string& name : reached_)
      for (const auto& [number, port] : blocks_.at(name).ports)
        if (port.peer.front() == 'S' && name < port.peer)
          trunks[{names_.at(name), names_.at(port.peer)}].push_back(port.gigabits);
    for (const auto& [ends, of_trunk] : trunks) {
      if (std::ranges::adjacent_find(of_trunk, std::not_equal_to<>()) != of_trunk.end())
        warn("the cables between " + ends.first + " and " + ends.second +
             " have different rates: each is taken at their mean");
      links.push_back(
          cable(ends.first, ends.second, mean_of(of_trunk), static_cast<int>(of_trunk.size())));
      num_cables_ += of_trunk.size();
    }
    const auto usual =
        std::ranges::max_element(rates, {}, [](const auto& rate) { return rate.second.first; });
    rate_ = usual->second.second;
    set_number(base_.only_node_type(), "count", nodes_.size(), "measured: nodes in " + file_);
    set_nics(static_cast<int>(num_nics_), usual->first, JsonValue(), source + ", " + rate_);
    std::vector<std::string> slow;
    for (const auto& [host, nics] : nodes_)
      for (const IbNic& nic : *nics)
        if (nic.port->gigabits < usual->first)
          slow.push_back(host + " " + nic.adapter + " (" + nic.port->rate + ")");
    if (!slow.empty())
      warn(count_text(slow.size(), "port") + " slower than " + rate_ + ": " +
           listed(slow, {}, most_named_));

    JsonValue& fabric = replace_fabric("edge_list");
    fabric.set("routing", JsonValue(std::string("ecmp")));
    set_number(fabric, "links", JsonValue(std::move(links)), source);
    note("not in such a file, so as in " + base_.name() + ": the node, its GPU (" +
         node().device.name + "), which NIC a GPU uses, nic_efficiency and the latencies");
    note(
        "the routes of the subnet manager are not in such a file: each NIC's messages take one of "
        "the shortest ways, which a hash picks (\"routing\": \"ecmp\")");
    if (!others_.empty())
      note(std::to_string(others_.size()) + " left out, as a node here has " +
           count_text(num_nics_, "port") +
           " and a description \"HOST ADAPTER\": " + listed(others_, {}, most_named_));

    const auto host = [](const auto& node) { return node.first; };
    imported_.text = file_ + ": " + count_text(nodes_.size(), "node") + ", laid into " +
                     base_.name() + "\n\n  nodes      " + listed(nodes_, host, most_named_) +
                     "\n  a node     " + count_text(num_nics_, "NIC") + " of " + rate_ +
                     "\n  switches   " + std::to_string(reached_.size()) + "\n  cables     " +
                     std::to_string(num_cables_) + "\n";
    imported_.found = object_of(
        {{"nodes", array_of(nodes_,
                            [](const auto& node) {
                              return object_of(
                                  {{"host", node.first},
                                   {"adapters", array_of(*node.second, [](const IbNic& nic) {
                                      return nic.adapter;
                                    })}});
                            })},
         {"rate", rate_},
         {"switches", array_of(names_, [](const auto& name) { return name.second; })},
         {"cables", num_cables_},
         {"left_out", array_of(others_)}});
  }

  static constexpr std::size_t most_named_ = 8;

  const LogText log_;
  IbBlocks blocks_;
  IbBlock* block_ = nullptr;  ///< whose ports are read
  std::map<std::pair<std::string, std::string>, std::vector<IbNic>> hosts_;  ///< by order and name
  std::vector<std::pair<std::string, const std::vector<IbNic>*>>
      nodes_;                                 ///< in the platform's order
  std::vector<std::string> others_;           ///< adapters and hosts that are no nodes
  std::set<std::string> reached_;             ///< switches
  std::map<std::string, std::string> names_;  ///< theirs in the platform
  std::size_t num_nics_ = 0, num_cables_ = 0;
  std::string rate_;  ///< of most NICs: "4xHDR"
};

}  // namespace

Importer ibnetdiscover() {
  return {"ibnetdiscover",
          "switches and cables of an InfiniBand fabric, to a platform",
          "output of ibnetdiscover",
          {"--base"},
          import_by<IbnetdiscoverImport>};
}

}  // namespace windtunnel::formats
