#include "importers/testing.hpp"

using namespace windtunnel;
using namespace windtunnel::testing;

namespace {

ImportRun ibnetdiscover(const std::string& text, const std::string& base = "a100-80gb-4hdr") {
  ImportRun run("ibnetdiscover");
  run.request.options.base = base;
  run.with("net.txt", text);
  return run;
}

std::string sample_fabric() { return text_of(sample("ibnetdiscover-4-nodes.txt")); }

std::string problem_of_map(const std::string& text, const std::string& base = "a100-80gb-4hdr") {
  return ibnetdiscover(text, base).problem();
}

bool has_cable(const Platform& platform, const std::string& from, const std::string& to,
               double gigabits, int count) {
  for (const FabricCable& cable : platform.fabric.cables("links"))
    if (cable.from == from && cable.to == to)
      return cable.count == count && cable.bandwidth.value() == doctest::Approx(gigabits / 8 * 1e9);
  return false;
}

}  // namespace

TEST_CASE("a map of InfiniBand gives nodes, NICs and cables, and says what is no node") {
  auto run = ibnetdiscover(sample_fabric());
  const Platform platform = run.platform();
  CHECK(std::string(platform.fabric.kind->name) == "edge_list");
  CHECK(platform.fabric.cables("links").size() == 4 * 4 + 4);
  CHECK(has_cable(platform, "node0 nic0", "leaf-1:MQM8700/U1", 200, 1));
  CHECK(has_cable(platform, "node3 nic3", "leaf-2:MQM8700/U1", 100, 1));
  CHECK(has_cable(platform, "leaf-2:MQM8700/U1", "spine-1:MQM8700/U1", 200, 2));
  const NodeType& node = platform.node_types[0];
  CHECK(node.count == 4);
  CHECK(node.nics == 4);
  CHECK(node.nic_rate.value() == doctest::Approx(25e9));
  CHECK(platform.sources.at("fabric/links").evidence == Evidence::measured);
  CHECK(platform.sources.at("fabric/latency").evidence == Evidence::assumed);
  CHECK(contains(run.text, "gpu001, gpu002, gpu003, gpu004"));
  CHECK(contains(run.messages, "Mellanox Technologies Aggregation Node, nfs01 (1 port)"));
  CHECK(contains(run.messages, "warning: 1 port slower than 4xHDR: gpu004 mlx5_3 (2xHDR)"));
}

TEST_CASE(
    "rates of InfiniBand are those behind the line code, and nodes stand in order of their "
    "numbers") {
  std::string text = replaced(replaced(sample_fabric(), "4xHDR", "4xFDR"), "gpu001", "gpu10");
  text = replaced(replaced(text, "gpu002", "gpu9"), "gpu003", "gpu11");
  auto run = ibnetdiscover(text);
  const Platform platform = run.platform();
  CHECK(platform.node_types[0].nic_rate.value() ==
        doctest::Approx(4 * 14.0625 * 64 / 66 / 8 * 1e9));
  CHECK(contains(run.text, "gpu004, gpu9, gpu10, gpu11"));
}

TEST_CASE("another number of ports than the base has NICs is taken, with a warning") {
  auto run = ibnetdiscover(sample_fabric(), "dgx-h100");
  CHECK(run.platform().node_types[0].nics == 4);
  CHECK(contains(run.messages,
                 "warning: a node has 4 network cards for training here, and dgx-h100 has 8"));
}

TEST_CASE("cables side by side of different rates keep their sum") {
  // Port 13 of leaf-1, counted behind twelve others, and the other end of its cable at spine-2
  std::string text = sample_fabric();
  const std::string at_leaf =
      "[13]\t\"S-b8599f0300500030\"[2]\t\t# \"MF0;spine-2:MQM8700/U1\" lid 5 ";
  const std::string at_spine =
      "[2]\t\"S-b8599f0300500000\"[13]\t\t# \"MF0;leaf-1:MQM8700/U1\" lid 2 ";
  REQUIRE(contains(text, at_leaf + "4xHDR"));
  REQUIRE(contains(text, at_spine + "4xHDR"));
  text = replaced(replaced(text, at_leaf + "4xHDR", at_leaf + "4xEDR"), at_spine + "4xHDR",
                  at_spine + "4xEDR");
  auto run = ibnetdiscover(text);
  CHECK(has_cable(run.platform(), "leaf-1:MQM8700/U1", "spine-2:MQM8700/U1", 150, 2));
  CHECK(contains(run.messages, "have different rates"));
}

TEST_CASE("a map of a fabric that is cut off or contradicts itself is refused at its line") {
  const std::string text = sample_fabric();
  CHECK(contains(problem_of_map(text.substr(0, text.rfind("caguid"))),
                 "no block of H-b8599f0300500008"));
  CHECK(contains(
      problem_of_map(replaced(text, "lid 20 lmc 0 \"MF0;leaf-1:MQM8700/U1\" lid 2 4xHDR",
                              "lid 20 lmc 0 \"MF0;leaf-1:MQM8700/U1\" lid 2 4xEDR")),
      "net.txt:12:6: error: the link is 4xHDR here and 4xEDR in the block of H-b8599f0300a00100"));
  CHECK(contains(
      problem_of_map(replaced(text, "[1]\t\"H-b8599f0300a00100\"", "[0]\t\"H-b8599f0300a00100\"")),
      "net.txt:12:2: error: \"0\" is no port's number"));
  CHECK(contains(problem_of_map(replaced(text, "lid 20 4xHDR", "lid 20 4xHDX")),
                 "without width and speed"));
  CHECK(contains(problem_of_map("nothing of the kind\n"), "no map of a fabric"));
  CHECK(contains(problem_of_map(replaced(text, "gpu00", "a gpu00")),
                 "no two hosts with equal numbers"));
  // The same fabric under other names: two fabrics in one file
  const std::string other = replaced(replaced(text, "b8599f03", "b8599f04"), "gpu", "fpu");
  CHECK(contains(problem_of_map(text + other), "no cables lead from S-b8599f0"));
}
