#include "sweep/results.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "core/testing.hpp"
#include "report/terminal_text.hpp"
#include "sweep/row.hpp"
#include "sweep/sweep_fixtures.hpp"
#include "sweep/sweep_plot.hpp"
#include "sweep/sweep_text.hpp"

namespace windtunnel {
namespace {

using testing::number_in;
using testing::problem_of;
using testing::SweepFixture;

TEST_CASE("the front has the points that no other beats in days and money") {
  const auto row = [](int point, double days, double cost, const char* fits) {
    return "{\"point\": " + std::to_string(point) + ", \"/nodes\": " + std::to_string(point) +
           ", \"ok\": true, \"fits\": " + fits + ", \"days\": " + std::to_string(days) +
           ", \"cost\": " + std::to_string(cost) + "}";
  };
  PartRows rows;
  rows.by_point[0] = *parse_row(row(0, 40, 100, "true"));
  rows.by_point[1] = *parse_row(row(1, 20, 120, "true"));
  rows.by_point[2] = *parse_row(row(2, 25, 130, "true"));  // slower and dearer than 1
  rows.by_point[3] = *parse_row(row(3, 10, 50, "false"));  // does not fit
  rows.by_point[4] = *parse_row(R"({"point": 4, "ok": false})");
  const std::vector<FrontPoint> points = front_of(rows, {"/nodes"});
  REQUIRE(points.size() == 3);
  CHECK(points[1].priced.label == "nodes 1");
  CHECK(points[0].priced.on_front);
  CHECK(points[1].priced.on_front);
  CHECK_FALSE(points[2].priced.on_front);
  const std::string table = results_csv(rows, {"/nodes"}, {"days", "cost"});
  CHECK(table.find("days,cost,on_front\n") != std::string::npos);
  CHECK(table.find(",120,true\n") != std::string::npos);
  CHECK(table.find(",130,false\n") != std::string::npos);
  CHECK(table.find(",50,\n") != std::string::npos);
}

TEST_CASE("speed-ups over the baseline stand in rows, table and text, with labels and intervals") {
  const SweepFixture fixture;
  const Sweep sweep = fixture.sweep(R"({"points": [
    {"label": "one, alone", "/nodes": 1}, {"label": "two", "/nodes": 2}], "baseline": "two"})");
  const RowMaker maker(sweep, {});
  PartRows rows;
  for (std::size_t point = 0; point < 2; ++point)
    rows.by_point[point] = *parse_row(maker.row(point));
  const double ratio = number_in(rows.by_point[0].line, "tokens_per_s") /
                       number_in(rows.by_point[1].line, "tokens_per_s");
  rows = with_speedups(rows, sweep);
  CHECK(number_in(rows.by_point[0].line, "speedup") == doctest::Approx(ratio).epsilon(1e-12));
  CHECK(number_in(rows.by_point[1].line, "speedup") == 1);
  // Still rows of the sweep that nobody changed.
  CHECK(std::holds_alternative<Row>(read_row(rows.by_point[0].line, sweep)));
  const std::string table = results_csv(rows, sweep.points().columns(), sweep.asked_figures());
  CHECK(table.find("point,id,label,/nodes,ok") == 0);
  CHECK(table.find(",\"one, alone\",1,true,") != std::string::npos);
  const std::string text = sweep_text(sweep, rows, "out");
  CHECK(text.find("speedup: tokens/s over those of point 1, two\n") != std::string::npos);
  CHECK(text.find("1.000x\n") != std::string::npos);
  CHECK(text.find("/nodes") == std::string::npos);
  CHECK(sweep_json(sweep, rows, "out").find("\"baseline\": 1") != std::string::npos);
  CHECK(points_text(sweep).find("2 points: all listed; 0 cannot") != std::string::npos);
  rows.by_point[1].ok = false;
  CHECK(sweep_text(sweep, rows, "out").find("no speed-ups: the baseline") != std::string::npos);
}

TEST_CASE("speed-ups have an interval and a verdict where pairs of runs were measured") {
  const TemporaryFolder folder;
  const Sweep sweep(
      folder.write("s.json", R"({"extends": ")" +
                                 (source_dir() / "scenarios/gpt-8.3b-128xa100.json").string() +
                                 R"(", "sweep": {"points": [{"label": "a"},
      {"label": "b", "/training/micro_batch": 2}], "baseline": "a"}})"),
      Library{source_dir()}, {{}, 0}, {});
  const RowMaker maker(sweep, {});
  PartRows rows;
  for (std::size_t point = 0; point < 2; ++point)
    rows.by_point[point] = *parse_row(maker.row(point));
  rows = with_speedups(rows, sweep);
  const JsonValue row = parse_row(rows.by_point[1].line)->content;
  const auto interval = interval_of(row, speedup_interval_key);
  REQUIRE(interval);
  CHECK(interval->first < figure(row, speedup_key));
  CHECK(interval->second > figure(row, speedup_key));
  CHECK(text_at(row, speedup_verdict_key) == "slower");
  CHECK_FALSE(interval_of(parse_row(rows.by_point[0].line)->content, speedup_interval_key));
  const std::string text = sweep_text(sweep, rows, "out");
  CHECK(text.find("its 90 % interval, ~ where") != std::string::npos);
  CHECK(text.find("x (0.") != std::string::npos);
  detail::set_text_width(60);
  const std::string narrow = sweep_text(sweep, rows, "out");
  detail::set_text_width(std::numeric_limits<int>::max());
  CHECK(narrow.find("x (0.") != std::string::npos);
  CHECK(narrow.find("all of them: GPUs 128") != std::string::npos);
  CHECK(narrow.find("no room for: 90 % interval;") != std::string::npos);
}

TEST_CASE("fields of a table stand in quotes where they must") {
  CHECK(csv_line({"a", "b,c", "say \"x\"", "", "two\nlines"}) ==
        "a,\"b,c\",\"say \"\"x\"\"\",,\"two\nlines\"\n");
}

TEST_CASE(
    "the table has a column for each swept pointer and figure, empty where there is nothing") {
  PartRows rows;
  rows.by_point[0] = *parse_row(R"({"point": 0, "id": "aa", "/nodes": 8, "ok": true, "gpus": 64,
                          "iteration_time_s": 1.5, "iteration_time_interval_s": [1, 2.5],
                          "fits": true})");
  rows.by_point[1] = *parse_row(R"({"point": 1, "id": "bb", "/nodes": null, "ok": false,
                                 "failure": "bad_input", "error": "no, \"no\""})");
  CHECK(results_csv(rows, {"/nodes", "/parallel/tensor"}) ==
        "point,id,/nodes,/parallel/tensor,ok,gpus,iteration_time_s,iteration_time_low_s,"
        "iteration_time_high_s,samples_per_s,tokens_per_s,model_tflops_per_gpu,mfu,"
        "memory_max_bytes,fits,memory_verdict,failure,error\n"
        "0,aa,8,,true,64,1.5,1,2.5,,,,,,true,,,\n"
        "1,bb,,,false,,,,,,,,,,,,bad_input,\"no, \"\"no\"\"\"\n");
}

TEST_CASE("no text in the table is a formula, and numbers stay numbers") {
  PartRows rows;
  rows.by_point[0] = *parse_row(R"({"point": 0, "id": "aa", "/a": "=1+1", "/b": "@x", "/c": "+1.5",
                                 "/d": "-cmd|' /C calc'!A0", "/e": -5, "/f": "\t=1", "ok": false,
                                 "failure": "bad_input", "error": "-"})");
  const std::string table = results_csv(rows, {"/a", "/b", "/c", "/d", "/e", "/f"});
  CHECK(table.find("0,aa,'=1+1,'@x,'+1.5,'-cmd|' /C calc'!A0,-5,'\t=1,false") != std::string::npos);
  CHECK(table.ends_with(",bad_input,'-\n"));
}

TEST_CASE("what would act on a terminal is spelt out in the table, and is then no formula either") {
  PartRows rows;
  rows.by_point[0] = *parse_row(
      R"({"point": 0, "id": "aa", "/a": "\u001b[31mred", "/b": "a\u009bb", "/c": "\u202ex",
                                 "/d": ["\u202e"], "/e": "\r=1", "ok": false, "failure": "crash"})");
  const std::string table = results_csv(rows, {"/a", "/b", "/c", "/d", "/e", "/\u202e"});
  CHECK(table.starts_with("point,id,/a,/b,/c,/d,/e,/\\u202e,ok"));
  CHECK(table.find("0,aa,\\u001b[31mred,a\\u009bb,\\u202ex,\"[\"\"\\u202e\"\"]\",\\u000d=1,") !=
        std::string::npos);
}

std::ptrdiff_t num_failed(const PartRows& rows) {
  return std::ranges::count_if(rows.by_point, [](const auto& each) { return !each.second.ok; });
}

/// Three points and rows as their workers might write them.
struct Rows {
  testing::SweepFixture fixture;
  TemporaryFolder folder;
  Sweep sweep = fixture.sweep(R"({"matrix": {"/nodes": [1, 2, 4]}})");

  std::string sealed(const std::string& row) const { return with_checksum(row, sweep.hash()); }
  std::string unsealed(int point, double time = 1.5, const char* gpus = "8") const {
    return "{\"point\": " + std::to_string(point) +
           ", \"id\": \"0123456789abcdef0123456789abcdef\", \"/nodes\": " +
           std::to_string(1 << point) + ", \"ok\": true, \"gpus\": " + gpus +
           ", \"iteration_time_s\": " + std::to_string(time) +
           ", \"samples_per_s\": 1, \"tokens_per_s\": 1, \"model_tflops_per_gpu\": 1, \"mfu\": "
           "0.5, "
           "\"memory_max_bytes\": 1, \"fits\": true}";
  }
  std::string ok(int point, double time = 1.5) const { return sealed(unsealed(point, time)); }
  std::string failed(int point, const std::string& error) const {
    return sealed("{\"point\": " + std::to_string(point) +
                  ", \"id\": \"0123456789abcdef0123456789abcdef\", \"/nodes\": " +
                  std::to_string(1 << point) +
                  ", \"ok\": false, \"failure\": \"crash\", \"error\": \"" + error + "\"}");
  }
  PartRows read() const { return read_parts(folder.path(), sweep); }
  /// Why `line` is refused; empty when it is not.
  std::string refusal(const std::string& line) const {
    const auto read = read_row(line, sweep);
    return std::holds_alternative<Row>(read) ? "" : std::get<std::string>(read);
  }
};

TEST_CASE("rows that were appended are found again, from every writer") {
  const Rows make;
  PartWriter first(make.folder.path()), second(make.folder.path());
  first.append(make.ok(2));
  second.append(make.failed(0, "x"));
  first.append(make.ok(1));
  const PartRows rows = make.read();
  CHECK(rows.by_point.size() == 3);
  CHECK(num_failed(rows) == 1);
  CHECK(rows.num_torn == 0);
  CHECK(rows.refused.empty());
  CHECK(rows.by_point.at(1).line == make.ok(1));
}

TEST_CASE("a row of the sweep's own worker is accepted") {
  const Rows make;
  const RowMaker maker(make.sweep, {});
  CHECK(make.refusal(maker.row(1)).empty());
  CHECK(make.refusal(maker.failed_row(1, {FailureKind::our_bug, "x"})).empty());
}

TEST_CASE("torn last lines are counted, whole lines that are no rows are named") {
  const Rows make;
  const std::string whole = make.ok(0) + "\n";
  make.folder.write("parts/a.jsonl", whole + make.ok(1).substr(0, 12));
  make.folder.write("parts/b.jsonl", whole + "\n" + make.ok(3) + "\n");
  // Whole, but without its line end: nobody can know that it is whole.
  make.folder.write("parts/c.jsonl", make.ok(2));
  const PartRows rows = make.read();
  CHECK(rows.by_point.size() == 1);
  CHECK(rows.num_torn == 2);
  REQUIRE(rows.refused.size() == 2);
  CHECK(rows.refused[0].place == (make.folder.path() / "parts/b.jsonl").string() + ":2");
  CHECK(rows.refused[0].why == "it is no row");
  CHECK(rows.refused[1].place == (make.folder.path() / "parts/b.jsonl").string() + ":3");
  CHECK(rows.refused[1].why == "the sweep has no such point");
}

TEST_CASE("what is called as a part file is and is none is named and not read") {
  const Rows make;
  PartWriter(make.folder.path()).append(make.ok(1));
  const std::filesystem::path parts = make.folder.path() / "parts";
  const std::filesystem::path folder = parts / "a.jsonl", fifo = parts / "b.jsonl";
  std::filesystem::create_directory(folder);
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  const PartRows rows = make.read();
  CHECK(rows.by_point.size() == 1);
  CHECK(rows.no_files == std::vector{folder, fifo});
  CHECK(size_of_parts(make.folder.path()) == rows.num_bytes);
}

TEST_CASE("a row that was changed, or is of another sweep, is refused") {
  const Rows make;
  std::string changed = make.ok(1);
  changed.replace(changed.find("1.5"), 3, "1.4");
  CHECK(contains(make.refusal(changed), "its checksum does not match"));
  CHECK(contains(make.refusal(make.unsealed(1)), "it has no checksum"));
  CHECK(contains(make.refusal(with_checksum(make.unsealed(1), "another sweep")),
                 "its checksum does not match"));
}

TEST_CASE("a row with a right checksum and wrong content is refused") {
  const Rows make;
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string row = make.unsealed(1);
    row.replace(row.find(from), from.size(), to);
    return make.refusal(make.sealed(row));
  };
  CHECK(with("\"ok\"", "\"ok\"").empty());
  CHECK(contains(with("0123456789abcdef0123456789abcdef", "0"), "its id is none of a scenario"));
  CHECK(contains(with("\"/nodes\": 2", "\"/nodes\": 4"), "its /nodes is not what the sweep sets"));
  CHECK(contains(with("1.5", "-5"), "its iteration_time_s is no figure"));
  CHECK(contains(with("1.500000", "0"), "takes no time"));
  CHECK(contains(with("\"gpus\": 8", "\"gpus\": 1e308"), "no number of GPUs"));
  CHECK(contains(with(", \"fits\": true", ""), "whether the point fits"));
  CHECK(contains(with("\"ok\": true", "\"ok\": false"), "why its point failed"));
}

TEST_CASE("of several rows of a point one that is ok counts, in whatever order they were written") {
  const Rows make;
  make.folder.write("parts/a.jsonl", make.failed(0, "x") + "\n" + make.ok(0) + "\n");
  make.folder.write("parts/b.jsonl", make.failed(0, "a") + "\n" + make.ok(0) + "\n");
  const PartRows rows = make.read();
  CHECK(rows.by_point.at(0).line == make.ok(0));
  CHECK(num_failed(rows) == 0);
  CHECK(rows.refused.empty());
}

TEST_CASE("two rows that contradict each other are named") {
  const Rows make;
  make.folder.write("parts/a.jsonl", make.ok(0, 2) + "\n");
  make.folder.write("parts/b.jsonl", make.ok(0, 3) + "\n");
  const PartRows rows = make.read();
  CHECK(rows.by_point.at(0).line == std::min(make.ok(0, 2), make.ok(0, 3)));
  REQUIRE(rows.refused.size() == 1);
  CHECK(contains(rows.refused[0].why, "it says something else than "));
}

TEST_CASE("where no part was written there are no rows") {
  const Rows make;
  CHECK(read_parts(make.folder.path() / "none", make.sweep).by_point.empty());
  CHECK(size_of_parts(make.folder.path() / "none") == 0);
}

TEST_CASE("results are merged while rows keep coming") {
  const Rows make;
  const pid_t writer = fork();
  if (writer == 0) {
    alarm(60);
    PartWriter part(make.folder.path());
    for (;; usleep(500)) part.append(make.ok(0));
  }
  while (size_of_parts(make.folder.path()) == 0) usleep(1000);
  merge_results(make.folder.path(), make.sweep);
  CHECK(waitpid(writer, nullptr, WNOHANG) == 0);  // it still writes
  kill(writer, SIGKILL);
  waitpid(writer, nullptr, 0);
}

TEST_CASE("a row that does not fit on the disk leaves no half, and what was there stays") {
  const Rows make;
  PartWriter writer(make.folder.path());
  writer.append(make.ok(0));
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit tight{make.ok(0).size() + 15, before.rlim_max};  // the first row and its line end
  setrlimit(RLIMIT_FSIZE, &tight);
  CHECK_THROWS_AS(writer.append(make.ok(1)), EnvironmentError);
  setrlimit(RLIMIT_FSIZE, &before);
  const PartRows rows = make.read();
  CHECK(rows.by_point.size() == 1);
  CHECK(rows.num_torn == 0);
  CHECK(rows.refused.empty());
}

TEST_CASE("a folder of another sweep or version is refused with what to do") {
  const SweepFixture fixture;
  const auto directory = fixture.folder.path() / "out";
  const Sweep sweep = fixture.sweep(R"({"matrix": {"/nodes": [1, 2]}})");
  CHECK(contains(problem_of([&] { expect_manifest(directory, sweep, "1"); }), "no sweep yet"));
  open_manifest(directory, sweep, "1");
  CHECK(problem_of([&] { open_manifest(directory, sweep, "1"); }) == "no problem");
  CHECK(contains(problem_of([&] { open_manifest(directory, sweep, "2"); }), "another version, 1"));
  CHECK(problem_of([&] { expect_manifest(directory, sweep, "1"); }) == "no problem");
  const Sweep other = fixture.sweep(R"({"matrix": {"/nodes": [1, 3]}})");
  const std::string refusal = problem_of([&] { open_manifest(directory, other, "1"); });
  CHECK(contains(refusal, "another sweep (\"small\""));
  CHECK(contains(refusal, "take another --out"));
  fixture.folder.write("out/manifest.json", "{}");
  CHECK(contains(problem_of([&] { open_manifest(directory, sweep, "1"); }), "none of a sweep"));
}

}  // namespace
}  // namespace windtunnel
