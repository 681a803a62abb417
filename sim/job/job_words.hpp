#pragma once

#include <cmath>
#include <string>

#include "core/count_text.hpp"
#include "job/job_result.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {

/// What people call it.
inline const char* words_of(Spent spent) {
  switch (spent) {
    case Spent::start:
      return "first start";
    case Spent::compute:
      return "training that counts";
    case Spent::noise:
      return "steps slower than the fastest";
    case Spent::slower:
      return "slower on fewer nodes";
    case Spent::evaluation:
      return "evaluation";
    case Spent::checkpoint:
      return "waiting for checkpoints";
    case Spent::lost:
      return "training lost to failures";
    case Spent::detection:
      return "failure not yet noticed";
    case Spent::restart:
      return "starting again";
    case Spent::idle:
      return "waiting for nodes";
  }
  return "";
}

/// Two decimals below ten, one below a hundred, then none and thousands apart.
inline std::string amount_text(double amount) {
  constexpr double few = 10, many = 100;
  if (amount < few) return fixed_text(amount, 2);
  return amount < many ? fixed_text(amount, 1) : grouped_text(amount);
}

/// "31.6 ms", "54.0 min", "2.08 h".
inline std::string interval_text(Seconds time) {
  constexpr double minute = 60, hour = 3600;
  const double seconds = time / Seconds{1};
  if (seconds < 1) return to_text(time);
  if (seconds < minute) return fixed_text(seconds, 1) + " s";
  if (seconds < hour) return fixed_text(seconds / minute, 1) + " min";
  return fixed_text(seconds / hour, 2) + " h";
}

/// "for 29.1 % of the time nodes are missing, with 0 spare nodes: with 4 (restart/spare_nodes) the job takes 161 days"
inline std::string spares_text(const JobResult& result) {
  const EnoughSpares& enough = *result.enough_spares;
  return "for " + percent_text(result.share_without_nodes()) +
         " of the time nodes are missing, with " +
         count_text(result.job.model.spare_nodes, "spare node") + ": with " +
         std::to_string(enough.nodes) + " (restart/spare_nodes) the job takes " +
         amount_text(enough.median_days) + " days";
}

}  // namespace windtunnel
