#include "importers/trace_comparison_page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "report/comparison_words.hpp"
#include "report/html_page.hpp"
#include "report/html_text.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using detail::letter_of;

using html::Change;
using html::escaped;

/// A line of the breakdown on the page.
struct LineWords {
  TraceLine line;
  const char* text;
  const char* colour;
};
constexpr std::array<LineWords, num_trace_lines> line_words{{
    {TraceLine::compute, "compute", "compute"},
    {TraceLine::optimizer, "optimizer", "optimizer"},
    {TraceLine::codec, "codec", "codec"},
    {TraceLine::tensor_comm, "tensor parallel, exposed", "tensor_comm"},
    {TraceLine::pipeline_comm, "pipeline parallel, exposed", "pipeline_comm"},
    {TraceLine::data_comm, "data parallel, exposed", "data_comm"},
    {TraceLine::embedding_sync, "embedding, exposed", "embedding_sync"},
    {TraceLine::other_comm, "other or unnamed groups, exposed", "other"},
    {TraceLine::copies, "copies alone", "m-gradients"},
    {TraceLine::launch_gaps, "launching", "m-cache"},
    {TraceLine::pipeline_bubble, "waiting for others", "pipeline_bubble"},
    {TraceLine::idle, "idle, the trace does not say why", "pipeline_bubble"},
}};

class TimelinePage {
 public:
  explicit TimelinePage(const TimelineComparison& comparison)
      : runs_(comparison.runs), notes_(comparison.notes) {
    for (const ComparedTimeline& run : runs_) longest_ = std::max(longest_, run.time());
  }

  std::string body() const {
    return headline() + html::section({"lines", "Where the time goes", lines_table()}) +
           html::section({"kernels", "Kernels", kernels_table()}) +
           html::section({"runs", "What is compared", runs_list()});
  }

  std::string title() const {
    std::string title;
    for (const ComparedTimeline& run : runs_)
      title += (title.empty() ? "" : " against ") + run.label;
    return title;
  }

 private:
  static std::string pointer(std::size_t run, const std::string& key) {
    return "/runs/" + std::to_string(run) + "/" + key;
  }

  Seconds of(std::size_t run, TraceLine line) const {
    return runs_[run].of_one(runs_[run].totals.of(line));
  }
  bool is_present(TraceLine line) const {
    for (std::size_t run = 0; run < runs_.size(); ++run)
      if (of(run, line) > 0_s) return true;
    return false;
  }

  std::string headline() const {
    std::string html =
        "<header class=\"hero compared\">\n<div>\n<p class=\"kicker\">one step, as a profiler sees "
        "it</p>\n<h1>";
    const std::size_t other = runs_.size() > 1 ? 1 : 0;
    const double change = runs_[0].time() > 0_s ? runs_[other].time() / runs_[0].time() - 1 : 0;
    html += "<span class=\"big\">" +
            html::changed_number(pointer(other, "time_s"), pointer(0, "time_s"), Change::relative,
                                 signed_percent_text(change)) +
            "</span> time of a step: " + letter_of(other) + " against A</h1>\n" + why() + bars();
    return html + "</div>\n</header>\n";
  }

  /// What makes most of the difference between A and B.
  std::string why() const {
    if (runs_.size() < 2) return {};
    std::vector<std::pair<double, const char*>> changes;
    for (const LineWords& words : line_words)
      changes.emplace_back((of(1, words.line) - of(0, words.line)) / 1_s, words.text);
    std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
      return std::abs(a.first) > std::abs(b.first);
    });
    std::string list;
    constexpr std::size_t most_named = 3;
    for (std::size_t i = 0; i < most_named; ++i)
      if (changes[i].first != 0)
        list += (list.empty() ? "" : "; ") + std::string(changes[i].second) +
                (changes[i].first > 0 ? " +" : " −") + to_text(Seconds{std::abs(changes[i].first)});
    return list.empty() ? "" : "<p>Most of the difference: " + escaped(list) + ".</p>\n";
  }

  std::string bars() const {
    std::vector<std::vector<std::string>> rows;
    for (std::size_t run = 0; run < runs_.size(); ++run) {
      std::vector<html::Piece> pieces;
      for (const LineWords& words : line_words)
        if (of(run, words.line) > 0_s)
          pieces.push_back({of(run, words.line) / longest_, words.colour,
                            std::string(words.text) + ": " + to_text(of(run, words.line))});
      rows.push_back(
          {escaped(letter_of(run) + " ") + "<span class=\"name\">" + escaped(runs_[run].label) +
               "</span>",
           html::stacked_bar(pieces, "where the time of " + letter_of(run) + " goes"),
           "<b>" + html::number(pointer(run, "time_s"), to_text(runs_[run].time())) + "</b>"});
    }
    rows.push_back(
        {"", html::axis(longest_ / 1_s, [](double time) { return to_text(Seconds{time}); }), ""});
    std::string legend;
    for (const LineWords& words : line_words)
      if (is_present(words.line))
        legend += "<span>" + html::swatch(words.colour) + escaped(words.text) + "</span> ";
    return "<div class=\"runs-chart\">" +
           html::table({"One step of each run", {"", "", ""}, std::move(rows), "llr", "chart"}) +
           "</div>\n<p class=\"legend\">" + legend + "</p>\n";
  }

  std::vector<std::string> head(const std::string& first) const {
    std::vector<std::string> head{first, "A"};
    for (std::size_t run = 1; run < runs_.size(); ++run) {
      head.push_back(letter_of(run));
      head.push_back(letter_of(run) + " − A");
    }
    return head;
  }

  /// A number of each run and its difference to the first.
  std::vector<std::string> row(const std::string& name, const std::string& key,
                               const std::vector<Seconds>& times) const {
    std::vector<std::string> cells{name, html::number(pointer(0, key), to_text(times[0]))};
    for (std::size_t run = 1; run < times.size(); ++run) {
      cells.push_back(html::number(pointer(run, key), to_text(times[run])));
      cells.push_back(difference(times[run] - times[0]));
    }
    return cells;
  }

  static std::string difference(Seconds change) {
    if (change == 0_s) return "=";
    return (change > 0_s ? "+" : "−") + to_text(change > 0_s ? change : 0_s - change);
  }

  template <typename Get>
  std::vector<Seconds> times(const Get& get) const {
    std::vector<Seconds> times;
    for (const ComparedTimeline& run : runs_) times.push_back(run.of_one(get(run.totals)));
    return times;
  }

  std::string lines_table() const {
    std::vector<std::vector<std::string>> rows;
    rows.push_back(
        row("<b>a step</b>", "time_s", times([](const GpuTotals& gpu) { return gpu.window; })));
    for (const LineWords& words : line_words)
      if (is_present(words.line))
        rows.push_back(row(html::swatch(words.colour) + escaped(words.text),
                           std::string("breakdown_s/") + name_of(words.line),
                           times([&](const GpuTotals& gpu) { return gpu.of(words.line); })));
    rows.push_back(row("communication, also behind computing", "communication_s",
                       times([](const GpuTotals& gpu) { return gpu.communication; })));
    rows.push_back(row("of which hidden behind computing", "overlap_s",
                       times([](const GpuTotals& gpu) { return gpu.overlap; })));
    return "<p class=\"quiet\">Each instant belongs to the first line that something runs of, so "
           "that the lines add up to the step; the last two count the same time again.</p>\n" +
           html::table({"Lines of one step", head(""), std::move(rows)});
  }

  std::string kernels_table() const {
    std::set<std::string> names;
    for (const ComparedTimeline& run : runs_)
      for (const auto& [name, total] : run.totals.by_kernel) names.insert(name);
    std::vector<std::pair<Seconds, std::vector<std::string>>> rows;
    for (const std::string& name : names) {
      const std::vector<Seconds> sums = times([&](const GpuTotals& gpu) {
        const auto found = gpu.by_kernel.find(name);
        return found == gpu.by_kernel.end() ? 0 : found->second.nanoseconds;
      });
      std::vector<std::string> cells{escaped(name), to_text(sums[0])};
      for (std::size_t run = 1; run < sums.size(); ++run) {
        cells.push_back(to_text(sums[run]));
        cells.push_back(difference(sums[run] - sums[0]));
      }
      rows.emplace_back(*std::max_element(sums.begin(), sums.end()), std::move(cells));
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    constexpr std::size_t most_shown = 40;
    std::vector<std::vector<std::string>> shown;
    for (std::size_t i = 0; i < std::min(most_shown, rows.size()); ++i)
      shown.push_back(std::move(rows[i].second));
    return "<p class=\"quiet\">Sums of durations in one step, by kind of kernel; NCCL's with their "
           "process group. A simulation has no kernels below an op.</p>\n" +
           html::table({"Kernels of one step", head("kernel"), std::move(shown)});
  }

  std::string runs_list() const {
    std::string items;
    for (std::size_t run = 0; run < runs_.size(); ++run)
      items += "<li><b>" + escaped(letter_of(run)) + "</b> " + escaped(runs_[run].label) + ": " +
               escaped(runs_[run].who) +
               (runs_[run].fits ? "" : " <strong class=\"bad\">does not fit in memory</strong>") +
               "</li>\n";
    std::string notes;
    for (const std::string& note : notes_) notes += "<li>" + escaped(note) + "</li>\n";
    return "<ul class=\"jobs\">\n" + items + "</ul>\n" +
           (notes.empty() ? "" : "<h3>Not like for like</h3>\n<ul>\n" + notes + "</ul>\n");
  }

  const std::vector<ComparedTimeline>& runs_;
  const std::vector<std::string>& notes_;
  Seconds longest_{};
};

}  // namespace

std::string timeline_comparison_page(const TimelineComparison& comparison) {
  WT_EXPECT(!comparison.runs.empty());
  const TimelinePage timelines(comparison);
  HtmlPage page;
  page.kind = "compare";
  page.title = timelines.title();
  page.places = {{"lines", "Time"}, {"kernels", "Kernels"}, {"runs", "Runs"}};
  page.body = timelines.body();
  page.data = {{"report", timeline_comparison_json(comparison)}};
  page.footer = "Written by windtunnel compare.";
  return html_document(page);
}

}  // namespace windtunnel
