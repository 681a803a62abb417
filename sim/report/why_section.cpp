#include "report/why_section.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "report/html_text.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel::html {
namespace {

using detail::time_text;

constexpr std::size_t most_shares = 14, most_said = 5, most_slacks = 8, most_listed = 64;

/// A number of the explanation as text, with its place there.
std::string exact(const std::string& pointer, const std::string& text) {
  return element("span", "data-why=\"" + escaped(pointer) + "\"", escaped(text));
}

std::string at(const char* list, std::size_t index, const char* key) {
  return "/" + std::string(list) + "/" + std::to_string(index) + "/" + key;
}

/// Where a share stands in the explanation; nowhere when it is several together.
std::string place_of(const PathShare& share, const std::vector<PathShare>& all, const char* key) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const PathShare& each) { return each.what == share.what; });
  if (found == all.end()) return "";
  return at("critical_path", static_cast<std::size_t>(found - all.begin()), key);
}

std::string marked_number(const std::string& pointer, const std::string& text) {
  return pointer.empty() ? escaped(text) : exact(pointer, text);
}

class WhySection {
 public:
  explicit WhySection(const Explanation& e)
      : e_(e), whole_(e.report.iteration_time), shares_(main_shares(e.shares, most_shares)) {}

  std::string html() const { return path() + what_ifs() + slack(); }

 private:
  std::string path() const {
    if (shares_.empty()) return "";
    return "<p class=\"said\">" + sentence() + "</p>\n<div class=\"main-bar\">" + bar() +
           "</div>\n<p class=\"quiet\">The critical path: the chain of work and messages that the "
           "end of the iteration waited for. Only what is on it makes the iteration longer; make "
           "it shorter, and another chain may be the longest. <a id=\"show-path\" "
           "href=\"#timeline\">Show it on the timeline</a></p>\n" +
           share_table();
  }

  /// "75.9 % compute of stage 7, 8.9 % tensor collectives of stage 7, …, and 9.1 % in 7 smaller parts."
  std::string sentence() const {
    std::string text = "The end of the iteration waited for ";
    Seconds rest = whole_;
    const std::size_t count = std::min(most_said, shares_.size());
    for (std::size_t i = 0; i < count; ++i) {
      const PathShare& share = shares_[i];
      text +=
          std::string(i == 0 ? "" : ", ") + "<b>" +
          marked_number(place_of(share, e_.shares, "share"), percent_text(share.time / whole_)) +
          "</b> " + escaped(spoken_share(share));
      rest -= share.time;
    }
    if (count < shares_.size())
      text += ", and " + escaped(percent_text(rest / whole_)) + " in smaller parts";
    return text + ".";
  }

  std::string bar() const {
    std::vector<Piece> pieces;
    for (const PathShare& share : shares_)
      pieces.push_back({std::min(1.0, share.time / whole_), name_of(share.line),
                        spoken_share(share) + ": " + time_text(share.time, whole_) + ", " +
                            percent_text(share.time / whole_)});
    return stacked_bar(pieces, "The critical path by what it was spent on");
  }

  std::string share_table() const {
    Table list{
        "The critical path", {"what", "", "share", "time", "stretches"}, {}, "llr", "bars path"};
    for (const PathShare& share : shares_) {
      const double part = share.time / whole_;
      list.rows.push_back(
          {swatch(name_of(share.line)) + escaped(spoken_share(share)),
           stacked_bar({{std::min(part, 1.0), name_of(share.line), percent_text(part)}},
                       percent_text(part)),
           marked_number(place_of(share, e_.shares, "share"), percent_text(part)),
           marked_number(place_of(share, e_.shares, "time_s"), to_text(share.time)),
           marked_number(place_of(share, e_.shares, "steps"), grouped_text(share.steps))});
    }
    return table(list);
  }

  std::string slack() const {
    return "<h3>Who could be later</h3>\n<p class=\"quiet\">Slack: how much later a pass or a "
           "message could end, alone, before the iteration does. <i>Least</i> is that of the least "
           "patient one: none means that it is on a longest path. <i>Median</i>: half of the "
           "busy time is spent in things that have at least so much.</p>\n" +
           slack_table("stages", "stage", e_.stages) +
           folded(slack_table("devices", "simulated device", e_.devices, most_listed), "devices",
                  e_.devices.size()) +
           slack_table("links", "way between nodes", e_.links) +
           (e_.links.size() > most_slacks
                ? folded(slack_table("links", "way between nodes", e_.links, most_listed),
                         "ways between nodes", e_.links.size())
                : "");
  }

  static std::string folded(const std::string& html, const std::string& what, std::size_t count) {
    if (count == 0) return "";
    std::string summary = count > most_listed
                              ? grouped_text(static_cast<double>(most_listed)) + " of the " +
                                    grouped_text(static_cast<double>(count)) + " " + what
                              : "All " + grouped_text(static_cast<double>(count)) + " " + what;
    return "<details><summary>" + escaped(summary) + "</summary>\n" + html + "</details>\n";
  }

  std::string slack_time(const std::string& pointer, Seconds time) const {
    return time > Seconds{0} ? exact(pointer, to_text(time)) : "none";
  }

  std::string slack_bar(const Slack& slack) const {
    const double path = std::clamp(slack.on_path / whole_, 0.0, 1.0),
                 busy = std::clamp(slack.busy / whole_ - path, 0.0, 1 - path);
    return stacked_bar({{path, "path", "on the path: " + percent_text(path)},
                        {busy, "busy", "busy, not on the path: " + percent_text(busy)},
                        {1 - path - busy, "idle", "idle: " + percent_text(1 - path - busy)}},
                       "on the path " + percent_text(path));
  }

  /// The places most on the path, then those of least slack.
  std::string slack_table(const char* list, const std::string& what, const std::vector<Slack>& all,
                          std::size_t most = most_slacks) const {
    if (all.empty()) return "";
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(-all[a].on_path, all[a].least) < std::pair(-all[b].on_path, all[b].least);
    });
    order.resize(std::min(most, order.size()));
    Table rows{"Slack by " + what,
               {escaped(what), "", "on the path", "busy", "least slack", "median slack"},
               {},
               "llr",
               "bars slack"};
    for (const std::size_t i : order)
      rows.rows.push_back({escaped(all[i].what), slack_bar(all[i]),
                           exact(at(list, i, "on_path_s"), to_text(all[i].on_path)),
                           exact(at(list, i, "busy_s"), to_text(all[i].busy)),
                           slack_time(at(list, i, "slack_s"), all[i].least),
                           slack_time(at(list, i, "median_slack_s"), all[i].median)});
    return table(rows);
  }

  double change_of(const WhatIfResult& result) const { return result.iteration_time / whole_ - 1; }

  /// What fills half of the bar: the largest gain, and no loss of more than that.
  double scale() const {
    double gain = 0, loss = 0;
    for (const WhatIfResult& result : e_.what_ifs) {
      if (!result.failure.empty()) continue;
      gain = std::max(gain, -change_of(result));
      loss = std::max(loss, change_of(result));
    }
    constexpr double least = 0.01;
    return std::max(least, gain > 0 ? gain : loss);
  }

  std::string change_bar(const WhatIfResult& result, double scale) const {
    constexpr double half = 0.5;
    const double change = change_of(result);
    const double length = half * std::min(1.0, std::abs(change) / scale);
    const double before = change < 0 ? half - length : half;
    return stacked_bar({{before, "idle", ""},
                        {length,
                         !result.fits && e_.report.memory.fits ? "other"
                         : change < 0                          ? "gain"
                                                               : "loss",
                         change_text(change)},
                        {1 - before - length, "idle", ""}},
                       change_text(change));
  }

  std::string command(const WhatIfResult& result) const {
    return "<details><summary>repeat</summary><pre tabindex=\"0\">" + escaped(result.command) +
           "</pre></details>";
  }

  std::vector<std::string> what_if_row(std::size_t i, double scale) const {
    const WhatIfResult& result = e_.what_ifs[i];
    if (!result.failure.empty())
      return {escaped(result.change.what),
              "",
              "",
              "",
              escaped(result.failure.substr(0, result.failure.find('\n'))),
              command(result)};
    const std::string note = memory_note(result, e_.report);
    return {escaped(result.change.what) +
                (note.empty() ? ""
                              : " <span class=\"" + std::string(result.fits ? "good" : "bad") +
                                    "\">" + note + "</span>"),
            change_bar(result, scale),
            exact(at("what_ifs", i, "change"), signed_percent_text(change_of(result))),
            exact(at("what_ifs", i, "iteration_time_s"), to_text(result.iteration_time)),
            escaped(moved_text(result, e_.report)),
            command(result)};
  }

  /// The what-ifs whose effect is too little to read about, or the others.
  Table what_if_table(bool little) const {
    constexpr double least_change = 0.002;
    Table list{"What if",
               {"what if", "shorter | longer", "change", "iteration", "where", ""},
               {},
               "llr",
               "bars whatifs"};
    const double full = scale();
    for (std::size_t i = 0; i < e_.what_ifs.size(); ++i) {
      const WhatIfResult& result = e_.what_ifs[i];
      const bool is_little = result.fate == WhatIfFate::cannot_matter ||
                             (result.failure.empty() && std::abs(change_of(result)) < least_change);
      if (is_little == little) list.rows.push_back(what_if_row(i, full));
    }
    return list;
  }

  std::string what_ifs() const {
    if (e_.what_ifs.empty()) return no_what_ifs();
    const Table much = what_if_table(false), little = what_if_table(true);
    std::string html =
        "<h3>What if</h3>\n<p class=\"quiet\">Each is a simulation of its own, the largest gain "
        "first; <i>where</i> says which parts of the breakdown grew or shrank, <i>repeat</i> what "
        "to type to get the same numbers.</p>\n" +
        table(much);
    if (!little.rows.empty())
      html += "<details><summary>" + counted(little.rows.size()) +
              " that change less than 0.2 %</summary>\n" + table(little) + "</details>\n";
    return html;
  }
  static std::string counted(std::size_t count) {
    return grouped_text(static_cast<double>(count)) + (count == 1 ? " other" : " others");
  }

  /// The command that makes this page with what-ifs: "windtunnel explain …" in place of "windtunnel run …".
  std::string no_what_ifs() const {
    constexpr std::string_view run = "windtunnel run ";
    if (!e_.command.starts_with(run)) return "";
    return "<h3>What if</h3>\n<p>What would change it, each what-if simulated: <code>" +
           escaped("windtunnel explain " + e_.command.substr(run.size()) + " --report why.html") +
           "</code></p>\n";
  }

  const Explanation& e_;
  Seconds whole_;
  std::vector<PathShare> shares_;
};

}  // namespace

std::string why_section(const Explanation& explanation) { return WhySection(explanation).html(); }

}  // namespace windtunnel::html
