#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "units/quantity.hpp"

namespace windtunnel::detail {

/// Events some way off, in the order of their times, and among equals of their numbers. The next are a heap in which each event has four
/// below it: half as deep as a binary one. Where there are many, the others wait unsorted in spans of time, which become the heap
/// one after the other: a heap of tens of thousands does not fit the cache of a core (ladder queue: Tang, Goh & Thng, ACM TOMACS
/// 15(3), 2005, with one rung).
template <class Event>
class FarEvents {
 public:
  bool empty() const { return heap_.empty() && num_waiting_ == 0; }

  void push(const Event& event) {
    if (!is_spread_) {
      push_heap(event);
      if (heap_.size() > most_in_heap) spread_heap();
      return;
    }
    const std::size_t span = span_of(event.time);
    if (span < next_span_) return push_heap(event);
    waiting_in(span).push_back(event);
    ++num_waiting_;
  }
  Event pop() {
    if (heap_.empty()) fill_heap();
    return pop_heap();
  }
  void clear() {
    heap_.clear();
    for (std::vector<Event>& span : spans_) span.clear();
    later_.clear();
    num_waiting_ = 0;
    is_spread_ = false;
  }

 private:
  static constexpr std::size_t children = 4;
  /// Measured: 512 to 4,096 are equally fast.
  static constexpr std::size_t most_in_heap = 1024;
  static constexpr std::size_t wanted_in_span = 128;

  /// 1 if `a` comes before `b`, else 0: without a jump, which the processor could only guess. Times are never negative, so their bits
  /// are in the order of their values.
  static std::size_t earlier(const Event& a, const Event& b) {
    const auto time_a = std::bit_cast<std::uint64_t>(a.time);
    const auto time_b = std::bit_cast<std::uint64_t>(b.time);
    return static_cast<std::size_t>(time_a < time_b) |
           (static_cast<std::size_t>(time_a == time_b) &
            static_cast<std::size_t>(a.number < b.number));
  }

  /// Never falls with time, so that what is in the heap comes before what waits; num_spans_ is `later_`.
  std::size_t span_of(Seconds time) const {
    const double place = (time - begin_) / span_;
    return static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(num_spans_)));
  }
  std::vector<Event>& waiting_in(std::size_t span) {
    return span == num_spans_ ? later_ : spans_[span];
  }

  void spread_heap() {
    moved_.swap(heap_);
    spread_moved();
    fill_heap();
  }
  /// Cuts the time from the first to the last event of `moved_` into spans.
  void spread_moved() {
    const auto [first, last] =
        std::minmax_element(moved_.begin(), moved_.end(),
                            [](const Event& a, const Event& b) { return a.time < b.time; });
    begin_ = first->time;
    num_spans_ = moved_.size() / wanted_in_span;
    span_ = (last->time - begin_) / static_cast<double>(num_spans_);
    if (!std::isnormal(span_ / Seconds{1})) span_ = Seconds{1};  // all at one time
    if (spans_.size() < num_spans_) spans_.resize(num_spans_);
    next_span_ = 0;
    is_spread_ = true;
    for (const Event& event : moved_) waiting_in(span_of(event.time)).push_back(event);
    num_waiting_ = moved_.size();
    moved_.clear();
  }
  /// The heap is empty, and events wait.
  void fill_heap() {
    while (next_span_ < num_spans_ && spans_[next_span_].empty()) ++next_span_;
    if (next_span_ < num_spans_) {
      move_to_heap(spans_[next_span_++]);
    } else if (later_.size() > most_in_heap) {
      moved_.swap(later_);
      spread_moved();
      fill_heap();
    } else {
      is_spread_ = false;
      move_to_heap(later_);
    }
  }
  void move_to_heap(std::vector<Event>& events) {
    num_waiting_ -= events.size();
    for (const Event& event : events) push_heap(event);
    events.clear();
  }

  void push_heap(const Event& event) {
    heap_.push_back(event);
    sift_up(heap_.size() - 1, event);
  }
  void sift_up(std::size_t place, const Event& event) {
    while (place > 0) {
      const std::size_t parent = (place - 1) / children;
      if (earlier(event, heap_[parent]) == 0) break;
      heap_[place] = heap_[parent];
      place = parent;
    }
    heap_[place] = event;
  }
  Event pop_heap() {
    const Event top = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    if (heap_.empty()) return top;
    std::size_t hole = 0;
    std::size_t child = 1;
    for (; child + children <= heap_.size(); child = children * hole + 1) {
      const Event* const four = &heap_[child];
      const std::size_t left = earlier(four[1], four[0]);
      const std::size_t right = 2 + earlier(four[3], four[2]);
      const std::size_t earliest = left + (right - left) * earlier(four[right], four[left]);
      heap_[hole] = four[earliest];
      hole = child + earliest;
    }
    if (child < heap_.size()) {  // fewer than four, at the bottom
      std::size_t earliest = child;
      for (std::size_t other = child + 1; other < heap_.size(); ++other) {
        if (earlier(heap_[other], heap_[earliest]) != 0) earliest = other;
      }
      heap_[hole] = heap_[earliest];
      hole = earliest;
    }
    sift_up(hole, last);
    return top;
  }

  std::vector<Event> heap_;
  bool is_spread_ = false;  ///< what follows is of use
  Seconds begin_{}, span_{1};
  std::size_t num_spans_ = 0;
  std::size_t next_span_ = 0;  ///< those before it are in the heap, or gone
  std::vector<std::vector<Event>> spans_;
  std::vector<Event> later_, moved_;
  std::size_t num_waiting_ = 0;  ///< in spans, and later
};

}  // namespace windtunnel::detail
