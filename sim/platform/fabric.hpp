#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/id.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

class Network;
struct Fabric;
struct Platform;
struct SwitchTier;

/// Equal cables side by side, each of this bandwidth one way.
struct FabricCable {
  std::string from, to;
  BytesPerSecond bandwidth{};
  int count = 1;
};

/// The value of a key. One number: a count, a ratio, bytes per second, 1 and 0 for yes and no, or the place of a word among the key's.
using FabricValue = std::variant<double, std::vector<double>, std::vector<FabricCable>>;

/// A key of `platform/fabric` that a kind of fabric has of its own.
struct FabricKey {
  enum class Type { number, whole, yes_no, word, data_rate, numbers, wholes, cables };

  std::string name;   ///< "oversubscription"
  std::string label;  ///< what reports call it
  Type type = Type::number;
  FabricValue fallback = 0.0;  ///< an empty list and a rate of 0: not given
  double least = 0, most = 0;  ///< of each number
  std::vector<std::string> words = {};
  /// Counts nodes of the machine. Where NVLink joins several to a domain, a job sees it in domains.
  bool counts_nodes = false;
  /// True if the key changes anything, given the other keys. None: always.
  std::function<bool(const Fabric&)> matters = {};
};

/// A question of `explain`: what if this key had this value?
struct FabricWhatIf {
  std::string label;
  std::string key;
  FabricValue value;
};

/// One end of a message: NICs of a node, in order.
struct NodeNics {
  NodeId node;
  std::span<const int> nics;
};

/// Links that a message passes on its way, in this order; the nodes' own links are not in it.
struct FabricPath {
  std::vector<LinkId> up, down;
};

/// Finds the path between two nodes. It belongs to one network, in which it makes links as messages first pass them, and keeps what it has
/// worked out.
using FabricPaths =
    std::function<FabricPath(Network& network, const NodeNics& from, const NodeNics& to)>;

/// Links that a kind of fabric counts, each made when a message first passes it: no name is put together to find it again.
class CountedLinks {
 public:
  template <class Make>
  LinkId at(std::size_t number, const Make& make) {
    if (number >= links_.size()) links_.resize(number + 1);
    if (!links_[number]) links_[number] = make();
    return *links_[number];
  }

 private:
  std::vector<std::optional<LinkId>> links_;
};

/// Network between the NICs of nodes. The kinds are a table: fabrics.def lists them, one file of fabrics/ defines each (docs/extending.md).
struct FabricKind {
  std::string name;   ///< as platform files write it
  std::string about;  ///< what `windtunnel list fabrics` says
  std::vector<FabricKey> keys = {};
  /// Paths of a job on the first `num_nodes` nodes of the platform, which must outlive the result.
  std::function<FabricPaths(const Platform& platform, int num_nodes)> paths;
  /// Why the first `num_nodes` nodes are not all equally well connected: "its leaf switches are oversubscribed". Empty where they are.
  std::function<std::string(const Fabric& fabric, int num_nodes)> unevenness;
  /// By which NICs a message really leaves its node, where it is relayed over NVLink to another GPU first. None, or an empty list: by those of `from`.
  std::function<std::vector<int>(const Platform& platform, const NodeNics& from,
                                 const NodeNics& to)>
      relay = {};
  /// True if a GPU reaches the GPUs of other local ranks over other links than the one of its own local rank, so that tokens for those are
  /// flows of their own (exchange_flows()). None: no.
  std::function<bool(const Fabric&)> separates_rails = {};
  /// The fault in the values of keys, together or with the nodes (none: they are not known), and its key. None: no fault is possible.
  std::function<std::pair<std::string, std::string>(const Platform&)> problem = {};
  /// Number of nodes (or NVLink domains, if there are any) that it can join in one job; none, or nothing: any number.
  std::function<std::optional<int>(const Platform&)> most_nodes = {};
  std::function<std::vector<FabricWhatIf>(const Fabric&)> what_ifs = {};
  /// Its switches with neighbouring nodes below each, as links call them. None: there are no such.
  std::function<std::vector<SwitchTier>(const Fabric&)> switches = {};

  /// One that it has.
  const FabricKey& key(std::string_view of_name) const;
};

/// The table. The first is that of platforms which name none.
const std::vector<FabricKind>& fabric_kinds();

/// The network between nodes.
struct Fabric {
  Seconds latency{};             ///< per message between nodes, software included
  Seconds collective_latency{};  ///< per ring step between nodes
  const FabricKind* kind = &fabric_kinds().front();
  std::map<std::string, FabricValue, std::less<>>
      values;  ///< by key of the kind; one that is not there has its fallback

  // The value of a key that the kind has.
  const FabricValue& value(std::string_view key) const;
  double number(std::string_view key) const { return std::get<double>(value(key)); }
  int whole(std::string_view key) const { return static_cast<int>(number(key)); }
  bool is_set(std::string_view key) const { return number(key) != 0; }
  BytesPerSecond rate(std::string_view key) const { return BytesPerSecond{number(key)}; }
  const std::vector<double>& list(std::string_view key) const {
    return std::get<std::vector<double>>(value(key));
  }
  const std::vector<FabricCable>& cables(std::string_view key) const {
    return std::get<std::vector<FabricCable>>(value(key));
  }

  bool separates_rails() const { return kind->separates_rails && kind->separates_rails(*this); }
  /// Multiplies what counts nodes: from nodes of the machine to domains, and back.
  void scale_nodes(double factor);
  /// The first key that counts nodes and is no multiple of `nodes`; empty where all are.
  std::string key_that_splits(int nodes) const;
};

/// Why the fabric does not join so many nodes: "the job takes 40 nodes, and a fabric of kind rails_only with these keys joins 32". Empty where
/// it does.
std::string why_not_joined(const Platform& job, int nodes);

/// Picks one of `count` equal paths for a message: a hash of its two ends, as a switch of an ECMP network hashes a packet's header (RFC
/// 2992), so that flows collide on one path while another is empty. `salt` distinguishes the choices along one path.
int hashed_choice(int count, int seed, const NodeNics& from, const NodeNics& to, int salt);
/// The part of a message that one NIC sends to another.
struct MessagePart {
  NodeNics from, to;
};
/// A message spread evenly over the NICs of both ends, in as many parts as the end with more of them has.
std::vector<MessagePart> message_parts(const NodeNics& from, const NodeNics& to);
/// The choice of each part of a message, in order, one several times where parts meet.
std::vector<int> hashed_choices(int count, int seed, const NodeNics& from, const NodeNics& to,
                                int salt);

}  // namespace windtunnel
