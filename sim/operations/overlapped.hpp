#pragma once

#include "operations/operation.hpp"

namespace windtunnel {

/// A forward and a backward pass of two microbatches on one GPU.
struct ForwardBackwardPair {
  const PassOperations& forward;
  const PassOperations& input_gradient;
  const PassOperations& weight_gradient;
};

/// The operations of both passes in one order, in which the exchanges of tokens of each overlap with kernels of the other. A pass is cut at
/// its exchanges; the kernels go piece by piece in turn, the backward pass first, the weight gradients of a piece behind the exchange that
/// its input gradients begin. Of a layer with experts that makes, over and over,
///
///   kernels    experts B, experts W | experts F | attention B, attention W | attention F
///   exchanges  dispatch F           | dispatch B        | combine F        | combine B
///
/// with B, W and F for input gradients, weight gradients and forward kernels (DeepSeek-V3, arXiv:2412.19437, section 3.2.1, figure 4). Where
/// the passes have unlike numbers of pieces, the fewer are spread among the more. `slowdown`: kernels take so many times as long, as the
/// exchanges have part of the GPU; where there are none, they do not. Weight gradients are those of the kernels of the model in their
/// order; what runs in `before` and `after` of a pass stays with its first and last piece.
///
/// The result holds no memory, and all its operations stand in `before`.
PassOperations overlapped(const ForwardBackwardPair& passes, double slowdown);

}  // namespace windtunnel
