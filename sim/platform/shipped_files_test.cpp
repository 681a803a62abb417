#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "platform/network.hpp"
#include "platform/platform_json.hpp"
#include "platform/testing.hpp"
#include "workload/model_json.hpp"

using namespace windtunnel;

namespace {

std::vector<std::filesystem::path> json_files(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / folder))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  return files;
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& file : json_files(folder)) names.insert(file.stem().string());
  return names;
}

/// Problems as text; empty when there are none.
std::string text_of(const Problems& problems) {
  std::string text;
  for (const Problem& problem : problems.all()) text += to_text(problem) + "\n";
  return text;
}

}  // namespace

TEST_CASE("every device file reads without a problem and gives its sources") {
  for (const auto& file : json_files("platforms/devices")) {
    CAPTURE(file);
    Problems problems;
    JsonValue value = testing::shipped_device_file(file.stem(), problems);
    const Device device = read_device(value, "", problems);
    CHECK(text_of(problems) == "");
    CHECK(device.name == file.stem());
    CHECK(device.sources.contains("gemm/peak_fraction"));
    CHECK(device.sources.at("memory/capacity").evidence == Evidence::datasheet);
  }
}

TEST_CASE("every software file reads without a problem and gives its sources") {
  for (const auto& file : json_files("platforms/software")) {
    CAPTURE(file);
    Problems problems;
    JsonValue value = testing::parse_file(file, problems);
    if (value.find("extends") != nullptr) continue;  // sim/scenario reads it over the other
    const SoftwareProfile profile = read_software(value, "", problems);
    CHECK(text_of(problems) == "");
    CHECK(profile.name == file.stem());
    CHECK(profile.sources.contains("launch/kernel"));
    CHECK(profile.sources.contains("memory/states_fp16/weights"));
  }
}

TEST_CASE("every platform file reads without a problem and gives its sources") {
  for (const auto& file : json_files("platforms")) {
    CAPTURE(file);
    Problems problems;
    JsonValue value = testing::with_shipped_devices(testing::parse_file(file, problems), problems);
    if (value.find("extends") != nullptr) continue;  // sim/scenario reads it over the other
    const Platform platform = read_platform(value, "", problems);
    CHECK(text_of(problems) == "");
    CHECK(platform.name == file.stem());
    CHECK_FALSE(platform.description.empty());
    CHECK(platform.sources.contains("node_types/0/nic_rate"));
    CHECK(platform.sources.contains("fabric/latency"));
  }
}

namespace {

/// A part of a shipped file as text, sources left out.
std::string part_of(const std::string& file, const std::string& pointer) {
  Problems problems;
  JsonValue value = testing::parse_file(source_dir() / "platforms" / (file + ".json"), problems);
  JsonValue part = *find_at(value, pointer);
  const auto without_sources = [](auto&& self, JsonValue& each) -> void {
    each.erase("source");
    if (each.is_object())
      for (JsonValue::Member& member : each.object()) self(self, member.value);
    if (each.is_array())
      for (JsonValue& element : each.array()) self(self, element);
  };
  without_sources(without_sources, part);
  return canonical_text(part);
}

}  // namespace

TEST_CASE("one chip has the same constants whatever memory and power limit it is sold with") {
  for (const char* file : {"devices/h200-sxm", "devices/h100-96gb-500w"})
    for (const char* part :
         {"/peak", "/multiprocessors", "/kernel_overhead", "/gemm", "/attention"}) {
      CAPTURE(file);
      CAPTURE(part);
      CHECK(part_of(file, part) == part_of("devices/h100-sxm-80gb", part));
    }
}

TEST_CASE("boards with the same links and switch have the same constants inside a node") {
  const std::string inside = "/node_types/0/interconnect";
  for (const char* file : {"hgx-h200", "h100-roce", "h100-8x100g", "coreweave-h100",
                           "hf-cluster-h100", "grand-teton-h100-96gb"}) {
    CAPTURE(file);
    CHECK(part_of(file, inside) == part_of("dgx-h100", inside));
  }
  const std::string clock = "/node_types/0/compute_efficiency";
  for (const char* file : {"hgx-h200", "h100-roce", "h100-8x100g", "aws-p5-h100", "coreweave-h100",
                           "hf-cluster-h100", "hgx-h200-4gpu", "hgx-h800"})  // 700 W
    CHECK(part_of(file, clock) == part_of("dgx-h100", clock));
  for (const char* file : {"dgx1-v100-16gb-1edr", "lassen-v100", "pipette-v100-edr",
                           "jean-zay-v100", "aws-t4-v100-mixed"})  // 300 W
    CHECK(part_of(file, clock) == part_of("dgx1-v100", clock));
  CHECK(part_of("dgx-b300", inside) == part_of("dgx-b200", inside));
  CHECK(part_of("gb300-nvl72", inside) == part_of("gb200-nvl72", inside));
  for (const char* file :
       {"a100-80gb-4hdr", "a100-80gb-1hdr", "a100-80gb-roce", "a100-40gb-roce", "dgx-a100-40gb",
        "oci-a100-40gb", "hgx-a100-80gb", "hgx-a100-80gb-4x100g", "jean-zay-a100"})
    CHECK(part_of(file, inside) == part_of("selene-a100", inside));
}

TEST_CASE("every model file reads without a problem and names its source") {
  for (const auto& file : json_files("models")) {
    CAPTURE(file);
    Problems problems;
    JsonValue value = testing::parse_file(file, problems);
    const Transformer model = read_transformer(value, "", problems);
    CHECK(text_of(problems) == "");
    CHECK(model.name == file.stem());
    CHECK(value.find("source") != nullptr);
  }
}

TEST_CASE("the files that the interface promises are there") {
  CHECK(names_in("platforms") == std::set<std::string>{"selene-a100",
                                                       "a100-80gb-4hdr",
                                                       "a100-80gb-1hdr",
                                                       "a100-80gb-roce",
                                                       "a100-40gb-roce",
                                                       "jean-zay-a100",
                                                       "jean-zay-v100",
                                                       "dgx1-v100",
                                                       "dgx2-v100",
                                                       "lassen-v100",
                                                       "lassen-v100-mpi",
                                                       "pipette-v100-edr",
                                                       "pipette-a100-hdr",
                                                       "aws-16xt4",
                                                       "aws-t4-v100-mixed",
                                                       "dgx-a100-40gb",
                                                       "hgx-a100-80gb",
                                                       "dgx-h100",
                                                       "h100-roce",
                                                       "grand-teton-h100-96gb",
                                                       "hgx-h200",
                                                       "hgx-h200-4gpu",
                                                       "dgx-b200",
                                                       "dgx-b300",
                                                       "gb200-nvl72",
                                                       "gb300-nvl72",
                                                       "hgx-h800",
                                                       "dgx1-v100-16gb-1edr",
                                                       "hgx-a100-80gb-4x100g",
                                                       "h100-8x100g",
                                                       "aws-p5-h100",
                                                       "coreweave-h100",
                                                       "hf-cluster-h100",
                                                       "oci-a100-40gb",
                                                       "hgx-a800",
                                                       "hgx-h20",
                                                       "pcie3-rtx-3090",
                                                       "pcie4-rtx-3090",
                                                       "pcie4-rtx-4090",
                                                       "pcie4-a6000",
                                                       "pcie4-l40s",
                                                       "aws-g5-a10g",
                                                       "aws-g6-l4"});
  CHECK(names_in("platforms/devices") ==
        std::set<std::string>{
            "a100-pcie", "a100-sxm-40gb",  "a100-sxm-80gb",  "b200",           "b300",
            "gb200",     "gb300",          "h100-96gb-500w", "h100-sxm-80gb",  "h200-sxm",
            "t4-16gb",   "v100-sxm2-16gb", "v100-sxm2-32gb", "v100-sxm3-32gb", "rtx-3090",
            "rtx-4090",  "a6000",          "l40s",           "a10g",           "l4",
            "h20"});
  CHECK(names_in("platforms/software") == std::set<std::string>{"automodel-2025",
                                                                "automodel-2026",
                                                                "litgpt-2024",
                                                                "transformers-2024",
                                                                "megatron-lm-2020",
                                                                "megatron-lm-2021",
                                                                "megatron-lm-2022",
                                                                "megatron-deepspeed-2021",
                                                                "megatron-deepspeed-2022",
                                                                "deepspeed-megatron-2020",
                                                                "deepspeed-zero3-2021",
                                                                "composer-fsdp-2023",
                                                                "nemo-2023",
                                                                "nemo-2024",
                                                                "nemo-2025",
                                                                "megatron-core-2024",
                                                                "megatron-core-2026",
                                                                "torchtitan-2025",
                                                                "hai-llm-2024",
                                                                "nanotron-2024",
                                                                "nanotron-2024-slow-launches",
                                                                "internevo-2023",
                                                                "pytorch-fsdp-2024",
                                                                "deepspeed-2024",
                                                                "nvidia-mlperf-2026"});
  CHECK(names_in("models") ==
        std::set<std::string>{
            "gpt3-175b",       "gpt-1.7b",    "gpt-3.6b",     "gpt-7.5b",      "gpt-18b",
            "gpt-39b",         "gpt-76b",     "gpt-145b",     "gpt-310b",      "gpt-530b",
            "gpt-1t",          "gpt-2.5b",    "gpt-8.3b",     "gpt-neox-20b",  "bloom-176b",
            "llama2-7b",       "llama2-70b",  "llama3-8b",    "llama3-70b",    "llama3-405b",
            "qwen2.5-72b",     "gemma2-27b",  "mixtral-8x7b", "mixtral-8x22b", "qwen3-30b-a3b",
            "qwen3-235b-a22b", "deepseek-v3", "gpt-oss-120b", "kimi-k2"});
}

TEST_CASE("node rates are those that the measurements were explained with") {
  const auto node_rate = [](const std::string& name) {
    return node_bandwidth(testing::shipped_platform(name), NodeId(0)) / 1_GBps;
  };
  CHECK(node_rate("a100-80gb-4hdr") == doctest::Approx(85));   // 4 * 25 GB/s * 0.85
  CHECK(node_rate("selene-a100") == doctest::Approx(170));     // 8 * 25 GB/s * 0.85
  CHECK(node_rate("a100-40gb-roce") == doctest::Approx(170));  // 1600 Gb/s * 0.85
  CHECK(node_rate("dgx-h100") == doctest::Approx(360));        // 8 * 50 GB/s * 0.9
  CHECK(node_rate("jean-zay-a100") == doctest::Approx(40));    // 4 * 12.5 GB/s * 0.8
}

TEST_CASE("the measured matrix is read as sent: row to column, a rail") {
  const Platform platform = testing::shipped_platform("pipette-a100-hdr");
  REQUIRE(platform.matrix.has_value());
  CHECK(platform.matrix->rails == 4);
  CHECK(platform.matrix->rate.size() == 16);
  CHECK(platform.matrix->rate[0][1] / 1_GBps == doctest::Approx(16.7169));
  CHECK(platform.matrix->rate[1][0] / 1_GBps == doctest::Approx(19.0606));
  // No NIC may clip a measured value: 25 GB/s * 0.8 = 20 GB/s a rail.
  for (std::size_t i = 0; i < 16; ++i)
    for (std::size_t j = 0; j < 16; ++j)
      if (i != j) CHECK(platform.matrix->rate[i][j] < platform.node_types[0].effective_nic_rate());
}

TEST_CASE("the mixed cluster has its V100 nodes first") {
  const Platform platform = testing::shipped_platform("aws-t4-v100-mixed");
  CHECK(platform.available_nodes() == 4);
  CHECK(platform.type_of(NodeId(0)).device.name == "v100-sxm2-16gb");
  CHECK(platform.type_of(NodeId(3)).device.name == "t4-16gb");
}
