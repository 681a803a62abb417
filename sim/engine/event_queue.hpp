#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "units/quantity.hpp"

namespace windtunnel::detail {

/// What is going to happen, as a binary heap: the earliest first, and in the order of asking among
/// equals.
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
    events_.push_back({time, num_pushed_++, payload});
    std::push_heap(events_.begin(), events_.end(), Later{});
  }
  Event pop() {
    std::pop_heap(events_.begin(), events_.end(), Later{});
    const Event event = events_.back();
    events_.pop_back();
    return event;
  }
  void clear() { events_.clear(); }

 private:
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.time != b.time ? a.time > b.time : a.number > b.number;
    }
  };
  std::vector<Event> events_;
  std::uint64_t num_pushed_ = 0;
};

}  // namespace windtunnel::detail
