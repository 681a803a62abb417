#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/contracts.hpp"
#include "engine/far_events.hpp"
#include "units/quantity.hpp"

namespace windtunnel::detail {

/// The order of EventQueue, for tens of thousands of events: then the time goes into fetching memory and into jumps that the
/// processor guesses wrong. The next few events stand sorted in `near_`: what they need can be fetched ahead, and an event that is asked
/// for a moment ahead is never one of the others (FarEvents).
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
    const Event event{time + Seconds{0}, num_pushed_++, payload};  // no -0: see FarEvents
    const bool near = num_near_ > 0 && time < near_[first_near_ + num_near_ - 1].time;
    if (near) {
      insert_near(event);
    } else if (far_.empty() && num_near_ < lookahead) {
      append_near(event);
    } else {
      far_.push(event);
    }
  }

  /// Calls coming.prefetch_first() with the payload of an event that is some way off, and prefetch_rest() with one that is close.
  template <class Coming>
  Event pop(const Coming& coming) {
    const Event event = near_[first_near_];
    ++first_near_;
    --num_near_;
    if (num_near_ < lookahead && !far_.empty()) {
      append_near(far_.pop());
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
  /// Room for events that are pushed between the sorted ones, and for moving on without copying.
  static constexpr std::size_t near_room = 128;

  void append_near(const Event& event) {
    if (first_near_ + num_near_ == near_room) move_near_to_begin();
    near_[first_near_ + num_near_++] = event;
  }
  void move_near_to_begin() {
    std::copy_n(near_.begin() + static_cast<std::ptrdiff_t>(first_near_), num_near_, near_.begin());
    first_near_ = 0;
  }
  void insert_near(const Event& event) {
    if (num_near_ == 2 * lookahead) far_.push(near_[first_near_ + --num_near_]);
    if (first_near_ + num_near_ == near_room) move_near_to_begin();
    std::size_t place = first_near_ + num_near_++;
    for (; place > first_near_ && event.time < near_[place - 1].time; --place) {
      near_[place] = near_[place - 1];
    }
    near_[place] = event;
  }

  std::array<Event, near_room> near_;
  std::size_t first_near_ = 0;
  std::size_t num_near_ = 0;
  FarEvents<Event> far_;
  std::uint64_t num_pushed_ = 0;
};

}  // namespace windtunnel::detail
