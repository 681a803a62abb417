#pragma once

#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "units/quantity.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {

/// Measurements of the script of `windtunnel probe` (docs/import.md has the keys of each).
enum class ProbeKind {
  gemm,
  copy,        ///< inside the GPU's memory
  launch,      ///< of a kernel that does nothing: "stream", "synchronized" or "graph"
  attention,   ///< causal
  norm,        ///< of a layer
  optimizer,   ///< a step
  host_copy,   ///< between the memories of host and GPU
  codec,       ///< one call
  collective,  ///< one call; bytes of the whole tensor, as nccl-tests counts them
};

/// One measurement: what was run, and how long a call took. What a kind does not have is 0 or empty.
struct ProbeMeasurement {
  ProbeKind kind = ProbeKind::gemm;
  std::string name;       ///< of a launch, an optimizer, a collective or a codec
  std::string direction;  ///< "forward", "encode", "to_host", …
  Precision precision = Precision::bf16;
  Gemm gemm;
  double batch = 0, heads = 0, sequence = 0, head_size = 0;  ///< of attention
  double rank = 0;                                           ///< of PowerSGD
  double bits = 0;                                           ///< a value, of what is like zfp
  int ranks = 0, nodes = 0;
  Bytes bytes{};
  Seconds median{}, spread{};  ///< spread: between the quartiles
  int count = 0;               ///< samples
  Origin origin;
};

/// One file that the script wrote.
struct ProbeFile {
  enum class Device { cuda, cpu } device = Device::cuda;
  Origin device_origin, gpu_origin;
  std::string gpu, driver, torch, cuda, nccl, python;  ///< empty: not known
  int multiprocessors = 0;                             ///< 0: not known
  int ranks = 1, nodes = 1;
  std::vector<std::string> skipped;
  std::vector<ProbeMeasurement> measurements;
};

/// Reads a file of schema windtunnel/probe-v1.
ProbeFile read_probe(JsonValue& document, Problems& problems);

}  // namespace windtunnel
