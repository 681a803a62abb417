#include "importers/datasheet_device.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "importers/testing.hpp"
#include "platform/platform_json.hpp"

namespace windtunnel {
namespace {

JsonValue sheet(const std::string& extra = {}) {
  Problems problems;
  const std::string text =
      R"({"name": "x100", "multiprocessors": 140, "source": "datasheet: X100",)" + extra +
      R"("peak": {"bf16": "1100 TFLOPS", "fp8": "2200 TFLOPS", "source": "datasheet: X100"},)"
      R"("memory": {"capacity": "160 GiB", "bandwidth": "4020 GB/s", "source": "datasheet: X100"}})";
  return parse_json(std::make_shared<const SourceText>(SourceText{"x100.json", text}), problems);
}

Device read(const JsonValue& document) {
  Problems problems;
  const SourceText text{"full.json", pretty_text(document)};  // as it is written and read again
  JsonValue value = parse_json(std::make_shared<const SourceText>(text), problems);
  const Device device = read_device(value, {}, problems);
  problems.throw_if_any();
  return device;
}

TEST_CASE("a data sheet is completed from the nearest measured GPU") {
  const DatasheetDevice made = complete_device(sheet(), testing::shipped_library());
  CHECK(made.nearest == "h100-sxm-80gb");  // 1.11 times its peak, 1.2 times its bandwidth
  CHECK(made.description == "h100-sxm-80gb (NVIDIA H100 SXM5, 80 GB HBM3, 700 W)");
  const Device device = read(made.document);
  CHECK(device.name == "x100");
  CHECK(device.multiprocessors == 140);
  CHECK(device.peak.at(Precision::fp8) == 2200_TFLOPS);
  CHECK(device.gemm.peak_fraction == doctest::Approx(0.911));
  CHECK(device.usable_memory / 1_GiB == doctest::Approx(158));  // twice 79.1, in three digits
  CHECK(device.has_attention(FlashKernel::cudnn, Precision::bf16));
  CHECK(device.codecs.has_value());
}

TEST_CASE("what is scaled says from which device, and is assumed") {
  const Device device = read(complete_device(sheet(), testing::shipped_library()).document);
  for (const char* key :
       {"gemm/peak_fraction", "gemm/fp8_peak_fraction", "memory/usable",
        "memory/bandwidth_efficiency", "kernel_overhead", "attention/0/forward_rate"}) {
    CAPTURE(std::string(key));
    CHECK(device.sources.at(key).evidence == Evidence::assumed);
    CHECK(device.sources.at(key).text.starts_with("scaled from h100-sxm-80gb"));
  }
  CHECK(device.sources.at("multiprocessors").evidence == Evidence::datasheet);
  CHECK(device.sources.at("memory/capacity").evidence == Evidence::datasheet);
}

TEST_CASE("what the file says stays") {
  const DatasheetDevice made =
      complete_device(sheet(R"("gemm": {"peak_fraction": 0.7, "source": "measured: ours"},)"),
                      testing::shipped_library());
  const Device device = read(made.document);
  CHECK(device.gemm.peak_fraction == doctest::Approx(0.7));
  CHECK(device.sources.at("gemm/peak_fraction").evidence == Evidence::measured);
  CHECK(device.gemm.inner_half_size == doctest::Approx(200));
  CHECK(std::count(made.added.begin(), made.added.end(), "/gemm/peak_fraction") == 0);
}

TEST_CASE("formats that the data sheet does not give are left out") {
  const DatasheetDevice made = complete_device(sheet(), testing::shipped_library());
  CHECK(made.document.find("gemm")->find("nvfp4_peak_fraction") == nullptr);
}

TEST_CASE("without a peak rate nothing can be scaled") {
  JsonValue bare = sheet();
  bare.erase("peak");
  CHECK_THROWS_AS(complete_device(bare, testing::shipped_library()), const InputError&);
}

}  // namespace
}  // namespace windtunnel
