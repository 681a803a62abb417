#include "report/explanation.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "report/number_text.hpp"

namespace windtunnel {
namespace {

using detail::time_text;
using detail::with_spaces;

std::string shell_word(const std::string& word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char letter : word)
    if (letter == '\'')
      quoted += "'\\''";
    else
      quoted += letter;
  return quoted + "'";
}

}  // namespace

const char* name_of(WhatIfKind kind) {
  switch (kind) {
    case WhatIfKind::gpu:
      return "gpu";
    case WhatIfKind::link:
      return "link";
    case WhatIfKind::nic:
      return "nic";
    case WhatIfKind::straggler:
      return "straggler";
    case WhatIfKind::software:
      return "software";
    case WhatIfKind::stage:
      return "stage";
    case WhatIfKind::training:
      return "training";
    case WhatIfKind::schedule:
      return "schedule";
    case WhatIfKind::codec:
      return "codec";
  }
  return "?";
}

Explanation explain_path(Report report, const Plan& plan, const ProgramSet& programs,
                         const Timeline& timeline) {
  Explanation explanation;
  explanation.report = std::move(report);
  explanation.path = find_critical_path(programs, timeline);
  const CriticalPath& path = explanation.path;
  explanation.shares = path_shares(plan, programs, timeline, path);
  explanation.segments = path_segments(plan, programs, timeline, path);
  explanation.stages = stage_slack(plan, timeline, path);
  explanation.devices = device_slack(plan, timeline, path);
  explanation.links = link_slack(plan, programs, timeline, path);
  return explanation;
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

std::string change_text(double change) {
  constexpr double least_shown = 0.0005;  // half of the last decimal
  return std::abs(change) < least_shown ? "no change" : signed_percent_text(change);
}

std::string memory_note(const WhatIfResult& result, const Report& report) {
  if (result.fits == report.memory.fits) return "";
  return result.fits ? "fits in memory" : "does not fit in memory";
}

std::string moved_text(const WhatIfResult& result, const Report& report) {
  constexpr double least_share = 0.0005;
  constexpr std::size_t most_lines = 3;
  std::vector<std::pair<Seconds, Line>> moved;
  for (const Line line : all_lines) {
    const Seconds difference = result.breakdown.of(line) - report.breakdown.of(line);
    if (std::abs(difference / report.iteration_time) >= least_share)
      moved.emplace_back(difference, line);
  }
  std::stable_sort(moved.begin(), moved.end(), [](const auto& a, const auto& b) {
    return std::max(a.first, -a.first) > std::max(b.first, -b.first);
  });
  if (moved.size() > most_lines) moved.resize(most_lines);
  std::string text;
  for (const auto& [difference, line] : moved)
    text += (text.empty() ? "" : ", ") + with_spaces(name_of(line)) +
            (difference > Seconds{0} ? " +" : " -") +
            time_text(std::max(difference, -difference), report.iteration_time);
  return text;
}

}  // namespace windtunnel
