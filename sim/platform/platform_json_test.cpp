#include "platform/platform_json.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "platform/testing.hpp"

using namespace windtunnel;

namespace {

std::string with(std::string text, const std::string& part, const std::string& replacement) {
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  return text.replace(at, part.size(), replacement);
}

const std::string node_text = R"({'device': 'a100-sxm-80gb', 'gpus': 4, 'nics': 2,
  'nic_rate': '200 Gbps', 'nic_efficiency': 0.5, 'source': 'assumed: test',
  'interconnect': {'kind': 'nvswitch', 'saturated_bandwidth': '200 GB/s', 'floor_base': '10 us',
    'floor_per_gpu': '1 us', 'half_size': '1 MiB', 'point_to_point': '80 GB/s',
    'point_to_point_latency': '10 us', 'source': 'assumed: test'}})";

const std::string platform_text = R"({'name': 'small', 'node_types': [)" + node_text + R"(],
  'fabric': {'latency': '20 us', 'collective_latency': '10 us', 'source': 'assumed: test'}})";

Platform read(const std::string& text, Problems& problems) {
  JsonValue value = testing::with_shipped_devices(testing::parse_quoted(text, problems), problems);
  return read_platform(value, "/platform", problems);
}

/// "message at /pointer", one for each problem.
std::vector<std::string> problems_of(const std::string& text) {
  Problems problems;
  read(text, problems);
  std::vector<std::string> messages;
  for (const Problem& problem : problems.all())
    messages.push_back(problem.message + " at " + problem.pointer);
  return messages;
}

using Messages = std::vector<std::string>;

}  // namespace

TEST_CASE("a platform is read with its device and its defaults") {
  Problems problems;
  const Platform platform = read(platform_text, problems);
  CHECK(problems.empty());
  const NodeType& node = platform.node_types.at(0);
  CHECK(node.device.name == "a100-sxm-80gb");
  CHECK(node.effective_nic_rate() / BytesPerSecond{12.5e9} == doctest::Approx(1));  // 25 * 0.5
  CHECK(node.compute_efficiency == 1);
  CHECK(node.in_node_collective_slowdown == 1);
  CHECK(node.launch_slowdown == 1);
  CHECK(platform.fabric.number("nodes_per_leaf") == 0);
  CHECK(platform.available_nodes() == 0);
  CHECK(platform.sources.at("node_types/0/nic_rate").text == "test");
  CHECK(platform.sources.at("node_types/0/interconnect/floor_base").evidence == Evidence::assumed);
}

TEST_CASE("the schema has the kinds of fabric of the table, and their keys") {
  Problems problems;
  const JsonValue schema =
      testing::parse_file(source_dir() / "docs/scenario.schema.json", problems);
  REQUIRE(problems.empty());
  const JsonValue* const kinds = find_at(schema, "/definitions/fabric_kind/enum");
  const JsonValue* const keys =
      find_at(schema, "/definitions/platform/properties/fabric/properties");
  REQUIRE(kinds != nullptr);
  REQUIRE(keys != nullptr);
  REQUIRE(kinds->array().size() == fabric_kinds().size());
  for (std::size_t i = 0; i < fabric_kinds().size(); ++i) {
    const FabricKind& kind = fabric_kinds()[i];
    CHECK(kinds->array()[i].string() == kind.name);
    for (const FabricKey& key : kind.keys) CHECK_MESSAGE(keys->find(key.name) != nullptr, key.name);
  }
}

TEST_CASE("a fabric is of a kind of the table") {
  CHECK(problems_of(
            with(platform_text, "'latency': '20 us'", "'kind': 'mesh', 'latency': '20 us'")) ==
        Messages{"kind is \"mesh\", which is none of leaf_switches, fat_tree, rails, rails_only, "
                 "torus, dragonfly, edge_list at /platform/fabric/kind"});
}

namespace {

std::string with_fabric(const std::string& keys) {
  return with(platform_text, "'latency': '20 us'", keys + ", 'latency': '20 us'");
}

Fabric fabric_with(const std::string& keys) {
  Problems problems;
  const Fabric fabric = read(with_fabric(keys), problems).fabric;
  CHECK(problems.empty());
  return fabric;
}

}  // namespace

TEST_CASE("keys of a fabric are numbers, lists, words, rates, yes or no, and cables") {
  const Fabric tree = fabric_with(
      "'kind': 'fat_tree', 'nodes_per_switch': [2, 8], 'taper': [1, 2.5], 'uplinks': [4, 8], "
      "'routing': 'ecmp'");
  CHECK(tree.list("nodes_per_switch") == std::vector<double>{2, 8});
  CHECK(tree.list("taper") == std::vector<double>{1, 2.5});
  CHECK(tree.is_set("routing"));
  CHECK(tree.whole("routing_seed") == 0);
  CHECK_FALSE(fabric_with("'kind': 'rails', 'nodes_per_group': 4, 'pxn': false").is_set("pxn"));
  CHECK(fabric_with("'kind': 'rails', 'nodes_per_group': 4").is_set("pxn"));
  CHECK(fabric_with("'kind': 'torus', 'dimensions': [2, 2], 'link_rate': '200 Gbps'")
            .rate("link_rate") == 25_GBps);
  const Fabric listed = fabric_with(
      "'kind': 'edge_list', 'links': [['node0', 'leaf0', '200 Gbps'], "
      "['node1', 'leaf0', '2 x 25 GB/s']]");
  REQUIRE(listed.cables("links").size() == 2);
  CHECK(listed.cables("links")[0].bandwidth == listed.cables("links")[1].bandwidth);
  CHECK(listed.cables("links")[1].count == 2);
  CHECK(listed.cables("links")[1].to == "leaf0");
}

TEST_CASE("the value of a key is written so that reading it again gives the same") {
  for (const auto& [keys, names] : std::vector<std::pair<std::string, Messages>>{
           {"'kind': 'fat_tree', 'nodes_per_switch': [2, 8], 'taper': [1, 2.5], 'routing': "
            "'adaptive'",
            {"nodes_per_switch", "taper", "routing"}},
           {"'kind': 'rails', 'nodes_per_group': 4, 'oversubscription': 1.3, 'pxn': false",
            {"nodes_per_group", "oversubscription", "pxn"}},
           {"'kind': 'torus', 'dimensions': [2, 2], 'link_rate': '33.3 Gbps'",
            {"dimensions", "link_rate"}},
           {"'kind': 'edge_list', 'links': [['node0', 'a', '200 Gbps'], ['node1', 'a', '2 x 3 "
            "GB/s']]",
            {"links"}}}) {
    const Fabric fabric = fabric_with(keys);
    std::string written = "'kind': '" + fabric.kind->name + "'";
    for (const std::string& name : names) {
      const FabricKey& key = fabric.kind->key(name);
      const std::string text = text_of(key, fabric.value(name));
      const bool is_bare =
          key.type == FabricKey::Type::word || key.type == FabricKey::Type::data_rate;
      written += ", '" + name + "': " + (is_bare ? "'" + text + "'" : text);
    }
    const Fabric again = fabric_with(written);
    for (const std::string& name : names)
      CHECK(text_of(fabric.kind->key(name), again.value(name)) ==
            text_of(fabric.kind->key(name), fabric.value(name)));
  }
}

TEST_CASE("what is wrong with a key of a fabric is said at the key") {
  const auto problems = [](const std::string& keys) { return problems_of(with_fabric(keys)); };
  CHECK(
      problems("'kind': 'fat_tree', 'nodes_per_switch': 16") ==
      Messages{"nodes_per_switch is 16, which is not a list at /platform/fabric/nodes_per_switch"});
  CHECK(problems("'kind': 'fat_tree', 'nodes_per_switch': [16, 0.5]") ==
        Messages{"0.5 in nodes_per_switch is too small at /platform/fabric/nodes_per_switch/1"});
  CHECK(problems("'kind': 'fat_tree', 'nodes_per_switch': [16], 'taper': [0.5]") ==
        Messages{"0.5 in taper is too small at /platform/fabric/taper/0"});
  CHECK(
      problems("'kind': 'fat_tree', 'nodes_per_switch': [16], 'taper': [2, 4]") ==
      Messages{"a fat tree of 1 tier has one number in taper for each, and this is a list of 2 at "
               "/platform/fabric/taper"});
  CHECK(problems("'kind': 'fat_tree', 'nodes_per_switch': [16], 'routing': 'valiant'") ==
        Messages{"routing is \"valiant\", which is none of adaptive, ecmp at "
                 "/platform/fabric/routing"});
  CHECK(problems("'kind': 'rails', 'nodes_per_group': 4, 'pxn': 1") ==
        Messages{"pxn is 1, which is neither true nor false at /platform/fabric/pxn"});
  CHECK(problems("'kind': 'edge_list', 'links': [['node0', 'leaf0', '200 gbps']]")
            .at(0)
            .ends_with("in it, which is no cable at /platform/fabric/links"));
  CHECK(problems("'kind': 'torus'").at(0).ends_with("at /platform/fabric"));
  // A key of another kind is unknown.
  CHECK(problems("'kind': 'rails', 'nodes_per_group': 4, 'taper': [2]") ==
        Messages{"unknown key \"taper\" at /platform/fabric"});
}

TEST_CASE("a node says which NICs each GPU uses") {
  const auto given = [](const std::string& list) {
    return with(platform_text, "'nics': 2,", "'nics': 2, 'nic_of_gpu': " + list + ",");
  };
  Problems problems;
  const Platform platform = read(given("[1, [0, 1], 0, 0]"), problems);
  CHECK(problems.empty());
  CHECK(platform.node_types.at(0).nic_of_gpu ==
        std::vector<std::vector<int>>{{1}, {0, 1}, {0}, {0}});
  CHECK(unevenness(platform, 2) == "its GPUs are given their NICs one by one");
  // Values that hold without the list are not kept.
  CHECK(read(given("[0, 0, 1, 1]"), problems).node_types.at(0).nic_of_gpu.empty());
  CHECK(problems.empty());
  CHECK(problems_of(given("[0, 1]")) ==
        Messages{"nic_of_gpu says which NICs each of the 4 GPUs uses at "
                 "/platform/node_types/0/nic_of_gpu"});
  for (const char* wrong : {"[0, 1, 0, 2]", "[0, 1, 0, []]", "[0, 1, 0, [1, 1]]"})
    CHECK(problems_of(given(wrong)).at(0).starts_with("nic_of_gpu of GPU 3 is "));
  CHECK(problems_of(given("[0, 1, 0, [0, -1]]")) ==
        Messages{"NIC -1 is too small at /platform/node_types/0/nic_of_gpu/3/1"});
  CHECK(problems_of(given("[0, 1, 0, 'a']")) ==
        Messages{"NIC \"a\" is no number at /platform/node_types/0/nic_of_gpu/3"});
}

TEST_CASE(
    "the trays of a domain keep the NICs of their GPUs, and keys that count nodes count domains") {
  Problems problems;
  const Platform trays =
      read(with(with(with_fabric("'kind': 'fat_tree', 'nodes_per_switch': [4, 8]"), "'nics': 2,",
                     "'nics': 2, 'nic_of_gpu': [1, 1, 0, 0],"),
                "'name': 'small',", "'name': 'small', 'domain_nodes': 2, 'source': 'assumed: x',"),
           problems);
  REQUIRE(problems.empty());
  const Platform job = in_domains(trays, 4);
  CHECK(job.type_of(NodeId(0)).nic_of_gpu ==
        std::vector<std::vector<int>>{{1}, {1}, {0}, {0}, {3}, {3}, {2}, {2}});
  CHECK(job.fabric.list("nodes_per_switch") == std::vector<double>{2, 4});
  CHECK(machine_of(job).fabric.list("nodes_per_switch") == std::vector<double>{4, 8});
  CHECK(machine_of(job).node_types.front().nic_of_gpu ==
        std::vector<std::vector<int>>{{1}, {1}, {0}, {0}});
}

TEST_CASE("a device may stand inline") {
  Problems problems;
  JsonValue device = testing::parse_file(source_dir() / "platforms/devices/t4-16gb.json", problems);
  const Platform platform =
      read(with(platform_text, "'a100-sxm-80gb'", canonical_text(device)), problems);
  CHECK(problems.empty());
  CHECK(platform.node_types.at(0).device.multiprocessors == 40);
}

TEST_CASE("a number without a source is a problem") {
  const std::string text = with(platform_text, "'source': 'assumed: test',\n",
                                "'source': {'gpus': 'datasheet: x', 'nics': 'datasheet: x'},\n");
  CHECK(problems_of(text) == Messages{"nic_rate has no source, and every number needs one at "
                                      "/platform/node_types/0/nic_rate",
                                      "nic_efficiency has no source, and every number needs one at "
                                      "/platform/node_types/0/nic_efficiency"});
}

TEST_CASE("numbers of an object without sources are one problem") {
  const std::string text = with(platform_text, "'source': 'assumed: test',\n", "");
  CHECK(problems_of(text) ==
        Messages{"gpus, nics, nic_rate, nic_efficiency have no source, and every "
                 "number needs one at /platform/node_types/0"});
}

TEST_CASE("the star covers the keys that source does not name") {
  Problems problems;
  const Platform platform =
      read(with(platform_text, "'source': 'assumed: test',\n",
                "'source': {'nics': 'measured: counted', '*': 'datasheet: x'},\n"),
           problems);
  CHECK(problems.empty());
  CHECK(platform.sources.at("node_types/0/nics").evidence == Evidence::measured);
  CHECK(platform.sources.at("node_types/0/nic_rate").evidence == Evidence::datasheet);
}

TEST_CASE("a source says its kind and belongs to a key") {
  CHECK(
      problems_of(with(platform_text, "'source': 'assumed: test',\n", "'source': 'I think so',\n"))
          .at(0) == "source of * does not say what kind it is at /platform/node_types/0/source");
  CHECK(problems_of(with(platform_text, "'source': 'assumed: test',\n",
                         "'source': {'nicks': 'assumed: x', '*': 'assumed: x'},\n")) ==
        Messages{"source of nicks, but there is no such key here at "
                 "/platform/node_types/0/source/nicks"});
}

TEST_CASE("a value given on the command line is assumed and needs no source") {
  Problems problems;
  JsonValue value =
      testing::with_shipped_devices(testing::parse_quoted(platform_text, problems), problems);
  Origin origin;
  origin.kind = OriginKind::command_line;
  REQUIRE(set_at(value, "/node_types/0/launch_slowdown", JsonValue(2.0, origin)));
  const Platform platform = read_platform(value, "", problems);
  CHECK(problems.empty());
  CHECK(platform.sources.at("node_types/0/launch_slowdown").evidence == Evidence::assumed);
}

TEST_CASE("a mesh needs a symmetric lane matrix of its size") {
  const std::string mesh = with(platform_text, "'kind': 'nvswitch'", "'kind': 'mesh', LANES");
  const Messages expected{
      "lanes must be 4 rows of 4 link counts, symmetric, with a zero diagonal at "
      "/platform/node_types/0/interconnect/lanes"};
  CHECK(problems_of(with(mesh, "LANES", "'lanes': [[0, 1], [1, 0]]")) == expected);
  CHECK(problems_of(with(mesh, "LANES", "'lanes': [[0,1,1,1],[2,0,1,1],[1,1,0,1],[1,1,1,0]]")) ==
        expected);
  CHECK(problems_of(with(mesh, "LANES", "'lanes': [[0,1,1,1],[1,0,1,1],[1,1,0,1],[1,1,1,0]]"))
            .empty());
}

TEST_CASE("a bandwidth matrix has a row and a column for every node") {
  const std::string matrix =
      R"(, 'bandwidth_matrix': {'unit': 'GB/s', 'rails': 2, 'rows': ROWS, 'source': 'measured: x'}})";
  const std::string two = with(platform_text, "{'device'", "{'count': 2, 'device'");
  const std::string text = two.substr(0, two.rfind('}')) + matrix;
  Problems problems;
  const Platform platform = read(with(text, "ROWS", "[[0, 3], [4.5, 0]]"), problems);
  CHECK(problems.empty());
  CHECK(platform.matrix->rate[1][0] == 4.5_GBps);
  const Messages expected{
      "the platform has 2 nodes, so the matrix must be 2 rows of 2 numbers (the diagonal "
      "is ignored) at /platform/bandwidth_matrix/rows"};
  CHECK(problems_of(with(text, "ROWS", "[[0, 3]]")) == expected);
  CHECK(problems_of(with(text, "ROWS", "[[0, 0], [1e6, 0]]")) ==
        Messages{"a rate of 0 in the matrix is too small at /platform/bandwidth_matrix/rows/0/1",
                 "a rate of 1000000.0 in the matrix is too large at "
                 "/platform/bandwidth_matrix/rows/1/0"});
  CHECK(problems_of(with(with(text, "ROWS", "[[0, 3], [4.5, 0]]"), "'GB/s', 'r", "'GB', 'r")) ==
        Messages{"\"GB\" is no unit of bandwidth at /platform/bandwidth_matrix/unit"});
}

TEST_CASE("an override joins two nodes of the platform") {
  const std::string two = with(platform_text, "{'device'", "{'count': 2, 'device'");
  const std::string text =
      two.substr(0, two.rfind('}')) +
      R"(, 'link_overrides': [{'from': 0, 'to': TO, 'bandwidth': '5 GB/s', 'source': 'assumed: x'}]})";
  Problems problems;
  const Platform platform = read(with(text, "TO", "1"), problems);
  CHECK(problems.empty());
  CHECK(platform.link_overrides.at(0).bandwidth == 5_GBps);
  CHECK(problems_of(with(text, "TO", "2")) ==
        Messages{"to is 2, which is too large at /platform/link_overrides/0/to"});
  CHECK(problems_of(with(text, "TO", "0")) ==
        Messages{"a link joins two different nodes at /platform/link_overrides/0/to"});
  const std::string again =
      R"(1, 'bandwidth': '1 GB/s', 'source': 'assumed: x'}, {'from': 0, 'to': 1)";
  CHECK(problems_of(with(text, "TO", again)) ==
        Messages{"the link from node 0 to node 1 has two rates; leave one out at "
                 "/platform/link_overrides"});
}

TEST_CASE("a fault is of a NIC that there is, one of each, and leaves one to the node") {
  const std::string two = with(platform_text, "{'device'", "{'count': 2, 'device'");
  const std::string text = two.substr(0, two.rfind('}')) + R"(, 'faults': [FAULTS]})";
  const auto fault = [](int node, int nic, const char* share) {
    return "{'node': " + std::to_string(node) + ", 'nic': " + std::to_string(nic) +
           ", 'share': " + share + ", 'source': 'assumed: x'}";
  };
  Problems problems;
  const Platform platform = read(with(text, "FAULTS", fault(1, 0, "0.5")), problems);
  CHECK(problems.empty());
  REQUIRE(platform.faults.size() == 1);
  CHECK(platform.faults[0].node == NodeId(1));
  CHECK(platform.faults[0].share == 0.5);
  // It asks what happens, and needs no source.
  CHECK(problems_of(with(text, "FAULTS", "{'node': 1, 'nic': 0, 'share': 0.5}")).empty());
  const int last = platform.node_types.front().nics - 1;
  CHECK(problems_of(with(text, "FAULTS", fault(2, 0, "0.5"))) ==
        Messages{"node is 2, which is too large at /platform/faults/0/node"});
  CHECK(problems_of(with(text, "FAULTS", fault(0, last + 1, "0.5"))) ==
        Messages{"nic is " + std::to_string(last + 1) +
                 ", which is too large at /platform/faults/0/nic"});
  CHECK(problems_of(with(text, "FAULTS", fault(0, 0, "0.5") + ", " + fault(0, 0, "0.1"))) ==
        Messages{"NIC 0 of node 0 has two faults; one says what share it carries at "
                 "/platform/faults"});
  std::string all = fault(0, 0, "0");
  for (int nic = 1; nic <= last; ++nic) all += ", " + fault(0, nic, "0");
  CHECK(problems_of(with(text, "FAULTS", all)) ==
        Messages{"node 0 loses all of its NICs, and a node without any cannot take part at "
                 "/platform/faults"});
}

TEST_CASE("nodes of all types differ as much in speed from their equals") {
  std::string first = node_text, second = node_text;
  first.insert(first.find('{') + 1, "'count': 1, 'pass_spread': 0.05, ");
  second.insert(second.find('{') + 1, "'pass_spread': 0.05, ");
  CHECK(problems_of(with(platform_text, node_text, first + ", " + node_text)) ==
        Messages{"pass_spread must be the same for all node types at /platform/node_types"});
  CHECK(problems_of(with(platform_text, node_text, first + ", " + second)).empty());
}

TEST_CASE("only the last node type may be open, and an oversubscribed fabric names its leaves") {
  CHECK(problems_of(with(platform_text, "],\n  'fabric'", ", " + node_text + "],\n  'fabric'")) ==
        Messages{"only the last node type may leave its count open at /platform/node_types"});
  CHECK(problems_of(with(platform_text, "{'latency'", "{'oversubscription': 2, 'latency'")) ==
        Messages{"an oversubscribed fabric needs \"nodes_per_leaf\" at "
                 "/platform/fabric/oversubscription"});
}

TEST_CASE("an unknown key is refused with the nearest one") {
  Problems problems;
  read(with(platform_text, "'nics'", "'nisc'"), problems);
  REQUIRE(problems.size() == 1);  // nics is not also missing
  CHECK(problems.all()[0].message == "unknown key \"nisc\"");
  CHECK(problems.all()[0].suggestion == "did you mean \"nics\"?");
}

TEST_CASE("a misspelt block is one mistake, and so is a misspelt number with its source") {
  CHECK(problems_of(with(platform_text, "'fabric'", "'fabrik'")) ==
        Messages{"unknown key \"fabrik\" at /platform"});
  const std::string sourced =
      with(with(platform_text, "'nic_efficiency': 0.5, 'source': 'assumed: test'",
                "'nic_efficiency': 0.5, 'source': {'*': 'assumed: test', 'nics': 'assumed: test'}"),
           "'nics': 2", "'nisc': 2");
  CHECK(problems_of(sourced) == Messages{"unknown key \"nisc\" at /platform/node_types/0"});
}

TEST_CASE("lanes of a mesh whose name is wrong, or whose GPUs are, are not judged") {
  const std::string mesh =
      with(platform_text, "'kind': 'nvswitch'", "'kind': 'mesh', 'lanes': [[0, 1], [1, 0]]");
  CHECK(problems_of(mesh).size() == 1);  // four GPUs
  CHECK(problems_of(with(mesh, "'mesh'", "'mehs'")).size() == 1);
  CHECK(problems_of(with(mesh, "'gpus': 4", "'gpus': 4.5")).size() == 1);
}

TEST_CASE("a device's usable memory is not more than it has") {
  Problems problems;
  JsonValue value = testing::parse_file(source_dir() / "platforms/devices/t4-16gb.json", problems);
  value.find("memory")->set("usable", JsonValue("16 GiB"));
  read_device(value, "", problems);
  REQUIRE(problems.size() == 1);
  CHECK(problems.all()[0].message == "usable memory 16.0 GiB is more than the capacity 14.9 GiB");
}

TEST_CASE("the states of megatron-lm-2021 are 22 bytes a parameter in fp16") {
  Problems problems;
  JsonValue value =
      testing::parse_file(source_dir() / "platforms/software/megatron-lm-2021.json", problems);
  const StateBytes states = read_software(value, "", problems).states_fp16;
  CHECK(problems.empty());
  // weights 2 + gradients 2 + stale gradients 6 + optimizer 12
  CHECK(states.weights + states.gradients + states.stale_gradients + states.optimizer == 22);
}

TEST_CASE("rates of fused attention are read by precision and head size, with their sources") {
  Problems problems;
  JsonValue value = testing::parse_file(source_dir() / "platforms/devices/h200-sxm.json", problems);
  const Device device = read_device(value, "", problems);
  REQUIRE(problems.empty());
  for (const FlashKernel each : {FlashKernel::flash2, FlashKernel::flash3, FlashKernel::cudnn})
    CHECK(device.has_attention(each, Precision::bf16));
  CHECK(device.has_attention(FlashKernel::fp8, Precision::fp8));
  CHECK_FALSE(device.has_attention(FlashKernel::fp8, Precision::bf16));
  CHECK_FALSE(device.has_attention(FlashKernel::cudnn, Precision::fp8));
  CHECK_FALSE(device.has_attention(FlashKernel::fp8, Precision::nvfp4));
  CHECK(device.attention.at(4).head_size == 128);
  CHECK(device.sources.at("attention/4/forward_rate").evidence == Evidence::fitted);
  CHECK(device.gemm.peak_fraction_of(Precision::fp8) == doctest::Approx(0.909));
  CHECK(device.gemm.peak_fraction_of(Precision::bf16) == doctest::Approx(0.911));
  CHECK(device.gemm.inner_half_size_of(Precision::fp8) == doctest::Approx(400));
}

TEST_CASE("a stack's own efficiency of flash attention holds on the devices that it names") {
  SoftwareProfile stack;
  Device known, other, bare;
  known.name = "known";
  other.name = "other";
  known.attention = other.attention = {{Precision::bf16, 128, {0.5, 0, 0}, {0.5, 0, 0}}};
  const auto rates = [&](const Device& device) {
    return stack.flash_rates(device, FlashKernel::cudnn);
  };
  CHECK_FALSE(rates(known));  // it has none
  stack.flash_forward_efficiency = stack.flash_backward_efficiency = 0.4;
  CHECK(rates(known));  // for all devices
  stack.flash_devices = {"known"};
  CHECK(rates(known));
  CHECK_FALSE(rates(other));
  CHECK(rates(bare));  // which knows no rate of its own
  stack.flash_elsewhere = {{0.2, 0.1, {"other"}}};
  REQUIRE(rates(other));
  CHECK(rates(other)->forward == 0.2);
  CHECK(rates(known)->forward == *stack.flash_forward_efficiency);
  // They are those of the kernel that the stack calls, and of no other.
  CHECK_FALSE(stack.flash_rates(known, FlashKernel::flash2));
  CHECK(stack.knows_attention(known, FlashKernel::cudnn, Precision::bf16));
  CHECK_FALSE(stack.knows_attention(known, FlashKernel::flash2, Precision::bf16));
  CHECK_FALSE(stack.knows_attention(known, FlashKernel::fp8, Precision::fp8));
}

TEST_CASE("an NVLink domain is one node of a job with the GPUs and NICs of its trays") {
  const Platform trays = testing::shipped_platform("gb200-nvl72");
  REQUIRE(trays.domain_nodes == 18);
  // 40 trays: two whole domains of 72 GPUs, one of 4 trays
  const Platform job = in_domains(trays, 40);
  REQUIRE(job.node_types.size() == 2);
  CHECK(job.available_nodes() == 3);
  CHECK(job.type_of(NodeId(0)).gpus == 72);
  CHECK(job.type_of(NodeId(1)).nics == 72);
  CHECK(job.type_of(NodeId(2)).gpus == 16);
  CHECK(in_domains(trays, 4).type_of(NodeId(0)).gpus == 16);
  CHECK(in_domains(testing::shipped_platform("dgx-h100"), 4).node_types.front().gpus == 8);
}

TEST_CASE("a job may use a segment of each NVLink domain") {
  const std::string source = R"('source': 'assumed: test', )";
  const auto problems = [&](const std::string& keys) {
    return problems_of(
        with(platform_text, "'name': 'small',", "'name': 'small', " + keys + source));
  };
  CHECK(problems("'domain_nodes': 4, 'segment': 3, ").empty());
  CHECK(problems("'domain_nodes': 4, 'segment': 5, ").size() == 1);
  CHECK(problems_of(with(platform_text, "'name': 'small',", "'name': 'small', 'segment': 2, "))
            .size() == 1);
}

TEST_CASE("a mesh joins no domain, and leaf switches hold whole domains") {
  const std::string source = R"('source': 'assumed: test', )";
  CHECK(problems_of(with(platform_text, "'name': 'small',",
                         "'name': 'small', 'domain_nodes': 2, " + source))
            .empty());
  CHECK(problems_of(with(platform_text, "'name': 'small',", "'name': 'small', 'domain_nodes': 2, "))
            .size() == 1);
  // A domain that is refused is none: whoever reads on may ask for the domains of the job.
  const std::string two_types =
      with(with(platform_text, "'node_types': [",
                "'node_types': [" + with(node_text, "'gpus'", "'count': 1, 'gpus'") + ", "),
           "'name': 'small',", "'name': 'small', 'domain_nodes': 2, " + source);
  Problems problems;
  const Platform refused = read(two_types, problems);
  CHECK(problems.size() == 1);
  CHECK(refused.domain_nodes == 1);
  const std::string leaves = with(platform_text, "'latency'", "'nodes_per_leaf': 3, 'latency'");
  CHECK(
      problems_of(with(leaves, "'name': 'small',", "'name': 'small', 'domain_nodes': 2, " + source))
          .size() == 1);
}
