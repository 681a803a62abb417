#pragma once

#include "plan/plan.hpp"
#include "units/quantity.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {

/// Bytes of one microbatch's tensors on one rank, by kind: what the memory of a stage is added up
/// from.
///
/// Symbols: s sequence, b microbatch, h hidden, a heads, g = kv_heads/a, f = ffn_hidden/h, t tensor
/// ways, e bytes of an element, d bytes of a dropout mask (1), V' padded vocabulary. In brackets
/// the plain GPT layer in half precision.
struct ActivationBytes {
  Bytes boundary;          ///< input or output of a layer:  e sbh  [2 sbh]
  Bytes layer;             ///< kept of a layer, but for its attention scores  [sbh (10 + 24/t)]
  Bytes attention_scores;  ///< scores, softmax, dropout:  (2e + d) a s^2 b / t  [5 a s^2 b/t]; none
                           ///< with flash attention
  Bytes passing;           ///< layer output, received gradient, MLP gradients:  [sbh (4 + 8/t)]
  Bytes weight_gradient;   ///< of the largest matrix, before it is added  [8 h^2/t]
  Bytes embedding_mask;    ///< dropout of the embedding:  d sbh
  Bytes logits;  ///< logits, their fp32 copy, exponentials  [10 s b V'/t]; ZeRO 3: 4 s b V'/t
};

/// Sizes for this model and plan.
///   layer   = sbh ( 4e + 2d + e (2 + 2g + c f)/t ),  c = 2 (plain MLP) or 3 (gated)
///   passing = sbh ( 2e + e m f/t ),                  m = 1 (plain MLP) or 2 (gated)
/// Source: Korthikanti et al. 2022, section 4.1 and eq. 1-4, whose sums 10, 24 and 5 they give for
/// g = d = 1, f = 4, e = 2; our generalisation to grouped queries and gated MLPs counts their
/// stored tensors [assumed]. With sequence parallelism the replicated part is divided by t as well
/// (their eq. 4). ZeRO 3 counts no dropout masks (d = 0): readings of FSDP rows bound 10 + 24 = 34
/// to 32 [docs/memory.md, section 7].
ActivationBytes activation_bytes(const Transformer& model, const Plan& plan);

}  // namespace windtunnel
