#include "importers/testing.hpp"

using namespace windtunnel;
using namespace windtunnel::testing;

namespace {

ImportRun topo(const std::string& base) {
  ImportRun run("topo");
  run.request.options.base = base;
  return run;
}

/// Notes and warnings of importing a table.
std::string messages_of(const std::string& base, const std::string& table) {
  ImportRun run = topo(base);
  run.with("topo.txt", table).run();
  return run.messages;
}

/// A DGX-1 as an old driver prints it: blanks, SOC in place of SYS, cards named in the header.
const std::string dgx1 =
    R"(        GPU0    GPU1    GPU2    GPU3    GPU4    GPU5    GPU6    GPU7    mlx5_0  mlx5_2  mlx5_1  mlx5_3  CPU Affinity
GPU0     X      NV1     NV1     NV2     NV2     SOC     SOC     SOC     PIX     SOC     PHB     SOC     0-19,40-59
GPU1    NV1      X      NV2     NV1     SOC     NV2     SOC     SOC     PIX     SOC     PHB     SOC     0-19,40-59
GPU2    NV1     NV2      X      NV2     SOC     SOC     NV1     SOC     PHB     SOC     PIX     SOC     0-19,40-59
GPU3    NV2     NV1     NV2      X      SOC     SOC     SOC     NV1     PHB     SOC     PIX     SOC     0-19,40-59
GPU4    NV2     SOC     SOC     SOC      X      NV1     NV1     NV2     SOC     PIX     SOC     PHB     20-39,60-79
GPU5    SOC     NV2     SOC     SOC     NV1      X      NV2     NV1     SOC     PIX     SOC     PHB     20-39,60-79
GPU6    SOC     SOC     NV1     SOC     NV1     NV2      X      NV2     SOC     PHB     SOC     PIX     20-39,60-79
GPU7    SOC     SOC     SOC     NV1     NV2     NV1     NV2      X      SOC     PHB     SOC     PIX     20-39,60-79
)";

const std::string two_on_pcie =
    "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tPHB\t0-63\t0\t\tN/A\n"
    "GPU1\tPHB\t X \t0-63\t0\t\tN/A\n\nLegend:\n\n  X    = Self\n";

}  // namespace

TEST_CASE("eight A100 behind a switch with four near cards of six, colours and all") {
  auto run = topo("selene-a100");
  run.with(sample("topo-a100.txt"));
  const Platform platform = run.platform();
  CHECK(platform.node_types[0].gpus == 8);
  CHECK(platform.node_types[0].nics == 4);
  CHECK(platform.node_types[0].interconnect.kind == Interconnect::Kind::nvswitch);
  CHECK(platform.sources.at("node_types/0/nics").evidence == Evidence::measured);
  CHECK(platform.sources.at("node_types/0/nic_rate").evidence == Evidence::datasheet);
  CHECK(
      contains(run.messages,
               "2 of 6 network cards left out: farther from every GPU than PXB (mlx5_4, mlx5_5)"));
  CHECK(contains(run.messages, "not in such a table"));
  CHECK_FALSE(contains(run.messages, "not the nearest"));
}

TEST_CASE("a DGX-1 gives the lanes of its mesh, and the order of its cards is said") {
  auto run = topo("dgx1-v100");
  run.with("topo.txt", dgx1);
  const Platform platform = run.platform();
  CHECK(platform.node_types[0].nics == 4);
  const auto& lanes = platform.node_types[0].interconnect.lanes;
  CHECK(lanes[0] == std::vector<int>{0, 1, 1, 2, 2, 0, 0, 0});
  CHECK(lanes[7] == std::vector<int>{0, 0, 0, 1, 2, 1, 2, 0});
  // Cards stand in the order mlx5_0, mlx5_2, …: GPUs 2 and 3 are given mlx5_2, which is not theirs.
  CHECK(contains(run.messages, "GPU2 (mlx5_1, not mlx5_2)"));
}

TEST_CASE(
    "four GPUs joined by all their links are a mesh, and by more links than they have a switch") {
  const auto table = [](const std::string& bond) {
    return replaced(
        "\tGPU0\tGPU1\tGPU2\tGPU3\nGPU0\tX\tB\tB\tB\nGPU1\tB\tX\tB\tB\nGPU2\tB\tB\tX\tB\nGPU3\tB\tB"
        "\tB\tX\n",
        "B", bond);
  };
  auto mesh = topo("jean-zay-v100");
  mesh.with("topo.txt", table("NV2"));  // 3 * 2 = 6 links of a V100
  CHECK(mesh.platform().node_types[0].interconnect.lanes[2] == std::vector<int>{2, 2, 0, 2});
  CHECK(contains(mesh.messages, "no network card in the table; 4 a node"));
  auto on_switch = topo("selene-a100");
  on_switch.with("topo.txt", table("NV12"));  // 3 * 12 = 36, more than any GPU has
  CHECK(on_switch.platform().node_types[0].gpus == 4);
  auto wrong = topo("selene-a100");
  wrong.with("topo.txt", table("NV2"));
  CHECK(contains(wrong.problem(), "shows a mesh of NVLinks, but selene-a100 is of kind nvswitch"));
  CHECK(contains(wrong.problem(), "name a base of kind mesh, as hgx-h200-4gpu, or a file"));
}

TEST_CASE("the platforms that are offered as bases are of the kind asked for") {
  for (const auto& [name, kind] : all_names<Interconnect::Kind>()) {
    const std::string asked = ask_for_base(kind);
    CAPTURE(asked);
    const std::size_t begin = asked.find(", as ") + 5;
    const BasePlatform base(asked.substr(begin, asked.find(", or") - begin), shipped_library());
    CHECK(base.only_node().interconnect.kind == kind);
  }
}

TEST_CASE("a bond of more NVLinks than the base's GPU has is refused, one of fewer is a warning") {
  const std::string table = text_of(sample("topo-a100.txt"));
  auto hopper = topo("selene-a100");
  hopper.with("topo.txt", replaced(table, "NV12", "NV18"));
  const std::string problem = hopper.problem();
  CAPTURE(problem);
  CHECK(
      contains(problem,
               "topo.txt:2:10: error: a bond of 18 NVLinks, but selene-a100 has a100-sxm-80gb GPUs "
               "of 12 NVLinks each (name a --base with the GPUs of this node)"));
  const std::string fewer = messages_of("selene-a100", replaced(table, "NV12", "NV8"));
  CHECK(contains(fewer, "import: warning: "));
  CHECK(contains(fewer, "topo.txt:2: a bond of 8 NVLinks"));
  CHECK_FALSE(contains(messages_of("selene-a100", table), "warning: "));
}

TEST_CASE("GPUs without NVLink are on PCIe") {
  auto run = topo("aws-16xt4");
  run.with("topo.txt", two_on_pcie);
  const Platform platform = run.platform();
  CHECK(platform.node_types[0].gpus == 2);
  CHECK(platform.node_types[0].interconnect.kind == Interconnect::Kind::pcie);
}

TEST_CASE("bad tables of topo are refused with the line, and nothing is written") {
  const auto refused = [](const std::string& text, const std::string& place,
                          const std::string& what) {
    CAPTURE(text);
    auto run = topo("aws-16xt4");
    run.with("topo.txt", text);
    const std::string problem = run.problem();
    CAPTURE(problem);
    CHECK(contains(problem, "topo.txt:" + place));
    CHECK(contains(problem, what));
  };
  refused("", "1:1", "no table of nvidia-smi");
  refused("NVIDIA-SMI has failed\n", "1:16", "no table of nvidia-smi");
  refused(two_on_pcie.substr(0, two_on_pcie.find("GPU1\tPHB")), "1:2", "no row of GPU1");
  refused(replaced(two_on_pcie, "X \tPHB", "X \t-3"), "2:10", "\"-3\" is no way");
  refused(replaced(two_on_pcie, "X \tPHB", "X \tNV0"), "2:10", "\"NV0\" is no way");
  refused(replaced(two_on_pcie, "X \tPHB", "X \tSYS"), "3:6",
          "is PHB, but the other way it is SYS");
  refused(replaced(two_on_pcie, " X \tPHB", "PHB\tPHB"), "2:6", "a GPU is X to itself");
  refused(replaced(two_on_pcie, "\tPHB\t X \t0-63\t0\t\tN/A", "\tPHB"), "3:6",
          "the row has 1 cells");
  refused("\tGPU0\tGPU2\nGPU0\tX\tPHB\n", "1:7", "GPU1 should stand here");
  refused(two_on_pcie + "GPU1\tPHB\t X \n", "8:1", "a second row of GPU1");
}

TEST_CASE("more cards than the base has are not taken at its cards' rate") {
  // Two ports of each of two cards, as near as each other
  const std::string ports =
      replaced(replaced(two_on_pcie, "GPU1\tCPU", "GPU1\tNIC0\tNIC1\tNIC2\tNIC3\tCPU"), "\t0-63",
               "\tPXB\tPXB\tPXB\tPXB\t0-63");
  auto run = topo("aws-16xt4");
  run.with("topo.txt", ports);
  const Platform base = run.platform();
  BasePlatform shipped("aws-16xt4", shipped_library());
  CHECK(base.node_types[0].nics == shipped.only_node().nics);
  CHECK(contains(run.messages, "import: warning: topo.txt shows 4 network cards near the GPUs"));
  CHECK(contains(run.messages, "number and rate stay those of the base"));
  CHECK(contains(messages_of("aws-16xt4", replaced(ports, "PXB", "NODE")),
                 "4 network cards that are all as far from the GPUs (NODE)"));
}

TEST_CASE("a container that sees some GPUs of a switch is behind that switch") {
  const std::string three =
      "\tGPU0\tGPU1\tGPU2\nGPU0\tX\tNV6\tNV6\nGPU1\tNV6\tX\tNV6\nGPU2\tNV6\tNV6\tX\n";
  auto run = topo("dgx2-v100");
  run.with("topo.txt", three);  // 12 links, where a V100 has 6
  CHECK(run.platform().node_types[0].interconnect.kind == Interconnect::Kind::nvswitch);
  CHECK(contains(run.text, "an NVLink switch (NV6 to 2 peers)"));
}

TEST_CASE("two GPUs on a bridge over a base with a switch are a warning") {
  const std::string two = "\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV4\tX\n";
  const std::string messages = messages_of("dgx-h100", two);
  CHECK(contains(messages, "a bond of 4 NVLinks, but dgx-h100 has"));
  CHECK(contains(messages, "joined by a bridge?"));
  CHECK_FALSE(contains(messages_of("dgx-h100", replaced(two, "NV4", "NV18")), "warning: "));
}

TEST_CASE("tables of topo that show no links say which command prints them") {
  auto without = topo("dgx-h100");
  without.with("topo.txt", two_on_pcie);
  CHECK(contains(without.problem(), "nvidia-smi topo -mp leaves NVLinks out"));
  auto status = topo("dgx-h100");
  status.with("topo.txt", "\tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n");
  const std::string problem = status.problem();
  CHECK(contains(problem, "\"OK\" is a status of nvidia-smi topo -p2p"));
  CHECK_FALSE(contains(problem, "topo.txt:3"));
}

TEST_CASE("a launcher's labels may stand before the table, and several nodes have the same") {
  const std::string table = text_of(sample("topo-a100.txt"));
  const auto labelled = [&](const std::string& node, const std::string& text) {
    return node + ": " + replaced(text, "\n", "\n" + node + ": ") + "\n";
  };
  auto plain = topo("selene-a100"), one = topo("selene-a100"), two = topo("selene-a100");
  plain.with("topo.txt", table).run();
  one.with("topo.txt", labelled("node01", table)).run();
  two.with("topo.txt", labelled("node01", table) + labelled("node02", table)).run();
  CHECK(one.text == plain.text);
  CHECK(two.text == plain.text);
  auto other = topo("selene-a100");
  other.with("topo.txt",
             labelled("node01", table) + labelled("node02", replaced(table, "PXB", "PIX")));
  CHECK(contains(other.problem(), "has other links than that of"));
}

TEST_CASE("a file of another kind is named, with the importer that reads it") {
  const auto refused = [](const std::string& kind, const std::string& text) {
    ImportRun run(kind);
    if (kind != "hf-config") run.request.options.base = "dgx-h100";
    run.with("file", text);
    return run.problem();
  };
  const std::string fabric = "vendid=0x2c9\nswitchguid=0xff(0xff)\nSwitch\t41 \"S-0ff\"\n";
  for (const char* kind : {"topo", "nccl-tests", "mpigraph", "hf-config"}) {
    const std::string problem = refused(kind, fabric);
    CAPTURE(problem);
    CHECK(contains(problem, "is a map of an InfiniBand fabric, not "));
    CHECK(contains(problem, "windtunnel import ibnetdiscover"));
    CHECK_FALSE(contains(problem, "truncated"));
  }
  CHECK(contains(refused("nccl-tests", text_of(sample("topo-a100.txt"))),
                 "is output of nvidia-smi topo -m, not output of all_reduce_perf"));
  CHECK(contains(refused("topo", text_of(sample("all-reduce-8xa100.log"))),
                 "windtunnel import nccl-tests"));
  CHECK(
      contains(refused("mpigraph", "SwitchName=s0 Nodes=node[001-016]\n"), "a topology of Slurm"));
  CHECK(contains(refused("topo", "<system version=\"1\">\n  <cpu numaid=\"0\">\n"),
                 "a node's topology as NCCL writes it"));
  CHECK(contains(refused("hf-config", "#!/bin/bash\ntorchrun pretrain.py --num-layers 96\n"),
                 "a launch script of Megatron-LM"));
  CHECK(contains(refused("topo", "nothing of the kind\n"), "the file may be truncated"));
}
