#include "memory/memory_correction.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>

namespace windtunnel {
namespace {

/// One unit that looks at the first feature alone.
MemoryCorrection one_unit(double weight, double output, double most) {
  const std::size_t inputs = memory_feature_names().size();
  MemoryCorrection correction;
  correction.software = "mine";
  correction.quantity = "allocated";
  correction.sets = {"a"};
  correction.mean.assign(inputs, 1);
  correction.scale.assign(inputs, 2);
  correction.hidden = {std::vector<double>(inputs + 1, 0)};
  correction.hidden[0][0] = weight;
  correction.output = {output, 0.01};
  correction.most = most;
  correction.held_out = {10, 5, 0.02, 0.01};
  return correction;
}

TEST_CASE("a correction is the network's output, never beyond what it was shown") {
  std::vector<double> features(memory_feature_names().size(), 1);
  features[0] = 5;  // z = (5 - 1) / 2 = 2
  const double y = 0.03 * std::tanh(0.5 * 2) + 0.01;
  CHECK(correction_factor(one_unit(0.5, 0.03, 0.1), features) ==
        doctest::Approx(std::exp(0.1 * std::tanh(y / 0.1))));
  // However large its output: at most 10 %.
  CHECK(correction_factor(one_unit(0.5, 100, 0.1), features) == doctest::Approx(std::exp(0.1)));
  CHECK(correction_factor(one_unit(0.5, 100, 0), features) == 1);
}

TEST_CASE("a correction speaks only where it was better on runs that it had not seen") {
  MemoryCorrection correction = one_unit(1, 1, 1);
  CHECK(correction.is_better());
  correction.held_out.corrected = correction.held_out.analytic;
  CHECK(!correction.is_better());
}

TEST_CASE("a correction's file reads back to the last bit, and a damaged one is refused") {
  const MemoryCorrection correction = one_unit(1.0 / 3, -0.1, 0.05);
  const auto read = [](const std::string& text, Problems& problems) {
    JsonValue value =
        parse_json(std::make_shared<const SourceText>(SourceText{"c.json", text}), problems);
    return read_memory_correction(value, {}, problems);
  };
  const std::string text = memory_correction_json(correction);
  Problems none;
  const MemoryCorrection again = read(text, none);
  CHECK(none.empty());
  CHECK(memory_correction_json(again) == text);
  CHECK(again.hidden == correction.hidden);
  for (const char* damage : {"\"features\": [", "\"output\": [", "\"mean\": ["}) {
    std::string damaged = text;
    damaged.replace(damaged.find(damage), std::string(damage).size(),
                    std::string(damage) + "\"x\", ");
    Problems problems;
    read(damaged, problems);
    CHECK(!problems.empty());
  }
}

}  // namespace
}  // namespace windtunnel
