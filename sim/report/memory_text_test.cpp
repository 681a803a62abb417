#include <doctest/doctest.h>

#include <limits>
#include <sstream>

#include "core/utf8.hpp"
#include "report/summary_text.hpp"
#include "report/terminal_text.hpp"
#include "report/testing.hpp"

namespace windtunnel {
namespace {

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

}  // namespace
}  // namespace windtunnel
