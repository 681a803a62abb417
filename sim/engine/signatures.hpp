#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace windtunnel::detail {

/// Things written as lists of words; equal lists get equal numbers. Clearing it keeps its memory.
class Signatures {
 public:
  /// Numbers given to things, and how many there are.
  struct Numbered {
    std::vector<std::uint32_t> numbers;
    std::size_t count = 0;
  };

  void clear() {
    words_.clear();
    begins_.clear();
  }
  void begin() { begins_.push_back(words_.size()); }
  void add(std::uint64_t word) { words_.push_back(word); }
  /// The order of the last `count` words does not matter.
  void unordered(std::size_t count) {
    std::sort(words_.end() - static_cast<std::ptrdiff_t>(count), words_.end());
  }

  /// In order of first appearance from 0; lists are compared, not only their hashes.
  Numbered numbered() {
    constexpr std::size_t fewest_places = 16;
    std::size_t places = fewest_places;
    while (places < 2 * begins_.size()) places *= 2;
    table_.assign(places, free_place);
    Numbered result;
    result.numbers.resize(begins_.size());
    for (std::size_t i = 0; i < begins_.size(); ++i) {
      std::size_t place = hash(i) & (places - 1);
      while (table_[place] != free_place && !equal(table_[place], i))
        place = (place + 1) & (places - 1);
      if (table_[place] == free_place) {
        table_[place] = static_cast<std::uint32_t>(i);
        result.numbers[i] = static_cast<std::uint32_t>(result.count++);
      } else {
        result.numbers[i] = result.numbers[table_[place]];
      }
    }
    return result;
  }

 private:
  static constexpr std::uint32_t free_place = 0xFFFFFFFF;
  std::size_t end(std::size_t i) const {
    return i + 1 < begins_.size() ? begins_[i + 1] : words_.size();
  }
  /// FNV-1a over words, with the high bits brought down for the table.
  std::size_t hash(std::size_t i) const {
    constexpr std::uint64_t basis = 0xcbf29ce484222325, prime = 0x100000001b3;
    std::uint64_t sum = basis;
    for (std::size_t at = begins_[i]; at < end(i); ++at) {
      sum = (sum ^ words_[at]) * prime;
      sum ^= sum >> 32;
    }
    return sum;
  }
  bool equal(std::size_t a, std::size_t b) const {
    return std::equal(words_.begin() + static_cast<std::ptrdiff_t>(begins_[a]),
                      words_.begin() + static_cast<std::ptrdiff_t>(end(a)),
                      words_.begin() + static_cast<std::ptrdiff_t>(begins_[b]),
                      words_.begin() + static_cast<std::ptrdiff_t>(end(b)));
  }

  std::vector<std::uint64_t> words_;
  std::vector<std::size_t> begins_;
  std::vector<std::uint32_t> table_;
};

/// For each of some things, a list of others.
class Lists {
 public:
  explicit Lists(std::size_t things) : begins_(things + 1) {}
  void count(std::size_t thing) { ++begins_[thing + 1]; }
  void end_count() {
    for (std::size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
    entries_.resize(begins_.back());
    filled_ = begins_;
  }
  void add(std::size_t thing, std::uint32_t entry) { entries_[filled_[thing]++] = entry; }
  const std::uint32_t* begin(std::size_t thing) const { return entries_.data() + begins_[thing]; }
  const std::uint32_t* end(std::size_t thing) const { return entries_.data() + begins_[thing + 1]; }

 private:
  std::vector<std::size_t> begins_, filled_;
  std::vector<std::uint32_t> entries_;
};

}  // namespace windtunnel::detail
