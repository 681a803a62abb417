#include "passes/pass.hpp"

namespace windtunnel {
namespace {

bool is_experts(const Operation& operation) { return operation.label == Label::experts; }

/// A rank holds its share of the experts. Each rank that cuts an expert has the inputs of all of them.
void divide_held(ChunkOperations& chunk, const Parallel& parallel) {
  chunk.for_each([&parallel](Operation& operation) {
    if (!is_experts(operation)) return;
    for (Divisible<double>* counted :
         {&operation.held.parameters, &operation.held.frozen, &operation.held.matrices})
      counted->whole /= expert_group_size(parallel);
    for (Divisible<Bytes>& tensor : operation.held.tensors)
      tensor.whole = tensor.whole * parallel.expert_tensor;
  });
}

Operation exchange(const Operation& of, Label label, Bytes payload, const PassContext& in,
                   Overlap overlap = Overlap::none) {
  Operation operation = collective(label, payload * of.share, overlap);
  operation.share = of.share;
  operation.launch = in.collective_launch * of.share;
  return operation;
}

/// The operations of a layer with the exchanges around its experts.
class ExchangeWriter {
 public:
  ExchangeWriter(const PassContext& in, Bytes dispatched) : in_(in), dispatched_(dispatched) {}

  std::vector<Operation> write(const std::vector<Operation>& layer) {
    for (const Operation& operation : layer) {
      const bool hides = operation.label == Label::shared_experts && overlaps();
      if (hides) dispatch(operation, Overlap::with_next);
      if (is_experts(operation) && !overlaps()) dispatch(operation, Overlap::none);
      if (!is_experts(operation)) {
        result_.push_back(operation);
        continue;
      }
      write_experts(operation);
    }
    return std::move(result_);
  }

 private:
  const Parallel& parallel() const { return in_.plan->parallel; }
  bool overlaps() const { return in_.software->experts.overlap_shared && in_.model_shares_experts; }
  void dispatch(const Operation& of, Overlap overlap) {
    if (parallel().expert > 1)
      result_.push_back(exchange(of, Label::dispatch_tokens, dispatched_, in_, overlap));
  }
  void write_experts(const Operation& experts) {
    const bool cuts = parallel().expert_tensor > 1;
    if (cuts)
      result_.push_back(exchange(experts, Label::gather_tokens, in_.bytes.expert_inputs, in_));
    result_.push_back(experts);
    if (cuts)
      result_.push_back(exchange(experts, Label::scatter_tokens, in_.bytes.expert_inputs, in_));
    if (parallel().expert > 1)
      result_.push_back(exchange(experts, Label::combine_tokens, in_.bytes.combine, in_));
  }

  const PassContext& in_;
  const Bytes dispatched_;
  std::vector<Operation> result_;
};

/// Expert parallelism (GShard, arXiv:2006.16668, section 3.2; Megatron-Core, arXiv:2504.14960): the experts of a layer are shared out,
/// and tokens go to them and come back, forward, and so do the gradients, backward. Where a layer's experts are cut as well, their
/// inputs are gathered among the ranks that cut them, and what these give is scattered.
///  - What every token takes overlaps with the dispatch where the stack overlaps the two (SoftwareProfile::Experts::overlap_shared).
///    Limit: Megatron-Core runs its second product during the combine; here all of it runs during the dispatch.
void split_over_experts(ChunkOperations& chunk, const PassContext& in) {
  const Parallel& parallel = in.plan->parallel;
  if (in.chunk.expert_layers == 0 || expert_group_size(parallel) == 1) return;
  divide_held(chunk, parallel);
  for (const Direction direction :
       {Direction::forward, Direction::backward, Direction::input_gradient}) {
    const bool forward = direction == Direction::forward;
    std::vector<Operation>& layer = chunk.at(direction).layer;
    layer =
        ExchangeWriter(in, forward ? in.bytes.dispatch : in.bytes.gradient_dispatch).write(layer);
  }
}

}  // namespace

const OperationPass& experts_pass() {
  static const OperationPass pass{"experts", split_over_experts};
  return pass;
}

}  // namespace windtunnel
