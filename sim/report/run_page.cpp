#include "report/run_page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/contracts.hpp"
#include "core/text_list.hpp"
#include "report/figures.hpp"
#include "report/html_page.hpp"
#include "report/html_text.hpp"
#include "report/memory_text.hpp"
#include "report/number_text.hpp"
#include "report/report_json.hpp"
#include "report/report_words.hpp"
#include "report/terminal_text.hpp"
#include "report/why_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace html {
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

namespace {

using detail::time_text;
using detail::with_spaces;

/// The interval as a bar with the prediction on it, on an axis a little wider than both.
std::string interval(const Report& report) {
  if (!report.iteration_time_interval)
    return "<p class=\"interval\">No interval: nothing comparable has been measured.</p>\n";
  const Seconds low = report.iteration_time_interval->first;
  const Seconds high = report.iteration_time_interval->second;
  constexpr double margin = 0.15, width = 1000;
  const Seconds pad = (high - low) * margin;
  const auto place = [&](Seconds time) {
    return fixed_text((time - low + pad) / (high - low + 2 * pad) * width, 1);
  };
  std::string svg;
  if (high > low) {
    svg =
        "<svg class=\"range\" viewBox=\"0 0 1000 16\" preserveAspectRatio=\"none\" "
        "aria-hidden=\"true\">"
        "<line class=\"axis\" x1=\"0\" x2=\"1000\" y1=\"8\" y2=\"8\"/><rect class=\"span\" x=\"" +
        place(low) + "\" width=\"" + fixed_text((high - low) / (high - low + 2 * pad) * width, 1) +
        "\" y=\"4\" height=\"8\"/><line class=\"mark\" x1=\"" + place(report.iteration_time) +
        "\" x2=\"" + place(report.iteration_time) + "\" y1=\"0\" y2=\"16\"/></svg>";
  }
  return "<p class=\"interval\">" + svg +
         "<span>90 % interval: " + number("/iteration_time_interval_s/0", to_text(low)) + " to " +
         number("/iteration_time_interval_s/1", to_text(high)) + "</span></p>\n";
}

std::string verdict(const Report& report) {
  const std::string text = detail::verdict_text(report.memory);
  if (text.empty()) return "";
  const detail::VerdictMark mark = detail::mark_of(report.memory.verdict);
  return "<p class=\"verdict " + std::string(mark.kind) + "\"><b>" + mark.mark + "</b> " +
         escaped(text) + "</p>\n";
}

std::string warnings(const Report& report) {
  std::string html;
  for (const std::string& warning : report.warnings)
    html += "<p class=\"verdict doubtful\"><b>!</b> " + escaped(warning) + "</p>\n";
  return html;
}

std::vector<Piece> pieces_of(const Breakdown& breakdown, Seconds whole) {
  std::vector<Piece> pieces;
  for (const Line line : all_lines) {
    const Seconds time = breakdown.of(line);
    if (!(time > 0_s)) continue;
    const std::string title = with_spaces(name_of(line)) + ": " + time_text(time, whole) + ", " +
                              percent_text(time / whole);
    pieces.push_back({time / whole, name_of(line), title});
  }
  return pieces;
}

std::string reasons(const Report& report) {
  std::string items;
  for (const Reason& reason : reasons_for_time(report))
    items += "<li><b>" + swatch(name_of(reason.line)) + escaped(reason.title) + "</b><p>" +
             escaped(reason.text) + "</p></li>\n";
  return "<h3>What each part is</h3>\n<ol class=\"why\">\n" + items + "</ol>\n";
}

std::string breakdown_table(const Report& report) {
  Table table{"Where the time goes", {"on the GPUs that finish last", "time", "share"}, {}};
  const Seconds total = report.breakdown.total();
  for (const Line line : all_lines) {
    const Seconds time = report.breakdown.of(line);
    const std::string text = time_text(time, total);
    if (text == time_text(0_s, total)) continue;
    table.rows.push_back({swatch(name_of(line)) + escaped(with_spaces(name_of(line))),
                          number("/breakdown_s/" + std::string(name_of(line)), text),
                          escaped(percent_text(time / total))});
  }
  return html::table(table);
}

/// The parts of a GPU's memory that lie on top of each other, in their order in the bar.
struct MemoryPart {
  const char* name;
  Bytes (*of)(const StageMemory&);
};
constexpr std::array memory_parts{
    MemoryPart{"weights", [](const StageMemory& stage) { return stage.weights; }},
    MemoryPart{"gradients", [](const StageMemory& stage) { return stage.gradients; }},
    MemoryPart{"optimizer", [](const StageMemory& stage) { return stage.optimizer; }},
    MemoryPart{"activations", [](const StageMemory& stage) { return stage.activations; }},
    MemoryPart{"buffers", [](const StageMemory& stage) { return stage.buffers; }},
    MemoryPart{"cache", [](const StageMemory& stage) { return stage.reserved - stage.allocated; }},
    MemoryPart{"context", [](const StageMemory& stage) { return stage.context; }},
};

std::string memory_bar(const StageMemory& stage, Bytes scale, Bytes capacity) {
  std::vector<Piece> pieces;
  for (const MemoryPart& part : memory_parts)
    pieces.push_back({part.of(stage) / scale, "m-" + std::string(part.name),
                      std::string(part.name) + ": " + to_text(part.of(stage))});
  if (stage.total < capacity)
    pieces.push_back(
        {(capacity - stage.total) / scale, "m-free", "free: " + to_text(capacity - stage.total)});
  return stacked_bar(pieces,
                     "memory of stage " + std::to_string(stage.stage.index()) + ": " +
                         to_text(stage.total) + " of " + to_text(capacity),
                     capacity / scale);
}

std::string gib(const std::string& pointer, Bytes bytes) {
  return number(pointer, fixed_text(bytes / 1_GiB, 2), "GiB");
}

/// The tensors of each stage at its peak, folded away; stages that read the same once.
std::string tensor_tables(const MemoryAccount& memory) {
  std::string tables;
  for (const StagesAlike& stages : stages_alike(memory)) {
    Table table{
        name_of(stages), {"", "tensor", "number × size", "GiB", "share"}, {}, "llr", "bars"};
    for (const TensorRow& row : stages.rows)
      table.rows.push_back({swatch("m-" + std::string(name_of(row.line))), escaped(row.name),
                            escaped(row.parts), escaped(row.gib), escaped(row.share)});
    tables += "<details><summary>" + escaped(name_of(stages)) + ": " +
              escaped(to_text(stages.first->allocated)) + " allocated</summary>\n" +
              html::table(table) + "</details>\n";
  }
  return "<h3>Tensors at the peak</h3>\n" + tables;
}

std::string memory_table(const Report& report) {
  const MemoryAccount& memory = report.memory;
  Table table{"Memory of a GPU of each stage, in GiB",
              {"stage", "of " + escaped(to_text(memory.capacity)), "weights", "gradients",
               "optimizer", "activations", "buffers", "allocated", "in use"},
              {},
              "llr",
              "bars"};
  const Bytes scale = std::max(memory.capacity, memory.max_total);
  for (std::size_t i = 0; i < memory.stages.size(); ++i) {
    const StageMemory& stage = memory.stages[i];
    const std::string at = "/memory/per_stage/" + std::to_string(i) + "/";
    const std::string in_use = gib(at + "total", stage.total);
    table.rows.push_back(
        {std::to_string(stage.stage.index()), memory_bar(stage, scale, memory.capacity),
         gib(at + "weights", stage.weights), gib(at + "gradients", stage.gradients),
         gib(at + "optimizer", stage.optimizer), gib(at + "activations", stage.activations),
         gib(at + "buffers", stage.buffers), gib(at + "allocated", stage.allocated),
         stage.verdict == MemoryVerdict::does_not_fit ? element("strong", "class=\"bad\"", in_use)
                                                      : in_use});
  }
  std::string legend;
  for (const MemoryPart& part : memory_parts)
    legend += "<span>" + swatch("m-" + std::string(part.name)) + part.name + "</span> ";
  return "<h3>Memory of a GPU, GiB</h3>\n" + verdict(report) + "<p class=\"legend\">" + legend +
         "</p>\n" + html::table(table);
}

std::string stage_time_table(const Report& report) {
  Table table{"Time of each stage",
              {"stage", "of " + escaped(to_text(report.iteration_time)), "compute", "tensor comm",
               "waiting", "data comm", "ends"},
              {},
              "llr",
              "bars"};
  for (std::size_t i = 0; i < report.stage_times.size(); ++i) {
    const StageTime& time = report.stage_times[i];
    const std::string stage = std::to_string(time.stage.index()),
                      at = "/stage_times_s/" + std::to_string(i) + "/";
    std::vector<Piece> pieces = pieces_of(time.breakdown, report.iteration_time);
    if (time.end < report.iteration_time)
      pieces.push_back(
          {(report.iteration_time - time.end) / report.iteration_time, "idle",
           "has ended: " + time_text(report.iteration_time - time.end, report.iteration_time)});
    const auto cell = [&](Line line) {
      return number(at + name_of(line), time_text(time.breakdown.of(line), report.iteration_time));
    };
    const Seconds waiting = time.breakdown.of(Line::pipeline_bubble) +
                            time.breakdown.of(Line::pipeline_comm) +
                            time.breakdown.of(Line::peer_wait);
    table.rows.push_back({stage, stacked_bar(pieces, "time of stage " + stage), cell(Line::compute),
                          cell(Line::tensor_comm),
                          escaped(time_text(waiting, report.iteration_time)), cell(Line::data_comm),
                          number(at + "end", time_text(time.end, report.iteration_time))});
  }
  return "<h3>Time</h3>\n<p class=\"quiet\">The stages of the replica that ends last; colours as "
         "above. Waiting is bubble, "
         "messages on the way and slower GPUs.</p>\n" +
         html::table(table);
}

std::string meter(double share, const std::string& kind) {
  return stacked_bar({{std::min(share, 1.0), kind, percent_text(share)}}, percent_text(share));
}

constexpr std::array page_traffic{
    Traffic::tensor_activations, Traffic::data_gradients,    Traffic::zero_gather,
    Traffic::pipeline_forward,   Traffic::pipeline_backward, Traffic::embedding_sync,
    Traffic::expert_dispatch,    Traffic::expert_combine,    Traffic::context};
static_assert(page_traffic.size() == num_traffic_classes);

std::string traffic_table(const Report& report) {
  Bytes total{};
  for (const Bytes bytes : report.traffic) total += bytes;
  if (!(total > Bytes{0})) return "";
  Table table{"Traffic by class",
              {"class", "share", "bytes", "messages", "of them compressed"},
              {},
              "llr",
              "bars"};
  for (const Traffic traffic : page_traffic) {
    const auto i = static_cast<std::size_t>(traffic);
    if (!(report.traffic[i] > Bytes{0})) continue;
    const MessageCount& count = report.messages[i];
    const std::uint64_t messages = count.compressed + count.uncompressed;
    const std::string at = "/messages/" + std::string(name_of(traffic)) + "/compressed";
    table.rows.push_back(
        {escaped(with_spaces(name_of(traffic))),
         meter(report.traffic[i] / total, "t-" + std::string(name_of(traffic))),
         number("/traffic_bytes/" + std::string(name_of(traffic)), to_text(report.traffic[i])),
         messages > 0 ? grouped_text(static_cast<double>(messages)) : "",
         messages > 0 ? number(at, grouped_text(static_cast<double>(count.compressed))) : ""});
  }
  return "<h3>Traffic by class</h3>\n<p class=\"quiet\">Bytes that all GPUs send in one iteration, "
         "NVLink included; messages of one "
         "pipeline.</p>\n" +
         html::table(table);
}

std::string classes_of(const LinkUse& link) {
  std::vector<std::pair<Bytes, std::string>> classes;
  for (const Traffic traffic : page_traffic)
    if (const Bytes bytes = link.carried[static_cast<std::size_t>(traffic)]; bytes > Bytes{0})
      classes.emplace_back(bytes, with_spaces(name_of(traffic)) + " " +
                                      percent_text(bytes / total_of(link.carried)));
  std::stable_sort(classes.begin(), classes.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  return joined(classes, ", ", [](const auto& each) { return each.second; });
}

std::string link_table(const Report& report) {
  constexpr std::size_t most_rows = 16;  // as many as the JSON names
  if (report.links.empty())
    return "<h3>Links</h3>\n<p class=\"quiet\">Nothing crosses a shared link: all traffic stays "
           "inside nodes.</p>\n";
  Table table{"Links by utilisation",
              {"link", "utilisation", "", "carried", "rate", "time at full rate", "carries"},
              {},
              "llr",
              "bars links"};
  double mean = 0;
  for (const LinkUse& link : report.links) mean += link.utilisation(report.iteration_time);
  mean /= static_cast<double>(report.links.size());
  const std::size_t rows = std::min(most_rows, report.links.size());
  for (std::size_t i = 0; i < rows; ++i) {
    const LinkUse& link = report.links[i];
    const std::string at = "/links/hottest/" + std::to_string(i) + "/";
    const double use = link.utilisation(report.iteration_time);
    table.rows.push_back(
        {escaped(link.name), meter(use, "link"), number(at + "utilisation", percent_text(use)),
         number(at + "bytes", to_text(total_of(link.carried))),
         number(at + "bandwidth_bytes_per_s", to_text(link.bandwidth)),
         escaped(to_text(total_of(link.carried) / link.bandwidth)), escaped(classes_of(link))});
  }
  const LinkUse& hottest = report.links.front();
  return "<h3>Links</h3>\n<p>Hottest: <b>" + escaped(hottest.name) + "</b>, " +
         escaped(percent_text(hottest.utilisation(report.iteration_time))) +
         " of what it could carry in the iteration. " +
         "Shown: " + grouped_text(static_cast<double>(rows)) + " of " +
         number("/links/in_use", grouped_text(static_cast<double>(report.links.size()))) +
         " shared links that carried anything; their mean is " +
         number("/links/mean_utilisation", percent_text(mean)) +
         ". A low mean does not say that a link never holds anybody up: gradients cross it in a "
         "short time.</p>\n" +
         html::table(table);
}

/// A figure, with those beside it.
std::string figure_card(const Figure& figure, const Report& report) {
  const auto shown = [&report](const Figure& each) {
    return number("/" + each.key, each.text(each.value(report)));
  };
  std::string note = escaped(figure.note);
  for (const Figure* other : shown_figures(report))
    if (other->beside == figure.key)
      note += (note.empty() ? "" : ", ") + escaped(other->name) + " " + shown(*other);
  return card(figure.name, shown(figure), note);
}

/// The first screen: how long, how sure, does it fit, how fast, what job.
std::string headline(const Report& report) {
  std::string html = "<header class=\"hero\">\n<div>\n<p class=\"kicker\">" + escaped(report.name) +
                     "</p>\n<h1><span class=\"big\">" +
                     number("/iteration_time_s", to_text(report.iteration_time)) +
                     "</span> per iteration</h1>\n" + interval(report) + verdict(report);
  if (!report.memory.fits)
    html += "<p class=\"verdict bad\">The time is what it would be if the plan fitted.</p>\n";
  html += warnings(report) + "<p class=\"job\">" + escaped(detail::job_text(report)) + "<br>" +
          escaped(joined(detail::plan_items(report), " · ")) +
          (report.placement_note.empty()
               ? ""
               : "<br>" + escaped("placement searched: " + report.placement_note)) +
          "</p>\n</div>\n<div class=\"cards\">\n";
  for (const Figure* figure : shown_figures(report))
    if (figure->beside.empty()) html += figure_card(*figure, report);
  html += card("memory, fullest GPU", number("/memory/max_bytes", to_text(report.memory.max_total)),
               "of " + number("/memory/capacity_bytes", to_text(report.memory.capacity)));
  const std::vector<Reason> why = reasons_for_time(report);
  const auto overhead = std::find_if(
      why.begin(), why.end(), [](const Reason& reason) { return reason.line != Line::compute; });
  if (overhead != why.end())
    html += card("largest overhead", escaped(with_spaces(name_of(overhead->line))),
                 escaped(time_text(overhead->time, report.iteration_time) + ", " +
                         percent_text(overhead->time / report.iteration_time)));
  return html + "</div>\n</header>\n";
}

/// The breakdown as one bar and a table, and what is behind each line.
std::string where_time_goes(const Report& report) {
  return "<div class=\"main-bar\">" +
         stacked_bar(pieces_of(report.breakdown, report.breakdown.total()), "Where the time goes") +
         "</div>\n<div class=\"columns\"><div>" + breakdown_table(report) + "</div><div>" +
         reasons(report) + "</div></div>\n";
}

std::string inputs(const Report& report) {
  Table table{
      "Inputs and their sources", {"input", "value", "source", "note"}, {}, "llllr", "inputs"};
  for (const Assumption& assumption : report.assumptions) {
    const std::string kind = name_of(assumption.evidence);
    table.rows.push_back({escaped(assumption.what), element("code", "", escaped(assumption.value)),
                          element("span", "class=\"badge e-" + kind + "\"", kind),
                          escaped(assumption.note)});
  }
  return "<p>" + escaped(detail::inputs_text(report)) + ".</p>\n" + html::table(table);
}

std::string provenance(const Report& report) {
  return "windtunnel " + escaped(report.version) + " · scenario " + escaped(report.scenario_hash) +
         " · seed " + std::to_string(report.seed) + " · " +
         grouped_text(static_cast<double>(report.activities)) + " activities, " +
         grouped_text(static_cast<double>(report.flows)) + " flows, played by " +
         escaped(report.engine);
}

}  // namespace
}  // namespace html

std::string run_page(const RunPage& page) {
  WT_EXPECT(page.explanation != nullptr);
  const Explanation& explanation = *page.explanation;
  const Report& report = explanation.report;
  const bool explains = !explanation.what_ifs.empty();
  const ShownDevices shown = shown_devices(page.played);
  HtmlPage html{explains ? "explain" : "run", report.name, html::headline(report)};
  const auto add_why = [&] {
    html.add("why", "Why", "Why this long?", html::why_section(explanation));
  };
  if (explains) add_why();
  html.add("time", "Time", "Where the time goes", html::where_time_goes(report));
  if (!explains) add_why();
  html.add("timeline", "Timeline", "Timeline",
           "<p class=\"quiet\">Shown: " + html::escaped(shown.text) +
               ".</p>\n<div id=\"timeline-view\"><noscript><p>The timeline is drawn by a "
               "script. Without one, the trace (trace.json.gz) shows the same in a trace "
               "viewer.</p></noscript></div>\n");
  html.add("stages", "Stages", "Stages",
           html::stage_time_table(report) + html::memory_table(report) +
               html::tensor_tables(report.memory));
  html.add("network", "Network", "Network", html::link_table(report) + html::traffic_table(report));
  html.add("inputs", "Inputs", "Inputs and their sources", html::inputs(report));
  html.add("scenario", "Scenario", "Scenario",
           "<details><summary>The whole scenario, with the origin of each "
           "value</summary>\n<pre tabindex=\"0\">" +
               html::escaped(page.scenario) + "</pre></details>\n");
  html.data = {
      {"report", without_wall_time(to_json(report))},
      {"explanation", explains ? without_wall_time(pretty_text(explanation_value(explanation)))
                               : canonical_text(path_value(explanation))},
      {"timeline-data", timeline_json(page.played, shown, explanation.path)}};
  html.footer = html::provenance(report);
  return html_document(html);
}

}  // namespace windtunnel
