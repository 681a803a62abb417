#include "memory/eager_step.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <numeric>
#include <utility>
#include <vector>

#include "cost/stage_cost.hpp"
#include "memory/caching_allocator.hpp"
#include "plan/plan.hpp"

namespace windtunnel {
namespace {

using BlockId = CachingAllocator::BlockId;

std::int64_t whole(double bytes) { return std::llround(bytes); }

/// Kernels and collectives of a layer's passes for each of its four collectives that use a block of their own.
constexpr int launches_per_collective = 23;

/// Bytes of tensors, on one rank.
struct Sizes {
  explicit Sizes(const EagerStage& stage);

  std::int64_t sequence;  ///< a layer's output, of all ranks of a tensor group
  std::int64_t part;      ///< this rank's tokens of it
  std::int64_t queries;   ///< of this rank's heads
  std::int64_t keys;      ///< or values
  std::int64_t inner;     ///< of the MLP
  std::int64_t norm;      ///< a norm keeps, besides its input
  std::int64_t softmax;   ///< attention keeps, besides its output
  std::int64_t logits;    ///< 16 bits each
  std::int64_t qkv_weights, output_weights, gate_and_up_weights, down_weights, norm_weights,
      edge_weights;
};

Sizes::Sizes(const EagerStage& stage) {
  const Transformer& m = stage.model;
  const double t = stage.plan.parallel.tensor, h = m.hidden;
  const double e = element_size(stage.plan.training.precision).value();
  const double tokens = static_cast<double>(m.sequence) * stage.plan.training.micro_batch;
  constexpr double single = 4;
  sequence = whole(e * tokens * h);
  const double parts = stage.plan.parallel.sequence_parallel ? t : 1;
  part = whole(e * tokens * h / parts);
  queries = whole(e * tokens * m.heads_width() / t);
  keys = whole(e * tokens * m.kv_heads * m.head_size() / t);
  inner = whole(e * tokens * m.ffn_hidden / t);
  norm = whole(single * tokens / parts);
  softmax = whole(single * tokens * std::max(m.heads / t, 1.0));
  logits = whole(e * tokens * padded_vocab(m, stage.plan.parallel.tensor) / t);
  qkv_weights = whole(e * h * m.qkv_width() / t);
  output_weights = whole(e * h * m.heads_width() / t);
  down_weights = whole(e * h * m.ffn_hidden / t);
  gate_and_up_weights = 2 * down_weights;
  norm_weights = whole(e * h);
  edge_weights = whole(e * h * padded_vocab(m, stage.plan.parallel.tensor) / t);
}

/// Blocks that a layer keeps for its backward pass.
struct LayerBlocks {
  BlockId input, norm_output, norm_statistics, queries, keys_and_values, attention, softmax,
      mlp_input, mlp_norm_output, mlp_norm_statistics, gate_and_up, activated, product;
};
/// Blocks that a microbatch keeps.
struct PassBlocks {
  std::vector<LayerBlocks> layers;
  BlockId output, head_input, head_norm_statistics, exponentials;
};

/// Simulates the requests of LlamaDecoderLayer and Embedding in nanotron/models/llama.py, of _ColumnLinearAsyncCommunication,
/// _RowLinearAsyncCommunication and _ShardedCrossEntropy in nanotron/parallel/tensor_parallel/functional.py, of FP32GradientAccumulator in
/// nanotron/optim/gradient_accumulator.py and of the pipeline engines in nanotron/parallel/pipeline_parallel/engine.py, nanotron 0.4 at
/// 2cde8f6, and of their backward passes as PyTorch's autograd runs them. Left out are tensors of a few bytes a token.
class EagerStep {
 public:
  explicit EagerStep(const EagerStage& stage)
      : stage_(stage),
        size_(stage),
        states_(state_bytes(stage.plan.training, stage.software)),
        allocator_(whole(stage.capacity.value()), lead(stage)) {}

  EagerReserved run() {
    take_states();
    passes();
    optimizer_step(true);
    allocator_.wait_for_gpu();              // which computes the loss
    if (!buckets_.empty()) take_buckets();  // once more, in the order of the first backward pass
    passes();
    optimizer_step(false);
    return {Bytes{static_cast<double>(allocator_.most_reserved())},
            Bytes{static_cast<double>(allocator_.reserved())}};
  }

 private:
  /// With two microbatches in flight a rank waits in each for the gradient of what it has just sent; without a pipeline, in each collective
  /// whose launch is delayed. Meanwhile the GPU catches up, unless it has more to do than the host.
  static int lead(const EagerStage& stage) {
    const Parallel& parallel = stage.plan.parallel;
    const bool waits = parallel.pipeline > 1 ? stage.in_flight < 3
                                             : launch_delay(stage.plan, stage.software) > Seconds{};
    const bool catches_up = waits && stage.is_launch_bound;
    return parallel.tensor == 1 || catches_up
               ? 0
               : launches_per_collective * stage.software.waiting_collectives;
  }
  bool has_group() const { return stage_.plan.parallel.tensor > 1; }
  /// Sequences over the ranks of a tensor group; else each holds whole ones, summed up in place.
  bool divides_sequences() const { return has_group() && stage_.plan.parallel.sequence_parallel; }
  bool has_batch() const { return stage_.plan.training.micro_batch > 1; }
  bool is_tied() const {
    return stage_.role.first && stage_.role.last && stage_.model.tied_embeddings;
  }
  bool shares_states() const { return stage_.plan.parallel.zero_stage > 0; }
  /// Ranks that share the optimizer's states.
  double shares() const { return shares_states() ? stage_.plan.parallel.replicas() : 1; }

  BlockId take(std::int64_t bytes) { return allocator_.allocate(bytes); }
  template <class... Blocks>
  void drop(Blocks... blocks) {
    (allocator_.release(blocks), ...);
  }
  BlockId exchanged(BlockId block) {
    if (has_group()) allocator_.use_in_collective(block);
    return block;
  }
  /// A norm's output as the input of a column-parallel product.
  BlockId norm_output() {
    const BlockId block = take(size_.part);
    return divides_sequences() ? exchanged(block) : block;
  }
  void keep_buffer(bool& is_there) {
    if (divides_sequences() && !std::exchange(is_there, true)) take(size_.sequence);
  }
  /// Takes the workspace of the thread that runs backward passes, for its first product.
  void take_workspace() {
    if (!std::exchange(has_workspace_, true)) take(whole(stage_.software.workspaces.value() / 2));
  }

  std::vector<std::int64_t> matrices_and_norms() const {
    std::vector<std::int64_t> found;
    if (stage_.role.first) found.push_back(size_.edge_weights);
    for (int i = 0; i < stage_.role.layers; ++i)
      found.insert(found.end(),
                   {size_.qkv_weights, size_.output_weights, size_.norm_weights,
                    size_.gate_and_up_weights, size_.down_weights, size_.norm_weights});
    if (stage_.role.last) found.push_back(size_.norm_weights);
    if (stage_.role.last && !is_tied()) found.push_back(size_.edge_weights);
    return found;
  }

  /// Weights, sums of gradients and the copies of the weights; the moments come with the first step.
  void take_states() {
    weights_ = matrices_and_norms();
    double parameters = 0;
    for (const std::int64_t each : weights_) {
      take(each);
      parameters += static_cast<double>(each) / states_.weights;
    }
    take(whole(states_.gradients * parameters));
    take(whole(states_.master * parameters / shares()));
    if (stage_.plan.parallel.replicas() > 1 && !shares_states() && states_.buckets > 0)
      take_buckets();
    allocator_.empty_cache();
    take(whole(stage_.software.workspaces.value() / 2));
  }

  /// Takes the buckets of DistributedDataParallel, from the last parameters on: 25 MiB each, the first 1 MiB (bucket_cap_mb in
  /// torch/nn/parallel/distributed.py).
  void take_buckets() {
    constexpr std::int64_t mebibyte = 1 << 20;
    std::int64_t filled = 0, cap = mebibyte;
    std::vector<BlockId> made;
    for (auto each = weights_.rbegin(); each != weights_.rend(); ++each) {
      filled += *each;
      if (filled < cap) continue;
      made.push_back(take(std::exchange(filled, 0)));
      cap = 25 * mebibyte;
    }
    if (filled > 0) made.push_back(take(filled));
    for (const BlockId old : std::exchange(buckets_, made)) drop(old);
  }

  /// The first microbatches, until one more has taken the place of the first to end: later ones find the same blocks.
  void passes() {
    const int held = stage_.in_flight, simulated = std::min(stage_.plan.microbatches, held + 1);
    std::deque<PassBlocks> live;
    for (int i = 0; i < simulated; ++i) {
      live.push_back(forward());
      if (static_cast<int>(live.size()) < held) continue;
      backward(live.front());
      live.pop_front();
    }
    for (const PassBlocks& pass : live) backward(pass);
  }

  /// The norm and the scale of all gradients, then tensor by tensor AdamW, which makes the moments in the first step, and the copy of the
  /// weights; with sharded states the gather of these, for which all_gather_coalesced in nanotron/distributed.py flattens this rank's shards
  /// and makes a buffer for those of each rank, and ProcessGroupNCCL::allgather one more for all of them.
  void optimizer_step(bool is_first) {
    const double moment = (states_.optimizer - states_.master) / 2 / states_.weights / shares();
    const int tensors = static_cast<int>(weights_.size());
    allocator_.launch(2 * tensors);
    double bytes = 0;
    for (const std::int64_t each : weights_) {
      bytes += static_cast<double>(each);
      if (is_first)
        for (int i = 0; i < 2; ++i) take(whole(moment * static_cast<double>(each)));
      allocator_.launch(is_first ? 4 : 2);
    }
    allocator_.launch(tensors);
    if (shares() == 1) return;
    std::vector<BlockId> copies;
    for (int i = 0; i <= static_cast<int>(shares()); ++i)
      copies.push_back(take(whole(bytes / shares())));
    copies.push_back(take(whole(bytes)));
    for (const BlockId copy : copies) drop(copy);
  }

  /// Output of a row-parallel product: summed up, and scattered if sequences are divided.
  BlockId reduced_product() {
    const BlockId product = exchanged(take(size_.sequence));
    if (!divides_sequences()) {
      allocator_.launch(launches_per_collective);
      return product;
    }
    const BlockId part = exchanged(take(size_.part));
    allocator_.launch(launches_per_collective);
    drop(product);
    return part;
  }

  bool recomputes(std::size_t layer) const {
    if (stage_.plan.training.recompute != Recompute::full) return false;
    const RecomputedLayers& chosen = stage_.plan.training.recompute_layers;
    const auto number = static_cast<int>(layer);
    return chosen.first > 0 ? number < chosen.first : chosen.left_out(number, 1) == 0;
  }

  LayerBlocks layer_forward(BlockId& input) {
    const Sizes& n = size_;
    const bool is_grouped = n.keys != n.queries;
    LayerBlocks kept{};
    kept.input = input;
    kept.norm_output = norm_output();
    kept.norm_statistics = take(n.norm);
    keep_buffer(has_gather_);
    const BlockId qkv = take(n.queries + 2 * n.keys);
    // With as many key heads as query heads, queries are a view of a copy of all three, and keep it.
    kept.queries = take(is_grouped ? n.queries : 3 * n.queries);
    std::vector<BlockId> copies;
    if (is_grouped) copies = {take(n.keys), take(n.keys)};
    const BlockId joined = take(2 * n.keys);
    kept.keys_and_values = take(2 * n.keys);
    drop(joined);
    for (const BlockId copy : copies) drop(copy);
    kept.attention = take(n.queries);
    kept.softmax = take(n.softmax);
    if (has_batch()) drop(take(n.queries));
    const BlockId attended = reduced_product();
    drop(qkv);
    kept.mlp_input = take(n.part);
    kept.mlp_norm_output = norm_output();
    kept.mlp_norm_statistics = take(n.norm);
    kept.gate_and_up = take(2 * n.inner);
    kept.activated = take(n.inner);
    kept.product = take(n.inner);
    const BlockId down = reduced_product();
    input = take(n.part);
    drop(down, attended);
    return kept;
  }

  void drop_all_but_input(const LayerBlocks& layer) {
    drop(layer.norm_output, layer.norm_statistics, layer.queries, layer.keys_and_values,
         layer.attention, layer.softmax, layer.mlp_input, layer.mlp_norm_output,
         layer.mlp_norm_statistics, layer.gate_and_up, layer.activated, layer.product);
  }

  void head_forward(PassBlocks& pass) {
    pass.head_input = norm_output();
    pass.head_norm_statistics = take(size_.norm);
    const BlockId logits = take(size_.logits), singles = take(2 * size_.logits);
    drop(logits);
    pass.exponentials = take(2 * size_.logits);
    drop(singles);
  }

  PassBlocks forward() {
    PassBlocks pass{};
    BlockId output = 0;
    if (stage_.role.first && has_group()) {
      const BlockId words = take(size_.sequence);
      output = reduced_product();
      drop(words);
    } else {
      output = take(size_.part);
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(stage_.role.layers); ++i) {
      pass.layers.push_back(layer_forward(output));
      if (recomputes(i)) drop_all_but_input(pass.layers.back());
    }
    pass.output = output;
    if (stage_.role.last)
      head_forward(pass);
    else
      drop(output);  // sent
    return pass;
  }

  /// Input gradient of a column-parallel product: summed up, and scattered if sequences are divided, while the weight gradient is computed.
  BlockId input_gradient(std::int64_t weights) {
    const BlockId gradient = exchanged(take(size_.sequence));
    take_workspace();
    const BlockId part = divides_sequences() ? exchanged(take(size_.part)) : gradient;
    allocator_.launch(launches_per_collective);
    gradients_.push_back(take(weights));
    if (part != gradient) drop(gradient);
    return part;
  }

  /// Its result, added to the gradient that passes by, is left to the caller.
  BlockId norm_backward(BlockId gradient, BlockId statistics, BlockId input) {
    const BlockId result = take(size_.part);
    drop(gradient, statistics, input);
    return result;
  }

  void attention_backward(const LayerBlocks& layer) {
    const Sizes& n = size_;
    BlockId output = take(n.queries);
    const BlockId copy = has_batch() ? take(n.queries) : output;
    gradients_.push_back(take(n.output_weights));
    if (has_batch()) {
      drop(copy);
      const BlockId ordered = take(n.queries);
      drop(std::exchange(output, ordered));
    }
    const BlockId queries = take(n.queries), keys = take(n.keys), values = take(n.keys);
    drop(take(2 * n.queries));  // fp32 sums of the queries' gradients
    drop(output, layer.attention, layer.softmax, layer.queries);
    const BlockId joined = take(2 * n.keys);
    drop(keys, values, layer.keys_and_values);
    const BlockId stacked = take(n.queries + 2 * n.keys);
    drop(queries, joined);
    const BlockId ordered = take(n.queries + 2 * n.keys);
    drop(stacked);
    const BlockId input = input_gradient(n.qkv_weights);
    drop(ordered, layer.norm_output);
    drop(norm_backward(input, layer.norm_statistics, layer.input));
  }

  void layer_backward(const LayerBlocks& layer) {
    const Sizes& n = size_;
    keep_buffer(has_gather_of_gradients_);
    const BlockId product = take(n.inner);
    take_workspace();
    gradients_.push_back(take(n.down_weights));
    drop(layer.product);
    const BlockId activated = take(n.inner), up = take(n.inner);
    drop(product, layer.activated);
    const BlockId gate = take(n.inner);
    drop(activated, layer.gate_and_up);
    const BlockId both = take(2 * n.inner);
    drop(gate, up);
    const BlockId input = input_gradient(n.gate_and_up_weights);
    drop(both, layer.mlp_norm_output);
    drop(norm_backward(input, layer.mlp_norm_statistics, layer.mlp_input));
    attention_backward(layer);
  }

  BlockId head_backward(const PassBlocks& pass) {
    const BlockId logits = take(size_.logits);
    drop(pass.exponentials);
    const BlockId input = input_gradient(size_.edge_weights);
    drop(logits, pass.head_input);
    return norm_backward(input, pass.head_norm_statistics, pass.output);
  }

  void backward(const PassBlocks& pass) {
    // A gradient that comes from the next stage is received by the host, too, which waits for the GPU.
    if (!stage_.role.last) allocator_.wait_for_gpu();
    const BlockId passing = exchanged(stage_.role.last ? head_backward(pass) : take(size_.part));
    for (std::size_t i = pass.layers.size(); i-- > 0;) {
      if (!recomputes(i)) {
        layer_backward(pass.layers[i]);
        continue;
      }
      BlockId output = pass.layers[i].input;
      const LayerBlocks again = layer_forward(output);
      layer_backward(again);
      drop(output);
    }
    if (stage_.role.first) {
      BlockId words = passing;
      if (has_group()) {
        const BlockId gathered = divides_sequences() ? exchanged(take(size_.sequence)) : passing;
        if (gathered != passing) drop(passing);
        words = take(size_.sequence);
        drop(gathered);
      }
      const BlockId embedding = take(size_.edge_weights);
      drop(words);
      if (is_tied())
        drop(embedding);
      else
        gradients_.push_back(embedding);
    } else {
      drop(passing);  // sent
    }
    for (const BlockId gradient : gradients_) drop(gradient);
    gradients_.clear();
  }

  const EagerStage& stage_;
  Sizes size_;
  StateBytes states_;
  CachingAllocator allocator_;
  std::vector<std::int64_t> weights_;
  std::vector<BlockId> gradients_, buckets_;
  bool has_gather_ = false, has_gather_of_gradients_ = false, has_workspace_ = false;
};

}  // namespace

bool knows_allocations(const EagerStage& stage) {
  const Transformer& model = stage.model;
  const Training& training = stage.plan.training;
  const Parallel& parallel = stage.plan.parallel;
  const bool is_plain = !model.moe && !model.mla && model.norms == 2 && model.gated_mlp &&
                        !model.parallel_residual && model.qk_norm == QueryKeyNorm::none &&
                        model.mtp_layers == 0;
  const bool is_kept = training.recompute != Recompute::selective && !training.lora.is_used() &&
                       training.attention == Attention::flash && training.optimizer_offload == 0 &&
                       training.activation_offload == 0 && training.optimizer == Optimizer::adam &&
                       element_size(training.precision) == Bytes{2} &&
                       !is_quantized(training.precision);
  const bool has_loss =
      !stage.role.last ||
      (training.cross_entropy == CrossEntropy::vocab_parallel_copied && training.loss_parallel);
  const bool is_split = parallel.context == 1 && parallel.virtual_pipeline == 1 &&
                        parallel.zero_stage < 2 && !parallel.schedule->splits_backward &&
                        !has_codecs(stage.plan.compression);
  return stage.software.waiting_collectives > 0 && is_plain && is_kept && has_loss && is_split;
}

EagerReserved reserved_by_eager_step(const EagerStage& stage) { return EagerStep(stage).run(); }

}  // namespace windtunnel
