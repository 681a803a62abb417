// Compressed gradients and parameters of models with experts, whose copies reduce and gather among themselves.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <string>

#include "simulate/expert_fixtures.hpp"

namespace windtunnel {
namespace {

using namespace two_by_two;

Seconds codec(const Report& report) { return report.breakdown.of(Line::codec); }

const std::string quarter = R"("data_gradients": {"codec": "fixed", "ratio": 4})";

TEST_CASE("gradients of experts are compressed like all others") {
  for (const int zero : {0, 1, 2, 3})
    for (const int expert : {2, 4}) {
      const Traffic traffic = zero == 3 ? Traffic::zero_scatter : Traffic::data_gradients;
      CHECK(sent(report_for(scenario_of(zero, expert, quarter)), traffic) ==
            doctest::Approx(sent(report_for(scenario_of(zero, expert, "")), traffic) / 4));
    }
}

TEST_CASE("parameters of experts are compressed as they are gathered, like all others") {
  const std::string gather = R"("zero_gather": {"codec": "fixed", "ratio": 4})";
  for (const int zero : {1, 2, 3})
    for (const int expert : {2, 4})
      CHECK(sent(report_for(scenario_of(zero, expert, gather)), Traffic::zero_gather) ==
            doctest::Approx(sent(report_for(scenario_of(zero, expert, "")), Traffic::zero_gather) /
                            4));
}

TEST_CASE("two copies of experts encode and decode all of their gradients once") {
  // With four experts on four ranks nobody else has them. With two on a rank, a ring of two encodes two halves and decodes two: 4 bytes
  // a gradient at 100 and at 200 GB/s.
  const std::string timed =
      R"("data_gradients": {"codec": "fixed", "ratio": 4, "encode_rate": "100 GB/s", "decode_rate": "200 GB/s"})";
  constexpr double paper = 4 * of_rank / 100e9 + 4 * of_rank / 200e9;
  for (const char* overlap : {"false", "true"}) {
    const Overrides overlapping{{"/parallel/overlap_gradient_reduce", overlap}};
    const Seconds shared = codec(report_for(scenario_of(0, 2, timed, overlapping))),
                  alone = codec(report_for(scenario_of(0, 4, timed, overlapping)));
    CHECK((shared - alone).value() == doctest::Approx(paper).epsilon(1e-9));
  }
}

TEST_CASE("a gather of experts encodes a half and decodes the other's") {
  const std::string timed =
      R"("zero_gather": {"codec": "fixed", "ratio": 4, "encode_rate": "100 GB/s", "decode_rate": "200 GB/s"})";
  constexpr double paper = of_rank / 100e9 + of_rank / 200e9;  // half of 2 bytes a parameter
  CHECK((codec(report_for(scenario_of(1, 2, timed))) - codec(report_for(scenario_of(1, 4, timed))))
            .value() == doctest::Approx(paper).epsilon(1e-9));
}

TEST_CASE("PowerSGD sends the factors of every expert's matrices") {
  // Two experts a rank, two matrices of 2,048 x 1,024 each, rank 8: (2,048 + 1,024) * 8 fp32 values. An all-reduce between two copies
  // sends each once, on four ranks.
  const std::string factors = R"("data_gradients": {"codec": "powersgd", "rank": 8})";
  const Report shared = report_for(scenario_of(0, 2, factors)),
               alone = report_for(scenario_of(0, 4, factors));
  CHECK(sent(shared, Traffic::data_gradients) - sent(alone, Traffic::data_gradients) ==
        doctest::Approx(4 * 4 * (2048 + 1024) * 8 * 4));
  CHECK(codec(shared) > codec(alone));
}

TEST_CASE("PowerSGD keeps a residual of each expert's gradient") {
  const auto buffers = [](int expert, const char* feedback) {
    return report_for(
               scenario_of(0, expert,
                           std::string(R"("data_gradients": {"codec": "powersgd", "rank": 8, )") +
                               "\"error_feedback\": " + feedback + "}"))
        .memory.stages.front()
        .buffers;
  };
  const Bytes shared = buffers(2, "true") - buffers(2, "false"),
              alone = buffers(4, "true") - buffers(4, "false");
  CHECK((shared - alone).value() == doctest::Approx(4 * of_rank).epsilon(1e-9));
}

TEST_CASE("experts' codecs take as long as numbers as operation by operation") {
  CHECK(rc::check([] {
    const int zero = *rc::gen::inRange(0, 4), expert = *rc::gen::element(1, 2, 4);
    const std::string rates = R"("encode_rate": "100 GB/s", "decode_rate": "200 GB/s"})";
    std::string classes = R"("data_gradients": {"codec": "fixed", "ratio": 3, )" + rates;
    if (zero > 0) classes += R"(, "zero_gather": {"codec": "fixed", "ratio": 2, )" + rates;
    if (zero == 0 && *rc::gen::inRange(0, 2) == 1)
      classes = R"("data_gradients": {"codec": "powersgd", "rank": 4})";
    Overrides more{{"/model/layers", *rc::gen::element<std::string>("2", "3")},
                   {"/model/moe/dense_layers", *rc::gen::element<std::string>("0", "1")},
                   {"/model/moe/shared_ffn_hidden", *rc::gen::element<std::string>("0", "512")}};
    if (zero < 3)
      more.emplace_back("/parallel/overlap_gradient_reduce",
                        *rc::gen::element<std::string>("false", "true"));
    if (zero == 3) more.emplace_back("/parallel/zero_prefetch", "1");
    const Scenario scenario = scenario_of(zero, expert, classes, more);
    const Report folded = report_for(scenario, Detail::pass, make_heap_engine),
                 layered = report_for(scenario, Detail::layer, make_heap_engine);
    RC_ASSERT(std::abs(layered.iteration_time / folded.iteration_time - 1) < 1e-9);
    for (std::size_t kind = 0; kind < folded.traffic.size(); ++kind)
      RC_ASSERT(std::abs(layered.traffic[kind].value() - folded.traffic[kind].value()) <=
                1e-9 * folded.traffic[kind].value());
  }));
}

}  // namespace
}  // namespace windtunnel
