#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "plan/pipeline_layout.hpp"

namespace windtunnel {
namespace {

using Options = std::vector<std::vector<StageOption>>;

/// A stage of `each` seconds a part, with something of its own besides, that holds at most `most` parts.
std::vector<StageOption> stage(int parts, double each, double own = 0, int most = 1000) {
  std::vector<StageOption> options;
  for (int n = 0; n <= parts; ++n) options.push_back({Seconds{own + each * n}, n <= most});
  return options;
}

struct Judged {
  Seconds slowest{}, sum{};
  bool fits = true;
};
Judged judged(const Options& options, const std::vector<int>& split) {
  Judged result;
  for (std::size_t s = 0; s < split.size(); ++s) {
    const StageOption& option = options[s][static_cast<std::size_t>(split[s])];
    result.slowest = std::max(result.slowest, option.time);
    result.sum += option.time;
    result.fits = result.fits && option.fits;
  }
  return result;
}

/// Every split of `parts` over the stages.
void enumerate(std::size_t stages, int parts, std::vector<int>& begun,
               std::vector<std::vector<int>>& all) {
  if (begun.size() + 1 == stages) {
    begun.push_back(parts);
    all.push_back(begun);
    begun.pop_back();
    return;
  }
  for (int own = 0; own <= parts; ++own) {
    begun.push_back(own);
    enumerate(stages, parts - own, begun, all);
    begun.pop_back();
  }
}

TEST_CASE("equal stages share equally") {
  CHECK(split_stages(Options(4, stage(8, 1))) == std::vector<int>{2, 2, 2, 2});
  CHECK(split_stages(Options(2, stage(0, 1))) == std::vector<int>{0, 0});
}

TEST_CASE("what does not divide is spread, not left to one stage") {
  // 9 layers on 4 stages: some stage has 3, and of 3 + 3 + 3 + 0 to 3 + 2 + 2 + 2 the last is the most even.
  std::vector<int> split = split_stages(Options(4, stage(9, 1)));
  std::sort(split.begin(), split.end());
  CHECK(split == std::vector<int>{2, 2, 2, 3});
}

TEST_CASE("a stage with a head of two layers' time has two layers fewer") {
  // 4 stages, 14 layers and the head's 2: 16 / 4 = 4 s each.
  CHECK(split_stages({stage(14, 1), stage(14, 1), stage(14, 1), stage(14, 1, 2)}) ==
        std::vector<int>{4, 4, 4, 2});
}

TEST_CASE("a GPU of a third of the speed has a third of the layers") {
  // 3 + 3 + 3 + 1 = 10 layers take 3 s everywhere.
  CHECK(split_stages({stage(10, 1), stage(10, 1), stage(10, 1), stage(10, 3)}) ==
        std::vector<int>{3, 3, 3, 1});
}

TEST_CASE("memory bounds a stage that is fast enough for more") {
  CHECK(split_stages({stage(9, 1, 0, 2), stage(9, 1), stage(9, 1)}) ==
        std::vector<int>{2, 3, 4});  // or 2, 4, 3: as even
  // Where nothing fits, time alone decides.
  CHECK(split_stages({stage(9, 1, 0, 2), stage(9, 1, 0, 2), stage(9, 1, 0, 2)}) ==
        std::vector<int>{3, 3, 3});
}

TEST_CASE("no split of all that there are is better") {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> time(1, 9), most(1, 6), stages(1, 4), layers(0, 7);
  for (int trial = 0; trial < 200; ++trial) {
    const int parts = layers(random);
    Options options;
    for (int s = stages(random); s > 0; --s)
      options.push_back(stage(parts, time(random), time(random), most(random)));
    std::vector<std::vector<int>> all;
    std::vector<int> begun;
    enumerate(options.size(), parts, begun, all);
    const bool some_fit =
        std::any_of(all.begin(), all.end(), [&](const auto& s) { return judged(options, s).fits; });
    const Judged chosen = judged(options, split_stages(options));
    CHECK(chosen.fits == some_fit);
    for (const std::vector<int>& split : all) {
      const Judged other = judged(options, split);
      if (some_fit && !other.fits) continue;
      CHECK(chosen.slowest <= other.slowest);
      if (chosen.slowest == other.slowest) CHECK(chosen.sum <= other.sum);
    }
  }
}

}  // namespace
}  // namespace windtunnel
