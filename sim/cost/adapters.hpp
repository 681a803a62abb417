#pragma once

#include <vector>

#include "plan/plan.hpp"
#include "platform/software_profile.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {

/// The two halves of a layer.
enum class LayerHalf { attention, feed_forward };

/// A matrix of a layer, undivided: rows give the output, columns the input.
MatrixShape matrix_shape(const Transformer& model, LoraTarget target);

/// The matrices of a half that have adapters.
std::vector<MatrixShape> adapted_matrices(const Transformer& model, const Lora& lora,
                                          LayerHalf half);

/// Parameters of a half's adapters:  sum of r (in + out). A tensor group divides them (ParallelLinearAdapter of Megatron-Bridge cuts
/// both matrices).
double adapter_parameters(const Transformer& model, const Lora& lora, LayerHalf half);

/// True for the kernels of PEFT since 0.12, whose adapters are fp32.
bool has_single_adapters(AdapterKernels kernels);

/// What the kernels of one adapter besides its products read and write, in bytes per value of its input (in) and of its result (out), and
/// what it keeps of its input for the backward pass, besides the frozen product's own input. With e bytes a value in the passes, a in the
/// adapter, o of what its products give, and d = 1 with dropout, counted on the code that AdapterKernels names, kernel by kernel:
///   forward    in   cast e + a, dropout 2a + 1, cast for products a + e      out   multiplication 2o, addition e + 2o, cast o + e
///   backward   in   the same casts and dropout, sum of gradients 3e          out   multiplication 2o, casts 2 (e + o)
/// Casts are there where the types differ; the second of an input only under autocast. Fused kernels: 3e out forward, 3e in backward.
/// Limit: next to weights in four bits PEFT casts no input under autocast and copies the result (Linear4bit.forward in
/// peft/tuners/lora/bnb.py, PEFT 0.13), which is not counted.
struct AdapterTraffic {
  struct Pass {
    double in = 0, out = 0;
    int kernels = 0;
  };
  Pass forward, backward;
  double kept_in = 0;
};
AdapterTraffic adapter_traffic(AdapterKernels kernels, Bytes element, bool has_dropout);

/// What the adapters of a half keep of a token for the backward pass: r values each between the two products, which the gradient of the
/// second needs, and kept_in of their inputs.
Bytes kept_by_adapters(const Transformer& model, const Lora& lora, LayerHalf half, int tensor,
                       AdapterKernels kernels, Bytes element);

/// Forward work of the adapters of one half of a layer, on top of the frozen products, for T tokens on a rank: two products each, T r in
/// and T out r, and what adapter_traffic() says. Backward each product has its two. Limit: of a tensor group's adapters, r values a token
/// travel for each, which is not counted.
KernelWork adapters_forward(const Transformer& model, const Lora& lora, LayerHalf half,
                            const LayerShape& shape, AdapterKernels kernels);
KernelWork adapters_backward(const Transformer& model, const Lora& lora, LayerHalf half,
                             const LayerShape& shape, AdapterKernels kernels);

/// Without the gradients of its weights, every second of its products: a frozen matrix only passes gradients on.
KernelWork without_weight_gradients(KernelWork backward);

}  // namespace windtunnel
