#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/contracts.hpp"
#include "units/quantity.hpp"

namespace windtunnel::detail {

/// The events to come: the earliest first, and in the order of asking among those of equal times. A heap in which each event has four below
/// it, half as deep as a binary one: with thousands of devices the time goes into fetching memory.
template <class Payload>
class EventQueue {
 public:
  struct Event {
    Seconds time{};
    std::uint64_t number = 0;  ///< of this event among all asked for: breaks ties
    Payload payload{};
  };

  bool empty() const { return events_.empty(); }
  Seconds next_time() const { return events_.front().time; }
  std::uint64_t num_pushed() const { return num_pushed_; }

  void push(Seconds time, const Payload& payload) {
    WT_EXPECT(time >= Seconds{0});
    const Event event{time + Seconds{0}, num_pushed_++, payload};  // no -0: see earlier()
    events_.push_back(event);
    sift_up(events_.size() - 1, event);
  }
  /// Calls on_soon() with the payload of an event that may come soon, and on_next() with that of the next one: what they will need can be
  /// fetched from memory meanwhile.
  template <class OnSoon, class OnNext>
  Event pop(const OnSoon& on_soon, const OnNext& on_next) {
    const Event top = events_.front();
    const Event last = events_.back();
    events_.pop_back();
    if (events_.empty()) return top;
    std::size_t hole = 0;
    for (std::size_t child = 1; child < events_.size(); child = children * hole + 1) {
      const std::size_t end = std::min(child + children, events_.size());
      std::size_t earliest = child;
      for (std::size_t other = child + 1; other < end; ++other)
        earliest = earlier(events_[other], events_[earliest]) ? other : earliest;
      events_[hole] = events_[earliest];
      if (hole - 1 < children) on_soon(events_[hole].payload);
      hole = earliest;
    }
    sift_up(hole, last);
    on_next(events_.front().payload);
    return top;
  }
  Event pop() {
    const auto nothing = [](const Payload&) {};
    return pop(nothing, nothing);
  }
  void clear() { events_.clear(); }

 private:
  static constexpr std::size_t children = 4;

  /// Without a jump, which the processor could only guess. Times are never negative, so their bits are in the order of their values.
  static bool earlier(const Event& a, const Event& b) {
    const auto time_a = std::bit_cast<std::uint64_t>(a.time);
    const auto time_b = std::bit_cast<std::uint64_t>(b.time);
    return (time_a < time_b) | ((time_a == time_b) & (a.number < b.number));
  }
  void sift_up(std::size_t place, const Event& event) {
    while (place > 0) {
      const std::size_t parent = (place - 1) / children;
      if (!earlier(event, events_[parent])) break;
      events_[place] = events_[parent];
      place = parent;
    }
    events_[place] = event;
  }

  std::vector<Event> events_;
  std::uint64_t num_pushed_ = 0;
};

}  // namespace windtunnel::detail
