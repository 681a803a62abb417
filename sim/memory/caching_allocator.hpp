#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <set>
#include <vector>

namespace windtunnel {

/// PyTorch's caching allocator on one GPU and one compute stream: what it takes from the device for a sequence of requests, in bytes. A
/// request is rounded up to 512 bytes and gets the smallest free block it fits into, which is split where enough is left; a segment is
/// taken where none does. Neighbours in a segment that are free become one block again. Segments cannot grow (no `expandable_segments`).
/// Source: round_size, get_allocation_size, get_free_block, should_split, try_merge_blocks, insert_events and release_cached_blocks in
/// c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.1 to 2.4.
class CachingAllocator {
 public:
  using BlockId = std::uint32_t;

  /// `capacity`: what the device has for it. The host launches `lead` kernels before the GPU has passed a collective that uses a block; 0: the
  /// GPU keeps up with the host.
  CachingAllocator(std::int64_t capacity, int lead) : capacity_(capacity), lead_(lead) {}

  /// If the capacity does not hold another segment, the host waits for the GPU and returns unused segments first. Segments that do not fit
  /// even then are reserved beyond the capacity.
  BlockId allocate(std::int64_t bytes);
  void release(BlockId block);
  /// A collective, on a stream of its own, reads or writes the block (record_stream): once released it serves no request before the GPU
  /// has passed what is launched until then.
  void use_in_collective(BlockId block) { blocks_[block].crosses_streams = true; }
  void launch(int kernels) { launched_ += kernels; }
  void wait_for_gpu();
  /// Returns segments of which nothing is in use (torch.cuda.empty_cache()).
  void empty_cache();

  std::int64_t reserved() const { return reserved_; }
  /// torch.cuda.max_memory_reserved()
  std::int64_t most_reserved() const { return most_reserved_; }

 private:
  static constexpr BlockId none = static_cast<BlockId>(-1);
  struct Block {
    std::int64_t size = 0;
    BlockId previous = none, next = none;  ///< neighbours in its segment
    bool is_small = false, is_free = false, crosses_streams = false;
  };
  struct FreeBlock {
    std::int64_t size = 0;
    BlockId id = none;
    auto operator<=>(const FreeBlock&) const = default;
  };
  struct Waiting {
    std::int64_t until = 0;  ///< so many kernels are launched
    BlockId id = none;
  };
  using Pool = std::set<FreeBlock>;  ///< the smallest first

  Pool& pool_of(const Block& block) { return block.is_small ? small_ : large_; }
  BlockId add_block(const Block& block);
  BlockId take_segment(std::int64_t bytes, bool is_small);
  void insert(BlockId id);
  void remove(BlockId id);
  void merge(BlockId left, BlockId right);
  void make_free(BlockId id);
  void end_waits();

  std::int64_t capacity_, reserved_ = 0, most_reserved_ = 0, launched_ = 0;
  int lead_;
  std::vector<Block> blocks_;
  std::vector<BlockId> unused_;  ///< places in blocks_
  Pool small_, large_;
  std::deque<Waiting> waiting_;
};

}  // namespace windtunnel
