#include "engine/event_queue.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <random>
#include <utility>
#include <vector>

namespace windtunnel::detail {
namespace {

/// Load on the queue: each event asks for `children` more, with delays drawn from `delays`.
struct Load {
  int begin = 1;       ///< events at the beginning
  int events = 5'000;  ///< in all
  int most_children = 2;
  std::vector<Seconds> delays;
};

/// True if the queue gives events in the order of time, then of asking: that of the library's heap of pairs.
bool is_in_order(const Load& load, unsigned seed) {
  using Asked = std::pair<Seconds, int>;  // time, and number
  std::mt19937 random(seed);
  std::priority_queue<Asked, std::vector<Asked>, std::greater<>> plain;
  EventQueue<int> queue;
  int asked = 0;
  const auto ask = [&](Seconds now) {
    const Seconds time = now + load.delays[random() % load.delays.size()];
    plain.emplace(time, asked);
    queue.push(time, asked++);
  };
  while (asked < load.begin) ask(0_s);
  while (!plain.empty()) {
    const Asked expected = plain.top();
    plain.pop();
    if (queue.empty() || queue.next_time() != expected.first) return false;
    if (queue.pop().payload != expected.second) return false;
    const auto children =
        static_cast<int>(random() % (static_cast<unsigned>(load.most_children) + 1));
    for (int i = 0; i < children && asked < load.events; ++i) ask(expected.first);
  }
  return queue.empty() && queue.num_pushed() == static_cast<std::uint64_t>(asked);
}

std::vector<Seconds> many_delays() {
  std::vector<Seconds> delays;
  for (int i = 0; i < 1000; ++i) delays.push_back(1_us * (1.0 + 7.3 * i));
  return delays;
}

TEST_CASE("events come in the order of their times, those of one time in the order of asking") {
  const std::vector<Load> loads = {
      {.begin = 1, .delays = many_delays()},
      {.begin = 16, .delays = many_delays()},
      {.begin = 17, .delays = many_delays()},
      {.begin = 3000, .delays = many_delays()},
      {.begin = 20'000, .events = 60'000, .delays = many_delays()},
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
      CHECK(is_in_order(loads[i], seed));
    }
}

TEST_CASE(
    "an event asked for before the last one taken gets its time, and comes after those of that "
    "time") {
  EventQueue<int> queue;
  for (const int i : {0, 1}) queue.push(2_s, i);
  queue.push(3_s, 2);
  CHECK(queue.pop().payload == 0);
  queue.push(1_s, 3);
  CHECK(queue.next_time() == 2_s);
  CHECK(queue.pop().payload == 1);
  CHECK(queue.next_time() == 2_s);
  const auto late = queue.pop();
  CHECK(late.payload == 3);
  CHECK(late.time == 2_s);
  CHECK(queue.pop().payload == 2);
  CHECK(queue.empty());
}

}  // namespace
}  // namespace windtunnel::detail
