#include "importers/testing.hpp"

using namespace windtunnel;
using namespace windtunnel::testing;

namespace {

ImportRun slurm(const std::string& text, const std::string& base = "dgx-h100") {
  ImportRun run("slurm-topology");
  run.request.options.base = base;
  run.with("topology.conf", text);
  return run;
}

std::string error_of(const std::string& text, const std::string& base = "dgx-h100") {
  return slurm(text, base).problem();
}

}  // namespace

TEST_CASE("even switches of Slurm's topology are a fat tree, without the root") {
  auto run = slurm(text_of(sample("slurm-topology.conf")));
  const Platform platform = run.platform();
  CHECK(std::string(platform.fabric.kind->name) == "fat_tree");
  CHECK(platform.fabric.list("nodes_per_switch") == std::vector<double>{4, 8});
  CHECK(platform.node_types[0].count == 16);
  CHECK(platform.sources.at("fabric/nodes_per_switch").evidence == Evidence::measured);
  CHECK(contains(run.messages, "Slurm does not use LinkSpeed"));
  auto one = slurm("switchname=s0 nodes=a[8-11],b[01-02]c[1,3] # all of them\n");
  CHECK(one.platform().fabric.list("nodes_per_switch") == std::vector<double>{8});
  CHECK(contains(one.text, "a8, a9, a10, a11, b01c1, b01c3, b02c1, b02c3"));
}

TEST_CASE("uneven switches of Slurm's topology are cables, with the NICs' rate below each") {
  auto run = slurm(
      "SwitchName=l0 Nodes=n[0-3]\nSwitchName=l1 Nodes=n[4-5]\nSwitchName=root Switches=l[0-1]\n");
  const Platform platform = run.platform();
  const std::vector<FabricCable>& cables = platform.fabric.cables("links");
  REQUIRE(cables.size() == 6 + 2);
  CHECK(cables[4].from == "node4");
  CHECK(cables[4].to == "switch l1");
  CHECK(cables[6].from == "switch l0");
  CHECK(cables[6].count * cables[6].bandwidth.value() == doctest::Approx(4 * 8 * 50e9));
  CHECK(cables[7].count * cables[7].bandwidth.value() == doctest::Approx(2 * 8 * 50e9));
  // 4,000 nodes of 8 NICs: more cables than an entry holds
  auto large = slurm(
      "SwitchName=l0 Nodes=n[0-3999]\nSwitchName=l1 Nodes=n[4000-4001]\nSwitchName=root "
      "Switches=l0,l1\n");
  const FabricCable up = large.platform().fabric.cables("links").at(4002);
  CHECK(up.count * up.bandwidth.value() == doctest::Approx(4000 * 8 * 50e9));
}

TEST_CASE("a topology of Slurm that is no tree of switches is refused at its line") {
  CHECK(contains(error_of("BlockName=b0 Nodes=n[0-3]\n"), "is a topology of Slurm in blocks"));
  CHECK(
      contains(error_of("SwitchName=a Node=n[0-3]\n"),
               "topology.conf:1:14: error: \"Node=n[0-3]\" is no part of a line of topology/tree"));
  CHECK(contains(error_of("# nothing\n"), "no line that begins with SwitchName="));
  CHECK(contains(error_of("SwitchName=a Nodes=n[0-\n"),
                 "topology.conf:1:14: error: \"n[0-\" is no list of names"));
  CHECK(contains(error_of("SwitchName=a Nodes=n[0-99999999]\n"), "more than 100000 in all"));
  CHECK(contains(
      error_of("SwitchName=a Nodes=n" + replaced(std::string(5000, 'x'), "x", "[1]") + "\n"),
      "is no list of names"));
  CHECK(contains(error_of("SwitchName=a Nodes=n[0-3] Switches=b\n"), "either nodes or switches"));
  CHECK(contains(error_of("SwitchName=a Nodes=n[0-3]\nSwitchName=b Switches=a,c\n"),
                 "no line of switch c"));
  CHECK(contains(error_of("SwitchName=a Nodes=n[0-3]\nSwitchName=b Nodes=n[4-7]\n"),
                 "no switch joins a, b"));
  CHECK(contains(
      error_of("SwitchName=a Nodes=n[0-3]\nSwitchName=b Nodes=n[3-7]\nSwitchName=r Switches=a,b\n"),
      "n3 is below two switches"));
  CHECK(contains(error_of("SwitchName=a Nodes=n[0-3]\nSwitchName=r Switches=a\nSwitchName=b "
                          "Switches=c\nSwitchName=c Switches=b\n"),
                 "in a circle"));
  CHECK(contains(
      error_of("SwitchName=a Nodes=n[0-7]\nSwitchName=b Nodes=n[8-15]\nSwitchName=r Switches=a,b\n",
               "gb200-nvl72"),
      "has NVLink domains of 18 nodes"));
}
