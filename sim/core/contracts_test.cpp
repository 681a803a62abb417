#include "core/contracts.hpp"

#include <doctest/doctest.h>

#include <type_traits>

#include "core/id.hpp"

namespace windtunnel {
namespace {

static_assert(!std::is_convertible_v<RankId, NodeId>);
static_assert(!std::is_constructible_v<RankId, NodeId>);
static_assert(!std::is_convertible_v<int, RankId>);
static_assert(RankId{2} < RankId{3});

TEST_CASE("a contract that holds does nothing") { CHECK_NOTHROW(WT_EXPECT(1 + 1 == 2)); }

TEST_CASE("a broken precondition says which one and where") {
  CHECK_THROWS_WITH_AS(WT_EXPECT(1 + 1 == 3), doctest::Contains("contracts_test.cpp:"),
                       ContractViolation);
  CHECK_THROWS_WITH_AS(WT_EXPECT(1 + 1 == 3),
                       doctest::Contains("precondition does not hold: 1 + 1 == 3"),
                       ContractViolation);
}

TEST_CASE("a broken postcondition is called one") {
  CHECK_THROWS_WITH_AS(WT_ENSURE(false), doctest::Contains("postcondition does not hold: false"),
                       ContractViolation);
}

}  // namespace
}  // namespace windtunnel
