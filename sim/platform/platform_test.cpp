#include "platform/platform.hpp"

#include <doctest/doctest.h>

#include "core/contracts.hpp"

using namespace windtunnel;

namespace {

NodeType node_type(int count, int gpus) {
  NodeType type;
  type.count = count;
  type.gpus = gpus;
  return type;
}

}  // namespace

TEST_CASE("nodes take the types in file order") {
  Platform platform;
  platform.node_types = {node_type(3, 4), node_type(1, 8)};
  CHECK(platform.type_of(NodeId(0)).gpus == 4);
  CHECK(platform.type_of(NodeId(2)).gpus == 4);
  CHECK(platform.type_of(NodeId(3)).gpus == 8);
  CHECK(platform.available_nodes() == 4);
  CHECK(platform.num_nodes(2) == 4);
  CHECK_THROWS_AS(platform.type_of(NodeId(4)), ContractViolation);
}

TEST_CASE("an open count is as many nodes as asked for") {
  Platform platform;
  platform.node_types = {node_type(2, 4), node_type(0, 8)};
  CHECK(platform.type_of(NodeId(1)).gpus == 4);
  CHECK(platform.type_of(NodeId(1000)).gpus == 8);
  CHECK(platform.available_nodes() == 0);
  CHECK(platform.num_nodes(5) == 5);
  CHECK(platform.num_nodes(1) == 2);
}
