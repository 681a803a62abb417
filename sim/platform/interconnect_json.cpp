#include "platform/interconnect_json.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "units/member_reader.hpp"

namespace windtunnel {
namespace {

using Lanes = std::vector<std::vector<int>>;

/// One row of the lane matrix; what is no whole number leaves an empty row.
std::vector<int> read_row(const JsonValue& row, const std::string& pointer, Problems& problems) {
  constexpr std::int64_t most_lanes = 1000;
  std::vector<int> lanes;
  if (!row.is_array()) return lanes;
  for (std::size_t i = 0; i < row.array().size(); ++i) {
    const JsonValue& cell = row.array()[i];
    const std::int64_t* count = std::get_if<std::int64_t>(&cell.content);
    if (count == nullptr) return {};
    if (*count < 0 || *count > most_lanes)
      problems.add({cell.origin, pointer_join(pointer, std::to_string(i)),
                    "a link count of " + text_for_message(cell) + " is too " +
                        (*count < 0 ? "small" : "large"),
                    "write a whole number from 0 to " + std::to_string(most_lanes)});
    lanes.push_back(static_cast<int>(std::clamp<std::int64_t>(*count, 0, most_lanes)));
  }
  return lanes;
}

bool is_symmetric(const Lanes& lanes) {
  for (std::size_t i = 0; i < lanes.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j)
      if (lanes[i][j] != lanes[j][i] || (i == j && lanes[i][j] != 0)) return false;
  return true;
}

void read_lanes(ObjectReader& reader, std::optional<int> gpus, Interconnect& interconnect) {
  const JsonValue* value = reader.require("lanes");
  if (value == nullptr) return;
  Lanes lanes;
  const std::string pointer = pointer_join(reader.pointer(), "lanes");
  if (value->is_array())
    for (std::size_t i = 0; i < value->array().size(); ++i)
      lanes.push_back(
          read_row(value->array()[i], pointer_join(pointer, std::to_string(i)), reader.problems()));
  if (!gpus) return;  // how many rows there must be, too
  const auto size = static_cast<std::size_t>(*gpus);
  bool square = lanes.size() == size;
  for (const std::vector<int>& row : lanes) square = square && row.size() == size;
  if (!square || !is_symmetric(lanes)) {
    const std::string n = std::to_string(*gpus);
    reader.problem("lanes", "lanes must be " + n + " rows of " + n +
                                " link counts, symmetric, with a zero diagonal");
    lanes.assign(size, std::vector<int>(size, 0));
  }
  interconnect.lanes = lanes;
}

}  // namespace

Interconnect read_interconnect(ObjectReader reader, std::optional<int> gpus,
                               const std::string& prefix, Sources& sources) {
  Interconnect interconnect;
  required(reader, "kind", interconnect.kind);
  required(reader, "saturated_bandwidth", interconnect.saturated_bandwidth);
  defaulted(reader, "group_loss", interconnect.group_loss, 0, 1e3);
  required(reader, "floor_base", interconnect.floor_base);
  required(reader, "floor_per_gpu", interconnect.floor_per_gpu);
  required(reader, "half_size", interconnect.half_size, AmountRange{"1 B", "1 TB"});
  defaulted(reader, "half_size_exponent", interconnect.half_size_exponent, -2, 2);
  defaulted(reader, "sharpness", interconnect.sharpness, 0.1, 10);
  given(reader, "floor", interconnect.floor);
  given(reader, "all_to_all", interconnect.all_to_all);
  given(reader, "reduces_in_switch", interconnect.reduces_in_switch);
  given(reader, "switch_efficiency", interconnect.switch_efficiency, 0.01, 1);
  given(reader, "switch_channels", interconnect.switch_channels, 1, 64);
  if (reader.has("switch_size") || reader.has("small_bandwidth")) {
    required(reader, "switch_size", interconnect.switch_size);
    required(reader, "small_bandwidth", interconnect.small_bandwidth);
  }
  required(reader, "point_to_point", interconnect.point_to_point);
  required(reader, "point_to_point_latency", interconnect.point_to_point_latency);
  if (interconnect.kind == Interconnect::Kind::mesh) read_lanes(reader, gpus, interconnect);
  if (!reader.are_sound({"kind"})) reader.take("lanes");  // a misspelt mesh has them
  end_object(reader, prefix, sources);
  return interconnect;
}

}  // namespace windtunnel
