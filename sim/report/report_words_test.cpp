#include "report/report_words.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/testing.hpp"
#include "core/text_list.hpp"
#include "report/terminal_text.hpp"
#include "report/testing.hpp"
#include "scenario/key_table.hpp"
#include "timeline/breakdown.hpp"

namespace windtunnel {
namespace {

PlanChoice usual_choice() {
  PlanChoice choice;
  choice.training.global_batch = 16;
  choice.training.micro_batch = 1;
  choice.parallel.tensor = choice.parallel.context = choice.parallel.data = 2;
  choice.parallel.zero_stage = 3;
  return choice;
}

std::string text_of(const PlanChoice& choice) {
  return detail::plan_text(choice.training, choice.parallel);
}

TEST_CASE(
    "the glossary has the lines of where the time goes, and the words of verdicts and figures") {
  std::ifstream file(source_dir() / "docs/glossary.md");
  const std::string glossary{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> terms{"MFU",    "HFU",        "causal MFU", "at risk", "goodput",
                                 "slack",  "gap",        "front",      "stack",   "critical path",
                                 "in use", "microbatch", "chunk",      "1F1B",    "ZeRO"};
  for (const Line line : all_lines) terms.push_back(detail::with_spaces(name_of(line)));
  for (const std::string& term : terms) {
    CAPTURE(term);
    CHECK(contains(glossary, term));
  }
}

TEST_CASE("a plan whose degrees do not divide the GPUs says so") {
  PlanChoice choice = usual_choice();
  choice.parallel.data = 0;
  CHECK(text_of(choice).starts_with(
      "tensor 2 × context 2 × pipeline 1 (does not divide the GPUs), 1f1b, microbatches of"));
}

TEST_CASE("a plan is named by its degrees, its schedule, its batch, and what else is chosen") {
  PlanChoice choice = usual_choice();
  CHECK(
      text_of(choice) ==
      "tensor 2 × context 2 × pipeline 1 × data 2, 1f1b, 8 microbatches of 1 sample, fp16, ZeRO-3");
  choice.parallel.pipeline = 8;
  choice.parallel.schedule = default_schedule(2);
  choice.parallel.virtual_pipeline = 2;
  choice.parallel.expert = 4;
  choice.parallel.zero_stage = 1;
  choice.parallel.overlap_gradient_reduce = true;
  choice.parallel.pipeline_send = PipelineSend::blocking_pairs;
  choice.parallel.stage_layers = {15, 16, 16, 16, 16, 16, 16, 15};
  choice.training.precision = Precision::bf16;
  choice.training.recompute = Recompute::selective;
  CHECK(
      text_of(choice) ==
      "tensor 2 × context 2 × pipeline 8 × data 2, expert 4, interleaved_1f1b with 2 chunks, 8 "
      "microbatches of 1 sample, bf16, ZeRO-1, selective recompute, pipeline send blocking pairs, "
      "overlap gradient reduce, layers by stage 15, 16 × 6, 15");
}

TEST_CASE("no choice of a plan is missing in its text") {
  for (const Key& key : key_table()) {
    if (key.value.kind == KeyValue::Kind::other || key.name() == "placement") continue;
    PlanChoice begin = usual_choice();
    if (key.name() == "attention_kernel") begin.training.attention = Attention::flash;
    PlanChoice choice = begin;
    const int usual = key.value.get(choice), step = key.name() == "global_batch" ? 4 : 1;
    key.value.set(choice, usual + step <= key.value.most ? usual + step : usual - step);
    CAPTURE(key.pointer);
    CHECK(text_of(choice) != text_of(begin));
  }
}

TEST_CASE("reasons come longest first and leave out what is below one percent") {
  // 32 us in all: 12 compute, 9 bubble, 6 tensor, 2 pipeline, 2 embedding, 1 optimizer; 1 us is 3.1 %.
  Report report = testing::small_report();
  std::vector<Reason> reasons = reasons_for_time(report);
  REQUIRE(reasons.size() == 6);
  CHECK(reasons[0].line == Line::compute);
  CHECK(reasons[1].line == Line::pipeline_bubble);
  CHECK(reasons[1].title == "Pipeline bubble: 9.000 us, 28.1 %");
  CHECK(reasons[2].line == Line::tensor_comm);
  CHECK(reasons[5].line == Line::optimizer);
  report.breakdown.seconds[static_cast<std::size_t>(Line::compute)] = 1_ms;
  CHECK(reasons_for_time(report).size() == 1);  // 9 of 1020 us are 0.9 %
  CHECK(reasons_for_time(Report{}).empty());
}

TEST_CASE("a reason speaks of tensor-parallel communication only where there is some") {
  Report report = testing::small_report();
  const auto compute_of = [](const Report& each) { return reasons_for_time(each)[0].text; };
  report.plan.parallel.tensor = 2;
  CHECK(compute_of(report).ends_with(", tensor-parallel communication included."));
  report.plan.parallel.tensor = 1;
  CHECK(compute_of(report).find("tensor") == std::string::npos);
}

TEST_CASE("what the host does for tensors of ZeRO 3 is named where it counts") {
  Report report = testing::small_report();
  report.breakdown.seconds = {};
  report.breakdown.seconds[static_cast<std::size_t>(Line::other)] = 1_ms;
  const auto words = [&] { return reasons_for_time(report).front().text; };
  CHECK(words().starts_with("Launching kernels"));
  report.host_gathers = true;
  CHECK(words().find("each tensor that ZeRO 3 gathers or scatters") != std::string::npos);
}

TEST_CASE("the bubble of equal stages is (p - 1) / (v m + p - 1)") {
  Plan plan;
  plan.parallel.pipeline = 4;
  plan.microbatches = 9;
  CHECK(ideal_bubble_share(plan) == doctest::Approx(0.25));  // 3 / 12
  plan.parallel.schedule = schedule_named("interleaved_1f1b");
  plan.parallel.virtual_pipeline = 3;
  CHECK(ideal_bubble_share(plan) == doctest::Approx(0.1));  // 3 / 30
  plan.parallel.schedule = schedule_named("zero_bubble_h1");
  CHECK(ideal_bubble_share(plan) == 0);
  CHECK(ideal_bubble_share(Plan{}) == 0);
}

TEST_CASE("an HFU below the MFU says what it does not count") {
  Report report = testing::small_report();
  const auto said = [&] {
    return contains(joined(detail::speed_items(report), "; "), "computed half");
  };
  CHECK(!said());
  report.hfu = 0.9 * report.mfu;
  CHECK(said());
}

TEST_CASE("what runs say is said once, and of what most say the same only what differs") {
  using Said = std::vector<std::pair<std::string, std::string>>;
  const std::string wide = "nothing comparable had software x (4 % off)",
                    narrow = "; runs narrow it";
  CHECK(detail::said_once({{"A", wide + ", h100 GPUs" + narrow},
                           {"B", "short"},
                           {"C", wide + " or b200 GPUs" + narrow},
                           {"D", wide + ", h100 GPUs" + narrow}}) ==
        Said{{"A, D", wide + ", h100 GPUs" + narrow},
             {"B", "short"},
             {"C", "as A, D, but \"… or b200 …\""}});
  CHECK(detail::said_once({{"1", "wide by far"}, {"2", "narrow by far"}}) ==
        Said{{"1", "wide by far"}, {"2", "narrow by far"}});
  CHECK(detail::said_once({{"1", "one of ten"}, {"2", "one of ten, or so"}}) ==
        Said{{"1", "one of ten"}, {"2", "as 1, but \"… or so\""}});
}

}  // namespace
}  // namespace windtunnel
