#include <algorithm>
#include <utility>

#include "passes/pass.hpp"

namespace windtunnel {
namespace {

/// The kernels of an attention half without its core, and the core.
std::pair<Operation, Operation> without_core(const Operation& attention, const Operation& core) {
  std::pair<Operation, Operation> parts{attention, kernel(Label::context_attention, {})};
  parts.second.time = std::min(core.time, attention.time);
  parts.second.flops = core.flops;
  parts.first.time -= parts.second.time;
  parts.first.flops = attention.flops - core.flops;
  return parts;
}

/// Two parts of the core: what is computed while keys and values arrive, and what waits for the last of them.
void add_in_steps(std::vector<Operation>& result, const Operation& core, int degree) {
  const double last = 1.0 / degree;
  Operation overlapped = core, exposed = core;
  overlapped.time = core.time * (1 - last);
  overlapped.flops = core.flops * (1 - last);
  exposed.time = core.time - overlapped.time;
  exposed.flops = core.flops - overlapped.flops;
  exposed.launch = {};
  result.push_back(overlapped);
  result.push_back(exposed);
}

/// A ring of c ranks: c steps of attention, during all but the last of which the next part's keys and values come in, and backward the
/// gradients of those before go on. Forward: attn_forward_func_with_cp, backward: AttnFuncWithCPAndKVP2P.backward in
/// transformer_engine/pytorch/attention.py, Transformer Engine 1.12, which cuts a sequence into 2 c parts and gives each rank one from
/// either end, so that causal steps are alike.
void attend_in_ring(std::vector<Operation>& result, const Operation& core, const PassContext& in,
                    bool backward) {
  result.push_back(collective(Label::gather_keys, in.bytes.key_values, Overlap::with_next));
  if (backward)
    result.push_back(collective(Label::scatter_keys, in.bytes.key_values, Overlap::with_next));
  add_in_steps(result, core, in.plan->parallel.context);
}

/// All tokens of some of the heads, in place of all heads of some of the tokens, and back (Jacobs et al. 2023, arXiv:2309.14509,
/// section 3.1): queries, keys and values one way, attention's output the other.
void attend_to_all(std::vector<Operation>& result, const Operation& attention,
                   const PassContext& in) {
  result.push_back(collective(Label::exchange_heads, in.bytes.attended));
  result.push_back(attention);
}

void cut_attention(std::vector<Operation>& layer, const PassContext& in, bool backward) {
  const bool ring = in.plan->parallel.context_method == ContextMethod::ring;
  std::vector<Operation> result;
  for (const Operation& operation : layer) {
    if (operation.label != Label::attention) {
      result.push_back(operation);
    } else if (ring) {
      auto [rest, core] = without_core(operation, backward ? in.core_backward : in.attention_core);
      if (backward)  // what has come in and what comes next, besides the rank's own
        rest.held.at(Kept::passing).whole +=
            in.bytes.key_values * (2.0 / in.plan->parallel.context);
      result.push_back(rest);
      attend_in_ring(result, core, in, backward);
    } else {
      attend_to_all(result, operation, in);
    }
  }
  layer = std::move(result);
}

/// Context parallelism: the ranks of a group have a part of each sequence. Everything but attention's core works on a rank's own
/// tokens (LayerShape::context); the core needs the keys and values of the others. A part recomputed on the way back fetches them again.
/// Limit: the projection that follows the core is simulated before it, with the rest of the half.
void cut_sequences(ChunkOperations& chunk, const PassContext& in) {
  if (in.plan->parallel.context == 1) return;
  cut_attention(chunk.at(Direction::forward).layer, in, false);
  for (const Direction direction : {Direction::backward, Direction::input_gradient})
    cut_attention(chunk.at(direction).layer, in, true);
}

}  // namespace

const OperationPass& context_pass() {
  static const OperationPass pass{"context", cut_sequences};
  return pass;
}

}  // namespace windtunnel
