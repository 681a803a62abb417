#include "search/rank.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "core/testing.hpp"
#include "report/number_text.hpp"
#include "report/report_words.hpp"
#include "search/rank_command.hpp"
#include "search/rank_document.hpp"
#include "search/testing.hpp"
#include "simulate/simulate.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// GPT-1.7B on two nodes of eight GPUs.
Scenario small(const std::string& search = "{}") {
  return scenario_from(
      R"({"name": "small", "model": "gpt-1.7b", "platform": "a100-80gb-4hdr", "nodes": 2,
          "training": {"global_batch": 64, "micro_batch": 2, "recompute": "full"},
          "parallel": {"tensor": 8, "pipeline": 2}, "search": )" +
      search + "}");
}

RankOptions top(int plans) {
  RankOptions options;
  options.top = plans;
  options.at_once = 2;
  return options;
}

constexpr int all = 1'000'000;

std::string rank_text(const Scenario& base, const RankResult& result) {
  return text_of(rank_document(base, result));
}
std::string rank_json(const Scenario& base, const RankResult& result) {
  return json_of(rank_document(base, result));
}

TEST_CASE("the table is what simulating every plan gives") {
  const Scenario scenario = small(R"({"micro_batch": [1, 2, 4, 8]})");
  const RankResult everything = rank_plans(scenario, top(all));
  const RankResult table = rank_plans(scenario, top(5));
  REQUIRE(everything.plans.size() >= 20);
  CHECK(everything.simulated == everything.plans.size());
  REQUIRE(table.plans.size() == 5);
  for (std::size_t i = 0; i < table.plans.size(); ++i) {
    CHECK(table.plans[i].time == everything.plans[i].time);
    CHECK(detail::plan_text(table.plans[i].choice.training, table.plans[i].choice.parallel) ==
          detail::plan_text(everything.plans[i].choice.training,
                            everything.plans[i].choice.parallel));
  }
  CHECK(table.table_is_proven);
  CHECK(table.gap == 0);
  CHECK(table.simulated < everything.simulated);
}

/// The same with a price and powers, ranked by `objective`.
Scenario small_by(const std::string& objective) {
  return scenario_from(
      R"({"name": "small", "model": "gpt-1.7b", "platform": "a100-80gb-4hdr", "nodes": 2,
          "training": {"global_batch": 64, "micro_batch": 2, "recompute": "full"},
          "parallel": {"tensor": 8, "pipeline": 2},
          "job": {"tokens": 1e11, "price": {"gpu_hour": 2},
                  "power": {"computing": 400, "communicating": 200, "idle": 60, "node": 1500}},
          "search": {"micro_batch": [1, 2, 4, 8], "objective": ")" +
      objective + "\"}}");
}

TEST_CASE("on one cluster money, days and tokens a second rank plans as time does") {
  const RankResult by_time = rank_plans(small_by("time"), top(5));
  for (const std::string objective : {"tokens_per_second", "cost_per_token", "days"}) {
    CAPTURE(objective);
    const Scenario scenario = small_by(objective);
    const RankResult result = rank_plans(scenario, top(5));
    REQUIRE(result.plans.size() == by_time.plans.size());
    for (std::size_t i = 0; i < result.plans.size(); ++i)
      CHECK(result.plans[i].time == by_time.plans[i].time);
    CHECK(result.table_is_proven);
    CHECK(result.simulated == by_time.simulated);
    const double tokens = 64.0 * scenario.model.sequence, time = result.plans[0].time.value();
    const double by_hand = objective == "cost_per_token" ? 16 * 2 * time / 3600 / tokens
                           : objective == "days"         ? std::ceil(1e11 / tokens) * time / 86400
                                                         : -tokens / time;
    CHECK(result.plans[0].penalty == doctest::Approx(by_hand));
    CHECK(rank_json(scenario, result).find("\"" + objective + "\": ") != std::string::npos);
  }
}

TEST_CASE("energy ranks plans in an order of its own, as simulating every plan gives") {
  const Scenario scenario = small_by("energy_per_token");
  const RankResult everything = rank_plans(scenario, top(all)),
                   table = rank_plans(scenario, top(3));
  REQUIRE(table.plans.size() == 3);
  CHECK(table.table_is_proven);
  for (std::size_t i = 0; i < table.plans.size(); ++i)
    CHECK(table.plans[i].penalty == everything.plans[i].penalty);
  const auto slower_first = [&](std::size_t i) {
    return everything.plans[i].time > everything.plans[i + 1].time;
  };
  bool any = false;
  for (std::size_t i = 0; i + 1 < everything.plans.size(); ++i) {
    CHECK(everything.plans[i].penalty <= everything.plans[i + 1].penalty);
    CHECK(everything.plans[i].least_penalty <= everything.plans[i].penalty);
    any = any || slower_first(i);
  }
  CHECK(any);
  CHECK(rank_text(scenario, table).find("J/token") != std::string::npos);
}

TEST_CASE("an objective without the price it needs is refused with its pointer") {
  const Scenario scenario = small(R"({"objective": "cost_per_token"})");
  CHECK_THROWS_WITH_AS(rank_plans(scenario, top(1)), doctest::Contains("/search/objective"),
                       InputError);
}

TEST_CASE(
    "degrees of expert and expert tensor parallelism are searched, and written with the plans") {
  const Scenario scenario = scenario_from(
      R"({"model": {"layers": 8, "hidden": 1024, "heads": 16, "sequence": 1024, "vocab": 32000,
          "moe": {"experts": 16, "top_k": 2, "ffn_hidden": 2048}}, "platform": "a100-80gb-4hdr", "nodes": 2,
          "training": {"global_batch": 64, "micro_batch": 2}, "parallel": {"data": 16, "zero_stage": 1},
          "search": {"tensor": [1], "pipeline": [1, 2], "micro_batch": [2], "expert": [2, 4, 8], "expert_tensor": [1, 2]}})");
  const RankResult result = rank_plans(scenario, top(all));
  CHECK(result.plans.size() == 11);  // with two stages, 8 * 2 are more ranks than a stage has
  CHECK(result.table_is_proven);
  for (const RankedPlan& plan : result.plans) CHECK(plan.bound <= plan.time);
  const auto of = [&](int expert, int cut) {
    return *std::find_if(result.plans.begin(), result.plans.end(), [&](const RankedPlan& plan) {
      const Parallel& parallel = plan.choice.parallel;
      return parallel.pipeline == 1 && parallel.expert == expert && parallel.expert_tensor == cut;
    });
  };
  CHECK(of(8, 1).memory_max < of(2, 1).memory_max);  // a quarter of the experts a rank
  CHECK(of(2, 2).memory_max < of(2, 1).memory_max);
  CHECK(rank_json(scenario, result).find("\"expert_tensor\": 2") != std::string::npos);
}

TEST_CASE("precisions are searched, and written with the plans") {
  const Scenario scenario = scenario_from(
      R"({"model": "llama3-8b", "platform": "dgx-h100", "nodes": 2, "software": "megatron-core-2024",
          "training": {"global_batch": 64, "micro_batch": 1, "precision": "bf16", "attention": "flash"},
          "parallel": {"tensor": 2, "data": 8, "sequence_parallel": true, "zero_stage": 1},
          "search": {"tensor": [2, 4], "pipeline": [1, 2], "micro_batch": [1], "precision": ["bf16", "fp8", "nvfp4"]}})");
  const RankResult result = rank_plans(scenario, top(all));
  REQUIRE(result.plans.size() ==
          8);  // none of the four in nvfp4, which an H100 does not compute in
  CHECK(result.table_is_proven);
  for (const RankedPlan& plan : result.plans) CHECK(plan.bound <= plan.time);
  CHECK(result.plans.front().choice.training.precision == Precision::fp8);
  CHECK(rank_json(scenario, result).find("\"precision\": \"fp8\"") != std::string::npos);
}

TEST_CASE("a searched plan has the figures that simulating its scenario gives, bit by bit") {
  // 1,024 microbatches fold, 16 do not.
  for (const char* batch : {"16", "1024"}) {
    const Scenario base = scenario_from(
        R"({"model": "gpt-1.7b", "platform": "a100-80gb-4hdr", "nodes": 2, "training": {"global_batch": )" +
        std::string(batch) +
        R"(, "micro_batch": 1}, "parallel": {"tensor": 4, "pipeline": 4, "data": 1}})");
    const SearchSpace space = search_space(base);
    PlanChoice choice{base.plan.training, base.plan.parallel};
    choice.parallel.tensor = 2;
    choice.parallel.pipeline = 8;
    const PlanFigures plan = simulate_plans(base, space, {&choice}, 1).front();
    Scenario changed = base;
    changed.plan = std::get<Plan>(lay_out(base, space, choice));
    const Report report = simulate(changed, {}).report;
    CHECK(plan.iteration_time == report.iteration_time);
    CHECK(plan.memory.max_total == report.memory.max_total);
    CHECK(plan.breakdown.seconds == report.breakdown.seconds);
    CHECK((report.simulated_microbatches > 0) == (choice.training.global_batch > 16));
  }
}

TEST_CASE("plans are searched with the file's codecs, and refused where they cannot have them") {
  const auto searched = [](const Overrides& codecs) {
    return scenario_from(
        R"({"model": "gpt-3.6b", "platform": "a100-80gb-4hdr", "nodes": 2, "software": "megatron-lm-2021",
            "training": {"global_batch": 64, "micro_batch": 1},
            "parallel": {"tensor": 2, "pipeline": 2, "data": 4},
            "search": {"tensor": [1, 2], "pipeline": [2, 4], "micro_batch": [1], "recompute": ["none"]}})",
        codecs);
  };
  const Scenario base =
      searched({{"/compression/data_gradients", R"({"codec": "fixed", "ratio": 1000})"}});
  const RankResult compressed = rank_plans(base, top(all));
  REQUIRE(compressed.plans.size() > 1);
  for (const RankedPlan& plan : compressed.plans) {
    Scenario chosen = base;
    chosen.plan = std::get<Plan>(lay_out(searched({}), search_space(base), plan.choice));
    chosen.plan.compression = base.plan.compression;
    CHECK(simulate(chosen, {}).report.iteration_time == plan.time);
    CHECK(plan.bound <= plan.time);
  }
  CHECK(compressed.plans.front().time < rank_plans(searched({}), top(1)).plans.front().time);

  const Scenario factors =
      searched({{"/compression/data_gradients", R"({"codec": "powersgd", "rank": 4})"}});
  PlanChoice sharded{factors.plan.training, factors.plan.parallel};
  sharded.parallel.zero_stage = 2;
  const auto made = lay_out(factors, search_space(factors), sharded);
  REQUIRE(std::holds_alternative<std::vector<PlanRejection>>(made));
  CHECK(std::get<std::vector<PlanRejection>>(made).front().key ==
        "/compression/data_gradients/codec");
}

TEST_CASE("what is considered is rejected for one reason, or could be ranked") {
  const Scenario scenario = small(R"({"micro_batch": [1, 2, 4, 8, 16, 32]})");
  const RankResult result = rank_plans(scenario, top(all));
  // tensor 1, 2, 4, 8 x pipeline 1, 2, 4, 8, 16 (divisors of 16, at most 24 layers) x 6 microbatches
  CHECK(result.considered == 4 * 5 * 6);
  CHECK(result.considered == result.rejected_shape + result.rejected_memory + result.plans.size());
}

TEST_CASE(
    "a search of everything finds what its simulations find, and a faster plan than the lists") {
  // All that fit are bounded by their kernels, few by all that is known, and fewer are simulated.
  const Scenario everything = small("null"),
                 listed = small(R"({"micro_batch": [1, 2, 4, 8, 16, 32]})");
  const RankResult found = rank_plans(everything, top(3)),
                   all_of_it = rank_plans(everything, top(all));
  REQUIRE(found.plans.size() == 3);
  CHECK(found.table_is_proven);
  CHECK(found.simulated < all_of_it.simulated / 4);
  for (std::size_t i = 0; i < found.plans.size(); ++i)
    CHECK(found.plans[i].time == all_of_it.plans[i].time);
  CHECK(found.plans.front().time < rank_plans(listed, top(1)).plans.front().time);
  CHECK(found.plans.front().choice.training.recompute == Recompute::none);
}

TEST_CASE("no plan that is recommended needs more than its GPU has, margin included") {
  const Scenario scenario = small(R"({"recompute": ["none", "full"], "micro_batch": [1, 4, 16]})");
  const RankResult result = rank_plans(scenario, top(all));
  CHECK(result.rejected_memory > 0);
  REQUIRE_FALSE(result.plans.empty());
  for (const RankedPlan& plan : result.plans) {
    CAPTURE(detail::plan_text(plan.choice.training, plan.choice.parallel));
    const Plan laid_out = std::get<Plan>(lay_out(scenario, result.space, plan.choice));
    const MemoryCheck check = check_memory(scenario, laid_out, MemoryMargin{});
    CHECK(check.worst.required * 1.05 <= check.worst.usable);
    // The closed form of the search equals the simulation's count.
    CHECK(plan.memory_max == check.max_total);
  }
}

TEST_CASE("a larger margin rejects more plans, as a share or as a size") {
  const auto rejected = [](const char* margin) {
    const std::string block = R"({"micro_batch": [1, 8], "recompute": ["none", "full"],
                                  "memory_margin": ")" +
                              std::string(margin) + "\"}";
    RankOptions options = top(1);
    options.budget = 0;
    return rank_plans(small(block), options).rejected_memory;
  };
  CHECK(rejected("0 %") < rejected("100 %"));
  CHECK(rejected("0 GiB") == rejected("0 %"));
  CHECK(rejected("60 GiB") > rejected("0 GiB"));
}

TEST_CASE("plans that are not sure to fit are left out where the search says so") {
  const auto ranked = [](const char* sure) {
    const std::string block =
        R"({"micro_batch": [1, 8], "recompute": ["none", "full"], "zero_stage": [0, 3],
            "memory_margin": "0 %", "surely_fits": )" +
        std::string(sure) + "}";
    return rank_plans(small(block), top(100));
  };
  const auto is_sure = [](const RankedPlan& plan) {
    return plan.memory_verdict == MemoryVerdict::fits;
  };
  const RankResult all = ranked("false"), sure = ranked("true");
  const auto expected = std::ranges::count_if(all.plans, is_sure);
  REQUIRE(expected > 0);
  REQUIRE(expected < std::ssize(all.plans));
  CHECK(std::ssize(sure.plans) == expected);
  CHECK(std::ranges::all_of(sure.plans, is_sure));
  const auto unsure = std::ranges::find_if_not(all.plans, is_sure);
  const PlanExplanation why = explain_plan(small(R"({"surely_fits": true})"), unsure->choice, sure);
  REQUIRE(why.is_rejected());
  CHECK(text_of(*why.memory).ends_with("and /search/surely_fits leaves such plans out"));
}

TEST_CASE("a budget leaves a gap, which is no promise broken") {
  const Scenario scenario = small();
  const Seconds best = rank_plans(scenario, top(1)).plans.front().time;
  RankOptions options = top(3);
  options.budget = 1;
  const RankResult result = rank_plans(scenario, options);
  CHECK(result.simulated == 1);
  CHECK(result.lower_bound <= best);
  CHECK(result.gap >= 0);
  REQUIRE(result.plans.size() == 3);
  CHECK(result.plans[0].method == RankMethod::simulated);
  CHECK(result.plans[1].method == RankMethod::estimated);
  CHECK_FALSE(result.table_is_proven);
}

TEST_CASE("without a single simulation all places are estimates") {
  RankOptions options = top(3);
  options.budget = 0;
  const RankResult result = rank_plans(small(), options);
  CHECK(result.simulated == 0);
  CHECK(result.plans.front().method == RankMethod::estimated);
  CHECK(result.gap == 1);
  CHECK(result.lower_bound == result.plans.front().bound);
}

TEST_CASE("the number of cores changes no byte of the result") {
  const Scenario scenario = small();
  RankOptions one = top(4), many = top(4);
  one.at_once = 1;
  many.at_once = 7;
  CHECK(rank_json(scenario, rank_plans(scenario, one)) ==
        rank_json(scenario, rank_plans(scenario, many)));
}

TEST_CASE("when nothing fits the result says what comes nearest") {
  const Scenario scenario = small(R"({"memory_margin": "79 GiB"})");
  const RankResult result = rank_plans(scenario, top(3));
  CHECK(result.plans.empty());
  REQUIRE(result.nearest.has_value());
  REQUIRE(result.nearest->memory.has_value());
  CHECK_FALSE(result.nearest->memory->fits);
  CHECK(rank_text(scenario, result).find("Nearest to fitting is tensor 8") != std::string::npos);
  CHECK(rank_json(scenario, result).find("\"plans\": []") != std::string::npos);
}

TEST_CASE("when nothing fits the result says what would") {
  const Scenario scenario = scenario_from(
      R"({"name": "large", "model": "gpt3-175b", "platform": "a100-80gb-4hdr", "nodes": 2,
          "training": {"global_batch": 64, "micro_batch": 1, "recompute": "full"},
          "parallel": {"tensor": 8, "pipeline": 2}, "search": {"micro_batch": [1]}})");
  const RankResult result = rank_plans(scenario, top(3));
  REQUIRE(result.plans.empty());
  const std::string page = page_of(rank_document(scenario, result));
  CHECK(page.find(". Without the margin stage ") != std::string::npos);
  CHECK(page.find("too much; ") != std::string::npos);
  CHECK(page.find("nearest is pipeline 4 on twice the GPUs (") != std::string::npos);
}

TEST_CASE("slow links between some nodes change which plan is best") {
  // Two stages of one node each need little of the link between the nodes, replicas on both need much.
  const std::string search = R"({"tensor": [8], "micro_batch": [2]})";
  const Scenario fast = small(search);
  Scenario slow = small(search);
  slow.platform.link_overrides = {{NodeId{0}, NodeId{1}, 1_Gbps}, {NodeId{1}, NodeId{0}, 1_Gbps}};
  const auto best = [](const Scenario& scenario) {
    return rank_plans(scenario, top(1)).plans.front().choice.parallel.pipeline;
  };
  CHECK(best(fast) == 1);
  CHECK(best(slow) == 2);
}

TEST_CASE("plans that cannot be distinguished share a place") {
  const Scenario scenario =
      small(R"({"tensor": [8, 4], "zero_stage": [0, 1], "micro_batch": [1, 2]})");
  RankResult result = rank_plans(scenario, top(4));
  REQUIRE(result.plans.size() == 4);
  MeasuredErrors errors;
  judge_plans(scenario, errors, result);
  CHECK(result.plans[0].place == 0);  // nothing is known of errors
  CHECK(rank_text(scenario, result).find("cannot be told apart") == std::string::npos);

  // Twenty sets whose pairs are all off by one allowance: a gain of more is right in 97.6 of 100 cases, one of less in 50.
  errors.pairs.allowance.base = std::log(result.plans[2].time / result.plans[0].time) / 2 +
                                std::log(result.plans[1].time / result.plans[0].time) / 2;
  for (int i = 0; i < 20; ++i) errors.pairs.sets["set" + std::to_string(i)] = {1.0};
  errors.pairs.find_bounds();
  judge_plans(scenario, errors, result);
  CHECK(result.plans[0].place == 1);
  CHECK(result.plans[1].place == 1);
  CHECK(result.plans[2].place == 3);
  // Errors larger than a number can say tell no plans apart.
  RankResult untold = result;
  MeasuredErrors huge = errors;
  huge.pairs.allowance.base = 1000;
  judge_plans(scenario, huge, untold);
  for (const RankedPlan& plan : untold.plans) {
    CHECK(plan.place == 1);
    CHECK_FALSE(plan.against_best);
  }

  const std::string text = rank_text(scenario, result);
  // Plans are numbered in the order of their times; a difference that is not known has a mark.
  CHECK(text.find("slower by") != std::string::npos);
  CHECK(text.find("≈ " + percent_text(result.plans[1].time / result.plans[0].time - 1) + " ") !=
        std::string::npos);
  CHECK(text.find("≈ " + percent_text(result.plans[2].time / result.plans[0].time - 1) + " ") ==
        std::string::npos);
  CHECK(text.find("plans 1 and 2 cannot be told apart") != std::string::npos);
  const std::string json = rank_json(scenario, result);
  CHECK(json.find("\"indistinguishable_from_best\": true") != std::string::npos);
  CHECK(json.find("\"indistinguishable_from_best\": false") != std::string::npos);
  CHECK(json.find("\"place\": 3") != std::string::npos);
}

/// Every number that the page prints, by its pointer into the page's JSON.
std::multimap<std::string, std::string> numbers_of(const std::string& page) {
  const std::string begin = "<span data-at=\"";
  std::multimap<std::string, std::string> numbers;
  for (std::size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at + 1)) {
    const std::size_t pointer = at + begin.size(), quote = page.find('"', pointer);
    const std::size_t text = page.find('>', quote) + 1;
    numbers.emplace(page.substr(pointer, quote - pointer),
                    page.substr(text, page.find('<', text) - text));
  }
  return numbers;
}

TEST_CASE("the page shows the numbers of its JSON: of every plan, and of the best at its head") {
  const Scenario scenario = small(R"({"tensor": [8, 4], "micro_batch": [1, 2]})");
  RankResult result = rank_plans(scenario, top(3));
  REQUIRE(result.plans.size() == 3);
  for (RankedPlan& plan : result.plans) plan.interval = {plan.time * 0.9, plan.time * 1.2};
  const document::Document document = rank_document(scenario, result);
  const std::string page = page_of(document);
  const auto numbers = numbers_of(page);
  for (const auto& number : numbers) {
    const std::string &pointer = number.first, &text = number.second;
    CAPTURE(pointer);
    REQUIRE(number_of(find_at(document.data, pointer)).has_value());
    if (pointer.ends_with("time_s"))
      CHECK(text == to_text(Seconds{*number_of(find_at(document.data, pointer))}));
  }
  for (std::size_t i = 0; i < result.plans.size(); ++i)
    for (const char* key : {"parallel/tensor", "training/micro_batch", "iteration_time_s",
                            "iteration_time_interval_s/0", "iteration_time_interval_s/1",
                            "samples_per_s", "memory_max_bytes"}) {
      const std::string pointer = "/plans/" + std::to_string(i) + "/" + key;
      CHECK_MESSAGE(numbers.contains(pointer), pointer);
    }
  CHECK(numbers.count("/plans/0/iteration_time_s") == 3);
  for (const char* part : {"<circle", "<h2>Plans</h2>", "<h2>Search</h2>", "searched: ",
                           "<p class=\"verdict good\"><b>✓</b> by the model, the table is proven"})
    CHECK_MESSAGE(page.find(part) != std::string::npos, part);
  result.interval_warning = "the prediction interval is a guess: …";
  const document::Document warned = rank_document(scenario, result);
  CHECK(text_of(warned).ends_with("\n  ! the prediction interval is a guess: …\n"));
  CHECK(find_at(warned.data, "/warnings/0")->string() == result.interval_warning);
  // The interval of each is on the page alone; the text says once how wide they are.
  CHECK(text_of(document).find("90 % intervals begin 10 % below each time and end 20 % above it") !=
        std::string::npos);
}

TEST_CASE("plans that are not known to fit are marked, named, and not called the leanest") {
  const Scenario scenario =
      small(R"({"tensor": [8, 4], "zero_stage": [0, 1], "micro_batch": [1, 2]})");
  RankResult result = rank_plans(scenario, top(4));
  REQUIRE(result.plans.size() == 4);
  for (RankedPlan& plan : result.plans) plan.place = 1;
  for (const std::size_t i : std::vector<std::size_t>{0, 1, 3}) {
    result.plans[i].memory_verdict = MemoryVerdict::lower_bound;
    result.plans[i].memory_max = 1_GiB;
  }
  result.plans[2].memory_max = 2_GiB;
  const document::Document document = rank_document(scenario, result);
  const std::string text = text_of(document), page = page_of(document);
  CHECK(text.find("≥ 1.00 GiB") != std::string::npos);
  CHECK(text.find("≥ not known to fit: plans 1, 2 and 4.") != std::string::npos);
  CHECK(contains(text, " per iteration, not known to fit; best that surely fits: plan 3, tensor "));
  CHECK(contains(text, " slower (--set /search/surely_fits=true ranks only such plans)"));
  CHECK(number_of(find_at(document.data, "/best_sure_plan/rank")) == 3);
  CHECK(text.find("takes the least memory") == std::string::npos);
  CHECK(page.find("≥ <span data-at=\"/plans/0/memory_max_bytes\">1.00 GiB</span>") !=
        std::string::npos);
  CHECK(page.find("not known to fit") != std::string::npos);
  // At risk is not known to fit either.
  result.plans[0].memory_verdict = result.plans[1].memory_verdict = MemoryVerdict::at_risk;
  CHECK(contains(page_of(rank_document(scenario, result)),
                 "at risk of not fitting; best that surely fits: plan 3, tensor "));
  result.surest_below = result.plans[2];
  result.plans[2].memory_verdict = MemoryVerdict::at_risk;
  const document::Document below = rank_document(scenario, result);
  // A plan that is not in the table has a row of its own below it, and JSON lists it apart.
  const std::string last = std::to_string(result.plans.size() + 1);
  CHECK(contains(text_of(below), "; best that surely fits: plan " + last + ", tensor "));
  CHECK(contains(text_of(below), "\n  " + last + "  "));
  CHECK(contains(text_of(below), "plan " + last + " is the best that surely fits"));
  CHECK(number_of(find_at(below.data, "/best_sure_plan/rank")) ==
        static_cast<double>(result.plans.size() + 1));
  CHECK(find_at(below.data, "/plans")->array().size() == result.plans.size());
  CHECK(contains(page_of(below), "data-at=\"/best_sure_plan/iteration_time_s\""));
  result.surest_below.reset();
  const document::Document none = rank_document(scenario, result);
  CHECK(contains(text_of(none), " per iteration, at risk of not fitting; no plan surely fits\n"));
  CHECK(find_at(none.data, "/best_sure_plan")->is_null());
  // Of figures that are none of them bounds, one alone may be the least.
  result.plans[3].memory_verdict = MemoryVerdict::fits;
  CHECK(text_of(rank_document(scenario, result)).find("takes the least memory") ==
        std::string::npos);
  result.plans[1].memory_max = 0.5 * 1_GiB;
  CHECK(text_of(rank_document(scenario, result)).find("Of them 2 takes the least memory") !=
        std::string::npos);
}

TEST_CASE("the page of a search that finds nothing says why") {
  const Scenario scenario = small(R"({"memory_margin": "79 GiB"})");
  const std::string page = page_of(rank_document(scenario, rank_plans(scenario, top(3))));
  CHECK(page.find("<p class=\"verdict bad\"><b>✗</b> no plan can be recommended") !=
        std::string::npos);
  CHECK(page.find("<h2>Plans</h2>") == std::string::npos);
}

TEST_CASE("the table has a column for each key that is searched, and the counts below") {
  const Scenario scenario = small(R"({"tensor": [8], "zero_stage": [0, 1], "micro_batch": [2]})");
  const std::string text = rank_text(scenario, rank_plans(scenario, top(3)));
  CHECK(text.find("#  tensor  pipeline  data  microbatch  ZeRO") != std::string::npos);
  CHECK(text.find("recompute  ") == std::string::npos);  // no column
  CHECK(text.find("searched: pipeline 1, 2") != std::string::npos);
  CHECK(text.find("held fixed: tensor 8") != std::string::npos);
  CHECK(text.find("recompute_layers") == std::string::npos);  // all of them
  CHECK(text.find("the table is proven") != std::string::npos);
}

TEST_CASE("what is held fixed names the layers that are recomputed") {
  Scenario scenario = small(R"({"tensor": [8], "pipeline": [1, 2], "micro_batch": [2]})");
  scenario.plan.training.recompute_layers.first = 3;
  const document::Document found = rank_document(scenario, rank_plans(scenario, top(3)));
  CHECK(canonical_text(*find_at(found.data, "/fixed/recompute_layers")) == R"({"first":3})");
  CHECK(rank_text(scenario, rank_plans(scenario, top(3)))
            .find("recompute_layers first 3 of each chunk") != std::string::npos);
}

TEST_CASE("what is held fixed names layers that are balanced, in text and JSON") {
  const auto ranked = [](const char* layers) {
    const Scenario scenario = scenario_from(
        R"({"model": "gpt-1.7b", "platform": "a100-80gb-4hdr", "nodes": 2,
            "training": {"global_batch": 64, "micro_batch": 2, "recompute": "full"},
            "parallel": {"tensor": 8, "pipeline": 2)" +
        std::string(layers) +
        R"(}, "search": {"tensor": [8], "pipeline": [2], "micro_batch": [2]}})");
    return rank_document(scenario, rank_plans(scenario, top(1)));
  };
  const document::Document balanced = ranked(R"(, "stage_layers": "balanced")");
  CHECK(contains(text_of(balanced), "stage_layers \"balanced\""));
  CHECK(find_at(balanced.data, "/fixed/stage_layers")->string() == "balanced");
  CHECK(find_at(ranked("").data, "/fixed/stage_layers") == nullptr);
}

TEST_CASE("what is held fixed names the compression") {
  const Scenario scenario = scenario_from(
      R"({"model": "gpt-3.6b", "platform": "a100-80gb-4hdr", "nodes": 2, "software": "megatron-lm-2021",
          "training": {"global_batch": 64, "micro_batch": 1},
          "parallel": {"tensor": 2, "pipeline": 2, "data": 4},
          "search": {"tensor": [2], "pipeline": [2], "micro_batch": [1], "recompute": ["none"]},
          "compression": {"data_gradients": {"codec": "fixed", "ratio": 10}}})");
  const std::string text = rank_text(scenario, rank_plans(scenario, top(1)));
  // A terminal may break the line anywhere.
  CHECK(text.find("data_gradients") != std::string::npos);
  CHECK(text.find("fixed", text.find("data_gradients")) != std::string::npos);
}

}  // namespace
}  // namespace windtunnel
