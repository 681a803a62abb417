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

/// The order of EventQueue, for tens of thousands of events: then the time goes into fetching memory and into jumps that the
/// processor guesses wrong. The next few events stand sorted in `near_`: what they need can be fetched ahead, and an event that is asked
/// for a moment ahead never enters the heap. The others are a heap in which each event has four below it: half as deep as a binary one.
template <class Payload>
class LookaheadQueue {
 public:
  struct Event {
    Seconds time{};
    std::uint64_t number = 0;  ///< of this event among all asked for: breaks ties
    Payload payload{};
  };

  bool empty() const { return num_near_ == 0; }
  Seconds next_time() const { return near_[first_near_].time; }
  std::uint64_t num_pushed() const { return num_pushed_; }

  void push(Seconds time, const Payload& payload) {
    WT_EXPECT(time >= Seconds{0});
    const Event event{time + Seconds{0}, num_pushed_++, payload};  // no -0: see earlier()
    const bool near = num_near_ > 0 && time < near_[first_near_ + num_near_ - 1].time;
    if (near) {
      insert_near(event);
    } else if (far_.empty() && num_near_ < lookahead) {
      append_near(event);
    } else {
      push_far(event);
    }
  }

  /// Calls coming.prefetch_first() with the payload of an event that is some way off, and prefetch_rest() with one that is close.
  template <class Coming>
  Event pop(const Coming& coming) {
    const Event event = near_[first_near_];
    ++first_near_;
    --num_near_;
    if (num_near_ < lookahead && !far_.empty()) {
      append_near(pop_far());
      coming.prefetch_first(near_[first_near_ + num_near_ - 1].payload);
    }
    if (num_near_ > num_before_close)
      coming.prefetch_rest(near_[first_near_ + num_before_close].payload);
    return event;
  }
  void clear() {
    num_near_ = 0;
    far_.clear();
  }

 private:
  /// So many events are sorted, if there are as many. Measured: 12 to 32 are equally fast.
  static constexpr std::size_t lookahead = 16;
  /// The event with so many before it is close: time enough to fetch a cache line.
  static constexpr std::size_t num_before_close = 6;
  static constexpr std::size_t children = 4;
  /// Room for events that are pushed between the sorted ones, and for moving on without copying.
  static constexpr std::size_t near_room = 128;

  /// 1 if `a` comes before `b`, else 0: without a jump, which the processor could only guess. Times are never negative, so their bits
  /// are in the order of their values.
  static std::size_t earlier(const Event& a, const Event& b) {
    const auto time_a = std::bit_cast<std::uint64_t>(a.time);
    const auto time_b = std::bit_cast<std::uint64_t>(b.time);
    return static_cast<std::size_t>(time_a < time_b) |
           (static_cast<std::size_t>(time_a == time_b) &
            static_cast<std::size_t>(a.number < b.number));
  }

  void append_near(const Event& event) {
    if (first_near_ + num_near_ == near_room) move_near_to_begin();
    near_[first_near_ + num_near_++] = event;
  }
  void move_near_to_begin() {
    std::copy_n(near_.begin() + static_cast<std::ptrdiff_t>(first_near_), num_near_, near_.begin());
    first_near_ = 0;
  }
  void insert_near(const Event& event) {
    if (num_near_ == 2 * lookahead) push_far(near_[first_near_ + --num_near_]);
    if (first_near_ + num_near_ == near_room) move_near_to_begin();
    std::size_t place = first_near_ + num_near_++;
    for (; place > first_near_ && event.time < near_[place - 1].time; --place) {
      near_[place] = near_[place - 1];
    }
    near_[place] = event;
  }

  void push_far(const Event& event) {
    far_.push_back(event);
    sift_up(far_.size() - 1, event);
  }
  void sift_up(std::size_t place, const Event& event) {
    while (place > 0) {
      const std::size_t parent = (place - 1) / children;
      if (earlier(event, far_[parent]) == 0) break;
      far_[place] = far_[parent];
      place = parent;
    }
    far_[place] = event;
  }
  Event pop_far() {
    const Event top = far_.front();
    const Event last = far_.back();
    far_.pop_back();
    if (far_.empty()) return top;
    std::size_t hole = 0;
    std::size_t child = 1;
    for (; child + children <= far_.size(); child = children * hole + 1) {
      const Event* const four = &far_[child];
      const std::size_t left = earlier(four[1], four[0]);
      const std::size_t right = 2 + earlier(four[3], four[2]);
      const std::size_t earliest = left + (right - left) * earlier(four[right], four[left]);
      far_[hole] = four[earliest];
      hole = child + earliest;
    }
    if (child < far_.size()) {  // fewer than four, at the bottom
      std::size_t earliest = child;
      for (std::size_t other = child + 1; other < far_.size(); ++other) {
        if (earlier(far_[other], far_[earliest]) != 0) earliest = other;
      }
      far_[hole] = far_[earliest];
      hole = earliest;
    }
    sift_up(hole, last);
    return top;
  }

  std::array<Event, near_room> near_;
  std::size_t first_near_ = 0;
  std::size_t num_near_ = 0;
  std::vector<Event> far_;
  std::uint64_t num_pushed_ = 0;
};

}  // namespace windtunnel::detail
