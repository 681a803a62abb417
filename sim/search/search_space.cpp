#include "search/search_space.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include "core/problem.hpp"
#include "report/number_text.hpp"

namespace windtunnel {
namespace {

/// Each once, in order.
std::vector<int> without_repeats(const std::vector<int>& given) {
  std::vector<int> once;
  for (const int value : given)
    if (std::find(once.begin(), once.end(), value) == once.end()) once.push_back(value);
  return once;
}

std::vector<int> divisors(int number, int most) {
  std::vector<int> result;
  for (int i = 1; i <= std::min(number, most); ++i)
    if (number % i == 0) result.push_back(i);
  return result;
}

std::vector<int> powers_of_two(int most) {
  std::vector<int> result;
  for (int power = 1; power <= most; power *= 2) result.push_back(power);
  return result;
}

/// A space that nobody meant: its plans would fill the memory before the first is looked at.
void expect_countable(const SearchSpace& space) {
  constexpr double most = 1e6;
  double combinations = 1;
  for (const std::vector<int>& values : space.values)
    combinations *= static_cast<double>(std::max<std::size_t>(values.size(), 1));
  if (combinations <= most) return;
  throw InputError({{{},
                     "/search",
                     "the lists make " + grouped_text(combinations) +
                         " combinations, more than the million that are searched",
                     "list fewer values"}});
}

ClusterShape cluster_of(const std::vector<NodeType>& nodes) {
  ClusterShape cluster;
  cluster.nodes_given = true;
  for (const NodeType& node : nodes) cluster.gpus_by_node.push_back(node.gpus);
  return cluster;
}

/// What is tried for a key that the block leaves out.
std::vector<int> default_values(const Scenario& base, const SearchSpace& space, const Key& key) {
  const std::string name = key.name();
  const std::vector<int>& by_node = space.cluster.gpus_by_node;
  if (name == "tensor")
    return divisors(*std::min_element(by_node.begin(), by_node.end()), space.gpus);
  if (name == "pipeline") return divisors(space.gpus, base.model.layers);
  if (name == "micro_batch") return powers_of_two(largest_default_micro_batch);
  if (name == "data" || name == "schedule") return {};
  return {key.value.get({base.plan.training, base.plan.parallel})};
}

}  // namespace

const std::vector<int>& SearchSpace::of(std::string_view key) const {
  std::size_t place = 0;
  while (search_keys().at(place).key->name() != key) ++place;
  return values.at(place);
}

SearchSpace search_space(const Scenario& base) {
  SearchSpace space;
  space.gpus = base.plan.num_ranks();
  space.cluster = cluster_of(base.nodes);
  for (const SearchKey& searched : search_keys()) {
    const auto given = base.search.values.find(searched.key->name());
    space.values.push_back(given == base.search.values.end()
                               ? default_values(base, space, *searched.key)
                               : without_repeats(given->second));
  }
  expect_countable(space);
  return space;
}

}  // namespace windtunnel
