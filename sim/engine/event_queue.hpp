#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/contracts.hpp"
#include "units/quantity.hpp"

namespace windtunnel::detail {

/// The events to come: the earliest first, and in the order of asking among those of equal times. Time does not go back: what is asked
/// for before the time of the last event taken, which rounding can cause, gets that time.
///
/// A radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, "Faster algorithms for the shortest path problem", J. ACM 37, 1990). Positive times
/// compare as their bits do. An event waits in the bucket of the highest digit, of four bits, in which its time differs from that of
/// the last event taken, and moves to a lower one when its bucket comes first. Buckets are read and written from end to end; in a binary
/// heap of some ten thousand events each step waits for memory.
template <class Payload>
class EventQueue {
 public:
  struct Event {
    Seconds time{};
    Payload payload{};
  };

  bool empty() const { return size_ == 0; }
  Seconds next_time() const { return std::bit_cast<Seconds>(next_); }
  std::uint64_t num_pushed() const { return num_pushed_; }

  void push(Seconds time, const Payload& payload) {
    WT_EXPECT(time >= Seconds{0});
    const Event event{std::max(std::bit_cast<Seconds>(last_), time), payload};
    const std::uint64_t key = key_of(event);
    place(event);
    if (size_++ == 0 || key < next_) next_ = key;
    ++num_pushed_;
  }

  Event pop() {
    if (num_taken_ == due_.size()) refill();
    const Event event = due_[num_taken_++];
    --size_;
    if (num_taken_ == due_.size() && size_ > 0) next_ = buckets_[first_bucket()].earliest;
    return event;
  }

  void clear() { *this = {}; }

 private:
  static constexpr std::size_t digit_bits = 4;
  static constexpr std::size_t num_digits = 16;  ///< of a time; also values of a digit

  struct Bucket {
    std::vector<Event> events;   ///< in the order of asking
    std::uint64_t earliest = 0;  ///< time of these events, as bits; if there are any
  };

  static std::uint64_t key_of(const Event& event) {
    return std::bit_cast<std::uint64_t>(event.time);
  }

  void place(const Event& event) {
    const std::uint64_t key = key_of(event);
    if (key == last_) {
      due_.push_back(event);
      return;
    }
    const auto digit = static_cast<std::size_t>(std::bit_width(key ^ last_) - 1) / digit_bits;
    const std::size_t value = key >> (digit * digit_bits) & (num_digits - 1);
    Bucket& bucket = buckets_[digit * num_digits + value];
    bucket.earliest = bucket.events.empty() ? key : std::min(bucket.earliest, key);
    bucket.events.push_back(event);
    values_[digit] |= 1U << value;
    digits_ |= 1U << digit;
  }

  std::size_t first_bucket() const {
    const auto digit = static_cast<std::size_t>(std::countr_zero(digits_));
    return digit * num_digits + static_cast<std::size_t>(std::countr_zero(values_[digit]));
  }

  /// Moves the events of the earliest bucket to lower buckets, and those that are due next to due_.
  void refill() {
    due_.clear();
    num_taken_ = 0;
    const std::size_t first = first_bucket();
    std::uint32_t& values = values_[first / num_digits];
    values &= values - 1;
    if (values == 0) digits_ &= digits_ - 1;
    last_ = next_;
    for (const Event& event : buckets_[first].events) place(event);
    buckets_[first].events.clear();
  }

  std::array<Bucket, num_digits * num_digits> buckets_;  ///< by digit, then by value
  std::array<std::uint32_t, num_digits> values_{};  ///< by digit: the bits of those with events
  std::uint32_t digits_ = 0;                        ///< the bits of those with events
  std::vector<Event> due_;                          ///< those of time last_
  std::size_t num_taken_ = 0;                       ///< events of due_ that were taken
  std::uint64_t last_ = 0;                          ///< time of the last one taken, as bits
  std::uint64_t next_ = 0;                          ///< time of the earliest, as bits
  std::size_t size_ = 0;
  std::uint64_t num_pushed_ = 0;
};

}  // namespace windtunnel::detail
