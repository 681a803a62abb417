#include "memory/caching_allocator.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace windtunnel {
namespace {

constexpr std::int64_t one_mebibyte = 1 << 20;
constexpr std::int64_t no_limit = std::int64_t{1} << 50;

TEST_CASE("small requests share segments of 2 MiB, those below 10 MiB segments of 20 MiB") {
  CachingAllocator allocator(no_limit, 0);
  allocator.allocate(100);
  CHECK(allocator.reserved() == 2 * one_mebibyte);
  for (int i = 1; i < 4096; ++i) allocator.allocate(512);
  CHECK(allocator.reserved() == 2 * one_mebibyte);
  allocator.allocate(1);
  CHECK(allocator.reserved() == 4 * one_mebibyte);
  allocator.allocate(one_mebibyte + 1);
  allocator.allocate(9 * one_mebibyte);
  CHECK(allocator.reserved() == 24 * one_mebibyte);
}

TEST_CASE("a large request has a segment of its own, of whole 2 MiB") {
  CachingAllocator allocator(no_limit, 0);
  allocator.allocate(12 * one_mebibyte + 1);
  CHECK(allocator.reserved() == 14 * one_mebibyte);
}

TEST_CASE("a request takes the smallest block it fits into, and leaves more than 1 MiB to others") {
  CachingAllocator allocator(no_limit, 0);
  const auto of_40 = allocator.allocate(40 * one_mebibyte);
  const auto of_30 = allocator.allocate(30 * one_mebibyte);
  allocator.release(of_40);
  allocator.release(of_30);
  allocator.allocate(29 * one_mebibyte + 1);  // all of the 30
  allocator.allocate(10 * one_mebibyte);      // of the 40
  allocator.allocate(30 * one_mebibyte);      // the rest of it
  CHECK(allocator.reserved() == 70 * one_mebibyte);
  allocator.allocate(2 * one_mebibyte);
  CHECK(allocator.reserved() == 90 * one_mebibyte);
}

TEST_CASE("a block that is too small is of no use") {
  CachingAllocator allocator(no_limit, 0);
  allocator.release(allocator.allocate(20 * one_mebibyte));
  allocator.allocate(22 * one_mebibyte);
  CHECK(allocator.reserved() == 42 * one_mebibyte);
}

TEST_CASE("free neighbours become one block again, in whichever order they are released") {
  for (const std::vector<std::size_t>& order :
       {std::vector<std::size_t>{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}}) {
    CachingAllocator allocator(no_limit, 0);
    allocator.release(allocator.allocate(40 * one_mebibyte));
    const std::vector<CachingAllocator::BlockId> parts{allocator.allocate(10 * one_mebibyte),
                                                       allocator.allocate(14 * one_mebibyte),
                                                       allocator.allocate(16 * one_mebibyte)};
    for (const std::size_t i : order) allocator.release(parts[i]);
    allocator.allocate(40 * one_mebibyte);
    CHECK(allocator.reserved() == 40 * one_mebibyte);
  }
}

TEST_CASE("a block of a collective waits for so many more kernels, or until the host waits") {
  CachingAllocator allocator(no_limit, 2);
  const auto exchange = [&allocator] {
    const auto block = allocator.allocate(20 * one_mebibyte);
    allocator.use_in_collective(block);
    allocator.launch(1);
    allocator.release(block);
  };
  for (int i = 0; i < 5; ++i) exchange();
  CHECK(allocator.reserved() == 60 * one_mebibyte);  // the one in use, and two that wait
  allocator.wait_for_gpu();
  for (int i = 0; i < 3; ++i) allocator.allocate(20 * one_mebibyte);
  CHECK(allocator.reserved() == 60 * one_mebibyte);
  allocator.release(allocator.allocate(24 * one_mebibyte));
  allocator.allocate(24 * one_mebibyte);  // used by no collective: free at once
  CHECK(allocator.reserved() == 84 * one_mebibyte);
}

TEST_CASE("a full device gets unused segments back, not those of which a part is in use") {
  CachingAllocator allocator(100 * one_mebibyte, 0);
  const auto of_60 = allocator.allocate(60 * one_mebibyte);
  const auto of_30 = allocator.allocate(30 * one_mebibyte);
  allocator.release(of_60);
  allocator.release(of_30);
  allocator.allocate(20 * one_mebibyte);  // of the 30
  allocator.allocate(64 * one_mebibyte);
  CHECK(allocator.reserved() == 94 * one_mebibyte);
  CHECK(allocator.most_reserved() == 94 * one_mebibyte);
  allocator.allocate(20 * one_mebibyte);  // more than there is
  CHECK(allocator.reserved() == 114 * one_mebibyte);
  allocator.empty_cache();
  CHECK(allocator.reserved() == 114 * one_mebibyte);
}

}  // namespace
}  // namespace windtunnel
