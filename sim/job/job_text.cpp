#include <string>

#include "job/job_result.hpp"
#include "job/job_words.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr int label_width = 30, figure_width = 12;

std::string line(const std::string& label, const std::string& figure,
                 const std::string& note = "") {
  std::string text = "  " + left_aligned(label, label_width) + right_aligned(figure, figure_width);
  if (!note.empty()) text += "   " + note;
  return text + "\n";
}

std::string spread_line(const std::string& label, const Spread& spread,
                        const std::string& unit = "") {
  return line(label, amount_text(spread.median),
              (unit.empty() ? "" : unit + ", ") + "5th to 95th percentile " +
                  amount_text(spread.low) + " to " + amount_text(spread.high));
}

std::string failures_text(const JobResult& result) {
  const Spread& count = result.failures;
  std::string text =
      line("failures", grouped_text(count.median),
           "5th to 95th percentile " + grouped_text(count.low) + " to " + grouped_text(count.high));
  std::string parts;
  for (std::size_t i = 0; i < num_failing_parts; ++i)
    if (result.mean_failures[i] > 0)
      parts += (parts.empty() ? "" : ", ") + std::string(name_of(static_cast<FailingPart>(i))) +
               " " + fixed_text(result.mean_failures[i], 1);
  if (!parts.empty()) text += "    on average " + parts + "\n";
  return text;
}

std::string time_text(const JobResult& result) {
  std::string text = "\nWhere the time went, mean of all draws\n";
  for (std::size_t i = 0; i < num_spent; ++i) {
    constexpr int bar_width = 30, share_width = 8;
    const double share = result.mean_shares[i];
    if (share <= 0) continue;
    text += "  " + left_aligned(words_of(static_cast<Spent>(i)), label_width) +
            right_aligned(fixed_text(100 * share, 2) + " %", share_width) + "  " +
            bar_text(share, bar_width) + "\n";
  }
  return text;
}

std::string checkpoint_text(const JobResult& result) {
  const Job& job = result.job;
  std::string text = "\nCheckpoints\n";
  text += line("size", to_text(job.checkpoint));
  text += line(
      "training waits", interval_text(to_seconds(job.model.stall)),
      job.model.write > 0 ? "safe " + interval_text(to_seconds(job.model.write)) + " later" : "");
  text += line("interval in this run",
               interval_text(job.step_time * static_cast<double>(job.model.checkpoint_every)),
               grouped_text(static_cast<double>(job.model.checkpoint_every)) + " steps");
  if (result.intervals)
    text +=
        line("best interval, played", interval_text(job.step_time * result.intervals->best_steps));
  if (result.young) text += line("by Young's formula", interval_text(*result.young));
  if (result.daly) text += line("by Daly's formula", interval_text(*result.daly));
  return text;
}

std::string assumptions_text(const JobResult& result) {
  if (result.job.assumptions.empty()) return "";
  std::string text = "\nNumbers that the file leaves to windtunnel\n";
  for (const Assumption& each : result.job.assumptions)
    text += "  " + left_aligned(each.what, label_width) + each.value + " (" +
            (each.evidence == Evidence::measured ? "" : "assumed: ") + each.note + ")\n";
  return text;
}

}  // namespace

std::string job_text(const JobResult& result) {
  const Job& job = result.job;
  std::string text = result.name + ": " + result.model_name + " on " + grouped_text(job.gpus) +
                     " GPUs (" + result.platform_name + "), " +
                     parameter_text(job.tokens_per_step * static_cast<double>(job.model.steps)) +
                     " tokens in " + grouped_text(static_cast<double>(job.model.steps)) +
                     " steps of " + to_text(job.step_time) + "; " +
                     grouped_text(static_cast<double>(result.options.draws)) +
                     (result.options.draws == 1 ? " draw\n" : " draws\n");
  text += std::string(job.block.plan == JobPlan::best ? "  best plan: " : "  plan: ") +
          result.plan + "\n\n";
  text += spread_line("days", result.days);
  if (result.enough_spares) text += "    " + spares_text(result) + "\n";
  text += line("goodput", percent_text(result.goodput.median),
               "5th to 95th percentile " + percent_text(result.goodput.low) + " to " +
                   percent_text(result.goodput.high));
  text += failures_text(result);
  if (result.mtbf) text += line("mean time between failures", interval_text(*result.mtbf));
  if (result.cost) text += spread_line("cost", *result.cost, job.block.price->currency);
  if (result.energy_mwh) text += spread_line("energy", *result.energy_mwh, "MWh");
  if (result.tonnes_co2) text += spread_line("emissions", *result.tonnes_co2, "t CO2");
  return text + time_text(result) + checkpoint_text(result) + assumptions_text(result);
}

}  // namespace windtunnel
