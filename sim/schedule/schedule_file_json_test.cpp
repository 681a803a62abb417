#include "schedule/schedule_file_json.hpp"

#include <doctest/doctest.h>

#include <memory>

namespace windtunnel {
namespace {

/// Complaint about a file; empty: none.
std::string complaint(const std::string& text) {
  Problems problems;
  JsonValue value =
      parse_json(std::make_shared<const SourceText>(SourceText{"mine.json", text}), problems);
  read_schedule_orders(value, {}, problems);
  std::string all;
  for (const Problem& problem : problems.all()) {
    all += std::to_string(problem.origin.line) + ":" + std::to_string(problem.origin.column) + " " +
           problem.pointer + ": " + problem.message + "\n";
  }
  return all;
}

std::string file(const std::string& orders, const std::string& rest = {}) {
  return R"({"version": 1, "stages": 2, "microbatches": 2)" + rest + ",\n\"orders\": [\n" + orders +
         "]}";
}

TEST_CASE("a schedule file is read into orders") {
  Problems problems;
  JsonValue value =
      parse_json(std::make_shared<const SourceText>(SourceText{
                     "mine.json", file(R"(["F0", "F0.1", "F1", "B0.1", "F1.1", "B0", "B1.1", "B1"],
["F0", "F1", "F0.1", "B0.1", "B0", "F1.1", "B1.1", "B1"])",
                                       R"(, "chunks": 2, "name": "mine")")}),
                 problems);
  const ScheduleOrders orders = read_schedule_orders(value, {}, problems);
  CHECK(orders.name == "mine");
  CHECK(orders.shape == OrderShape{2, 2, 2});
  CHECK(orders.of_stage[0][1] == Step{Phase::forward, 1, 0});
  CHECK(orders.of_stage[0][3] == Step{Phase::backward, 1, 0});
  CHECK(orders.of_stage[1].size() == 8);
}

TEST_CASE("a schedule file says how the model goes through the chunks") {
  // Stage 0 runs chunk 1 of microbatch 1 before that of microbatch 0. In a V both come from stage 1, which is done with microbatch 0
  // by then. In a loop stage 1 would wait for stage 0's F0.1 before it takes microbatch 1.
  const std::string orders = R"(["F0","F1","F1.1","F0.1","B1.1","B0.1","B1","B0"],
["F0","F0.1","F1","F1.1","B1.1","B1","B0.1","B0"])";
  CHECK(complaint(file(orders, R"(, "chunks": 2, "chunk_path": "v")")) == "");
  CHECK(complaint(file(orders, R"(, "chunks": 2)")).find("the schedule never finishes") !=
        std::string::npos);
  CHECK(complaint(file(orders, R"(, "chunks": 2, "chunk_path": "w")")).find("/chunk_path") !=
        std::string::npos);
}

TEST_CASE("a file that is no schedule is refused where it is wrong") {
  CHECK(complaint(file(R"(["F0","F1","B0","B1"], ["F0","B0","F1","B1"])")) == "");
  CHECK(complaint(file(R"(["F0","F1","B0","B1"])")) ==
        "2:11 /orders: orders has 1 lists, but stages is 2\n");
  CHECK(complaint(file(R"(["F0","F1","B0",7], ["F0","X1","B0.","B1"])")) ==
        "3:17 /orders/0/3: 7 is no pass\n3:27 /orders/1/1: \"X1\" is no pass\n"
        "3:32 /orders/1/2: \"B0.\" is no pass\n");
  CHECK(complaint(file(R"(["F0","F1","B0","B1"], "F0")")) ==
        "3:24 /orders/1: the order of stage 1 is \"F0\", which is no list\n");
  const std::string legal = R"(["F0","F1","B0","B1"], ["F0","B0","F1","B1"])";
  CHECK(complaint(file(legal, R"(, "device": 3)")) == "1:48 : unknown key \"device\"\n");
  // Next to it, what is wrong with the passes; but not with those of an unknown number of stages.
  CHECK(complaint(file(R"(["F0","F1","B0"], ["F0","B0","F1","B1"])", R"(, "device": 3)")) ==
        "1:48 : unknown key \"device\"\n3:1 /orders/0: stage 0 has no B1\n");
  CHECK(complaint(R"({"version": 1, "stage": 1, "microbatches": 1, "orders": [[]]})") ==
        "1:16 : unknown key \"stage\"\n");
  CHECK(
      complaint(R"({"version": 1, "stages": 1, "microbatches": 1, "chunks": 2, "orders": [[]]})") ==
      "1:58 /chunks: several chunks need more than one stage\n");
}

TEST_CASE("a file that holds no object is refused, whatever it holds") {
  CHECK(complaint("8") == "1:1 : this is 8, which is not an object\n");
  CHECK(complaint("[]") == "1:1 : this is an array, which is not an object\n");
  CHECK(complaint(R"({"extends": "x.json", "nodes": 2})") ==
        "1:1 : this is a scenario, not a schedule\n");
  CHECK(complaint("null") == "1:1 : this is null, which is not an object\n");
  CHECK(complaint("\"1f1b\"") == "1:1 : this is \"1f1b\", which is not an object\n");
}

TEST_CASE("an illegal schedule is refused at the pass that makes it so") {
  CHECK(complaint(file(R"(["F0","F1","B0"], ["F0","B0","F1","B1","F0"])")) ==
        "3:1 /orders/0: stage 0 has no B1\n3:40 /orders/1/4: stage 1 has F0 twice\n");
  CHECK(complaint(file(R"(["F0","F1","B0","B1"], ["F1","B1","F0","B0"])")) == "");
  CHECK(
      complaint(file(R"(["F0","B1","F1","B0"], ["F0","F1","B1","B0"])")) ==
      "3:7 /orders/0/1: the schedule never finishes: stage 0 B1 waits for stage 0 F1, which comes "
      "after stage 0 B1\n");
}

}  // namespace
}  // namespace windtunnel
