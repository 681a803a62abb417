#include "platform/interconnect_json.hpp"

#include <string>
#include <vector>

#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using Lanes = std::vector<std::vector<int>>;

/// One row of the lane matrix; anything but non-negative integers leaves an empty row.
std::vector<int> read_row(const JsonValue& row) {
  std::vector<int> lanes;
  if (!row.is_array()) return lanes;
  for (const JsonValue& cell : row.array()) {
    const std::int64_t* count = std::get_if<std::int64_t>(&cell.content);
    if (count == nullptr || *count < 0 || *count > 1000) return {};
    lanes.push_back(static_cast<int>(*count));
  }
  return lanes;
}

bool is_symmetric(const Lanes& lanes) {
  for (std::size_t i = 0; i < lanes.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j)
      if (lanes[i][j] != lanes[j][i] || (i == j && lanes[i][j] != 0)) return false;
  return true;
}

void read_lanes(ObjectReader& reader, int gpus, Interconnect& interconnect) {
  const JsonValue* value = reader.require("lanes");
  if (value == nullptr) return;
  Lanes lanes;
  if (value->is_array())
    for (const JsonValue& row : value->array()) lanes.push_back(read_row(row));
  const auto size = static_cast<std::size_t>(gpus);
  bool square = lanes.size() == size;
  for (const std::vector<int>& row : lanes) square = square && row.size() == size;
  if (!square || !is_symmetric(lanes)) {
    const std::string n = std::to_string(gpus);
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
  if (!reader.has("switch_size") && !reader.has("small_bandwidth")) return;
  interconnect.switch_size = required_quantity<Bytes>(reader, "switch_size");
  interconnect.small_bandwidth = required_quantity<BytesPerSecond>(reader, "small_bandwidth");
}

}  // namespace

Interconnect read_interconnect(ObjectReader reader, int gpus, const std::string& prefix,
                               Sources& sources) {
  using Kind = Interconnect::Kind;
  Interconnect interconnect;
  interconnect.kind = reader.required_enum<Kind>(
      "kind", {{"nvswitch", Kind::nvswitch}, {"mesh", Kind::mesh}, {"pcie", Kind::pcie}});
  interconnect.saturated_bandwidth =
      required_quantity<BytesPerSecond>(reader, "saturated_bandwidth");
  interconnect.group_loss = reader.optional_number("group_loss", 0, 0, 1e3);
  interconnect.floor_base = required_quantity<Seconds>(reader, "floor_base");
  interconnect.floor_per_gpu = required_quantity<Seconds>(reader, "floor_per_gpu");
  interconnect.half_size = required_quantity<Bytes>(reader, "half_size");
  interconnect.half_size_exponent = reader.optional_number("half_size_exponent", 0, -10, 10);
  interconnect.sharpness = reader.optional_number("sharpness", 1, 1e-2, 1e2);
  read_small_messages(reader, interconnect);
  interconnect.point_to_point = required_quantity<BytesPerSecond>(reader, "point_to_point");
  interconnect.point_to_point_latency =
      required_quantity<Seconds>(reader, "point_to_point_latency");
  if (interconnect.kind == Kind::mesh) read_lanes(reader, gpus, interconnect);
  sources.merge(read_sources(reader, prefix));
  reader.reject_unknown_keys();
  return interconnect;
}

}  // namespace windtunnel
