#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "core/testing.hpp"
#include "sweep/results.hpp"
#include "sweep/row.hpp"
#include "sweep/sweep_fixtures.hpp"

namespace windtunnel {
namespace {

using testing::problem_of;
using testing::SweepFixture;

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
