#pragma once

#include <vector>

#include "plan/plan.hpp"
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

/// Forward work of the adapters of one half of a layer, on top of the frozen products, for T tokens on a rank: two products each, T r in
/// and T out r, and a multiplication and an addition of what they give, fused in one kernel, 3 e T out (LoRALinear.forward in
/// torchtune/modules/peft/lora.py, torchtune at bd2a0fc; Linear.forward in peft/tuners/lora/layer.py, PEFT at 5d602fd). Backward each
/// product has its two, and the gradient of the half's input is added to that of the frozen product, 3 e T in. Limit: of a tensor group's
/// adapters, r values a token travel for each, which is not counted.
KernelWork adapters_forward(const Transformer& model, const Lora& lora, LayerHalf half,
                            const LayerShape& shape);
KernelWork adapters_backward(const Transformer& model, const Lora& lora, LayerHalf half,
                             const LayerShape& shape);

/// Without the gradients of its weights, every second of its products: a frozen matrix only passes gradients on.
KernelWork without_weight_gradients(KernelWork backward);

}  // namespace windtunnel
