#include "report/explanation.hpp"

#include <doctest/doctest.h>

#include "report/run_page.hpp"
#include "report/testing.hpp"

namespace windtunnel {
namespace {

/// The two stages of report/testing.hpp. Their path, in microseconds: stage 0 forward (0-3), message (3-4), stage 1 until 22, message
/// (22-23), stage 0 backward (23-29), embedding (29-31), an optimizer (31-32); both end then, and stage 1's is the
/// first in the timeline.
Explanation explained() {
  const ProgramSet programs = testing::two_stage_programs();
  const testing::SimulatedWorld simulated = testing::simulate_alone(programs);
  return explain_path(testing::small_report(), testing::two_stage_plan(), programs,
                      simulated.timeline);
}

double us(Seconds time) { return time / 1_us; }

const PathShare& share_of(const Explanation& e, const std::string& what) {
  for (const PathShare& share : e.shares)
    if (share.what == what) return share;
  FAIL("no share " << what);
  return e.shares.front();
}

TEST_CASE("the shares of the critical path are what its stages, messages and collectives took") {
  const Explanation e = explained();
  // Stage 1 runs two microbatches on the path, 3 + 6 us each of which a third is tensor-parallel; stage 0 one forward, one backward.
  CHECK(us(share_of(e, "compute of stage 1").time) == doctest::Approx(12));
  CHECK(us(share_of(e, "tensor collectives of stage 1").time) == doctest::Approx(6));
  CHECK(us(share_of(e, "compute of stage 0").time) == doctest::Approx(6));
  CHECK(us(share_of(e, "embedding synchronisation").time) == doctest::Approx(2));
  const PathShare& message = share_of(e, "stage 0 -> 1 inside node 0 (activations)");
  CHECK(us(message.time) == doctest::Approx(1));
  CHECK(message.rate() / 1_GBps == doctest::Approx(1000));  // 1 MB in 1 us
  CHECK(spoken_share(message) ==
        "waiting for stage 0 -> 1 inside node 0 at 1.00 TB/s (activations)");
  CHECK(us(lines_of_path(e.shares).total()) == doctest::Approx(32));
  CHECK(us(lines_of_path(e.shares).of(Line::pipeline_comm)) == doctest::Approx(2));
}

TEST_CASE("the segments follow each other in one place after the other") {
  const Explanation e = explained();
  REQUIRE(e.segments.size() == 7);
  CHECK(e.segments[2].what == "stage 1");
  CHECK(e.segments[2].where.starts_with("ranks 0008-0015"));
  CHECK(e.segments[2].steps == 4);
  CHECK(us(e.segments[2].begin) == doctest::Approx(4));
  CHECK(us(e.segments[2].end) == doctest::Approx(22));
  CHECK(us(e.segments.back().end) == doctest::Approx(32));
}

TEST_CASE("a short list keeps what is large, and adds up to the same") {
  const auto share = [](const std::string& topic, int stage, double percent) {
    PathShare made;
    made.topic = topic;
    made.what = topic + " of stage " + std::to_string(stage);
    made.stage = stage;
    made.time = percent * 1_s;
    made.steps = 1;
    return made;
  };
  const std::vector<PathShare> all{share("compute", 3, 90),
                                   share("compute", 0, 5),
                                   share("compute", 1, 1.5),
                                   share("compute", 2, 1.4),
                                   share("tensor collectives", 1, 1.2),
                                   share("codec", 2, 0.6),
                                   share("codec", 3, 0.3)};
  const std::vector<PathShare> list = main_shares(all, 10);
  REQUIRE(list.size() == 5);
  CHECK(list[2].what == "compute of 2 other stages");
  CHECK(list[2].time / 1_s == doctest::Approx(2.9));
  CHECK(list[2].stage == -1);
  CHECK(list[3].what == "tensor collectives of stage 1");
  CHECK(list[4].what == "codec of 2 stages");  // none of which is in the list by itself
  CHECK(main_shares(all, 1).size() == 4);
  Seconds sum{};
  for (const PathShare& each : main_shares(all, 1)) sum += each.time;
  CHECK(sum / 1_s == doctest::Approx(100));
}

TEST_CASE("slack is what the least patient thing has, and what half of the time has") {
  const Explanation e = explained();
  REQUIRE(e.devices.size() == 2);
  // Stage 0: forward 1 (3 us) could end 6 us later, backward 0 (6 us) 3 us later; 10 of its 19 us have none.
  CHECK(us(e.stages[0].busy) == doctest::Approx(19));
  CHECK(us(e.stages[0].least) == doctest::Approx(0));
  CHECK(us(e.stages[0].median) == doctest::Approx(0));
  CHECK(us(e.stages[1].on_path) == doctest::Approx(19));  // 18 of passes, 1 of its optimizer
  CHECK(e.devices[1].what.starts_with("ranks 0008-0015"));
  REQUIRE(e.links.size() == 2);
  CHECK(us(e.links[0].busy) == doctest::Approx(2));
  CHECK(us(e.links[0].on_path) == doctest::Approx(1));
}

TEST_CASE("a command is one line that a shell splits into the same words") {
  CHECK(shell_line({"windtunnel", "run", "a.json"}) == "windtunnel run a.json");
  CHECK(shell_line({"--set", "/platform/fabric/latency=0 us"}) ==
        "--set '/platform/fabric/latency=0 us'");
  CHECK(shell_line({"it's", "", "$HOME"}) == "'it'\\''s' '' '$HOME'");
}

TEST_CASE("a change is said in percent and in the parts that moved") {
  CHECK(change_text(-0.0611) == "-6.1 %");
  CHECK(change_text(0.003) == "+0.3 %");
  CHECK(change_text(-0.0004) == "no change");
  Explanation e = explained();
  WhatIfResult result;
  result.breakdown = e.report.breakdown;
  result.breakdown.seconds[static_cast<std::size_t>(Line::pipeline_bubble)] -= 4_us;
  result.breakdown.seconds[static_cast<std::size_t>(Line::compute)] += 1_us;
  CHECK(moved_text(result, e.report) == "pipeline bubble -4.000 us, compute +1.000 us");
}

TEST_CASE(
    "the page's section names what it leaves out: failures, memory, and where nothing was asked") {
  Explanation e = explained();
  e.command = "windtunnel run 'my own.json'";
  CHECK(html::why_section(e, explanation_value(e))
            .find("<code>windtunnel explain &#39;my own.json&#39; --report why.html</code>") !=
        std::string::npos);
  WhatIfResult fails{{WhatIfKind::codec, "int8", {}}, {}, {}, true, "no speed <known>\nmore"};
  WhatIfResult too_large{{WhatIfKind::training, "no recomputation", {}}, 16_us, {}, false, ""};
  e.what_ifs = {too_large, fails};
  const std::string html = html::why_section(e, explanation_value(e));
  CHECK(html.find("does not fit in memory") != std::string::npos);
  Report misfit = e.report;
  misfit.memory.fits = false;
  CHECK(memory_note(too_large, misfit) == "does not fit in memory either");
  too_large.memory_advice = "fits with no_sync false";
  CHECK(memory_note(too_large, e.report) == "does not fit in memory; fits with no_sync false");
  too_large.fits = true;
  CHECK(memory_note(too_large, misfit) == "fits in memory");
  CHECK(html.find("no speed &lt;known&gt;</td>") != std::string::npos);
  CHECK(html.find(R"(<span data-of="explanation" data-at="/what_ifs/0/change">-50.0 %</span>)") !=
        std::string::npos);
  CHECK(html.find("The end of the iteration waited for <b>") != std::string::npos);
}

TEST_CASE("what-ifs stand in their order, and codecs that gain little share a line") {
  Explanation e = explained();
  const Seconds now = e.report.iteration_time;
  const auto codec = [&](const std::string& name, double of_now, const char* value = "{}") {
    return WhatIfResult{{WhatIfKind::codec, name, {{"/a", value}}}, of_now * now, {}, true, ""};
  };
  e.what_ifs = {codec("fast", 0.8),
                {{WhatIfKind::nic, "twice the NIC rate", {}}, 0.9 * now, {}, true, ""},
                codec("idle", 0.995),
                codec("no compression", 1.02, "null"),
                codec("slow", 1.3)};
  const std::string text = explanation_text(e, Colour::never);
  const auto at = [&](const char* what) { return text.find(what); };
  REQUIRE(at("-20.0 %") != std::string::npos);
  CHECK(at(", by gain\n") != std::string::npos);
  CHECK(at("fast") < at("twice the NIC rate"));
  CHECK(at("twice the NIC rate") < at("no compression"));
  CHECK(at("2 more codecs: none gains more than 1.0 %; the worst loses 30.0 % (slow)") !=
        std::string::npos);
  CHECK(at("idle") == std::string::npos);
}

TEST_CASE("what cannot be simulated is named once under each reason") {
  Explanation e = explained();
  const auto failed = [](const char* what, const char* why) {
    WhatIfResult result{{WhatIfKind::training, what, {}}, {}, {}, true, why};
    result.fate = WhatIfFate::failed;
    return result;
  };
  e.what_ifs = {
      failed("node 0 slower", "not possible: one type of node\nmore"),
      failed("schedule gpipe", "not possible: two chunks"),
      {{WhatIfKind::nic, "twice the NIC rate", {}}, 0.9 * e.report.iteration_time, {}, true, ""},
      failed("node 1 slower", "not possible: one type of node")};
  const std::string text = explanation_text(e, Colour::never);
  CHECK(text.find("node 0 slower; node 1 slower: not possible: one type of node\n") !=
        std::string::npos);
  CHECK(text.find("schedule gpipe: not possible: two chunks\n") != std::string::npos);
  CHECK(text.find("  change ") < text.find("twice the NIC rate"));
  CHECK(text.find("more\n") == std::string::npos);
}

TEST_CASE("the JSON names every kind of time of the path") {
  Explanation e = explained();
  e.what_ifs = {
      {{WhatIfKind::nic, "twice", {{"/a", "1"}}}, 16_us, {}, true, "", "windtunnel run a"}};
  e.command = "windtunnel run";
  const JsonValue value = explanation_value(e);
  for (const char* key :
       {"schema", "iteration_time_s", "breakdown_s", "critical_path", "critical_path_s", "segments",
        "stages", "devices", "links", "command", "what_ifs", "report"})
    CHECK_MESSAGE(value.find(key) != nullptr, key);
  const JsonValue& what_if = value.find("what_ifs")->array().front();
  CHECK(what_if.find("kind")->string() == "nic");
  CHECK(what_if.find("command")->string() == "windtunnel run a");
  CHECK(std::get<bool>(what_if.find("fits")->content));
  CHECK(what_if.find("breakdown_s")->object().size() ==
        num_lines - 3);  // no experts, cut sequences or slower peers
  CHECK(path_value(e).find("what_ifs") == nullptr);
}

}  // namespace
}  // namespace windtunnel
