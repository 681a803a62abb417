#include "report/trace_names.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace windtunnel::detail {
namespace {

/// "7" -> "0007", so that the order of names is the order of ranks.
std::string padded(std::size_t number, std::size_t width) {
  std::string text = std::to_string(number);
  return std::string(width - std::min(width, text.size()), '0') + text;
}

/// "8-15" for neighbours, "0,4" otherwise.
std::string list_text(const std::vector<std::size_t>& numbers, std::size_t width) {
  const auto is_no_neighbour = [](std::size_t a, std::size_t b) { return b != a + 1; };
  const bool neighbours = std::ranges::adjacent_find(numbers, is_no_neighbour) == numbers.end();
  if (neighbours && numbers.size() > 1)
    return padded(numbers.front(), width) + "-" + padded(numbers.back(), width);
  std::string text;
  for (const std::size_t number : numbers)
    text += (text.empty() ? "" : ",") + padded(number, width);
  return text;
}

/// Sharded training reduces each gradient to its owner. Factors of gradients go to everybody.
bool scatters_gradients(const Plan& plan, StageId stage) {
  constexpr int shards_parameters = 3;  // ZeRO stage that compresses no gradients
  if (!plan.scatters_gradients()) return false;
  const auto& compressor = plan.compression.data_gradients;
  const bool in_factors = compressor && compressor->codec->sends_factors() &&
                          compresses_gradients(plan.compression, static_cast<int>(stage.index()));
  return !in_factors || plan.parallel.zero_stage == shards_parameters;
}

}  // namespace

/// "ranks 0008-0015 · dp0 pp1 tp0-7 · node1"; one GPU alone: "rank 0003 · dp0 pp1 tp3 · node0
/// gpu3".
std::string process_name(const Plan& plan, const PlanDevice& device) {
  constexpr std::size_t fewest_digits = 4;
  const std::size_t digits =
      std::max(fewest_digits, std::to_string(std::max(1, plan.num_ranks()) - 1).size());
  std::vector<std::size_t> ranks;
  for (const RankId rank : device.ranks) ranks.push_back(rank.index());
  const std::vector<std::size_t> shards(device.tensor_indices.begin(), device.tensor_indices.end());
  const bool alone = ranks.size() == 1;
  return (alone ? "rank " : "ranks ") + list_text(ranks, digits) + " · dp" +
         std::to_string(device.replica) + " pp" + std::to_string(device.stage.index()) + " tp" +
         list_text(shards, 1) + " · node" + std::to_string(device.node.index()) +
         (alone ? " gpu" + std::to_string(device.gpus.front()) : "");
}

std::string kernel_name(Phase phase, const Plan& plan, StageId stage) {
  switch (phase) {
    case Phase::activation:
    case Phase::gradient:
      return std::string("ncclDevKernel_SendRecv(") + name_of(phase) + ")";
    case Phase::gradient_reduce:
      return scatters_gradients(plan, stage) ? "ncclDevKernel_ReduceScatter(data gradients)"
                                             : "ncclDevKernel_AllReduce(data gradients)";
    case Phase::embedding_sync:
      return "ncclDevKernel_AllReduce(embedding gradients)";
    case Phase::parameter_gather:
      return plan.broadcasts_parameters() ? "ncclDevKernel_Broadcast(parameters)"
                                          : "ncclDevKernel_AllGather(parameters)";
    case Phase::context_exchange:
      return "ncclDevKernel_SendRecv(keys and values)";
    case Phase::tensor_reduce:
      return "ncclDevKernel_AllReduce(tensor activations)";
    case Phase::expert_exchange:
      return "ncclDevKernel_SendRecv(tokens of experts)";
    default:
      return name_of(phase);
  }
}

std::string kernel_name(Label label) {
  const LabelRow& row = row_of(label);
  const char* const of = row.part == Part::tensor_comm         ? "tensor activations"
                         : row.part == Part::expert_comm       ? "tokens of experts"
                         : label == Label::exchange_heads      ? "heads"
                         : row.part == Part::context_comm      ? "keys and values"
                         : row.traffic == Traffic::zero_gather ? "parameters"
                                                               : "data gradients";
  switch (row.kind) {
    case OperationKind::all_reduce:
      return std::string("ncclDevKernel_AllReduce(") + of + ")";
    case OperationKind::all_gather:
      return std::string("ncclDevKernel_AllGather(") + of + ")";
    case OperationKind::broadcast:
      return std::string("ncclDevKernel_Broadcast(") + of + ")";
    case OperationKind::reduce_scatter:
      return std::string("ncclDevKernel_ReduceScatter(") + of + ")";
    case OperationKind::all_to_all:
      return std::string("ncclDevKernel_SendRecv(") + of + ")";
    case OperationKind::kernel:
    case OperationKind::message:
      break;
  }
  return row.text;
}

std::string part_name(Phase phase, Part part, const Plan& plan) {
  switch (part) {
    case Part::tensor_comm:
      return kernel_name(Phase::tensor_reduce, plan, StageId{0});
    case Part::data_comm:
      return kernel_name(Phase::parameter_gather, plan, StageId{0});
    case Part::expert_comm:
      return kernel_name(Phase::expert_exchange, plan, StageId{0});
    case Part::context_comm:
      return kernel_name(Phase::context_exchange, plan, StageId{0});
    case Part::codec:
      return "codec";
    case Part::other:
      return phase == Phase::overhead ? name_of(phase) : "launch floor";
    case Part::compute:
    case Part::optimizer:
      break;
  }
  return name_of(phase);
}

bool is_of_microbatch(Phase phase) {
  switch (phase) {
    case Phase::optimizer:
    case Phase::gradient_reduce:
    case Phase::embedding_sync:
    case Phase::parameter_gather:
    case Phase::overhead:
      return false;
    default:
      return true;
  }
}

const TrafficWords& words_of(Traffic traffic) {
  static constexpr std::array<TrafficWords, num_traffic_classes> table{{
      {"activations", Stream::pipeline, "PIPELINE_PARALLEL"},
      {"gradients", Stream::pipeline, "PIPELINE_PARALLEL"},
      {"gradient reduction", Stream::data, "DATA_PARALLEL"},
      {"embedding synchronisation", Stream::data, "EMBEDDING"},
      {"tensor collectives across nodes", Stream::tensor, "TENSOR_PARALLEL"},
      {"parameter gather", Stream::data, "DATA_PARALLEL"},
      {"exchanges of tokens across nodes", Stream::tensor, "EXPERT_PARALLEL"},
      {"exchanges of tokens across nodes", Stream::tensor, "EXPERT_PARALLEL"},
      {"context exchange", Stream::tensor, "CONTEXT_PARALLEL"},
  }};
  return table.at(static_cast<std::size_t>(traffic));
}

}  // namespace windtunnel::detail
