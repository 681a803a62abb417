#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.hpp"
#include "core/problem.hpp"
#include "units/quantity.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {

/// Kind of source that a number has. Every number of a device, platform or software file carries one.
enum class Evidence { measured, datasheet, fitted, assumed };

/// A number's provenance as its file states it: "fitted on vtrain-a100-multi-node (…)".
struct Source {
  Evidence evidence = Evidence::assumed;
  std::string text;
  std::shared_ptr<const SourceText>
      file;  ///< that states the number, also when another file extends it; null: none
};

/// Smooth efficiency of a matrix product on this GPU (sim/cost/kernel_cost.hpp has the formula).
struct GemmEfficiency {
  double peak_fraction = 0;                    ///< emax, attained at infinite size
  double inner_half_size = 0;                  ///< K0: inner dimension at which half of it is lost
  double wave_half_size = 0;                   ///< wv: waves of tiles at which half of it is lost
  double tile_rows = 256, tile_columns = 128;  ///< of the largest library tile
  double misaligned_factor = 1;  ///< hq: attention products whose head size is no multiple of 8
  double head_factor = 1;        ///< ehead: the output head's product
  double long_run_factor =
      1;  ///< on all rates, in runs whose products are of 16 bits: the clock that the power limit leaves
  /// emax and K0 of products with quantised operands; those above where nothing is said.
  std::map<Precision, double> quantized_peak_fraction;
  std::optional<double> quantized_inner_half_size;
  /// Efficiency of grouped products (one per expert): a factor on emax, and the rows per group at which half of it is lost.
  double grouped_factor = 1, grouped_half_rows = 0;

  double peak_fraction_of(Precision precision) const;
  double inner_half_size_of(Precision precision) const;
};

/// Rate of a fused attention kernel in one direction (sim/cost/kernel_cost.hpp has the formula).
struct AttentionRate {
  double rate = 0;           ///< share of the peak at infinite size
  double half_sequence = 0;  ///< L0: queries at which half of it is lost, causal mask
  double half_waves = 0;     ///< waves of 128 queries at which half of it is lost
};

/// The library that computes fused attention.
enum class FlashKernel {
  flash2,  ///< FlashAttention 2 (Dao 2023, arXiv:2307.08691), and what issues the same instructions; PyTorch's own
  flash3,  ///< FlashAttention 3 (Shah et al. 2024, arXiv:2407.08608), for Hopper
  cudnn,   ///< cuDNN's, in 16 bits: what Transformer Engine calls on Hopper and Blackwell
  fp8,  ///< cuDNN's in fp8, where the linear layers are quantised: NVTE's fp8_dpa, FP8_DPA of NVIDIA's recipes
};

/// Fused attention at one precision and head size.
struct AttentionKernel {
  Precision precision = Precision::bf16;
  double head_size = 0;
  AttentionRate forward, backward;
  std::vector<FlashKernel> kernels{FlashKernel::cudnn};  ///< whose rates these are
  /// True if `kernel` runs at these rates in the other format.
  bool is(FlashKernel kernel, Precision other) const;
};

/// Speed of zfp at one rate, in uncompressed bytes.
struct ZfpSpeed {
  double rate = 0;  ///< bits a value
  BytesPerSecond encode{}, decode{};
};

/// Speeds of codecs on this GPU, in addition to its matrix and memory rates (sim/cost/codecs/ has the formulas). What is not
/// given cannot be used on it.
struct CodecSpeeds {
  Seconds launch{};  ///< of one call of an encoder or decoder
  std::optional<Seconds>
      column_step;  ///< powersgd: one step of the column by column orthogonalisation
  std::optional<BytesPerSecond> selection;               ///< topk: finding the largest values
  std::optional<BytesPerSecond> mpc_encode, mpc_decode;  ///< uncompressed bytes
  std::vector<ZfpSpeed> zfp;                             ///< by rising rate
  std::map<std::string, Source> sources;                 ///< by JSON key, "zfp/0/encode"
};

/// One GPU type: a file of platforms/devices/.
struct Device {
  std::string name;
  int multiprocessors = 0;
  int collective_multiprocessors = 24;       ///< that a collective of NCCL takes: its channels
  std::map<Precision, FlopsPerSecond> peak;  ///< dense matrix rate by precision
  BytesPerSecond memory_bandwidth{};         ///< datasheet
  double memory_efficiency = 0;              ///< attained fraction of it
  Seconds kernel_overhead{};                 ///< per kernel on the GPU's own time line
  GemmEfficiency gemm;
  std::vector<AttentionKernel> attention;  ///< by precision, then rising head size
  Bytes memory_capacity{};                 ///< as sold
  Bytes usable_memory{};                   ///< what the allocator can have
  Bytes context{};  ///< CUDA context, libraries and communicator buffers, outside the allocator
  std::optional<CodecSpeeds> codecs;
  std::map<std::string, Source> sources;  ///< by JSON key of the file, those of `codecs` apart

  /// True if fp8 products take operands in any layout, so that none needs a transposed copy: nvte_is_non_tn_fp8_gemm_supported() of
  /// Transformer Engine 2, compute capability 10 (Blackwell), told by nvfp4 here. Hopper sums over the contiguous dimension of both.
  bool takes_any_layout() const { return peak.contains(Precision::nvfp4); }
  /// Share of the multiprocessors that kernels overlapped with a collective do without.
  double taken_by_collectives() const;
  /// True if the rate of this fused attention was measured, or scaled from a measurement, in this format.
  bool has_attention(FlashKernel kernel, Precision precision) const;
};

}  // namespace windtunnel
