#include "report/trace_check_fixtures.hpp"

#include <doctest/doctest.h>

namespace windtunnel {
namespace {

/// A trace without a fault: two processes, three threads, a nested slice, an arrow, a counter.
const std::string good = R"({"distributedInfo":{"rank":0},"traceEvents":[
{"ph":"M","name":"process_name","pid":1,"args":{"name":"rank 0"}},
{"ph":"M","name":"process_name","pid":2,"args":{"name":"rank 1"}},
{"ph":"M","name":"thread_name","pid":1,"tid":100,"args":{"name":"compute"}},
{"ph":"M","name":"thread_name","pid":1,"tid":102,"args":{"name":"comm"}},
{"ph":"M","name":"thread_name","pid":2,"tid":202,"args":{"name":"comm"}},
{"ph":"X","name":"outer","cat":"note","pid":1,"tid":100,"ts":0.000,"dur":3.000},
{"ph":"X","name":"inner","cat":"kernel","pid":1,"tid":100,"ts":1.000,"dur":2.000},
{"ph":"X","name":"next","cat":"kernel","pid":1,"tid":100,"ts":3.000,"dur":0.001},
{"ph":"X","name":"send","cat":"kernel","pid":1,"tid":102,"ts":3.000,"dur":1.000},
{"ph":"X","name":"recv","cat":"kernel","pid":2,"tid":202,"ts":3.000,"dur":1.000},
{"ph":"s","name":"m","cat":"message","id":1,"pid":1,"tid":102,"ts":3.001},
{"ph":"f","bp":"e","name":"m","cat":"message","id":1,"pid":2,"tid":202,"ts":3.999},
{"ph":"C","name":"memory","pid":1,"ts":0.000,"args":{"bytes":10}},
{"ph":"C","name":"memory","pid":1,"ts":1.000,"args":{"bytes":30}}
]})";

/// The good trace with one thing changed.
std::string with(const std::string& old_text, const std::string& new_text) {
  std::string text = good;
  const std::size_t at = text.find(old_text);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old_text.size(), new_text);
}

/// The only problem that is found after the change.
std::string problem_with(const std::string& old_text, const std::string& new_text) {
  const TraceFindings findings = check_trace(with(old_text, new_text));
  CHECK_FALSE(findings.ok());
  REQUIRE(findings.num_problems == 1);
  return findings.problems[0];
}

TEST_CASE("a sound trace is counted and has no problems") {
  const TraceFindings findings = check_trace(good);
  CHECK(findings.ok());
  CHECK(findings.problems.empty());
  CHECK(findings.events == 14);
  CHECK(findings.slices == 5);
  CHECK(findings.arrows == 1);
  CHECK(findings.counter_samples == 2);
  CHECK(findings.processes == 2);
  CHECK(findings.threads == 3);
  // inner 2000, next 1, send 1000, receive 1000
  CHECK(findings.nanoseconds_by_category.at("kernel") == 4001);
  CHECK(findings.nanoseconds_by_category.at("note") == 3000);
  CHECK(findings.counter_peak_by_process.at(1) == 30);
}

TEST_CASE("slices that overlap on a thread are found") {
  CHECK(problem_with(R"("ts":1.000,"dur":2.000)", R"("ts":1.000,"dur":2.001)") ==
        "thread 100: \"outer\" and \"inner\" overlap and do not nest");
}

TEST_CASE("an overlap of a nanosecond is found") {
  CHECK(problem_with(R"("ts":3.000,"dur":0.001)", R"("ts":2.999,"dur":0.002)") ==
        "thread 100: \"inner\" and \"next\" overlap and do not nest");
}

TEST_CASE("a slice without a duration, which viewers drop, is found") {
  CHECK(problem_with(R"("ts":3.000,"dur":0.001)", R"("ts":3.000)") == "event 7 has no number dur");
}

TEST_CASE("a negative time is found") {
  CHECK(problem_with(R"("ts":3.000,"dur":0.001)", R"("ts":3.000,"dur":-0.001)") ==
        "event 7 has a dur that is negative or not finite");
}

TEST_CASE("a time that is no number is found") {
  CHECK(problem_with(R"("ts":3.000,"dur":0.001)", R"("ts":null,"dur":0.001)") ==
        "event 7 has no number ts");
  CHECK(problem_with(R"("ts":3.000,"dur":0.001)", R"("ts":1e300,"dur":0.001)") ==
        "event 7 has a ts that is negative or not finite");
}

TEST_CASE("a tid that two processes use is found") {
  const TraceFindings findings =
      check_trace(with(R"("name":"recv","cat":"kernel","pid":2,"tid":202)",
                       R"("name":"recv","cat":"kernel","pid":2,"tid":102)"));
  REQUIRE(findings.num_problems == 2);
  CHECK(findings.problems[0] == "event 9 uses tid 102 of process 1 in process 2");
  CHECK(findings.problems[1] == "arrow 1 (message, m): its f is in no slice");
}

TEST_CASE("a process without a name is found") {
  CHECK(problem_with(R"({"ph":"M","name":"process_name","pid":2,"args":{"name":"rank 1"}},)", "") ==
        "process 2 has no name");
}

TEST_CASE("a thread without a name is found") {
  CHECK(problem_with(R"({"ph":"M","name":"thread_name","pid":2,"tid":202,"args":{"name":"comm"}},)",
                     "") == "thread 202 has no name");
}

TEST_CASE("a second name is found") {
  CHECK(problem_with(R"("pid":2,"args":{"name":"rank 1"}},)",
                     R"("pid":2,"args":{"name":"rank 1"}},
{"ph":"M","name":"process_name","pid":2,"args":{"name":"rank 9"}},)") ==
        "event 2 names process 2 again");
}

TEST_CASE("an arrow without its end is found") {
  CHECK(
      problem_with(
          R"({"ph":"f","bp":"e","name":"m","cat":"message","id":1,"pid":2,"tid":202,"ts":3.999},)",
          "") == "arrow 1 (message, m) has 1 s and 0 f");
}

TEST_CASE("ends of an arrow with different ids, categories or names do not belong together") {
  const std::string end = R"("bp":"e","name":"m","cat":"message","id":1)";
  for (const std::string other : {R"("bp":"e","name":"m","cat":"message","id":2)",
                                  R"("bp":"e","name":"m","cat":"other","id":1)",
                                  R"("bp":"e","name":"n","cat":"message","id":1)"})
    CHECK(check_trace(with(end, other)).num_problems == 2);
}

TEST_CASE("an arrow that starts twice is found") {
  CHECK(problem_with(R"({"ph":"f","bp":"e")",
                     R"({"ph":"s","name":"m","cat":"message","id":1,"pid":1,"tid":102,"ts":3.002},
{"ph":"f","bp":"e")") == "arrow 1 (message, m) has 2 s and 1 f");
}

TEST_CASE("an end of an arrow outside of all slices is found") {
  CHECK(problem_with(R"("tid":102,"ts":3.001)", R"("tid":102,"ts":2.999)") ==
        "arrow 1 (message, m): its s is in no slice");
  // a slice is over at its end
  CHECK(problem_with(R"("tid":202,"ts":3.999)", R"("tid":202,"ts":4.000)") ==
        "arrow 1 (message, m): its f is in no slice");
}

TEST_CASE("an arrow backwards in time is found") {
  CHECK(problem_with(R"("tid":202,"ts":3.999)", R"("tid":202,"ts":3.000)") ==
        "arrow 1 (message, m) ends before it starts");
}

TEST_CASE("an arrow's end that would bind to the next slice is found") {
  CHECK(problem_with(R"("bp":"e",)", "") == "event 11 is an f without bp \"e\"");
}

TEST_CASE("an arrow with a text for its id, which viewers read as hexadecimal, is found") {
  CHECK(check_trace(with(R"("id":1,"pid":1)", R"("id":"1","pid":1)")).problems[0] ==
        "event 10 has no integer id");
}

TEST_CASE("a counter with two series is found") {
  CHECK(problem_with(R"({"bytes":10})", R"({"bytes":10,"more":1})") ==
        "event 12 is a counter without exactly one number");
}

TEST_CASE("events of a kind that nobody shows are found") {
  CHECK(problem_with(R"({"ph":"C","name":"memory","pid":1,"ts":0.000)",
                     R"({"ph":"Q","name":"memory","pid":1,"ts":0.000)") ==
        "event 12 has an unknown ph \"Q\"");
}

TEST_CASE("a trace without a rank, which analysers refuse, is found") {
  CHECK(problem_with(R"("distributedInfo":{"rank":0},)", "") == "distributedInfo.rank is missing");
}

TEST_CASE("what is no trace is a problem, not a crash") {
  for (const char* text : {"", "{", "[]", "3", R"({"traceEvents":[)", R"({"events":[]})"})
    CHECK_FALSE(check_trace(text).ok());
  CHECK_FALSE(check_trace(R"({"distributedInfo":{"rank":0},"traceEvents":[1,[2],null]})").ok());
}

TEST_CASE("only the first 20 problems are told, all are counted") {
  std::string text = R"({"distributedInfo":{"rank":0},"traceEvents":[0)";
  for (int i = 1; i < 30; ++i) text += ",0";
  const TraceFindings findings = check_trace(text + "]}");
  CHECK(findings.problems.size() == 20);
  CHECK(findings.num_problems == 30);
}

}  // namespace
}  // namespace windtunnel
