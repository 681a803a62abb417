#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/contracts.hpp"
#include "units/quantity.hpp"

namespace windtunnel::detail {

/// The events to come: the earliest first, and in the order of asking among those of equal times.
template <class Payload>
class EventQueue {
 public:
  struct Event {
    Seconds time{};
    std::uint64_t number = 0;  ///< of this event among all asked for: breaks ties
    Payload payload{};
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  bool empty() const { return events_.empty(); }
  Seconds next_time() const { return events_.front().time; }
  std::uint64_t num_pushed() const { return num_pushed_; }

  void push(Seconds time, const Payload& payload) {
    WT_EXPECT(time >= Seconds{0});
    events_.push_back({time, num_pushed_++, payload});
    std::push_heap(events_.begin(), events_.end(), std::greater<>());
  }
  Event pop() {
    std::pop_heap(events_.begin(), events_.end(), std::greater<>());
    const Event next = events_.back();
    events_.pop_back();
    return next;
  }
  void clear() { events_.clear(); }

 private:
  std::vector<Event> events_;  ///< a heap
  std::uint64_t num_pushed_ = 0;
};

}  // namespace windtunnel::detail
