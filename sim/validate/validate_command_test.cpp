#include "validate/validate_command.hpp"

#include <doctest/doctest.h>

#include <sstream>

#include "core/json_value.hpp"
#include "core/problem.hpp"
#include "core/testing.hpp"

namespace windtunnel {
namespace {

ValidatedSet set_with_error(double error) {
  ValidatedSet set;
  set.name = "s";
  set.num_points = 1;
  set.comparisons = {{"a", "", Seconds{1}, Seconds{1 + error}, Flops{1}}};
  return set;
}

TEST_CASE("a limit names a metric and a fraction") {
  const ScoreLimit limit = parse_score_limit("mape=0.06");
  CHECK(limit.metric == "mape");
  CHECK(limit.limit == doctest::Approx(0.06));
}

TEST_CASE("a limit that could pass unnoticed is refused") {
  CHECK_THROWS_WITH_AS(parse_score_limit("mepa=0.06"), doctest::Contains("did you mean \"mape\"?"),
                       InputError);
  CHECK_THROWS_AS(parse_score_limit("accuracy=0.06"), InputError);
  for (const char* text :
       {"mape", "mape=", "mape=6%", "mape=-1", "mape=nan", "mape=inf", "mape=0.06x", "", "="})
    CHECK_THROWS_AS(parse_score_limit(text), InputError);
}

TEST_CASE("above the limit is a negative verdict, on it is not") {
  CHECK(negative_verdicts({set_with_error(0.25)}, {{"mape", 0.25}}).empty());
  CHECK(negative_verdicts({set_with_error(0.25)}, {{"mape", 0.2}}).size() == 1);
  CHECK(negative_verdicts({set_with_error(-0.25)}, {{"bias", 0.2}}).size() == 1);
  CHECK(negative_verdicts({set_with_error(0.25)}, {}).empty());
}

TEST_CASE("a limit that no set has anything for is a negative verdict") {
  ValidatedSet with_memory = set_with_error(0);
  with_memory.memory = {{"a", MemoryKind::allocated, "", 10_MiB, 12_MiB}};
  CHECK(negative_verdicts({set_with_error(0)}, {{"memory_mape", 0.1}}).size() == 1);
  CHECK(negative_verdicts({set_with_error(0), with_memory}, {{"memory_mape", 0.3}}).empty());
  CHECK(negative_verdicts({set_with_error(0), with_memory}, {{"memory_mape", 0.1}}).size() == 1);
}

TEST_CASE("nothing scored, failed points and no sets at all are negative verdicts") {
  CHECK(negative_verdicts({}, {}).size() == 1);
  ValidatedSet empty;
  empty.skipped = {{"a", SkipKind::unsupported, "why"}};
  CHECK(negative_verdicts({empty}, {}).size() == 1);
  ValidatedSet failed = set_with_error(0);
  failed.skipped = {{"b", SkipKind::failed, "why"}};
  CHECK(negative_verdicts({failed}, {}).size() == 1);
  failed.skipped = {{"b", SkipKind::unsupported, "why"}};
  CHECK(negative_verdicts({failed}, {}).empty());
}

double predicted(const JsonValue& point) {
  return std::get<double>(point.find("predicted_s")->content);
}

TEST_CASE("a value set on the command line changes every point, and the score says so") {
  ValidateRequest request;
  request.sets = {"megatron-2020-tensor-scaling"};
  request.format = ResultFormat::json;
  const auto document = [&] {
    std::ostringstream out, messages;
    REQUIRE(run_validate(request, Library{source_dir()}, out, messages) == 0);
    Problems problems;
    return parse_json(std::make_shared<const SourceText>(SourceText{"out", out.str()}), problems);
  };
  const JsonValue as_shipped = document();
  request.overrides = {
      {"/platform/node_types/0/device/peak/fp16", "250 TFLOPS"}};  // twice the V100's 125
  const JsonValue faster = document();
  const JsonValue::Array& before = as_shipped.find("points")->array();
  const JsonValue::Array& after = faster.find("points")->array();
  REQUIRE(before.size() == 4);
  REQUIRE(after.size() == 4);
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(predicted(after[i]) < predicted(before[i]));
  CHECK(as_shipped.find("sets")->array()[0].find("overrides") == nullptr);
  CHECK(faster.find("sets")->array()[0].find("overrides")->array()[0].string() ==
        "/platform/node_types/0/device/peak/fp16=250 TFLOPS");
}

}  // namespace
}  // namespace windtunnel
