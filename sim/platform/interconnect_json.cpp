#include "platform/interconnect_json.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "units/quantity_reader.hpp"

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

/// What only some interconnects say; nothing is written back where it is absent.
void read_small_messages(ObjectReader& reader, Interconnect& interconnect) {
  using Floor = Interconnect::Floor;
  if (reader.has("floor"))
    interconnect.floor =
        reader.required_enum<Floor>("floor", {{"least", Floor::least}, {"added", Floor::added}});
  if (reader.has("all_to_all"))
    interconnect.all_to_all = required_quantity<BytesPerSecond>(reader, "all_to_all");
  if (reader.has("reduces_in_switch"))
    interconnect.reduces_in_switch = reader.optional_bool("reduces_in_switch", false);
  if (!reader.has("switch_size") && !reader.has("small_bandwidth")) return;
  interconnect.switch_size = required_quantity<Bytes>(reader, "switch_size");
  interconnect.small_bandwidth = required_quantity<BytesPerSecond>(reader, "small_bandwidth");
}

}  // namespace

Interconnect read_interconnect(ObjectReader reader, std::optional<int> gpus,
                               const std::string& prefix, Sources& sources) {
  using Kind = Interconnect::Kind;
  Interconnect interconnect;
  interconnect.kind = reader.required_enum<Kind>(
      "kind", {{"nvswitch", Kind::nvswitch}, {"mesh", Kind::mesh}, {"pcie", Kind::pcie}});
  interconnect.saturated_bandwidth =
      required_quantity<BytesPerSecond>(reader, "saturated_bandwidth");
  interconnect.group_loss = reader.optional_number("group_loss", 0, 0, 1e3);
  interconnect.floor_base = required_quantity<Seconds>(reader, "floor_base");
  interconnect.floor_per_gpu = required_quantity<Seconds>(reader, "floor_per_gpu");
  interconnect.half_size = required_quantity<Bytes>(reader, "half_size", {"1 B", "1 TB"});
  interconnect.half_size_exponent = reader.optional_number("half_size_exponent", 0, -2, 2);
  interconnect.sharpness = reader.optional_number("sharpness", 1, 0.1, 10);
  read_small_messages(reader, interconnect);
  interconnect.point_to_point = required_quantity<BytesPerSecond>(reader, "point_to_point");
  interconnect.point_to_point_latency =
      required_quantity<Seconds>(reader, "point_to_point_latency");
  if (interconnect.kind == Kind::mesh) read_lanes(reader, gpus, interconnect);
  if (!reader.are_sound({"kind"})) reader.take("lanes");  // a misspelt mesh has them
  sources.merge(read_sources(reader, prefix));
  reader.reject_unknown_keys();
  return interconnect;
}

}  // namespace windtunnel
