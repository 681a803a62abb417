#include "layout/layout.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>

namespace windtunnel {
namespace {

using enum AxisName;

std::vector<std::vector<int>> numbers(const std::vector<std::vector<RankId>>& groups) {
  std::vector<std::vector<int>> result;
  for (const std::vector<RankId>& group : groups) {
    result.emplace_back();
    for (const RankId rank : group) result.back().push_back(static_cast<int>(rank.index()));
  }
  return result;
}

TEST_CASE("the first axis counts fastest") {
  // Megatron-LM's own example (initialize_model_parallel, v2.5): 16 GPUs, tensor 2, pipeline 4; data 2.
  const Layout layout({{tensor, 2}, {data, 2}, {pipeline, 4}});
  CHECK(layout.num_ranks() == 16);
  CHECK(numbers(layout.groups({tensor})) ==
        std::vector<std::vector<int>>{
            {0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}});
  CHECK(numbers(layout.groups({data})) ==
        std::vector<std::vector<int>>{
            {0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}});
  CHECK(
      numbers(layout.groups({pipeline})) ==
      std::vector<std::vector<int>>{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}});
  CHECK(layout.rank(std::vector<Axis>{{tensor, 1}, {data, 0}, {pipeline, 2}}) == RankId{9});
  CHECK(layout.coordinate(RankId{9}, pipeline) == 2);
}

TEST_CASE("an axis that is not there has one place") {
  const Layout layout({{tensor, 4}});
  CHECK(layout.size(expert) == 1);
  CHECK(layout.coordinate(RankId{3}, expert) == 0);
  CHECK(layout.group(RankId{3}, {expert}) == std::vector<RankId>{RankId{3}});
}

TEST_CASE("groups over several axes hold the ranks of both") {
  const Layout layout({{tensor, 2}, {context, 2}, {data, 2}});
  CHECK(numbers(layout.groups({context, data})) ==
        std::vector<std::vector<int>>{{0, 2, 4, 6}, {1, 3, 5, 7}});
}

TEST_CASE("attention and expert layers may fold the ranks of a stage differently") {
  // 16 ranks on two stages. Attention: tensor 2, context 2, data 2. Experts: expert 4, each expert whole, on two expert data ranks.
  const Layout attention({{tensor, 2}, {context, 2}, {data, 2}, {pipeline, 2}});
  const Layout experts({{expert_tensor, 1}, {expert, 4}, {expert_data, 2}, {pipeline, 2}});
  REQUIRE(attention.num_ranks() == experts.num_ranks());
  CHECK(
      numbers(experts.groups({expert})) ==
      std::vector<std::vector<int>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}});
  CHECK(numbers(experts.groups({expert_data}))[1] == std::vector<int>{1, 5});
  // Both foldings agree on the stage of every rank, so messages between stages need not know of experts.
  for (int rank = 0; rank < attention.num_ranks(); ++rank)
    CHECK(attention.coordinate(RankId{rank}, pipeline) ==
          experts.coordinate(RankId{rank}, pipeline));
}

TEST_CASE("coordinates and rank undo each other, and groups part the ranks") {
  std::mt19937 random(3);
  for (int drawn = 0; drawn < 200; ++drawn) {
    std::vector<Axis> axes;
    for (const AxisName name : {tensor, context, data, pipeline})
      axes.push_back({name, 1 + static_cast<int>(random() % 4)});
    std::shuffle(axes.begin(), axes.end(), random);
    const Layout layout(axes);
    for (int rank = 0; rank < layout.num_ranks(); ++rank) {
      std::vector<Axis> places;
      for (const Axis& axis : axes)
        places.push_back({axis.name, layout.coordinate(RankId{rank}, axis.name)});
      CHECK(layout.rank(places) == RankId{rank});
    }
    std::set<RankId> seen;
    for (const std::vector<RankId>& group : layout.groups({axes[0].name, axes[2].name})) {
      CHECK(static_cast<int>(group.size()) == axes[0].size * axes[2].size);
      seen.insert(group.begin(), group.end());
      for (const RankId member : group)
        CHECK(layout.group(member, {axes[2].name, axes[0].name}) == group);
    }
    CHECK(static_cast<int>(seen.size()) == layout.num_ranks());
  }
}

TEST_CASE("an order reads as its axes") {
  CHECK(text_of(std::vector<AxisName>{tensor, data, pipeline}) == "tensor-data-pipeline");
}

}  // namespace
}  // namespace windtunnel
