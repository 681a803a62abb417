// Folding on pipelines drawn by rapidcheck, simulated folded and whole.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <memory>
#include <string>

#include "core/testing.hpp"
#include "simulate/drawn_scenario_fixtures.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

Report report_when(const Scenario& scenario, Folding folding) {
  SimulateOptions options;
  options.make_engine = make_native_engine;
  options.folding = folding;
  return simulate(scenario, options).report;
}

TEST_CASE("any pipeline comes out the same, folded or not") {
  const Library library{source_dir()};
  int num_drawn = 0, num_folded = 0;
  const bool same = rc::check([&] {
    const std::string text = testing::drawn_scenario();
    RC_LOG() << text;
    const std::string rate = *rc::gen::element<std::string>("2 Gbps", "20 Gbps", "200 Gbps");
    Problems problems;
    const auto source = std::make_shared<const SourceText>(SourceText{"drawn.json", text});
    ReadOptions read;
    read.overrides = {{"/platform/node_types/0/nic_rate", rate}};
    const Scenario scenario =
        read_scenario(parse_json(source, problems), library.root, library, read);
    const Report folded = report_when(scenario, Folding::when_exact);
    ++num_drawn;
    if (folded.simulated_microbatches == 0) return;
    ++num_folded;
    const Report whole = report_when(scenario, Folding::never);
    const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); };
    RC_ASSERT(near(folded.iteration_time.value(), whole.iteration_time.value()));
    for (int line = 0; line < num_lines; ++line) {
      const Seconds off = folded.breakdown.of(static_cast<Line>(line)) -
                          whole.breakdown.of(static_cast<Line>(line));
      RC_ASSERT(std::abs(off / whole.iteration_time) < 1e-9);
    }
    for (std::size_t i = 0; i < whole.traffic.size(); ++i) {
      RC_ASSERT(near(folded.traffic[i].value(), whole.traffic[i].value()));
      RC_ASSERT(folded.messages[i].uncompressed == whole.messages[i].uncompressed);
    }
    RC_ASSERT(folded.memory.max_total == whole.memory.max_total);
  });
  CHECK(same);
  CHECK(num_folded * 10 > num_drawn);
}

}  // namespace
}  // namespace windtunnel
