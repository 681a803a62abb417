#include <utility>

#include "core/file_io.hpp"
#include "core/gunzip.hpp"
#include "importers/gpu_trace.hpp"
#include "importers/importer.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr std::size_t largest_trace = std::size_t{1} << 30;  ///< bytes of JSON

Seconds time_of(std::int64_t nanoseconds) {
  return Seconds{static_cast<double>(nanoseconds) * 1e-9};
}
JsonValue seconds(std::int64_t nanoseconds) { return JsonValue(time_of(nanoseconds) / 1_s); }

/// The file's text, unpacked where its name ends in .gz.
std::shared_ptr<const SourceText> read_trace(const std::filesystem::path& path,
                                             Problems& problems) {
  auto source = read_source(path);
  if (path.extension() != ".gz") return source;
  auto text = gunzip(source->text, largest_trace);
  if (!text) {
    problems.add({Origin{OriginKind::file,
                         std::make_shared<SourceText>(SourceText{source->name, {}}), 0, 0, 0},
                  {},
                  "the file is no whole gzip file of at most 1 GiB",
                  "it may be truncated"});
    return source;
  }
  return std::make_shared<SourceText>(SourceText{source->name, std::move(*text)});
}

JsonValue json_of(const GpuTotals& gpu) {
  JsonValue value(JsonValue::Object{});
  value.set("device", JsonValue(gpu.device));
  value.set("window_s", seconds(gpu.window));
  value.set("busy_s", seconds(gpu.busy));
  value.set("idle_s", seconds(gpu.idle()));
  value.set("compute_s", seconds(gpu.compute));
  value.set("communication_s", seconds(gpu.communication));
  value.set("overlap_s", seconds(gpu.overlap));
  value.set("exposed_communication_s", seconds(gpu.exposed_communication()));
  JsonValue streams(JsonValue::Object{});
  for (const auto& [stream, works] : gpu.by_stream) {
    JsonValue of_stream(JsonValue::Object{});
    for (const auto& [work, total] : works) {
      JsonValue item(JsonValue::Object{});
      item.set("count", JsonValue(total.count));
      item.set("time_s", seconds(total.nanoseconds));
      of_stream.set(work, std::move(item));
    }
    streams.set(stream, std::move(of_stream));
  }
  value.set("streams", std::move(streams));
  return value;
}

std::string text_of(const GpuTotals& gpu) {
  const auto line = [&](const char* what, std::int64_t nanoseconds) {
    const double share = static_cast<double>(nanoseconds) / static_cast<double>(gpu.window);
    return "  " + left_aligned(what, 26) + right_aligned(to_text(time_of(nanoseconds)), 10) +
           right_aligned(percent_text(share), 9) + "\n";
  };
  std::string text = "\nGPU " + std::to_string(gpu.device) + ", " + to_text(time_of(gpu.window)) +
                     " from its first work to its last\n";
  text += line("compute", gpu.compute) + line("communication", gpu.communication) +
          line("  hidden behind compute", gpu.overlap) +
          line("  exposed", gpu.exposed_communication()) + line("idle", gpu.idle());
  for (const auto& [stream, works] : gpu.by_stream) {
    text += "  stream " + stream + "\n";
    for (const auto& [work, total] : works)
      text += "    " + left_aligned(work, 24) +
              right_aligned(to_text(time_of(total.nanoseconds)), 10) +
              right_aligned(std::to_string(total.count), 9) + " times\n";
  }
  return text;
}

}  // namespace

Imported import_kineto(const ImportRequest& request, const Library&) {
  Problems problems;
  const auto source = read_trace(request.inputs.front(), problems);
  problems.throw_if_any();
  JsonValue document = parse_json(source, problems);
  problems.throw_if_any();
  const GpuTrace trace = read_gpu_trace(document, problems);
  problems.throw_if_any();

  Imported imported;
  if (trace.rank >= 0) imported.found.set("rank", JsonValue(trace.rank));
  imported.found.set("steps", JsonValue(std::int64_t{trace.num_steps}));
  JsonValue::Array gpus;
  imported.text = request.inputs.front().filename().string() + ": " +
                  std::to_string(trace.events.size()) + " pieces of GPU work, " +
                  std::to_string(trace.num_steps) + " profiler steps" +
                  (trace.rank >= 0 ? ", rank " + std::to_string(trace.rank) : "") + "\n";
  for (const GpuTotals& gpu : totals_of(trace)) {
    gpus.push_back(json_of(gpu));
    imported.text += text_of(gpu);
  }
  imported.found.set("gpus", JsonValue(std::move(gpus)));
  return imported;
}

}  // namespace windtunnel
