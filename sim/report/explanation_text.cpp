#include <algorithm>
#include <cmath>

#include "report/explanation.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using detail::indent;
using detail::Painter;
using detail::Tone;

constexpr std::size_t most_shares = 15, most_slacks = 8;
constexpr int share_width = 8, time_width = 12;

std::string heading(const Painter& paint, const std::string& text) {
  return "\n" + paint(Tone::heading, text) + "\n";
}

std::string path_text(const Explanation& e, const Painter& paint) {
  const Seconds whole = e.report.iteration_time;
  std::string text = heading(paint, "The critical path: what everything else waited for");
  for (const PathShare& share : main_shares(e.shares, most_shares))
    text += std::string(indent) + right_aligned(percent_text(share.time / whole), share_width) +
            right_aligned(to_text(share.time), time_width) + "  " + spoken_share(share) + "\n";
  return text;
}

std::string slack_time(Seconds slack) { return slack > Seconds{0} ? to_text(slack) : "none"; }

std::string slack_row(const std::string& what, const std::string& busy, const std::string& on_path,
                      const std::string& slack, const std::string& median) {
  constexpr int name_width = 20, number_width = 14;
  return std::string(indent) + left_aligned(what, name_width) + right_aligned(busy, number_width) +
         right_aligned(on_path, number_width) + right_aligned(slack, number_width) +
         right_aligned(median, number_width) + "\n";
}

std::string slack_text(const std::vector<Slack>& list, Seconds whole, const std::string& title,
                       const Painter& paint) {
  if (list.empty()) return "";
  std::string text =
      heading(paint, title) + slack_row("", "busy", "on the path", "least slack", "median");
  for (std::size_t i = 0; i < std::min(list.size(), most_slacks); ++i)
    text += slack_row(list[i].what, percent_text(list[i].busy / whole),
                      percent_text(list[i].on_path / whole), slack_time(list[i].least),
                      slack_time(list[i].median));
  if (list.size() > most_slacks)
    text += std::string(indent) + "and " + std::to_string(list.size() - most_slacks) +
            " more (--json lists them)\n";
  return text;
}

/// Changes of less are named together.
constexpr double least_change = 0.002;

bool changes_little(const Explanation& e, const WhatIfResult& result) {
  return result.failure.empty() &&
         std::abs(result.iteration_time / e.report.iteration_time - 1) < least_change;
}

std::string what_if_row(const Explanation& e, const WhatIfResult& result) {
  constexpr int change_width = 11;
  std::string text{indent};
  if (!result.failure.empty())
    return text + right_aligned("-", change_width) + right_aligned("-", time_width) + "  " +
           result.change.what + ": " + result.failure.substr(0, result.failure.find('\n')) + "\n";
  const std::string note = memory_note(result, e.report);
  return text +
         right_aligned(change_text(result.iteration_time / e.report.iteration_time - 1),
                       change_width) +
         right_aligned(to_text(result.iteration_time), time_width) + "  " + result.change.what +
         (note.empty() ? "" : " (" + note + ")") + "\n";
}

/// "A; B; C; D; and 812 more".
std::string names_of(const Explanation& e, WhatIfFate fate) {
  constexpr std::size_t most_named = 4;
  std::string names;
  std::size_t count = 0;
  for (const WhatIfResult& result : e.what_ifs) {
    if (result.fate != fate) continue;
    if (++count <= most_named) names += (names.empty() ? "" : "; ") + result.change.what;
  }
  return count > most_named ? names + "; and " + std::to_string(count - most_named) + " more"
                            : names;
}

/// What was not simulated, and why.
std::string left_out_text(const Explanation& e) {
  std::string text;
  if (const std::string names = names_of(e, WhatIfFate::cannot_matter); !names.empty())
    text += detail::paragraph("not simulated, since the critical path lets them save less than " +
                              percent_text(least_change) + ": " + names);
  if (const std::string names = names_of(e, WhatIfFate::over_budget); !names.empty())
    text += detail::paragraph(
        "not simulated, since others may save more, or the budget was spent: " + names);
  return text;
}

std::string what_if_text(const Explanation& e, const Painter& paint) {
  std::string text = heading(paint, "What if (each simulated on its own)"), little;
  for (const WhatIfResult& result : e.what_ifs) {
    if (changes_little(e, result))
      little += (little.empty() ? "" : "; ") + result.change.what;
    else if (result.fate == WhatIfFate::simulated || result.fate == WhatIfFate::failed)
      text += what_if_row(e, result);
  }
  if (!little.empty())
    text += detail::paragraph("less than " + percent_text(least_change) + " either way: " + little);
  text += left_out_text(e);
  return text + std::string(indent) +
         paint(Tone::quiet,
               "--json gives the command of each, and where its time goes; --report a page") +
         "\n";
}

/// The stages most on the path.
std::vector<Slack> by_need(std::vector<Slack> list) {
  std::stable_sort(list.begin(), list.end(),
                   [](const Slack& a, const Slack& b) { return a.on_path > b.on_path; });
  return list;
}

}  // namespace

std::string explanation_text(const Explanation& e, Colour colour) {
  const Painter paint(colour);
  const Seconds whole = e.report.iteration_time;
  std::string text = paint(Tone::headline, e.report.name) + "\n" + std::string(indent) +
                     paint(Tone::headline, to_text(whole) + " per iteration") + "\n";
  text += path_text(e, paint);
  text +=
      slack_text(by_need(e.stages), whole,
                 "Stages: how busy, and how much later a thing there could end unnoticed", paint);
  text += slack_text(e.links, whole, "Ways between nodes", paint);
  return text + what_if_text(e, paint);
}

}  // namespace windtunnel
