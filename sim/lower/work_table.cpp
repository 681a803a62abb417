#include "lower/work_table.hpp"

#include <string>

#include "scenario/unsupported.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {
namespace {

Work work_of(const PassCost& pass) {
  Work work;
  work.duration = pass.duration;
  work.parts[static_cast<std::size_t>(Part::compute)] = pass.compute;
  work.parts[static_cast<std::size_t>(Part::tensor_comm)] = pass.tensor_comm;
  work.parts[static_cast<std::size_t>(Part::expert_comm)] = pass.expert_comm;
  work.parts[static_cast<std::size_t>(Part::data_comm)] = pass.data_comm;
  work.parts[static_cast<std::size_t>(Part::context_comm)] = pass.context_comm;
  work.parts[static_cast<std::size_t>(Part::codec)] = pass.codec;
  work.parts[static_cast<std::size_t>(Part::other)] = pass.floor_share();
  work.floor = pass.floor;
  return work;
}

}  // namespace

Work piece_of(Work work, int pieces) {
  work.duration = work.duration / static_cast<double>(pieces);
  for (Seconds& part : work.parts) part = part / static_cast<double>(pieces);
  for (Seconds* part : {&work.floor.launch, &work.floor.elsewhere, &work.floor.kernels_elsewhere})
    *part = *part / static_cast<double>(pieces);
  return work;
}

Work work_of(const PassTimes& times) {
  Work work;
  work.parts = times;
  for (const Seconds part : times) work.duration += part;
  return work;
}

Work work_of(const PassOperations& pass, const PlacedOperation& placed, double fullness) {
  const Operation& operation = pass[placed.number];
  const Seconds own = time_of(operation, fullness);
  Work work;
  work.duration = duration_of(pass, placed, fullness);
  work.parts[static_cast<std::size_t>(row_of(operation.label).part)] = own;
  if (work.duration > own)
    work.parts[static_cast<std::size_t>(Part::data_comm)] = work.duration - own;
  if (operation.label == Label::launch_floor) work.floor = pass.floor;
  return work;
}

std::vector<Work> operation_rows(const StageOperations& chunks,
                                 const std::vector<Direction>& played) {
  const OperationPlaces places(chunks, played);
  if (places.num_rows() > OperationPlaces::most_rows)
    throw UnsupportedError(
        {{{},
          {},
          std::to_string(chunks.size()) + " chunks are too many to simulate operation by operation",
          "use a smaller virtual_pipeline, or --detail pass"}});
  std::vector<Work> rows(places.num_rows());
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    for (const Direction direction : played) {
      const PassOperations& pass = chunks[chunk]->at(direction);
      for (const PlacedOperation& placed : place_operations(pass).operations)
        rows[places.row(static_cast<int>(chunk), direction, placed)] = work_of(pass, placed);
    }
  }
  return rows;
}

Work work_of(Seconds duration, Part part) {
  Work work;
  work.duration = duration;
  work.parts[static_cast<std::size_t>(part)] = duration;
  return work;
}

std::vector<Work> work_table(const StageCost& cost, const Plan& plan, int buckets) {
  const bool splits = plan.parallel.schedule->splits_backward;
  std::vector<Work> rows;
  for (const ChunkCost& chunk : cost.chunks) {
    for (const PassCost* pass :
         {&chunk.forward, &chunk.backward, &chunk.input_gradient, &chunk.weight_gradient})
      rows.push_back(work_of(*pass));
    rows.push_back(piece_of(work_of(splits ? chunk.weight_gradient : chunk.backward), buckets));
    for (const PassCost* pass : {&chunk.overlapped_forward, &chunk.overlapped_input_gradient,
                                 &chunk.overlapped_weight_gradient})
      rows.push_back(work_of(*pass));
  }
  rows.resize(rows.size() + num_device_rows);
  for (const Operation& operation : cost.end) {
    const LabelRow& label = row_of(operation.label);
    if (is_collective(label.kind)) continue;
    rows[row_of(end_place(operation.label).row, static_cast<int>(cost.chunks.size()))] =
        work_of(operation.time, label.part);
  }
  return rows;
}

}  // namespace windtunnel
