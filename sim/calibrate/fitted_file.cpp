#include "calibrate/fitted_file.hpp"

#include <cmath>
#include <set>
#include <utility>

#include "calibrate/calibration_text.hpp"
#include "core/contracts.hpp"
#include "core/file_io.hpp"
#include "core/option_error.hpp"
#include "platform/source_json.hpp"
#include "report/number_text.hpp"
#include "scenario/library_files.hpp"

namespace windtunnel {
namespace fs = std::filesystem;
namespace {

constexpr int written_digits = 4;
constexpr const char* device_prefix = "/platform/node_types/0/device/";
constexpr const char* software_prefix = "/software/";
constexpr const char* platform_prefix = "/platform/";

const char* prefix_of(FittedPart part) {
  switch (part) {
    case FittedPart::device:
      return device_prefix;
    case FittedPart::software:
      return software_prefix;
    case FittedPart::platform:
      return platform_prefix;
  }
  return "";
}

const LibraryKind& kind_of(FittedPart part) {
  if (part == FittedPart::device) return device_files;
  return part == FittedPart::software ? software_files : platform_files;
}

/// The constant's place in the file: "/gemm/peak_fraction".
std::string pointer_in_file(const FitConstant& constant, FittedPart part) {
  return constant.pointer.substr(std::string_view(prefix_of(part)).size() - 1);
}

JsonValue read_original(const FittedFile& file, const Library& library) {
  const fs::path path = looks_like_path(file.name)
                            ? fs::path(file.name)
                            : library_file(library, kind_of(file.part), file.name);
  if (file_type_of(path) == fs::file_type::not_found)
    throw option_error(option_of(file.part), file.name,
                       std::string("there is no ") + kind_of(file.part).noun + " " + file.name,
                       suggest_name(library, kind_of(file.part), file.name));
  Problems problems;
  JsonValue value = parse_json(read_source(path), problems);
  problems.throw_if_any();
  if (!value.is_object())
    throw option_error(option_of(file.part), file.name, "the file holds no object", {});
  return value;
}

/// The scenarios must have read their value from a file like this one.
void check_same_file(const FittedFile& file, const FittedConstant& fitted, JsonValue& original) {
  constexpr double rounding = 1e-9;
  const std::string pointer = pointer_in_file(fitted.constant, file.part);
  const auto there = number_at(original, pointer);
  if (!there) return;  // a default of the reader
  const bool same = there->unit == fitted.given.unit &&
                    std::abs(there->number - fitted.given.number) <= rounding * there->number;
  if (!same)
    throw option_error(option_of(file.part), file.name,
                       file.name + " has " + text_of(*there) + " at " + pointer +
                           ", the scenarios of the sets have " + text_of(fitted.given),
                       "name the file that the sets use");
}

void write_number(JsonValue& document, const std::string& pointer, const FittedConstant& fitted,
                  const std::string& source) {
  const double rounded = rounded_to(fitted.value, written_digits);
  JsonValue value = fitted.given.unit.empty() ? JsonValue(rounded)
                                              : JsonValue(text_of({rounded, fitted.given.unit}));
  const bool is_set = set_at(document, pointer, std::move(value));
  WT_ENSURE(is_set);
  const std::size_t slash = pointer.rfind('/');
  set_source(*find_at(document, pointer.substr(0, slash)), pointer.substr(slash + 1), source);
}

}  // namespace

bool stands_in(const FitConstant& constant, FittedPart part) {
  const bool in_device = constant.pointer.starts_with(device_prefix);
  return constant.pointer.starts_with(prefix_of(part)) &&
         (part != FittedPart::platform || !in_device);
}

const char* option_of(FittedPart part) {
  switch (part) {
    case FittedPart::device:
      return "--device";
    case FittedPart::software:
      return "--software";
    case FittedPart::platform:
      return "--platform";
  }
  return "";
}

std::string provenance(const Calibration& calibration,
                       const std::vector<CalibrationPoint>& points) {
  std::set<std::string> sets;
  for (const CalibrationPoint& point : points) sets.insert(point.set);
  std::string text = "fitted: ";
  for (const std::string& set : sets) text += (set == *sets.begin() ? "" : ", ") + set;
  text += " (";
  bool first = true;
  for (const FittedConstant& fitted : calibration.constants) {
    if (fitted.is_kept()) continue;
    text += (first ? "" : ", ") + fitted.constant.name;
    if (fitted.posterior_width > 0) text += " " + width_text(fitted.posterior_width);
    first = false;
  }
  text += "; " + std::to_string(points.size()) + " rows, in-sample " +
          percent_text(score(calibration.in_sample).mape);
  if (!calibration.by_size.empty())
    text += ", leave one size out " + percent_text(score(all_of(calibration.by_size)).mape);
  else if (!calibration.by_fold.empty())
    text += ", random folds " + percent_text(score(all_of(calibration.by_fold)).mape);
  return text + ")";
}

std::string fitted_file_text(const FittedFile& file, const Calibration& calibration,
                             const std::vector<CalibrationPoint>& points, const Library& library) {
  JsonValue document = read_original(file, library);
  bool any = false;
  for (const FittedConstant& fitted : calibration.constants) {
    if (fitted.is_kept() || !stands_in(fitted.constant, file.part)) continue;
    check_same_file(file, fitted, document);
    write_number(document, pointer_in_file(fitted.constant, file.part), fitted,
                 provenance(calibration, points));
    any = true;
  }
  if (!any)
    throw option_error(option_of(file.part), file.name,
                       std::string("none of the fitted constants stands in a ") +
                           kind_of(file.part).noun + " file",
                       {});
  if (document.find("name") != nullptr) document.set("name", JsonValue(file.out.stem().string()));
  return pretty_text(document) + "\n";
}

}  // namespace windtunnel
