#include "lower/drawn_rows.hpp"

#include <algorithm>
#include <cstddef>

#include "core/contracts.hpp"
#include "cost/kernel_cost.hpp"
#include "lower/work_table.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {
namespace {

/// What the layers of a pass meet.
FullnessOf by_layer(const std::vector<double>& fullness) {
  return [&fullness](const PlacedOperation& operation) {
    return operation.layer == 0 ? 1 : fullness[operation.layer - 1U];
  };
}

/// What a pass takes that is drawn, with the wait for launches that this draw has in place of the mean draw's.
Work work_of_draw(const PassOperations& pass, const PassTimes& times, LaunchFloor floor) {
  Work work = work_of(times);
  Seconds& host = work.parts[static_cast<std::size_t>(Part::other)];
  const Seconds busy = work.duration - host;
  const Seconds longer =
      with_launch_floor(busy, floor) - busy - pass.after.back().time;  // the last is the wait
  host += longer;
  work.duration += longer;
  work.floor = floor;
  return work;
}

/// A pass of a chunk and its row.
struct PassRow {
  Direction direction;
  ChunkRow row;
};

}  // namespace

std::size_t chunk_of(const Operation& operation, std::size_t ahead) {
  const bool is_other = operation.of != PassOfBlock::only && operation.of != PassOfBlock::forward;
  return is_other ? 1 - ahead : ahead;  // a block has passes of both chunks
}

void DrawnRowWriter::write(const PlanDevice& device, const StageCost& cost,
                           std::uint32_t work_base) {
  work_base_ = work_base;
  set_.drawn_rows.microbatches = microbatches();
  const std::vector<Fullness> fullness = fullness_of(device);
  write_passes(device.stage, cost, fullness);
  if (overlaps_passes(plan_)) write_blocks(device.stage, cost, fullness);
  if (plays_operations_) write_operations(cost, fullness);
}

std::vector<DrawnRowWriter::Fullness> DrawnRowWriter::fullness_of(const PlanDevice& device) const {
  std::vector<Fullness> chunks;
  for (int chunk = 0; chunk < plan_.parallel.virtual_pipeline; ++chunk)
    chunks.push_back(draws_.of_chunk(plan_, device, chunk));
  return chunks;
}

std::uint32_t DrawnRowWriter::add_rows(std::uint16_t row, std::size_t layers) {
  std::vector<std::uint32_t>& first = set_.drawn_rows.first;
  const std::uint32_t of_mean = work_base_ + row;
  if (first.size() <= of_mean) first.resize(of_mean + 1U);
  if (first[of_mean] == 0) {
    first[of_mean] = static_cast<std::uint32_t>(set_.work.size());
    const Work usual = set_.work[of_mean];
    set_.work.resize(set_.work.size() + layers * microbatches(), usual);
  }
  return first[of_mean];
}

void DrawnRowWriter::write_passes(StageId stage, const StageCost& cost,
                                  const std::vector<Fullness>& fullness) {
  const bool splits = plan_.parallel.schedule->splits_backward;
  const std::vector<PassRow> rows =
      splits ? std::vector<PassRow>{{Direction::forward, ChunkRow::forward},
                                    {Direction::input_gradient, ChunkRow::input_gradient},
                                    {Direction::weight_gradient, ChunkRow::weight_gradient},
                                    {Direction::weight_gradient, ChunkRow::last_piece}}
             : std::vector<PassRow>{{Direction::forward, ChunkRow::forward},
                                    {Direction::backward, ChunkRow::backward},
                                    {Direction::backward, ChunkRow::last_piece}};
  const int buckets = gradient_buckets(plan_, stage);
  for (std::size_t chunk = 0; chunk < cost.chunks.size(); ++chunk)
    for (const PassRow& row : rows) {
      const PassOperations& pass = cost.chunks[chunk].operations->at(row.direction);
      const PlacedPass placed = place_operations(pass);
      const std::uint32_t first = add_rows(row_of(row.row, static_cast<int>(chunk)), 1);
      for (std::size_t m = 0; m < microbatches(); ++m) {
        const Work work =
            work_of_draw(pass, times_alone(pass, placed, by_layer(fullness[chunk][m])), pass.floor);
        set_.work[first + m] = row.row == ChunkRow::last_piece ? piece_of(work, buckets) : work;
      }
    }
}

void DrawnRowWriter::write_blocks(StageId stage, const StageCost& cost,
                                  const std::vector<Fullness>& fullness) {
  WT_EXPECT(cost.chunks.size() == 2);
  const auto write = [&](std::size_t ahead, std::size_t forward, std::size_t backward) {
    const std::size_t back = 1 - ahead;
    const PassOperations& block = cost.chunks[ahead].operations->at(Direction::overlapped);
    const auto times =
        times_of_block(block, placed_blocks_[ahead], [&](const PlacedOperation& operation) {
          const std::size_t chunk = chunk_of(block[operation.number], ahead);
          const std::size_t microbatch = chunk == ahead ? forward : backward;
          return operation.layer == 0 ? 1 : fullness[chunk][microbatch][operation.layer - 1U];
        });
    const auto times_of = [&](PassOfBlock of) { return times[static_cast<std::size_t>(of)]; };
    const auto set = [&](ChunkRow row, std::size_t chunk, std::size_t microbatch,
                         const Work& work) {
      const std::uint32_t first = add_rows(row_of(row, static_cast<int>(chunk)), 1);
      set_.work[first + microbatch] = work;
    };
    const Work inputs = work_of(times_of(PassOfBlock::input_gradient)),
               weights = work_of(times_of(PassOfBlock::weight_gradient));
    LaunchFloor floor = block.floor;
    for (const Work* other : {&inputs, &weights}) {
      floor.elsewhere += other->duration;
      for (const Part part : {Part::compute, Part::codec})
        floor.kernels_elsewhere += other->parts[static_cast<std::size_t>(part)];
    }
    set(ChunkRow::overlapped_forward, ahead, forward,
        work_of_draw(block, times_of(PassOfBlock::forward), floor));
    set(ChunkRow::overlapped_input_gradient, back, backward, inputs);
    set(ChunkRow::overlapped_weight_gradient, back, backward, weights);
  };
  for (std::size_t ahead = 0; ahead < cost.chunks.size(); ++ahead) {
    placed_blocks_[ahead] =
        place_operations(cost.chunks[ahead].operations->at(Direction::overlapped));
    for (std::size_t m = 0; m < microbatches(); ++m)
      write(ahead, m, m);  // those that meet no other
  }
  const std::vector<Step> order = schedule_order(plan_, stage);
  for (std::size_t first = 0, end = 0; first < order.size(); first = end) {
    end = end_of_block(order, first);
    const Step &forward = order[first], &backward = order[end - 1];
    if (forward.phase == Phase::forward && end > first + 1)
      write(forward.chunk, forward.microbatch, backward.microbatch);
  }
}

void DrawnRowWriter::write_operations(const StageCost& cost,
                                      const std::vector<Fullness>& fullness) {
  const StageOperations chunks = operations_of(cost);
  const auto directions = directions_of(plan_.parallel.schedule->splits_backward);
  const OperationPlaces places(chunks, directions);
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk)
    for (const Direction direction : directions) {
      const PassOperations& pass = chunks[chunk]->at(direction);
      for (const PlacedOperation& placed : place_operations(pass).operations) {
        const Operation& operation = pass[placed.number];
        if (!varies(operation) ||
            is_played_on_network(operation.label, plan_.nodes_per_tensor_group > 1))
          continue;
        const Fullness& of_chunk = fullness[chunk_of(operation, chunk)];
        const std::uint32_t first = add_rows(places.row(static_cast<int>(chunk), direction, placed),
                                             of_chunk.front().size());
        for (std::uint32_t m = 0; m < microbatches(); ++m)
          set_.work[first + set_.drawn_rows.place(placed.layer, m)] =
              work_of(pass, placed, of_chunk[m][placed.layer - 1U]);
      }
    }
}

}  // namespace windtunnel
