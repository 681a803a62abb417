#include "scenario/overrides.hpp"

#include <doctest/doctest.h>

#include "core/testing.hpp"

namespace windtunnel {
namespace {

Scenario read(const Overrides& overrides) {
  const std::filesystem::path corpus = source_dir() / "sim/scenario/corpus";
  return read_scenario(corpus / "good/plain.json", Library{corpus / "library"}, {overrides, 0});
}

std::string refusal(const Overrides& overrides) {
  try {
    expect_independent(overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST_CASE("one --set that undoes another is refused with both names, whichever comes first") {
  const Overrides::value_type rate{"/platform/node_types/0/nics", "8"};
  const Overrides::value_type platform{"/platform", "boxes"};
  const std::string text = refusal({rate, platform});
  CHECK(text.find("--set /platform/node_types/0/nics=8: error: --set /platform replaces the whole "
                  "that /platform/node_types/0/nics is part of") == 0);
  CHECK(refusal({platform, rate}) == text);
  CHECK(refusal({{"/platform", "boxes"}, {"/platforms", "x"}, {"/nodes", "2"}}) == "accepted");
}

TEST_CASE("the last of two --set of the same pointer counts") {
  const Overrides twice{{"/training/micro_batch", "4"}, {"/training/micro_batch", "2"}};
  CHECK(refusal(twice) == "accepted");
  CHECK(read(twice).plan.training.micro_batch == 2);
}

TEST_CASE("changes laid over --set give the scenario that they give one after the other") {
  const auto check = [](const Overrides& earlier, const Overrides& later) {
    Overrides both = earlier;
    both.insert(both.end(), later.begin(), later.end());
    const Overrides laid = laid_over(earlier, later, read(earlier).resolved);
    CHECK(refusal(laid) == "accepted");
    CHECK(read(laid).hash == read(both).hash);
    return laid;
  };
  const Overrides rate{{"/platform/node_types/0/nic_rate", "50 Gbps"}, {"/name", "mine"}};
  // The same pointer, a value inside an earlier one, and a value around earlier ones.
  CHECK(check(rate, {{"/platform/node_types/0/nic_rate", "10 Gbps"}}).size() == 2);
  CHECK(check({{"/platform", "pair"}}, rate).size() == 2);
  CHECK(check({{"/parallel", R"({"tensor": 2, "pipeline": 2})"}},
              {{"/parallel/zero_stage", "1"}, {"/parallel/schedule", "gpipe"}})
            .size() == 1);
  const JsonValue boxes = *read({}).resolved.find("platform");
  CHECK(check(rate, {{"/platform", canonical_text(boxes)}}).size() == 2);
  // Nothing to do with each other.
  CHECK(check({{"/nodes", "1"}}, {{"/training/micro_batch", "2"}}).size() == 2);
}

}  // namespace
}  // namespace windtunnel
