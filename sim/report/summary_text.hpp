#pragma once

#include <string>
#include <vector>

#include "report/report.hpp"

namespace windtunnel {

/// Format of a command's result.
enum class ResultFormat { text, json };

/// Use of terminal colours (ANSI escape sequences).
enum class Colour { never, always };

/// The terminal summary of one simulated iteration, at most 100 characters wide, UTF-8. Lines of
/// the breakdown that would read as zero are left out, and neighbouring stages that read the same
/// share a row. Nothing in it depends on the machine: the same report gives the same text.
///
///   gpt-39b-512xa100
///
///     16.31 s per iteration        90 %: 15.60 s to 17.10 s
///
///     94.2 samples/s · 192,872 tokens/s · 138.0 TFLOP/s per GPU · MFU 44.2 % · HFU 58.9 %
///
///     gpt-39b (39.1 B parameters) on 512 GPUs of a100-80gb-4hdr with megatron-lm-2021
///     tensor 8 × pipeline 8 × data 8 · 1f1b · 24 microbatches of 8 samples · fp16 · full recompute
///
///   Where the time goes, on the GPUs that finish last
///     compute           10.214 s   62.6 %  █████████████████████████
///     pipeline bubble    4.077 s   25.0 %  ██████████
///     data comm          2.019 s   12.4 %  ████▉
///
///   Memory of a GPU, GiB
///     stage    weights  gradients  optimizer  activations  buffers  allocated   in use
///     0           1.19       2.38       7.14        12.43     3.11      26.25    34.90
///     1–7         1.13       2.25       6.75        10.88     3.11      24.12    32.33
///     ✓ fits: stage 0 uses 34.9 GiB of 80.0 GiB
///
///     ! the software profile deepspeed-zero3-2021 has no measurements behind it
///
///     12 inputs: 5 measured, 3 fitted, 4 assumed (--json lists them)
std::string summary_text(const Report& report, Colour colour = Colour::never);

namespace detail {
class Painter;
/// Its first line: how long, how sure, and that the time is a supposition where the plan does not fit.
std::string headline(const Report& report, const Painter& paint);
/// The verdict of the memory account as a line.
std::string verdict_line(const Report& report, const Painter& paint);
}  // namespace detail

/// A tensor as it is printed: "saved by attention", "36 × 64.0 MiB", "2.25", "8.6 %".
struct TensorRow {
  std::string name, parts, gib, share;
  MemoryLine line;
  bool operator==(const TensorRow&) const = default;
};

/// Neighbouring stages whose memory reads the same.
struct StagesAlike {
  const StageMemory* first;
  const StageMemory* last;
  std::vector<TensorRow> rows;  ///< at the peak, the largest first
};
std::vector<StagesAlike> stages_alike(const MemoryAccount& memory);
/// "Stages 2 to 6, backward pass of a layer": which, and when they allocate the most.
std::string name_of(const StagesAlike& stages);

/// Output of `run --memory`, at most 80 characters wide: the tensors that add up to the memory that a GPU of each stage allocates at its
/// peak, and what it has on top of that. On narrow terminals the parts of a tensor stand below it.
///
///   gpt-39b-512xa100
///
///   Stage 0, backward pass of a layer                                    GiB   share
///     saved by attention                                48 × 128 MiB    6.00  31.1 %
///     optimizer states                             673,523,712 × 8 B    5.02  26.0 %
///     …
///     allocated                                                        19.27 100.0 %
///     reserved by the allocator                                        24.17
///     context                                                           3.24
///     in use                                         of 79.20 usable   27.41
///     ✓ fits
///
///   Stages 1 to 7, …
std::string memory_text(const Report& report, Colour colour = Colour::never);

}  // namespace windtunnel
