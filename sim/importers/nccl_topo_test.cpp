#include "importers/testing.hpp"

using namespace windtunnel;
using namespace windtunnel::testing;

namespace {

ImportRun topology(const std::string& text, const std::string& base = "dgx-h100") {
  ImportRun run("nccl-topo");
  run.request.options.base = base;
  run.with("topo.xml", text);
  return run;
}

std::string h100_node() { return text_of(sample("nccl-topo-h100.xml")); }

std::string refusal(const std::string& text, const std::string& base = "dgx-h100") {
  return topology(text, base).problem();
}

std::string device(const std::string& bus, const std::string& inside) {
  return "<pci busid=\"" + bus + "\" link_speed=\"8.0 GT/s\" link_width=\"16\">" + inside +
         "</pci>";
}
std::string gpu(int number, const std::string& links) {
  return "<gpu dev=\"" + std::to_string(number) + "\" sm=\"70\">" + links + "</gpu>";
}

}  // namespace

TEST_CASE("NCCL's topology gives GPUs, their NVLinks, the cards near them and their rate") {
  auto run = topology(h100_node());
  const Platform platform = run.platform();
  const NodeType& node = platform.node_types[0];
  CHECK(node.gpus == 8);
  CHECK(node.nics == 8);
  CHECK(node.nic_rate.value() == doctest::Approx(50e9));
  CHECK(node.nic_of_gpu.empty());  // card g of GPU g, as it is usual
  // PCIe 5.0 x16: 32 GT/s on 16 lanes, 128 bits in 130
  CHECK(node.host->link.value() == doctest::Approx(32e9 * 16 / 8 * 128 / 130));
  CHECK(platform.sources.at("node_types/0/nics").evidence == Evidence::measured);
  CHECK(contains(run.text, "18 NVLinks a GPU, to NVLink switches"));
  CHECK(contains(run.messages,
                 "1 of 9 network cards left out, behind no PCIe switch with a GPU: mlx5_8"));
  CHECK_FALSE(contains(run.messages, "warning"));
}

TEST_CASE("GPUs behind a PCIe switch share its cards") {
  // Without three of the eight cards: two GPUs on card 0, one each on 1 and 2, two on 3, two on 4
  std::string text = h100_node();
  for (const char* name : {"mlx5_1", "mlx5_5", "mlx5_7"}) {
    const std::size_t at = text.find(std::string("<net name=\"") + name);
    REQUIRE(at != std::string::npos);
    text.erase(at, text.find("/>", at) + 2 - at);
  }
  auto run = topology(text);
  const NodeType node = run.platform().node_types[0];
  CHECK(node.nics == 5);
  CHECK(node.nic_of_gpu == std::vector<std::vector<int>>{{0}, {0}, {1}, {2}, {3}, {3}, {4}, {4}});
  CHECK(contains(run.messages,
                 "warning: a node has 5 network cards for training here, and dgx-h100 has 8"));
}

TEST_CASE("a mesh of NVLinks becomes lanes, and needs a base that is one") {
  // Four GPUs in a ring of double links
  std::string inside;
  for (int i = 0; i < 4; ++i) {
    std::string links;
    for (const int peer : {(i + 1) % 4, (i + 3) % 4})
      links += "<nvlink target=\"0" + std::to_string(peer) + "\" count=\"2\" tclass=\"0x030200\"/>";
    inside += device("0" + std::to_string(i), gpu(i, links));
  }
  const std::string text = "<system version=\"1\"><cpu numaid=\"0\">" + inside + "</cpu></system>";
  auto run = topology(text, "dgx1-v100");
  const std::vector<std::vector<int>> ring{{0, 2, 0, 2}, {2, 0, 2, 0}, {0, 2, 0, 2}, {2, 0, 2, 0}};
  CHECK(run.platform().node_types[0].interconnect.lanes == ring);
  CHECK(contains(run.messages, "no network card in the file"));
  CHECK(contains(refusal(text), "shows a mesh of NVLinks"));
  CHECK(contains(refusal(replaced(text, "target=\"03\" count=\"2\"", "target=\"03\" count=\"1\""),
                         "dgx1-v100"),
                 "are not those back"));
}

TEST_CASE("what is wrong in NCCL's topology is said at its line") {
  const std::string text = h100_node();
  CHECK(contains(refusal(text.substr(0, 900)), "no XML: "));
  CHECK(contains(refusal(replaced(text, "dev=\"7\"", "dev=\"6\"")), ": error: a second GPU 6"));
  CHECK(contains(refusal(replaced(text, "speed=\"400000\"", "speed=\"fast\"")),
                 "topo.xml:14:11: error: a <net> without its rate"));
  CHECK(contains(refusal(replaced(text, "count=\"5\"", "count=\"6\"")),
                 "topo.xml:5:9: error: GPU 0 has 20 NVLinks, and a GPU of dgx-h100 has 18"));
  CHECK(contains(refusal("<system version=\"1\"><cpu numaid=\"0\"/></system>"),
                 "no <gpu> in the file"));
  const std::size_t second = text.rfind("host_hash=\"0x5");
  CHECK(contains(refusal(text.substr(0, second) + "host_hash=\"0x6" + text.substr(second + 14)),
                 "processors of several hosts"));
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<pci>";
  CHECK(contains(refusal(deep), "more than 1024 elements"));
}
