#include "search/search_space.hpp"

#include <algorithm>

namespace windtunnel {
namespace {

template <class Value>
std::vector<Value> given_or(std::vector<Value> given, const std::vector<Value>& otherwise) {
  if (given.empty()) return otherwise;
  std::vector<Value> once;
  for (const Value value : given)
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
  return space;
}

}  // namespace windtunnel
