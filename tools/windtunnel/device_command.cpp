#include <algorithm>

#include "core/file_io.hpp"
#include "importers/base_platform.hpp"
#include "importers/datasheet_device.hpp"
#include "platform/platform_json.hpp"
#include "report/json_object.hpp"
#include "scenario/scenario.hpp"
#include "validate/kernel_score.hpp"
#include "validate/validation_report.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/outputs.hpp"

namespace windtunnel {
namespace {

/// The document of a device's file, by its name or path.
JsonValue device_file(const std::string& name, const Library& library) {
  if (looks_like_path(name)) read_source(name);  // a path that cannot be read is no bad input
  return file_of_option("device", name, device_files, library);
}

ExitCode complete(const CommandLine& line, const Library& library) {
  const DatasheetDevice device =
      complete_device(device_file(line.arguments.front(), library), library);
  const std::string text = pretty_text(device.document) + "\n";
  if (line.output.empty())
    print_result(text);
  else
    write_output(line, line.output, text);
  print_note(line, "scaled from " + device.nearest + ": " + std::to_string(device.added.size()) +
                       " values that a data sheet does not give");
  if (std::ranges::count(device.added, "/gemm/peak_fraction") > 0)
    print_note(line, "gemm/peak_fraction is that of " + device.description +
                         ": a card of less power sustains less of its peak. Set compute_efficiency "
                         "of the platform's node type, as docs/platforms.md says, or fit it with "
                         "`windtunnel calibrate`");
  return exit_done;
}

JsonValue errors_json(const std::string& device, const std::vector<KernelPoint>& points,
                      const std::vector<KernelError>& errors) {
  const auto error = [](const KernelError& each) {
    return object_of({{"kernels", each.table},
                      {"group", each.group.empty() ? "all" : each.group},
                      {"points", each.points},
                      {"median_ape", each.median},
                      {"mape", each.mean},
                      {"worst_ape", each.worst},
                      {"bias", each.bias}});
  };
  const auto point = [](const KernelPoint& each) {
    return object_of({{"kernels", each.table},
                      {"group", each.group},
                      {"measured_s", each.measured},
                      {"predicted_s", each.predicted}});
  };
  return object_of({{"device", device},
                    {"errors", array_of(errors, error)},
                    {"points", array_of(points, point)}});
}

Device read_named(const std::string& name, const Library& library) {
  Problems problems;
  JsonValue value = device_file(name, library);
  const Device device = read_device(value, {}, problems);
  problems.throw_if_any();
  return device;
}

ExitCode score(const CommandLine& line, const Library& library) {
  JsonValue::Array results;
  std::vector<ValidatedSet> sets;
  for (const std::string& name : line.arguments) {
    const Device device = read_named(name, library);
    const std::vector<KernelPoint> points = kernel_points(library, device);
    const std::vector<KernelError> errors = kernel_errors(points);
    for (const char* table : {"gemm", "grouped", "attention"})
      if (ValidatedSet set = kernel_set(device.name + ", " + table, table, points);
          set.has_scores())
        sets.push_back(std::move(set));
    if (line.format == ResultFormat::json)
      results.push_back(errors_json(device.name, points, errors));
    else if (errors.empty())
      print_result(line, device.name + ": no kernels were measured on it\n");
    else
      print_result(line, device.name + "\n" + kernel_text(errors));
  }
  if (line.format == ResultFormat::json)
    print_result(line, pretty_text(JsonValue(std::move(results))) + "\n");
  if (!line.svg.empty())
    write_output(line, line.svg, scatter_svg(sets, "Predicted and measured kernel times"));
  return exit_done;
}

}  // namespace

ExitCode device_command(const CommandLine& line) {
  refuse_if(line.from_datasheet == line.kernels,
            "device takes one of --from-datasheet and --kernels");
  refuse_if(line.kernels && !line.output.empty(),
            "-o goes with --from-datasheet, which makes a file");
  refuse_if(line.from_datasheet && (!line.svg.empty() || line.format == ResultFormat::json),
            "--svg and --json go with --kernels");
  refuse_if(line.from_datasheet && line.arguments.size() > 1,
            "device --from-datasheet takes one NAME");
  const Library library = Library::find();
  return line.kernels ? score(line, library) : complete(line, library);
}

}  // namespace windtunnel
