#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "core/contracts.hpp"
#include "core/object_reader.hpp"
#include "report/comparison.hpp"
#include "report/json_object.hpp"
#include "report/report_json.hpp"

namespace windtunnel {
namespace {

constexpr const char* report_schema = "windtunnel/report-v1";
constexpr double most = 1e300;                        ///< larger than any figure
constexpr double most_messages = 9007199254740992.0;  ///< 2^53, what a number holds exactly

/// The member objects of a report, each read key by key; unknown keys are of a newer version, and stay.
class FigureReader {
 public:
  FigureReader(JsonValue& report, Problems& problems) : root_(report, {}, problems) {}

  ReportFigures read() {
    ReportFigures figures;
    figures.name = root_.required_string("name");
    figures.scenario_hash = root_.required_string("scenario_hash");
    figures.iteration_time = Seconds{amount(root_, "iteration_time_s")};
    figures.samples_per_s = amount(root_, "samples_per_s");
    figures.tokens_per_s = amount(root_, "tokens_per_s");
    figures.model_flops_per_gpu = amount(root_, "model_tflops_per_gpu") * 1_TFLOPS;
    figures.mfu = amount(root_, "mfu");
    read_breakdown(figures);
    read_memory(figures);
    read_traffic(figures);
    if (!(figures.iteration_time > 0_s))
      root_.problem("iteration_time_s", "iteration_time_s is not above 0");
    return figures;
  }

 private:
  static double amount(ObjectReader& reader, std::string_view key) {
    return reader.required_number(key, 0, most);
  }

  /// The member object `key`; a problem when there is none.
  ObjectReader part(std::string_view key) {
    root_.require(key, "an object");
    return root_.child(key);
  }

  void read_breakdown(ReportFigures& figures) {
    ObjectReader reader = part("breakdown_s");
    for (const Line line : all_lines) {
      const char* const name = name_of(line);
      figures.breakdown.add(
          line, Seconds{is_always_written(line) ? reader.required_number(name, -most, most)
                                                : reader.optional_number(name, 0, -most, most)});
    }
  }

  void read_memory(ReportFigures& figures) {
    ObjectReader reader = part("memory");
    figures.memory_capacity = Bytes{amount(reader, "capacity_bytes")};
    figures.memory_max = Bytes{amount(reader, "max_bytes")};
    if (reader.require("fits", "true or false") != nullptr)
      figures.fits = reader.optional_bool("fits", true);
  }

  void read_traffic(ReportFigures& figures) {
    ObjectReader bytes = part("traffic_bytes");
    ObjectReader counts = part("messages");
    for (const Traffic traffic : published_traffic) {
      const auto i = static_cast<std::size_t>(traffic);
      if (!is_always_written(traffic)) {
        figures.traffic[i] = Bytes{bytes.optional_number(name_of(traffic), 0, 0, most)};
        continue;
      }
      figures.traffic[i] = Bytes{amount(bytes, name_of(traffic))};
      counts.require(name_of(traffic), "an object");
      ObjectReader count = counts.child(name_of(traffic));
      const auto number = [&count](const char* key) {
        return static_cast<std::uint64_t>(count.required_number(key, 0, most_messages));
      };
      figures.messages[i] = {number("compressed"), number("uncompressed")};
    }
  }

  ObjectReader root_;
};

JsonValue difference_value(const InputDifference& difference) {
  return object_of({{"pointer", difference.pointer}, {"values", array_of(difference.values)}});
}

JsonValue failed_value(const FailedRun& run) {
  return object_of({{"label", run.label}, {"error", run.error}});
}

const char* word_of(BreakEven::Outcome outcome) {
  switch (outcome) {
    case BreakEven::Outcome::crosses:
      return "crosses";
    case BreakEven::Outcome::always_faster:
      return "always_faster";
    case BreakEven::Outcome::always_slower:
      return "always_slower";
    case BreakEven::Outcome::always_equal:
      return "always_equal";
  }
  return "?";
}

JsonValue break_even_value(const BreakEven& found) {
  const bool crosses = found.outcome == BreakEven::Outcome::crosses;
  return object_of(
      {{"what", found.what},
       {"network", found.part == NetworkPart::between_nodes ? "between_nodes" : "inside_nodes"},
       {"outcome", word_of(found.outcome)},
       {"bandwidth_now_bytes_per_s", found.bandwidth_now.value()},
       {"factor", only_if(crosses, found.factor)},
       {"bandwidth_bytes_per_s", only_if(crosses, found.bandwidth.value())},
       {"faster", only_if(crosses, found.faster_below ? "below" : "above")}});
}

JsonValue codec_value(const CodecBreakEven& codec) {
  return object_of(
      {{"run", codec.run},
       {"traffic", name_of(codec.traffic)},
       {"saved_bytes", codec.saved.value()},
       {"codec_s", codec.codec},
       {"break_even_bytes_per_s",
        only_if(codec.bandwidth.has_value(), codec.bandwidth.value_or(BytesPerSecond{}).value())},
       {"attained_bytes_per_s", only_if(codec.now > BytesPerSecond{}, codec.now.value())},
       {"saved_by_job_s", codec.saved_by_job},
       {"loses", codec.slows_job()}});
}

}  // namespace

bool is_report(const JsonValue& document) {
  const JsonValue* schema = document.find("schema");
  return schema != nullptr && schema->is_string() && schema->string() == report_schema;
}

ReportFigures read_report_figures(const JsonValue& report) {
  Problems problems;
  JsonValue copy = report;
  ReportFigures figures = FigureReader(copy, problems).read();
  problems.throw_if_any();
  return figures;
}

double Comparison::speedup(std::size_t run) const {
  WT_EXPECT(run < runs.size());
  return runs.front().figures.iteration_time / runs[run].figures.iteration_time;
}

bool Comparison::all_fit() const {
  return failed.empty() && std::all_of(runs.begin(), runs.end(),
                                       [](const ComparedRun& run) { return run.figures.fits; });
}

std::string comparison_json(const Comparison& comparison) {
  const std::vector<ComparedRun>& runs = comparison.runs;
  const auto speedup = [&](const ComparedRun& run) {
    return runs.front().figures.iteration_time / run.figures.iteration_time;
  };
  return pretty_text(object_of(
             {{"runs", array_of(runs, [](const ComparedRun& run) { return run.report; })},
              {"speedup", array_of(runs, speedup)},
              {"labels", array_of(runs, [](const ComparedRun& run) { return run.label; })},
              {"failed", array_of(comparison.failed, failed_value)},
              {"differences", array_of(comparison.differences, difference_value)},
              {"codecs", array_of(comparison.codecs, codec_value)},
              {"break_even", array_of(comparison.break_evens, break_even_value)},
              {"warnings", array_of(comparison.warnings)}})) +
         "\n";
}

}  // namespace windtunnel
