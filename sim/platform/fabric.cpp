#include "platform/fabric.hpp"

#include <algorithm>
#include <cmath>

#include "core/contracts.hpp"
#include "core/mapped.hpp"
#include "core/philox.hpp"
#include "platform/platform.hpp"

namespace windtunnel {

namespace fabrics {
#define WT_FABRIC(name) FabricKind name();
#include "platform/fabrics.def"
#undef WT_FABRIC
}  // namespace fabrics

const std::vector<FabricKind>& fabric_kinds() {
  static const std::vector<FabricKind> table{
#define WT_FABRIC(name) fabrics::name(),
#include "platform/fabrics.def"
#undef WT_FABRIC
  };
  return table;
}

const FabricKey& FabricKind::key(std::string_view of_name) const {
  for (const FabricKey& known : keys)
    if (known.name == of_name) return known;
  WT_UNREACHABLE();
}

const FabricValue& Fabric::value(std::string_view key) const {
  const auto given = values.find(key);
  return given != values.end() ? given->second : kind->key(key).fallback;
}

namespace {

template <class Visit>
void visit_numbers(FabricValue& value, const Visit& visit) {
  if (auto* number = std::get_if<double>(&value)) visit(*number);
  if (auto* list = std::get_if<std::vector<double>>(&value))
    for (double& number : *list) visit(number);
}

}  // namespace

void Fabric::scale_nodes(double factor) {
  for (const FabricKey& key : kind->keys)
    if (const auto given = values.find(key.name); key.counts_nodes && given != values.end())
      visit_numbers(given->second, [&](double& number) { number = std::round(number * factor); });
}

std::string Fabric::key_that_splits(int nodes) const {
  for (const FabricKey& key : kind->keys) {
    bool splits = false;
    FabricValue copy = value(key.name);
    visit_numbers(copy, [&](const double& number) {
      splits = splits || static_cast<int>(number) % nodes != 0;
    });
    if (key.counts_nodes && splits) return key.name;
  }
  return {};
}

std::string why_not_joined(const Platform& job, int nodes) {
  const Fabric& fabric = job.fabric;
  const auto most = fabric.kind->most_nodes ? fabric.kind->most_nodes(job) : std::optional<int>{};
  if (!most || nodes <= *most) return {};
  return "the job takes " + std::to_string(nodes) + " nodes, and a fabric of kind " +
         fabric.kind->name + " with these keys joins " + std::to_string(*most);
}

int hashed_choice(int count, int seed, const NodeNics& from, const NodeNics& to, int salt) {
  const auto word = [](int number) { return static_cast<std::uint32_t>(number); };
  const PhiloxCounter bits =
      philox({from.node.index(), word(from.nics.front()), to.node.index(), word(to.nics.front())},
             {word(seed), word(salt)});
  return static_cast<int>(bits[0] % word(count));
}

std::vector<MessagePart> message_parts(const NodeNics& from, const NodeNics& to) {
  std::vector<MessagePart> parts;
  for (std::size_t i = 0; i < std::max(from.nics.size(), to.nics.size()); ++i)
    parts.push_back({{from.node, from.nics.subspan(i % from.nics.size(), 1)},
                     {to.node, to.nics.subspan(i % to.nics.size(), 1)}});
  return parts;
}

std::vector<int> hashed_choices(int count, int seed, const NodeNics& from, const NodeNics& to,
                                int salt) {
  auto choices = mapped(message_parts(from, to), [&](const MessagePart& part) {
    return hashed_choice(count, seed, part.from, part.to, salt);
  });
  std::ranges::sort(choices);
  return choices;
}

}  // namespace windtunnel
