#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/json_value.hpp"
#include "report/report.hpp"
#include "report/terminal_text.hpp"

/// Words that terminal and page share for the content of a report, rounded in the same way.
namespace windtunnel::detail {

/// "27.4 samples/s", "56,125 tokens/s", "118.0 TFLOP/s per GPU", "MFU 37.8 %", "HFU 50.4 %" where it differs.
std::vector<std::string> speed_items(const Report& report);

/// "gpt-39b (39.1 B parameters) on 512 GPUs of a100-80gb-4hdr with megatron-lm-2021"
std::string job_text(const Report& report);
/// A plan in words, wherever one is printed: "tensor 8 × pipeline 8 × data 8", "1f1b", "24 microbatches of 8 samples", "fp16", and every
/// further choice of the blocks `training` and `parallel` that is not what a PlanChoice begins with.
std::vector<std::string> plan_items(const Training& training, const Parallel& parallel);
/// Mutual slowdown of the job and its neighbours, a line for each; empty if there are none.
std::vector<std::string> neighbour_texts(const Report& report);

/// Items of a report's plan, with the nodes of NVLink domains that it leaves idle.
std::vector<std::string> plan_items(const Report& report);
/// The same, separated by commas.
std::string plan_text(const Training& training, const Parallel& parallel);
/// Explanation of at_risk.
inline constexpr const char* at_risk_meaning = "predictions of memory miss by as much as is left";
/// Why what is required is a lower bound.
inline constexpr const char* lower_bound_reason = "with ZeRO 3 not all buffers are counted";
/// Mark of a verdict: "✓", "~" or "✗", in the tone of that name.
struct VerdictMark {
  const char* mark;
  Tone tone;
  const char* kind;  ///< class of a page
};
VerdictMark mark_of(MemoryVerdict verdict);
/// "fits: stage 0 uses 46.2 GiB of 79.2 GiB usable", "DOES NOT FIT: …"; empty where there are no stages.
std::string verdict_text(const MemoryAccount& memory);
/// The same where the verdict is neither yes nor no; else empty.
std::string memory_doubt(const MemoryAccount& memory);
/// "56 inputs: 1 measured, 10 from datasheets, 24 fitted, 21 assumed"
std::string inputs_text(const Report& report);
/// What runs or points say, by name, each once: {"A", "x"} and {"B", "x"} as {"A, B", "x"}. Where most of it was said before, the rest:
/// {"C", "as A, B, but "… h100 GPUs …""}.
std::vector<std::pair<std::string, std::string>> said_once(
    const std::vector<std::pair<std::string, std::string>>& said);
/// "1 GPU", "512 GPUs"
std::string counted(int number, const char* thing, const char* plural = "s");

}  // namespace windtunnel::detail

namespace windtunnel {

/// One reason why the iteration takes as long as it does.
struct Reason {
  Line line = Line::compute;  ///< the line of the breakdown that it is about
  Seconds time{};
  std::string title;  ///< "Pipeline bubble: 3.664 s, 6.5 %"
  std::string text;   ///< what makes it so long, in numbers of this run
};

/// The lines of the breakdown that make up at least one percent, longest first, each with its cause.
std::vector<Reason> reasons_for_time(const Report& report);
/// Their texts by line: {"compute": "24 microbatches pass …", …}
JsonValue reasons_value(const Report& report);

/// The bubble that a pipeline of equal stages has without communication, as a share of the whole:
///   (p - 1) / (v m + p - 1)       (Narayanan et al. 2021, section 2.2, eq. 2: bubble over ideal time (p - 1) / (v m))
/// p stages, m microbatches, v chunks a device. 0 for schedules of which this does not hold.
double ideal_bubble_share(const Plan& plan);

}  // namespace windtunnel
