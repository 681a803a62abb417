#pragma once

#include <string_view>

namespace windtunnel {

/// A GPU model, whatever memory and form it is sold with.
struct GpuModel {
  std::string_view name;  ///< "A100"
  int nvlinks = 0;        ///< of one GPU; 0: not known, or not the same on all of its boards
};

/// The model that `text` names among other words: "NVIDIA A100-SXM4-80GB" of a driver and "a100-sxm-80gb" of a device file are
/// both an A100, "GH200" is no H200. A null pointer where `text` names no model of the list.
const GpuModel* gpu_model_in(std::string_view text);

}  // namespace windtunnel
