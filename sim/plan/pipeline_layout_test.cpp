#include "plan/pipeline_layout.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace windtunnel {
namespace {

using Layers = std::vector<int>;

Layers layers(std::string_view layout) {
  auto read = read_pipeline_layout(layout);
  if (const auto* fault = std::get_if<LayoutFault>(&read)) FAIL(fault->message);
  return std::get<PipelineLayout>(read).layers;
}

/// "column: message".
std::string fault(std::string_view layout) {
  const auto read = read_pipeline_layout(layout);
  if (std::holds_alternative<PipelineLayout>(read)) return "accepted";
  const auto& found = std::get<LayoutFault>(read);
  return std::to_string(found.column) + ": " + found.message;
}

TEST_CASE("a layout's letters are counted by part") {
  CHECK(layers("EL") == Layers{0});
  CHECK(layers("Ett|tL") == Layers{2, 1});
  CHECK(layers("E|tt|t|L") == Layers{0, 2, 1, 0});
  CHECK(layers("E,t t,|,tL") == Layers{2, 1});
}

TEST_CASE("repetitions are unrolled as Megatron-LM's comments show it") {
  // xy(ab|cd|ef)*2,pq -> xyab|cd|efab|cd|efpq
  CHECK(layers("E(tt|t|ttt)*2,tL") == Layers{2, 1, 5, 1, 4});
  // ab,(cd|)*2 -> abcd|cd|
  CHECK(layers("Et,(tt|)*2,L") == Layers{3, 2, 0});
  // (|ab)*2,cd -> |ab|abcd
  CHECK(layers("E(|tt)*2,tL") == Layers{0, 2, 3});
  CHECK(layers("Et*3|t*12L") == Layers{3, 12});
  CHECK(layers("E(t*2|)*3,tL") == Layers{2, 2, 2, 1});
  CHECK(layers("E(t|)*10L").size() == 11);
  // The example of the documentation, its MTP layer with the head: 3, then 29 parts of 2, then the head's.
  const Layers documented = layers("Et*3|(tt|)*29,mL");
  CHECK(documented.size() == 31);
  CHECK(documented.front() == 3);
  CHECK(documented[29] == 2);
  CHECK(documented.back() == 0);
}

TEST_CASE("layers of multi-token prediction are counted apart from those of parts") {
  const auto read = read_pipeline_layout("Et*2|t,m*2,L");
  CHECK(std::get<PipelineLayout>(read).layers == Layers{2, 1});
  CHECK(std::get<PipelineLayout>(read).mtp_layers == 2);
}

TEST_CASE("what is wrong with a layout is told with its column") {
  const std::string apart =
      "multi-token prediction (m) must come just before the loss (L), in its part";
  CHECK(fault("Et*3|(tt|)*2,m|L") == "13: " + apart);
  CHECK(fault("EtmtL") == "2: " + apart);
  CHECK(fault("EtLm") == "2: the loss (L) must come last, and once");
  CHECK(fault("") == "0: the layout is empty");
  CHECK(fault("tt|tL") == "0: the first stage must begin with the embedding (E)");
  CHECK(fault("|EtL") == "1: the embedding (E) must come first, and once");
  CHECK(fault("Et|EtL") == "3: the embedding (E) must come first, and once");
  CHECK(fault("Et|tt") == "4: the last stage must end with the loss (L)");
  CHECK(fault("EtL|t") == "2: the loss (L) must come last, and once");
  CHECK(fault("Etx|L") == "2: there is no layer \"x\"");
  CHECK(fault("Et*|L") == "2: \"*\" needs a whole number from 1 to a million behind it");
  CHECK(fault("Et*0|L") == "2: \"*\" needs a whole number from 1 to a million behind it");
  CHECK(fault("*3EL") == "0: \"*\" has nothing before it to repeat");
  CHECK(fault("E(tt|L") == "1: \"(\" has no \")\"");
  CHECK(fault("Ett)L") == "3: \")\" has no \"(\"");
  CHECK(fault("E((t*1000)*1000)*1000L") == "1: the layout is longer than a million letters");
  CHECK(fault("E" + std::string(200, '(')) == "101: parentheses are more than a hundred deep");
}

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
