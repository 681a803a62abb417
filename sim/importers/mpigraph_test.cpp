#include "core/testing.hpp"
#include "importers/rate_matrix.hpp"
#include "importers/testing.hpp"
#include "platform/network.hpp"

using namespace windtunnel;
using namespace windtunnel::testing;

namespace {

ImportRun mpigraph(const std::string& base = "a100-80gb-4hdr") {
  ImportRun run("mpigraph");
  run.request.options.base = base;
  return run;
}

/// A log with this Send table.
std::string log_with(const std::string& table) {
  return "START mpiGraph v1.5\nMsgSize\t1024\n\n" + table + "END mpiGraph\n";
}

const std::string two_nodes =
    "Send\ta:0\tb:1\t\na:0 to\t0.000\t14493.357\t\nb:1 to\t11072.496\t0.000\t\n";

/// The rates of four nodes or more, all 10 but for `minima`: from each node to the one given.
NodeRates rates_with(const std::vector<std::size_t>& minima) {
  NodeRates rates;
  const std::size_t n = minima.size();
  for (std::size_t i = 0; i < n; ++i)
    rates.nodes.push_back(std::string(1, static_cast<char>('a' + i)));
  rates.rate.assign(n, std::vector<std::optional<double>>(n, 10));
  for (std::size_t i = 0; i < n; ++i) rates.rate[i][minima[i]] = 9;
  return rates;
}

}  // namespace

TEST_CASE("a log with noise around it becomes a directional matrix, in MiB/s") {
  auto run = mpigraph();
  run.with("net.log", "mlx5_0:1\n[a:77] MCW rank 0 bound to socket 0\n" +
                          log_with("1 of 2 (50%)\n" + two_nodes));
  const Platform platform = run.platform();
  REQUIRE(platform.matrix);
  CHECK(platform.available_nodes() == 2);
  CHECK(platform.matrix->rails == 1);
  // 14493.357 * 1048576 B/s
  CHECK(platform.matrix->rate[0][1] / 1_GBps == doctest::Approx(15.19738).epsilon(1e-5));
  CHECK(platform.matrix->rate[1][0] / 1_GBps == doctest::Approx(11.61035).epsilon(1e-5));
  CHECK(platform.sources.at("bandwidth_matrix/rows").text ==
        "mpiGraph v1.5, Send table, messages of 1024 B, net.log");
  CHECK(platform.sources.at("bandwidth_matrix/rows").evidence == Evidence::measured);
  CHECK(platform.sources.at("node_types/0/count").text == "nodes in net.log");
  CHECK(contains(run.messages, "--rails 4"));
}

TEST_CASE("a Recv table is turned around: row i receives from column j") {
  auto run = mpigraph();
  run.request.options.table = "recv";
  run.with(
      "net.log",
      log_with(two_nodes + "\nRecv\ta:0\tb:1\t\na:0 from\t0\t11072.472\nb:1 from\t14497.701\t0\n"));
  const Platform platform = run.platform();
  CHECK(platform.matrix->rate[0][1] / 1_GBps == doctest::Approx(15.20194).epsilon(1e-5));
  CHECK(contains(run.text, "differ by 0.0 %"));
}

TEST_CASE("processes of a node are put together, as so many rails") {
  auto run = mpigraph();
  run.with("net.log", log_with("Send\ta:0\ta:1\tb:2\tb:3\na:0 to\t0\t9999\t10000\t11000\n"
                               "a:1 to\t9999\t0\t12000\t13000\nb:2 to\t8000\t8000\t0\t9999\n"
                               "b:3 to\t8000\t8000\t9999\t0\n"));
  const Platform platform = run.platform();
  CHECK(platform.matrix->rails == 2);
  // (10000 + 11000 + 12000 + 13000) / 4 = 11500 MiB/s
  CHECK(platform.matrix->rate[0][1] / 1_GBps == doctest::Approx(11.5 * 1.048576));
}

TEST_CASE("the 16 x 16 tables: statistics, the ring of minima, and both directions agree") {
  auto send = mpigraph("pipette-a100-hdr");
  send.with(sample("mpigraph-16-nodes-send.csv"));
  send.request.options.table = "send";
  send.request.options.rails = 4;
  const Platform platform = send.platform();
  REQUIRE(platform.matrix);
  CHECK(platform.available_nodes() == 16);
  // The first row's cells 16716.9 and 19368.4, the last row's 16420.0.
  CHECK(platform.matrix->rate[0][1] / 1_GBps == doctest::Approx(16.7169 * 1.048576));
  CHECK(platform.matrix->rate[0][15] / 1_GBps == doctest::Approx(19.3684 * 1.048576));
  CHECK(platform.matrix->rate[15][5] / 1_GBps == doctest::Approx(16.42 * 1.048576));
  CHECK(contains(send.text, "agpu1475 → agpu1478 → agpu1502 → agpu1501 → agpu1504"));
  CHECK(contains(send.text, "differ by 4.2 % on average, 15.5 % at most"));
  CHECK(contains(send.messages, "it is kept"));
  // 19507 MiB/s on 4 rails are 81.8 GB/s, more than the base's 80.
  CHECK(platform.node_types[0].nic_efficiency == doctest::Approx(0.819));

  auto recv = mpigraph("pipette-a100-hdr");
  recv.with(sample("mpigraph-16-nodes-recv.csv"));
  recv.request.options.table = "recv";
  recv.request.options.rails = 4;
  const Platform received = recv.platform();
  CHECK(received.matrix->rate[0][1] / platform.matrix->rate[0][1] ==
        doctest::Approx(1).epsilon(0.05));
  CHECK(contains(recv.text, "make one ring"));
}

TEST_CASE("rates between nodes do not go with a base whose nodes share NVLink domains") {
  ImportRun run("mpigraph");
  run.with(sample("mpigraph-4-nodes.log")).request.options.base = "gb200-nvl72";
  CHECK(run.problem().find("NVLink domains of 18 nodes") != std::string::npos);
}

TEST_CASE("shipped rates and imported ones are the same numbers") {
  auto run = mpigraph("pipette-a100-hdr");
  run.with(sample("mpigraph-16-nodes-send.csv"));
  run.request.options.table = "send";
  run.request.options.unit = "MB/s";
  run.request.options.rails = 4;
  const Platform imported = run.platform();
  Problems problems;
  const JsonValue shipped =
      parse_json(read_source(source_dir() / "platforms/pipette-a100-hdr.json"), problems);
  const Platform base = read_back(shipped, shipped_library());
  for (std::size_t i = 0; i < 16; ++i)
    for (std::size_t j = 0; j < 16; ++j)
      if (i != j) CHECK(imported.matrix->rate[i][j] == base.matrix->rate[i][j]);
}

TEST_CASE("cleaning puts the median of a node's other rates on the ring, and nowhere else") {
  auto run = mpigraph("pipette-a100-hdr");
  run.with(sample("mpigraph-16-nodes-send.csv"));
  run.request.options.table = "send";
  run.request.options.rails = 4;
  run.request.options.unit = "MB/s";
  run.request.options.clean = "phase";
  const Platform platform = run.platform();
  // Row 0 without the diagonal and 16716.9, sorted: the 7th and 8th of 14 are 18831.7 and 18899.0.
  CHECK(platform.matrix->rate[0][1] / 1_GBps == doctest::Approx((18.8317 + 18.899) / 2));
  CHECK(platform.matrix->rate[0][2] / 1_GBps == doctest::Approx(18.4703));
  CHECK(contains(platform.sources.at("bandwidth_matrix/rows").text,
                 "16 rates of mpiGraph's phase artefact replaced by medians"));
}

TEST_CASE("the ring of minima is found where it is one ring through all nodes") {
  const auto found = find_phase_artefact(rates_with({1, 2, 3, 4, 5, 0}));
  REQUIRE(found);
  CHECK(found->of_senders);
  CHECK(found->ring == std::vector<std::size_t>{0, 1, 2, 3, 4, 5});
  CHECK(found->mean_rate == doctest::Approx(9));
  CHECK(found->usual_rate == doctest::Approx(10));
  CHECK(found->chance == doctest::Approx(120.0 / 15625));            // 5! / 5^6
  CHECK_FALSE(find_phase_artefact(rates_with({1, 2, 0, 4, 5, 3})));  // two rings of three
  CHECK_FALSE(find_phase_artefact(rates_with({1, 0, 0, 0, 0, 0})));  // a slow node
  CHECK_FALSE(find_phase_artefact(rates_with({1, 2, 3, 4, 0})));     // too few to tell
}

TEST_CASE("a pair that was not measured takes the other direction, else the median of both nodes") {
  NodeRates rates = rates_with({1, 2, 3, 0});
  rates.rate[0][2].reset();
  rates.rate[1][3].reset();
  rates.rate[3][1].reset();
  rates.rate[2][0] = 8;
  const std::vector<InferredPair> inferred = infer_missing(rates);
  REQUIRE(inferred.size() == 3);
  CHECK(inferred[0].basis == InferredPair::Basis::reverse);
  CHECK(*rates.rate[0][2] == 8);
  CHECK(inferred[1].basis == InferredPair::Basis::median);
  // 1 sends 10, 9; 3 receives 10, 9 (from 0 and 2): the median is 9.5
  CHECK(*rates.rate[1][3] == 9.5);
}

TEST_CASE("an inferred pair is said on stderr and in the source") {
  auto run = mpigraph();
  run.with(sample("mpigraph-4-nodes.log"));
  run.request.options.rails = 4;
  const Platform platform = run.platform();
  CHECK(platform.matrix->rate[1][3] == platform.matrix->rate[3][1]);
  CHECK(contains(run.messages,
                 "gpu12 to gpu14 was not measured: 19.3 GB/s inferred from the other direction"));
  CHECK(contains(platform.sources.at("bandwidth_matrix/rows").text,
                 "not measured but inferred: 1 pairs (gpu12 to gpu14)"));
}

TEST_CASE("bad tables are refused with the line, and nothing is written") {
  const auto refused = [](const std::string& text, const std::string& place,
                          const std::string& what) {
    CAPTURE(text);
    auto run = mpigraph();
    run.request.options.table = "send";
    run.with("bad.log", text);
    const std::string problem = run.problem();
    CAPTURE(problem);
    CHECK(contains(problem, "bad.log:" + place));
    CHECK(contains(problem, what));
  };
  const std::string good = log_with(two_nodes);
  refused("", "1:1", "no table of mpiGraph");
  refused("Send max 3\nSend avg 2\n", "2:10", "no table of mpiGraph");
  refused(replaced(good, "14493.357", "-14493.357"), "5:14", "rates are above 0");
  refused(replaced(good, "14493.357", "0.000"), "5:14", "a rate of 0.000");
  refused(replaced(good, "14493.357", "14493x"), "5:14", "is no rate");
  refused(replaced(good, "14493.357", "nan"), "5:14", "\"nan\" is no rate");
  refused(replaced(good, "14493.357", "-NaN"), "5:14", "is no rate");
  // 0.118 MiB/s are 124 kB/s, and 1 Mb/s is 125.
  refused(replaced(good, "14493.357", "0.118"), "5:14", "a rate of 124 kB/s between two nodes is");
  refused(replaced(good, "14493.357", "1e12"), "5:14", "too large");
  refused(",a,b\na,0,nan\nb,0.118,0\n", "2:5", "\"nan\" is no rate");
  refused(",a,b\na,0,nan\nb,0.118,0\n", "3:3", "too small");
  refused(replaced(good, "14493.357\t", ""), "5:8", "has 1 rates, the header names 2");
  refused(good.substr(0, good.find("b:1 to")), "4:1", "there are none of b:1");
  refused(replaced(good, "b:1 to", "c:1 to"), "6:1", "has a row, but no column");
  refused(replaced(good, "b:1 to", "a:0 to"), "6:1", "a second row of");
  refused(replaced(good, "a:0\tb:1", "a:0\ta:0"), "4:10", "stands twice");
  refused(good + good, "11:1", "a second Send table");
  refused(replaced(good, "b:1", "a:1"), "5:8", "the table is of one node");
  refused(replaced(replaced(good, "14493.357", "N/A"), "11072.496", "N/A"), "5:8",
          "no rate from which to infer");
  refused(",a,b\na,0,1000\nb,2000\n", "3:3", "has 1 rates");
  refused(",a,b\na,0,1000\nb,,\n", "2:3", "more than a quarter");
  refused("x,a,b\na,0,1000\nb,1000,0\n", "1:1", "the first cell");
}

TEST_CASE("a table must say what its rows are, and a rate must fit the network cards") {
  auto run = mpigraph();
  run.with("t.csv", ",a,b\na,0,1000\nb,2000,0\n");
  CHECK(contains(run.problem(), "does not say whether its rows send or receive"));
  auto said = mpigraph();
  said.with("t.csv", "Recv,a,b\na,0,1000\nb,2000,0\n");
  CHECK(said.platform().matrix->rate[0][1] / 1_GBps == doctest::Approx(2000 * 1.048576e-3));
  auto fast = mpigraph();
  fast.with("t.csv", "Send,a,b\na,0,120000\nb,2000,0\n");
  // 120000 MiB/s are 126 GB/s, and four cards of 200 Gb/s carry 100.
  CHECK(contains(fast.problem(),
                 "has 126 GB/s for a to b (1 rail), but the 4 network cards of a100-80gb-4hdr "
                 "carry 100 GB/s"));
  auto mixed = mpigraph("aws-t4-v100-mixed");
  mixed.with("t.csv", "Send,a,b\na,0,1000\nb,1000,0\n");
  CHECK(contains(mixed.problem(), "has 4 nodes of 2 kinds, the table 2"));
}
