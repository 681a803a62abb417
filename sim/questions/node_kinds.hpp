#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "scenario/library_files.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// Node types in use that differ in nothing but how many there are: what is asked of one is asked of all.
struct NodeKind {
  std::vector<std::size_t> types;  ///< places in the platform's list
  std::size_t num_nodes = 0;       ///< that hold a part of the plan
};

/// The kinds of node that a plan uses, and the platform's node types as a person would write them.
class NodeKinds {
 public:
  /// The scenario must outlive it.
  NodeKinds(const Scenario& scenario, const Library& library);

  const std::vector<NodeKind>& kinds() const { return kinds_; }
  const NodeType& first_of(const NodeKind& kind) const { return types()[kind.types.front()]; }
  const NodeType& type(std::size_t place) const { return types()[place]; }
  /// The file has one type for all domains of a platform, of which the last may be smaller.
  bool has_domains() const { return scenario_.platform.domain_nodes > 1; }
  /// A kind of node in use: its device, or where several types have that device, its nodes.
  std::string label_of(const NodeKind& kind) const;
  /// The platform's node types when the GPUs of each node in use are `factor(node)` times as fast; nothing where they are not written
  /// as a list, or where NVLink joins nodes, whose domains the list does not tell apart.
  std::optional<std::string> types_with(const std::function<double(std::size_t)>& factor) const;
  /// The platform's node types when all nodes are of this kind.
  std::optional<std::string> all_of(const NodeKind& kind) const;

 private:
  const std::vector<NodeType>& types() const { return scenario_.platform.node_types; }
  std::size_t num_nodes() const { return scenario_.nodes.size(); }
  void find_kinds();
  /// Where it cannot be told, each type is a kind of its own.
  std::string text_without_count(std::size_t type) const;
  std::string nodes_text(std::size_t type) const;

  const Scenario& scenario_;
  JsonValue types_;  ///< node types as written
  std::vector<std::size_t> type_of_node_;
  std::vector<NodeKind> kinds_;
  std::map<std::string, std::size_t> types_with_device_;  ///< in use, by name of the device
};

}  // namespace windtunnel
