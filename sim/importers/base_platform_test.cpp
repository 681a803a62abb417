#include "importers/base_platform.hpp"

#include <doctest/doctest.h>

#include <string_view>

namespace windtunnel {
namespace {

std::string_view model_in(std::string_view text) {
  const GpuModel* model = gpu_model_in(text);
  return model == nullptr ? "none" : model->name;
}

TEST_CASE("a driver's name and a device file's name are of the same model") {
  CHECK(model_in("NVIDIA A100-SXM4-80GB") == "A100");
  CHECK(model_in("NVIDIA A100-PG509-200") == "A100");
  CHECK(model_in("a100-sxm-40gb") == "A100");
  CHECK(model_in("Tesla V100-SXM2-32GB") == "V100");
  CHECK(model_in("v100-sxm3-32gb") == "V100");
  CHECK(model_in("Tesla T4") == "T4");
  CHECK(model_in("t4-16gb") == "T4");
  CHECK(model_in("NVIDIA H100 80GB HBM3") == "H100");
  CHECK(model_in("our_h100") == "H100");
  CHECK(model_in("AMD Instinct MI300X OAM") == "MI300X");
  CHECK(model_in("NVIDIA GeForce RTX 4090") == "4090");
}

TEST_CASE("a model is a whole word, so that none is taken for another") {
  CHECK(model_in("NVIDIA GH200 480GB") == "GH200");
  CHECK(model_in("NVIDIA H200") == "H200");
  CHECK(model_in("NVIDIA GB200") == "GB200");
  CHECK(model_in("NVIDIA A10") == "A10");
  CHECK(model_in("NVIDIA A10G") == "A10G");
  CHECK(model_in("NVIDIA A800-SXM4-80GB") == "A800");
  CHECK(model_in("NVIDIA L40S") == "L40S");
}

TEST_CASE("what names no known model is no model") {
  CHECK(model_in("") == "none");
  CHECK(model_in("---") == "none");
  CHECK(model_in("NVIDIA Graphics Device") == "none");
  CHECK(model_in("SXM4-80GB") == "none");
  CHECK(model_in("mine") == "none");
}

}  // namespace
}  // namespace windtunnel
