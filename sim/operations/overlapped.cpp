#include "operations/overlapped.hpp"

#include <algorithm>
#include <utility>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

/// True for the model's own computations in a layer that have a weight gradient: ModelWriter in cost/model_operations.cpp writes one for
/// each.
bool has_weight_gradient(Label label) {
  switch (label) {
    case Label::attention:
    case Label::feed_forward:
    case Label::routing:
    case Label::shared_experts:
    case Label::experts:
    case Label::merging:
    case Label::head:
      return true;
    default:
      return false;
  }
}

/// A run of a pass without an exchange, the exchange behind it, and the weight gradients of its kernels.
struct Piece {
  std::vector<Operation> kernels, exchange, weights;
};

/// Cuts a pass at its exchanges.
class PassCutter {
 public:
  PassCutter(const PassOperations& pass, PassOfBlock of) : pass_(pass), of_(of) {}

  /// `weights`: the pass of weight gradients, for input gradients; null: none.
  std::vector<Piece> cut(const PassOperations* weights) {
    add_list(pass_.before, weights ? &weights->before : nullptr, 0);
    for (int layer = 1; layer <= pass_.layers; ++layer)
      add_list(pass_.layer, weights ? &weights->layer : nullptr, layer);
    add_list(pass_.after, weights ? &weights->after : nullptr, 0);
    return std::move(pieces_);
  }

 private:
  void add_list(const std::vector<Operation>& list, const std::vector<Operation>* weights,
                int layer) {
    std::size_t weight = 0;
    for (const Operation& operation : list) {
      if (is_of_host(operation.label)) continue;
      if (is_exchange(operation.label)) {
        pieces_.back().exchange.push_back(part(operation, of_, layer, Overlap::with_other_pass));
        pieces_.emplace_back();
        continue;
      }
      pieces_.back().kernels.push_back(part(operation, of_, layer, operation.overlap));
      if (weights == nullptr || !has_weight_gradient(operation.label)) continue;
      while (weight < weights->size() && is_of_host((*weights)[weight].label)) ++weight;
      if (weight == weights->size()) continue;
      const Operation& gradient = (*weights)[weight++];
      pieces_.back().weights.push_back(
          part(gradient, PassOfBlock::weight_gradient, layer, gradient.overlap));
    }
    if (weights == nullptr) return;
    for (; weight < weights->size(); ++weight)
      if (!is_of_host((*weights)[weight].label))
        pieces_.back().weights.push_back(part((*weights)[weight], PassOfBlock::weight_gradient,
                                              layer, (*weights)[weight].overlap));
  }

  static Operation part(Operation operation, PassOfBlock of, int layer, Overlap overlap) {
    operation.of = of;
    operation.of_layer = static_cast<std::uint16_t>(layer);
    operation.overlap = overlap;
    operation.held = {};
    return operation;
  }

  const PassOperations& pass_;
  const PassOfBlock of_;
  std::vector<Piece> pieces_{1};
};

void append(std::vector<Operation>& result, const std::vector<Operation>& more) {
  result.insert(result.end(), more.begin(), more.end());
}

void append(std::vector<Operation>& result, const Piece& piece) {
  append(result, piece.kernels);
  append(result, piece.exchange);
  append(result, piece.weights);
}

}  // namespace

PassOperations overlapped(const ForwardBackwardPair& passes, double slowdown) {
  WT_EXPECT(slowdown >= 1);
  const std::vector<Piece> back = PassCutter(passes.input_gradient, PassOfBlock::input_gradient)
                                      .cut(&passes.weight_gradient),
                           ahead = PassCutter(passes.forward, PassOfBlock::forward).cut(nullptr);
  PassOperations block;
  block.layers = 1;
  std::size_t taken = 0;
  for (std::size_t i = 0; i < back.size(); ++i) {
    append(block.before, back[i]);
    for (; taken < ahead.size() && taken * back.size() < (i + 1) * ahead.size(); ++taken)
      append(block.before, ahead[taken]);
  }
  WT_ENSURE(taken == ahead.size());
  if (std::none_of(block.before.begin(), block.before.end(),
                   [](const Operation& operation) { return is_exchange(operation.label); }))
    return block;
  for (Operation& operation : block.before)
    if (row_of(operation.label).part == Part::compute) slow_down(operation, slowdown);
  return block;
}

}  // namespace windtunnel
