#include "calibrate/memory_calibration_command.hpp"

#include <ostream>
#include <utility>

#include "calibrate/memory_calibration.hpp"
#include "core/file_io.hpp"
#include "core/json_value.hpp"
#include "core/option_error.hpp"
#include "memory/memory_correction.hpp"
#include "report/number_text.hpp"

namespace windtunnel {
namespace {

std::string percent(double fraction) {
  constexpr double hundred = 100;
  return fixed_text(fraction * hundred, 2) + " %";
}

/// megatron-lm-2021, reserved: 120 readings, 4 groups held out one at a time
///   the account alone              0.90 %
///   corrected, held out            1.34 %
///   The account alone speaks: the correction is no better on runs that it has not seen.
std::string text_of(const MemoryCorrection& correction) {
  const HeldOutMemory& errors = correction.held_out;
  return correction.software + ", " + correction.quantity + ": " + std::to_string(errors.rows) +
         " readings, " + std::to_string(errors.groups) + " groups held out one at a time\n" +
         "  the account alone    " + percent(errors.analytic) + "\n" + "  corrected, held out  " +
         percent(errors.corrected) + "\n" +
         (correction.is_better() ? "  The correction speaks where a scenario names its file.\n"
                                 : "  The account alone speaks: the correction is no better on "
                                   "runs that it has not seen.\n");
}

JsonValue value_of(const MemoryCorrection& correction) {
  JsonValue value{JsonValue::Object{}};
  value.set("software", JsonValue(correction.software));
  value.set("quantity", JsonValue(correction.quantity));
  value.set("rows", JsonValue(static_cast<std::int64_t>(correction.held_out.rows)));
  value.set("groups", JsonValue(static_cast<std::int64_t>(correction.held_out.groups)));
  value.set("analytic_mape", JsonValue(correction.held_out.analytic));
  value.set("corrected_mape", JsonValue(correction.held_out.corrected));
  value.set("speaks", JsonValue(std::string(correction.is_better() ? "correction" : "account")));
  return value;
}

std::string result_of(const std::vector<MemoryCorrection>& corrections, CalibrationFormat format) {
  std::string text;
  JsonValue::Array list;
  for (const MemoryCorrection& correction : corrections) {
    text += (text.empty() ? "" : "\n") + text_of(correction);
    list.push_back(value_of(correction));
  }
  if (format == CalibrationFormat::text) return text;
  JsonValue json{JsonValue::Object{}};
  json.set("schema", JsonValue(std::string("windtunnel/memory-calibration-v1")));
  json.set("corrections", JsonValue(std::move(list)));
  return pretty_text(json) + "\n";
}

void expect_one_stack(const std::vector<MemoryCorrection>& corrections,
                      const std::filesystem::path& out) {
  for (const MemoryCorrection& correction : corrections)
    if (correction.software != corrections.front().software)
      throw option_error(
          "-o", out.string(),
          "the readings are of " + corrections.front().software + " and of " + correction.software,
          "name sets of one stack");
}

}  // namespace

int run_memory_calibration(const MemoryCalibrationRequest& request, const Library& library,
                           std::ostream& out, std::ostream& messages) {
  std::vector<MeasurementSet> sets;
  for (const auto& file : find_measurement_sets(request.sets, library.root / "validation"))
    sets.push_back(read_measurement_set(file));
  std::vector<MemoryCorrection> corrections;
  for (const MemoryRows& rows : read_memory_rows(sets, library, request.overrides)) {
    if (groups_of(rows).size() < 2) continue;
    corrections.push_back(calibrate_memory(rows, request.seed));
    for (const MeasurementSet& set : sets) corrections.back().sets.push_back(set.name);
  }
  if (corrections.empty()) {
    messages << "calibrate: no readings of memory in two groups or more\n";
    return 1;
  }
  if (!request.out.empty()) expect_one_stack(corrections, request.out);
  out << result_of(corrections, request.format) << std::flush;
  if (request.out.empty()) return 0;
  write_file_atomically(request.out, memory_correction_json(corrections.back()));
  messages << "calibrate: wrote " << request.out.string() << "\n";
  return 0;
}

}  // namespace windtunnel
