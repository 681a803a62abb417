#include "questions/node_kinds.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

namespace windtunnel {
namespace {

/// Whether everything in `value` was read from the file, or is a default.
bool is_all_of(const SourceText* file, const JsonValue& value) {
  if (value.origin.kind != OriginKind::defaulted &&
      (value.origin.kind != OriginKind::file || value.origin.source.get() != file))
    return false;
  if (value.is_array())
    return std::all_of(value.array().begin(), value.array().end(),
                       [file](const JsonValue& each) { return is_all_of(file, each); });
  if (!value.is_object()) return true;
  return std::all_of(value.object().begin(), value.object().end(),
                     [file](const auto& member) { return is_all_of(file, member.value); });
}

/// The name of a built-in device, where nothing of it was changed; else nothing.
std::optional<std::string> built_in_name(const JsonValue& device, const Library& library) {
  const SourceText* const file = device.origin.source.get();
  if (file == nullptr || !is_all_of(file, device)) return std::nullopt;
  const std::filesystem::path path = file->name;
  std::error_code ignored;
  if (!std::filesystem::equivalent(path, library.root / device_files.folder / path.filename(),
                                   ignored))
    return std::nullopt;
  return path.stem().string();
}

/// A part of the resolved scenario as a person would write it: without defaults, sources and descriptions, built-in devices by name.
JsonValue written(const JsonValue& value, const Library& library) {
  if (value.is_array()) {
    JsonValue::Array list;
    for (const JsonValue& each : value.array()) list.push_back(written(each, library));
    return JsonValue(std::move(list));
  }
  if (!value.is_object()) return value;
  JsonValue object{JsonValue::Object{}};
  for (const JsonValue::Member& member : value.object()) {
    const JsonValue& inner = member.value;
    const bool is_nested = inner.is_object() || inner.is_array();
    if (member.key == "source" || member.key == "description" ||
        (!is_nested && inner.origin.kind == OriginKind::defaulted))
      continue;
    const auto name = member.key == "device" ? built_in_name(inner, library) : std::nullopt;
    object.set(member.key, name ? JsonValue(*name) : written(inner, library));
  }
  return object;
}

}  // namespace

NodeKinds::NodeKinds(const Scenario& scenario, const Library& library) : scenario_(scenario) {
  if (const JsonValue* list = scenario.resolved.find("platform")->find("node_types"))
    types_ = written(*list, library);
  find_kinds();
}

void NodeKinds::find_kinds() {
  std::set<std::size_t> nodes_in_use;
  for (const PlanDevice& device : scenario_.plan.devices) nodes_in_use.insert(device.node.index());
  for (std::size_t node = 0; node < num_nodes(); ++node)
    type_of_node_.push_back(
        static_cast<std::size_t>(&scenario_.platform.type_of(NodeId{node}) - types().data()));
  std::map<std::size_t, std::size_t> nodes_of_type;
  for (const std::size_t node : nodes_in_use) ++nodes_of_type[type_of_node_[node]];
  std::map<std::string, std::size_t> known;
  for (const auto& [type, nodes] : nodes_of_type) {
    const auto [found, is_new] = known.try_emplace(text_without_count(type), kinds_.size());
    if (is_new) kinds_.emplace_back();
    kinds_[found->second].types.push_back(type);
    kinds_[found->second].num_nodes += nodes;
    ++types_with_device_[types()[type].device.name];
  }
}

std::string NodeKinds::text_without_count(std::size_t type) const {
  if (has_domains()) return {};
  if (!types_.is_array()) return std::to_string(type);
  JsonValue text = types_.array()[type];
  text.erase("count");
  return canonical_text(text);
}

std::string NodeKinds::label_of(const NodeKind& kind) const {
  constexpr std::size_t most_named = 3;
  if (types_with_device_.at(types()[kind.types.front()].device.name) == kind.types.size())
    return types()[kind.types.front()].device.name;
  std::string label;
  for (std::size_t i = 0; i < std::min(most_named, kind.types.size()); ++i)
    label += (i == 0 ? "" : ", ") + nodes_text(kind.types[i]);
  return kind.types.size() > most_named ? label + " and others like them" : label;
}

std::string NodeKinds::nodes_text(std::size_t type) const {
  const auto first = std::find(type_of_node_.begin(), type_of_node_.end(), type);
  const auto end =
      std::find_if(first, type_of_node_.end(), [&](std::size_t other) { return other != type; });
  const auto number = [&](auto node) { return std::to_string(node - type_of_node_.begin()); };
  return first + 1 == end ? "node " + number(first)
                          : "nodes " + number(first) + " to " + number(end - 1);
}

std::optional<std::string> NodeKinds::types_with(
    const std::function<double(std::size_t)>& factor) const {
  if (!types_.is_array() || has_domains()) return std::nullopt;
  JsonValue::Array changed;
  std::vector<int> used(types().size());
  for (std::size_t node = 0, end = 0; node < num_nodes(); node = end) {
    const std::size_t type = type_of_node_[node];
    for (end = node;
         end < num_nodes() && type_of_node_[end] == type && factor(end) == factor(node);)
      ++end;
    JsonValue& run = changed.emplace_back(types_.array()[type]);
    run.set("count", JsonValue(static_cast<std::int64_t>(end - node)));
    if (factor(node) != 1)
      run.set("compute_efficiency", JsonValue(types()[type].compute_efficiency * factor(node)));
    used[type] += static_cast<int>(end - node);
  }
  for (std::size_t type = type_of_node_[num_nodes() - 1]; type < types().size(); ++type) {
    const int count = types()[type].count;
    if (count <= used[type]) continue;  // 0: as many as are asked for, which is these
    JsonValue& rest = changed.emplace_back(types_.array()[type]);
    rest.set("count", JsonValue(std::int64_t{count - used[type]}));
  }
  return canonical_text(JsonValue(std::move(changed)));
}

std::optional<std::string> NodeKinds::all_of(const NodeKind& kind) const {
  if (!types_.is_array()) return std::nullopt;
  JsonValue one = types_.array()[kind.types.front()];
  one.set("count", JsonValue(static_cast<std::int64_t>(std::max(
                       scenario_.platform.available_nodes(), static_cast<int>(num_nodes())))));
  return canonical_text(JsonValue(JsonValue::Array{one}));
}

}  // namespace windtunnel
