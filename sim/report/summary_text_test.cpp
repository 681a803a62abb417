#include "report/summary_text.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <sstream>

#include "core/terminal_safe.hpp"
#include "core/testing.hpp"
#include "core/utf8.hpp"
#include "report/figures.hpp"
#include "report/terminal_text.hpp"
#include "report/testing.hpp"

namespace windtunnel {
namespace {

TEST_CASE("the summary of a small run, to the letter") {
  // Breakdown in microseconds, of 32; 12 of 32 is 37.5 %, 15 of 40 characters.
  CHECK(summary_text(testing::small_report()) ==
        R"summary(small

  32.0 us per iteration

  250,000 samples/s · 512,000,000 tokens/s · 120.0 TFLOP/s per GPU · MFU 38.5 % · HFU 51.3 %

  toy (1.3 B parameters) on 16 GPUs of two-nodes with megatron-lm-2021
  tensor 8 × pipeline 2 × data 1 · 1f1b · 2 microbatches of 4 samples · fp16 · full recompute

Where the time goes, on the GPUs that finish last
  compute           12.000 us   37.5 %  ███████████████
  tensor comm        6.000 us   18.8 %  ███████▌
  pipeline comm      2.000 us    6.2 %  ██▌
  pipeline bubble    9.000 us   28.1 %  ███████████▎
  embedding sync     2.000 us    6.2 %  ██▌
  optimizer          1.000 us    3.1 %  █▎

Memory of a GPU, GiB
  stage    weights  gradients  optimizer  activations  buffers  allocated   in use
  0           2.00       4.00      12.00         2.00     3.00      23.00    29.75
  1           2.00       4.00      12.00         1.00     3.00      22.00    28.50
  ✓ fits: stage 0 uses 29.8 GiB of 79.0 GiB usable

  5 inputs: 1 measured, 1 from datasheets, 1 fitted, 2 assumed (--json lists them)
)summary");
}

void check_width(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(utf8_count(line) <= 100, line);
}

TEST_CASE("neighbouring stages that read the same share a row") {
  Report report = testing::small_report();
  report.memory.stages = {testing::stage_memory(0, 4_GiB)};
  for (int i = 1; i < 7; ++i) report.memory.stages.push_back(testing::stage_memory(i, 2_GiB));
  report.memory.stages.push_back(testing::stage_memory(7, 1_GiB));
  const std::string text = summary_text(report);
  CHECK(contains(text, "\n  0  "));
  CHECK(contains(text, "\n  1–6  "));
  CHECK(contains(text, "\n  7  "));
  CHECK_FALSE(contains(text, "\n  2  "));
}

TEST_CASE("a plan that does not fit says so at the top, and why at the memory table") {
  Report report = testing::small_report();
  report.memory.fits = false;
  report.memory.verdict = MemoryVerdict::does_not_fit;
  report.memory.stages[0].verdict = MemoryVerdict::does_not_fit;
  report.memory.stages[0].required = 91_GiB;
  CHECK(contains(summary_text(report),
                 "per iteration\n  ✗ does not fit in memory: the time with enough of it\n"));
  CHECK(contains(
      summary_text(report),
      "  ✗ DOES NOT FIT: stage 0 needs 91.0 GiB, the GPU has 79.0 GiB: 12.0 GiB too much\n"));
  report.memory.advice =
      "stage 0 needs 91.0 GiB, the GPU has 79.0 GiB: 12.0 GiB too much; fits with recompute "
      "\"full\" (61.3 GiB) or micro_batch 1 (70.4 GiB)";
  CHECK(contains(summary_text(report), "too much; fits with\n    recompute \"full\" (61.3 GiB)"));
  check_width(summary_text(report));
}

TEST_CASE("a plan whose memory is at risk says how much of it is in use") {
  Report report = testing::small_report();
  report.memory.verdict = MemoryVerdict::at_risk;
  CHECK(contains(summary_text(report),
                 "\n  ~ at risk: stage 0 uses 29.8 GiB of 79.0 GiB usable, 37"));
}

TEST_CASE("an interval, warnings and unusual settings are told, within 100 characters") {
  Report report = testing::small_report();
  report.iteration_time_interval = {30_us, 35_us};
  report.warnings = {"short", std::string(30, 'x') + " " + std::string(60, 'y') + " " +
                                  std::string(20, 'z') + " the end"};
  report.plan.parallel.virtual_pipeline = 2;
  report.plan.parallel.zero_stage = 1;
  report.plan.parallel.sequence_parallel = true;
  report.plan.training.attention = Attention::flash;
  report.plan.training.global_batch = report.plan.training.micro_batch = 1;
  report.model_name = std::string(70, 'm');
  const std::string text = summary_text(report);
  CHECK(contains(text, "  32.0 us per iteration        90 %: 30.0 us to 35.0 us\n"));
  CHECK(contains(text, "\n  ! short\n  ! xxx"));
  CHECK(contains(text, "1f1b with 2 chunks · 1 microbatch of 1 sample"));
  CHECK(contains(text, "sequence parallel"));
  CHECK(contains(text, "ZeRO-1"));
  CHECK(contains(text, "flash attention"));
  check_width(text);
}

TEST_CASE("an empty report has a summary") {
  CHECK(contains(summary_text(Report{}), "per iteration"));
}

TEST_CASE("colours come only when asked for, and change no letter") {
  const Report report = testing::small_report();
  std::string coloured = for_terminal(summary_text(report, Colour::always));
  CHECK(contains(coloured, "\x1b[1m32.0 us per iteration\x1b[0m"));
  for (std::size_t at = 0; (at = coloured.find('\x1b', at)) != std::string::npos;)
    coloured.erase(at, coloured.find('m', at) - at + 1);
  CHECK(coloured == summary_text(report));
}

/// 2 GiB of weights, and 12 tensors of 256 MiB for the layers of the microbatches in flight.
Report report_with_tensors(int stages) {
  Report report = testing::small_report();
  report.memory.stages.resize(1);
  StageMemory& stage = report.memory.stages.front();
  stage.tensors = {
      {HeldKind::weights, Label::whole_pass, 2_GiB, 0x1p30, {Moment::backward, Moment::step}},
      {HeldKind::saved, Label::attention, 3_GiB, 12, {Moment::backward}},
      {HeldKind::step_temporary, Label::whole_pass, 1_GiB, 0x1p28, {Moment::step}}};
  stage.allocated = 5_GiB;
  for (int i = 1; i < stages; ++i) {
    report.memory.stages.push_back(report.memory.stages.front());
    report.memory.stages.back().stage = StageId{i};
  }
  return report;
}

TEST_CASE("tensors at the peak are listed, the largest first, with their parts and shares") {
  const Report report = report_with_tensors(1);
  const std::vector<StagesAlike> stages = stages_alike(report.memory);
  REQUIRE(stages.size() == 1);
  CHECK(name_of(stages[0]) == "Stage 0, backward pass of a layer");
  const std::vector<TensorRow> rows{
      {"saved by attention", "12 × 256 MiB", "3.00", "60.0 %", MemoryLine::activations},
      {"weights", "1,073,741,824 × 2 B", "2.00", "40.0 %", MemoryLine::weights}};
  CHECK(stages[0].rows == rows);
}

TEST_CASE("neighbouring stages that read the same are printed once") {
  Report report = report_with_tensors(4);
  report.memory.stages[3].peak = Moment::step;
  const std::vector<StagesAlike> stages = stages_alike(report.memory);
  REQUIRE(stages.size() == 2);
  CHECK(name_of(stages[0]) == "Stages 0 to 2, backward pass of a layer");
  CHECK(name_of(stages[1]) == "Stage 3, optimizer step");
}

TEST_CASE("the list is at most 80 characters wide, and ends with what is in use and the verdict") {
  const std::string text = memory_text(report_with_tensors(2));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(utf8_count(line) <= 80);
  CHECK(text.find("  allocated ") != std::string::npos);
  CHECK(text.find("  ✓ fits\n") != std::string::npos);
}

TEST_CASE("parts that a narrow terminal has no room for stand on a line below") {
  Report report = report_with_tensors(1);
  StageMemory& stage = report.memory.stages.front();
  stage.tensors = {{HeldKind::weights, Label::whole_pass, 2_GiB, 0x1p30, {Moment::backward}},
                   {HeldKind::saved, Label::attention, 3_GiB, 0x1p30, {Moment::backward}}};
  detail::set_text_width(46);
  const std::string text = memory_text(report);
  detail::set_text_width(std::numeric_limits<int>::max());
  CHECK(text.find("  saved by attention              3.00  60.0 %\n"
                  "           1,073,741,824 × 3 B\n"
                  "  weights  ") != std::string::npos);
}

TEST_CASE("a rate has three significant digits, and one decimal below a thousand") {
  CHECK(throughput_text(0.03347) == "0.0335");
  CHECK(throughput_text(0.3347) == "0.335");
  CHECK(throughput_text(9.528) == "9.53");
  CHECK(throughput_text(30.37) == "30.4");
  CHECK(throughput_text(104.83) == "104.8");
  CHECK(throughput_text(12345.6) == "12,346");
  CHECK(throughput_text(0) == "0.0");
}

}  // namespace
}  // namespace windtunnel
