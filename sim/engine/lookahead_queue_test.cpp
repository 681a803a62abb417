#include "engine/lookahead_queue.hpp"

#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "engine/event_queue.hpp"

namespace windtunnel::detail {
namespace {

/// What the queue told of ahead.
struct Told {
  std::vector<int>& first;
  std::vector<int>& rest;
  void prefetch_first(int payload) const { first.push_back(payload); }
  void prefetch_rest(int payload) const { rest.push_back(payload); }
};

/// How events are asked for: each that comes asks for `children`, the delays drawn from `delays`.
struct Load {
  int begin = 1;       ///< events at the beginning
  int events = 5'000;  ///< in all
  int most_children = 2;
  std::vector<Seconds> delays;
};

/// Both queues with the same events; true when they give them in the same order.
bool same_order(const Load& load, unsigned seed) {
  std::mt19937 random(seed);
  EventQueue<int> plain;
  LookaheadQueue<int> queue;
  std::vector<int> first, rest;
  int asked = 0;
  const auto ask = [&](Seconds now) {
    const Seconds time = now + load.delays[random() % load.delays.size()];
    plain.push(time, asked);
    queue.push(time, asked++);
  };
  while (asked < load.begin) ask(0_s);
  while (!plain.empty()) {
    if (queue.empty() || queue.next_time() != plain.next_time()) return false;
    const auto expected = plain.pop();
    const auto event = queue.pop(Told{first, rest});
    if (event.payload != expected.payload || event.number != expected.number) return false;
    const auto children =
        static_cast<int>(random() % (static_cast<unsigned>(load.most_children) + 1));
    for (int i = 0; i < children && asked < load.events; ++i) ask(expected.time);
  }
  return queue.empty() && queue.num_pushed() == plain.num_pushed();
}

std::vector<Seconds> many_delays() {
  std::vector<Seconds> delays;
  for (int i = 0; i < 1000; ++i) delays.push_back(1_us * (1.0 + 7.3 * i));
  return delays;
}

TEST_CASE("the lookahead queue gives events in the order of the plain one, ties included") {
  const std::vector<Load> loads = {
      {.begin = 1, .delays = many_delays()},
      {.begin = 16, .delays = many_delays()},
      {.begin = 17, .delays = many_delays()},
      {.begin = 3000, .delays = many_delays()},
      {.begin = 20'000, .events = 60'000, .delays = many_delays()},  // more than a heap holds
      {.begin = 20'000, .events = 60'000, .delays = {0_s, 1_us, 1_s, 1'000'000_s}},
      {.begin = 20'000, .events = 20'000, .delays = {1_s}},
      {.begin = 300, .delays = {0_s}},              // all at once
      {.begin = 300, .delays = {0_s, 1_s}},         // many ties
      {.begin = 300, .delays = {0_s, 5_us, 10_s}},  // almost now, or long after
      {.begin = 1, .most_children = 90, .delays = {0_s, 1_us, 2_us, 1_s}},
      {.begin = 1000, .most_children = 90, .delays = {1_us, 2_us, 1_s}},
  };
  for (std::size_t i = 0; i < loads.size(); ++i)
    for (const unsigned seed : {1U, 2U, 3U}) {
      CAPTURE(i);
      CAPTURE(seed);
      CHECK(same_order(loads[i], seed));
    }
}

TEST_CASE("the lookahead queue tells of events before they come") {
  LookaheadQueue<int> queue;
  constexpr int num_events = 100;
  for (int i = 0; i < num_events; ++i) queue.push(1_s * static_cast<double>(i), i);
  std::vector<int> first, rest;
  for (int i = 0; i < num_events; ++i) {
    CHECK(queue.pop(Told{first, rest}).payload == i);
    if (i < num_events - 16) CHECK(first.back() == i + 16);
    if (i < num_events - 7) CHECK(rest.back() == i + 7);
  }
  // The first 16 stand sorted at once; each of the others is told of, in order, when it joins them.
  REQUIRE(first.size() == num_events - 16);
  CHECK(first.front() == 16);
  CHECK(first.back() == num_events - 1);
  CHECK(rest.front() == 7);
  CHECK(rest.back() == num_events - 1);
}

TEST_CASE("a lookahead queue that was cleared is empty and can be used again") {
  LookaheadQueue<int> queue;
  for (int i = 0; i < 40; ++i) queue.push(1_s, i);
  queue.clear();
  CHECK(queue.empty());
  queue.push(2_s, 7);
  std::vector<int> first, rest;
  CHECK(queue.pop(Told{first, rest}).payload == 7);
  CHECK(queue.empty());
}

}  // namespace
}  // namespace windtunnel::detail
