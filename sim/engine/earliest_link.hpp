#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "units/quantity.hpp"

namespace windtunnel::detail {

/// Which link sees the next end of a flow: one entry a link, which can be changed in place.
class EarliestLink {
 public:
  struct Entry {
    Seconds time{};
    std::uint64_t number = 0;  ///< of the flow that ends: breaks ties
    std::uint32_t link = 0;
  };

  explicit EarliestLink(std::size_t num_links) : places_(num_links, absent) {}

  /// Infinite when there is none.
  Seconds next_time() const {
    return entries_.empty() ? Seconds{std::numeric_limits<double>::infinity()}
                            : entries_.front().time;
  }
  std::uint32_t next_link() const { return entries_.front().link; }

  void set(const Entry& entry) {
    std::uint32_t place = places_[entry.link];
    if (place == absent) {
      place = static_cast<std::uint32_t>(entries_.size());
      entries_.push_back(entry);
    }
    sift(place, entry);
  }
  void erase(std::uint32_t link) {
    const std::uint32_t place = places_[link];
    if (place == absent) return;
    places_[link] = absent;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (place < entries_.size()) sift(place, last);
  }

 private:
  static constexpr std::uint32_t absent = 0xFFFFFFFF;
  static bool before(const Entry& a, const Entry& b) {
    return a.time != b.time ? a.time < b.time : a.number < b.number;
  }
  void put(std::size_t place, const Entry& entry) {
    entries_[place] = entry;
    places_[entry.link] = static_cast<std::uint32_t>(place);
  }
  void sift(std::size_t place, const Entry& entry) {
    for (; place > 0 && before(entry, entries_[(place - 1) / 2]); place = (place - 1) / 2)
      put(place, entries_[(place - 1) / 2]);
    for (std::size_t child = 2 * place + 1; child < entries_.size(); child = 2 * place + 1) {
      if (child + 1 < entries_.size() && before(entries_[child + 1], entries_[child])) ++child;
      if (!before(entries_[child], entry)) break;
      put(place, entries_[child]);
      place = child;
    }
    put(place, entry);
  }

  std::vector<Entry> entries_;         ///< a binary heap
  std::vector<std::uint32_t> places_;  ///< by link
};

}  // namespace windtunnel::detail
