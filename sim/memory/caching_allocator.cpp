#include "memory/caching_allocator.hpp"

#include <algorithm>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

constexpr std::int64_t unit = 512;          // kMinBlockSize
constexpr std::int64_t mebibyte = 1 << 20;  // kSmallSize: requests up to this are small
constexpr std::int64_t small_segment = 2 * mebibyte, medium_segment = 20 * mebibyte;
constexpr std::int64_t least_large = 10 * mebibyte;  // that has a segment of its own size

std::int64_t round_up(std::int64_t bytes, std::int64_t to) { return (bytes + to - 1) / to * to; }

std::int64_t segment_size(std::int64_t bytes, bool is_small) {
  if (is_small) return small_segment;
  return bytes < least_large ? medium_segment : round_up(bytes, small_segment);
}

}  // namespace

CachingAllocator::BlockId CachingAllocator::add_block(const Block& block) {
  if (unused_.empty()) {
    blocks_.push_back(block);
    return static_cast<BlockId>(blocks_.size() - 1);
  }
  const BlockId id = unused_.back();
  unused_.pop_back();
  blocks_[id] = block;
  return id;
}

void CachingAllocator::insert(BlockId id) {
  Block& block = blocks_[id];
  block.is_free = true;
  pool_of(block).insert({block.size, id});
}

void CachingAllocator::remove(BlockId id) {
  Block& block = blocks_[id];
  block.is_free = false;
  const std::size_t num_removed = pool_of(block).erase({block.size, id});
  WT_EXPECT(num_removed == 1);
}

CachingAllocator::BlockId CachingAllocator::take_segment(std::int64_t bytes, bool is_small) {
  const std::int64_t size = segment_size(bytes, is_small);
  if (reserved_ + size > capacity_) {
    wait_for_gpu();
    empty_cache();
  }
  reserved_ += size;
  most_reserved_ = std::max(most_reserved_, reserved_);
  const BlockId id = add_block({.size = size, .is_small = is_small});
  return id;
}

CachingAllocator::BlockId CachingAllocator::allocate(std::int64_t bytes) {
  end_waits();
  const std::int64_t size = std::max(round_up(bytes, unit), unit);
  const bool is_small = size <= mebibyte;
  const Pool& pool = is_small ? small_ : large_;
  const auto fits = pool.lower_bound({size, 0});
  BlockId id = none;
  if (fits == pool.end()) {
    id = take_segment(size, is_small);
  } else {
    id = fits->id;
    remove(id);
  }
  const std::int64_t rest = blocks_[id].size - size;
  if (is_small ? rest < unit : rest <= mebibyte) return id;
  const Block whole = blocks_[id];
  const BlockId other =
      add_block({.size = rest, .previous = id, .next = whole.next, .is_small = is_small});
  if (whole.next != none) blocks_[whole.next].previous = other;
  blocks_[id].next = other;
  blocks_[id].size = size;
  insert(other);
  return id;
}

void CachingAllocator::merge(BlockId left, BlockId right) {
  const Block& gone = blocks_[right];
  blocks_[left].size += gone.size;
  blocks_[left].next = gone.next;
  if (gone.next != none) blocks_[gone.next].previous = left;
  unused_.push_back(right);
}

void CachingAllocator::make_free(BlockId id) {
  blocks_[id].crosses_streams = false;
  const BlockId next = blocks_[id].next, previous = blocks_[id].previous;
  if (next != none && blocks_[next].is_free) {
    remove(next);
    merge(id, next);
  }
  if (previous != none && blocks_[previous].is_free) {
    remove(previous);
    merge(previous, id);
    id = previous;
  }
  insert(id);
}

void CachingAllocator::release(BlockId block) {
  WT_EXPECT(!blocks_[block].is_free);
  if (lead_ > 0 && blocks_[block].crosses_streams)
    waiting_.push_back({launched_ + lead_, block});
  else
    make_free(block);
}

void CachingAllocator::end_waits() {
  while (!waiting_.empty() && waiting_.front().until <= launched_) {
    make_free(waiting_.front().id);
    waiting_.pop_front();
  }
}

void CachingAllocator::wait_for_gpu() {
  for (const Waiting& each : waiting_) make_free(each.id);
  waiting_.clear();
}

void CachingAllocator::empty_cache() {
  for (Pool* pool : {&small_, &large_})
    std::erase_if(*pool, [this](const FreeBlock& free) {
      const Block& block = blocks_[free.id];
      if (block.previous != none || block.next != none) return false;
      reserved_ -= block.size;
      unused_.push_back(free.id);
      return true;
    });
}

}  // namespace windtunnel
