#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "core/json_value.hpp"
#include "report/report.hpp"

namespace windtunnel {

/// The traffic classes in the published order, which is not the order of the enumeration.
inline constexpr std::array published_traffic{
    Traffic::pipeline_forward, Traffic::pipeline_backward,
    Traffic::data_gradients,   Traffic::tensor_activations,
    Traffic::embedding_sync,   Traffic::zero_gather,
    Traffic::zero_scatter,     Traffic::expert_dispatch,
    Traffic::expert_combine,   Traffic::context};
static_assert(published_traffic.size() == num_traffic_classes);

/// The report as a JSON value (schema windtunnel/report-v1), its keys in the published order.
/// Amounts are in SI: the unit is in the key (`iteration_time_s`), or it is bytes.
/// With `tensors` each stage of `memory` lists those at its peak.
enum class TensorList { left_out, written };
JsonValue report_value(const Report& report, TensorList tensors = TensorList::left_out);

/// Seconds by line; a line that is not always written where it took any.
JsonValue breakdown_value(const Breakdown& breakdown);
/// True if documents have the line, for the iteration and for every stage: lines that are always written, and lines on which any of them
/// has time.
bool has_line(const Report& report, Line line);

/// Number of links that a report names.
inline constexpr std::size_t most_links = 16;

/// Output of `run --json`:
///
///   {
///     "schema": "windtunnel/report-v1",
///     "name": "gpt-39b-512xa100",
///     …
///     "iteration_time_s": 16.31,
///     "samples_per_s": 94.2,
///     …
///     "breakdown_s": {"compute": 10.2, "tensor_comm": 2.1, …},
///     "memory": {"capacity_bytes": 85899345920, …, "per_stage": [{"stage": 0, …}, …], …},
///     …
///     "engine": {"name": "simgrid", "activities": 12345, "flows": 456, "wall_s": 0.21},
///     …
///   }
///
/// Beyond CONTRACT section 5 it says in `memory` the verdict and the advice, in each stage which
/// moment sets the maximum, and at the end `warnings`, `job`, `timers_s`, `stage_times_s` (the
/// breakdown of every stage of the replica that ends last) and `links` (how many shared links carried anything, their
/// mean utilisation, and the most_links hottest). Doubles are the shortest text that reads back as the same number. The
/// same report gives the same bytes.
std::string to_json(const Report& report, TensorList tensors = TensorList::left_out);

/// A report's JSON without `engine.wall_s`, the one number that differs from run to run: what is
/// kept and compared as expected output. Throws InputError when the text is no JSON.
std::string without_wall_time(std::string_view json);
/// The same of a document that holds reports.
JsonValue without_wall_time(JsonValue document);

}  // namespace windtunnel
