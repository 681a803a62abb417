#include "search/search_space.hpp"

#include <algorithm>
#include <cstddef>

#include "core/problem.hpp"
#include "report/number_text.hpp"

namespace windtunnel {
namespace {

template <class Value>
std::vector<Value> given_or(std::vector<Value> given, const std::vector<Value>& otherwise) {
  if (given.empty()) return otherwise;
  std::vector<Value> once;
  for (auto&& value : given)
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
  for (const std::size_t values :
       {space.tensor.size(), space.pipeline.size(), space.data.size(), space.micro_batch.size(),
        space.virtual_pipeline.size(), space.zero_stage.size(), space.schedule.size(),
        space.recompute.size(), space.sequence_parallel.size()})
    combinations *= static_cast<double>(std::max<std::size_t>(values, 1));
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

}  // namespace

SearchSpace search_space(const Scenario& base) {
  const SearchBlock& block = base.search;
  const Parallel& parallel = base.plan.parallel;
  SearchSpace space;
  space.gpus = base.plan.num_ranks();
  space.cluster = cluster_of(base.nodes);
  const std::vector<int>& by_node = space.cluster.gpus_by_node;
  const int node = *std::min_element(by_node.begin(), by_node.end());
  space.tensor = given_or(block.tensor, divisors(node, space.gpus));
  space.pipeline = given_or(block.pipeline, divisors(space.gpus, base.model.layers));
  space.data = given_or(block.data, {});
  space.micro_batch = given_or(block.micro_batch, powers_of_two(largest_default_micro_batch));
  space.virtual_pipeline = given_or(block.virtual_pipeline, {parallel.virtual_pipeline});
  space.zero_stage = given_or(block.zero_stage, {parallel.zero_stage});
  space.schedule = given_or(block.schedule, {});
  space.recompute = given_or(block.recompute, {base.plan.training.recompute});
  space.sequence_parallel = given_or(block.sequence_parallel, {parallel.sequence_parallel});
  expect_countable(space);
  return space;
}

}  // namespace windtunnel
