#include "calibrate/memory_calibration.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <ostream>
#include <random>
#include <utility>

#include "core/contracts.hpp"
#include "core/file_io.hpp"
#include "core/json_value.hpp"
#include "core/option_error.hpp"
#include "core/quantile.hpp"
#include "core/text_list.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "simulate/memory_inputs.hpp"

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
  return object_of({{"software", correction.software},
                    {"quantity", correction.quantity},
                    {"rows", correction.held_out.rows},
                    {"groups", correction.held_out.groups},
                    {"analytic_mape", correction.held_out.analytic},
                    {"corrected_mape", correction.held_out.corrected},
                    {"speaks", correction.is_better() ? "correction" : "account"}});
}

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

constexpr Eigen::Index units = 6;
constexpr int steps = 1500;
constexpr double step_size = 0.01, penalty = 1e-2;  // of the squared error's unit, its variance

/// Rows of one run: readings by stage, and of the fullest GPU.
struct RunRows {
  std::vector<MemoryRow> allocated, reserved, fullest;
};
RunRows rows_of(const MeasurementPoint& point, const Scenario& scenario) {
  MemoryInputs inputs = memory_inputs(scenario, scenario.plan, count_in_flight(scenario.plan));
  inputs.correction = nullptr;
  const MemoryAccount account = account_memory(inputs);
  const auto row = [&](const StageMemory& stage, Bytes measured, Bytes accounted) {
    return MemoryRow{point.id, point.group.empty() ? point.id : point.group,
                     memory_features(inputs, stage), measured / 1_B, accounted / 1_B};
  };
  /// The mean over the ranks of each stage.
  const auto by_stage = [&](const std::map<int, Bytes>& by_rank, Bytes StageMemory::*line) {
    std::map<std::size_t, std::vector<double>> readings;
    for (const PlanDevice& device : scenario.plan.devices)
      for (const RankId rank : device.ranks)
        if (const auto found = by_rank.find(static_cast<int>(rank.index())); found != by_rank.end())
          readings[device.stage.index()].push_back(found->second / 1_B);
    std::vector<MemoryRow> rows;
    for (const auto& [stage, bytes] : readings)
      rows.push_back(
          row(account.stages[stage], Bytes{mean_of(bytes)}, account.stages[stage].*line));
    return rows;
  };
  RunRows rows{by_stage(point.memory.allocated, &StageMemory::allocated),
               by_stage(point.memory.reserved, &StageMemory::reserved),
               {}};
  if (point.memory.nvidia_smi) {
    const auto fullest = std::ranges::max_element(account.stages, {}, &StageMemory::total);
    rows.fullest = {row(*fullest, *point.memory.nvidia_smi, fullest->total)};
  }
  return rows;
}

/// The network while it is trained, and where Adam stands.
struct Perceptron {
  Matrix hidden;  // units x (inputs + 1)
  Vector output;  // units + 1
};

/// A number from -1 to 1 that every library agrees on.
double uniform(std::mt19937_64& random) {
  constexpr double largest = 18446744073709551616.0;  // 2^64
  return 2 * (static_cast<double>(random()) / largest) - 1;
}

/// Inputs with a last row of ones, a column a row; targets.
struct Examples {
  Matrix inputs;
  Vector targets;
};

Perceptron gradient(const Perceptron& network, const Examples& examples) {
  const auto rows = static_cast<double>(examples.targets.size());
  const Matrix activity = (network.hidden * examples.inputs).array().tanh().matrix();
  const Vector error = (activity.transpose() * network.output.head(units)).array() +
                       network.output(units) - examples.targets.array();
  Perceptron slope{Matrix(), Vector(units + 1)};
  slope.output.head(units) = activity * error / rows + penalty * network.output.head(units);
  slope.output(units) = error.mean();
  const Matrix back =
      (network.output.head(units) * error.transpose()).array() * (1 - activity.array().square());
  slope.hidden = back * examples.inputs.transpose() / rows + penalty * network.hidden;
  return slope;
}

/// One step of Adam on parameters of one shape.
template <typename Values>
struct Adam {
  Values mean, square;
  explicit Adam(const Values& shape)
      : mean(Values::Zero(shape.rows(), shape.cols())), square(mean) {}
  void step(Values& values, const Values& slope, int number) {
    constexpr double keep_mean = 0.9, keep_square = 0.999, smallest = 1e-8;  // the paper's
    mean = keep_mean * mean + (1 - keep_mean) * slope;
    square = keep_square * square + (1 - keep_square) * slope.cwiseProduct(slope);
    const double mean_share = 1 - std::pow(keep_mean, number);
    const double square_share = 1 - std::pow(keep_square, number);
    values.array() -= step_size * (mean.array() / mean_share) /
                      ((square.array() / square_share).sqrt() + smallest);
  }
};

double deviation(const Vector& values) {
  const double all = std::sqrt((values.array() - values.mean()).square().mean());
  constexpr double least = 1e-12;  // a constant stays what it is
  return all > least ? all : 1;
}

std::vector<double> list_of(const Vector& values) {
  return {values.data(), values.data() + values.size()};
}

double error_of(const MemoryRow& row, double factor) {
  return std::abs(row.accounted * factor / row.measured - 1);
}

}  // namespace

int run_memory_calibration(const CalibrateRequest& request, const std::filesystem::path& file,
                           const Library& library, std::ostream& out, std::ostream& messages) {
  const std::vector<MeasurementSet> sets = read_sets(request.sets, library);
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
  for (const MemoryCorrection& each : corrections)
    if (!file.empty() && each.software != corrections.front().software)
      throw option_error(
          "-o", file.string(),
          "the readings are of " + corrections.front().software + " and of " + each.software,
          "name sets of one stack");
  if (request.format == ResultFormat::text)
    out << joined(corrections, "\n", [](const MemoryCorrection& each) { return text_of(each); });
  else
    out << pretty_text(object_of({{"schema", "windtunnel/memory-calibration-v1"},
                                  {"corrections", array_of(corrections, value_of)}}))
        << "\n";
  out << std::flush;
  if (file.empty()) return 0;
  write_file_atomically(file, memory_correction_json(corrections.back()));
  messages << "calibrate: wrote " << file.string() << "\n";
  return 0;
}

std::vector<MemoryRows> read_memory_rows(const std::vector<MeasurementSet>& sets,
                                         const Library& library, const Overrides& overrides) {
  std::map<std::string, RunRows> by_software;
  for (const MeasurementSet& set : sets)
    for (const MeasurementPoint& point : set.points) {
      if (point.memory.empty() || point.memory.reading == MemoryReading::first_step) continue;
      const Scenario scenario =
          read_scenario(scenario_of(set, point), set.folder, library, {.overrides = overrides});
      const RunRows run = rows_of(point, scenario);
      RunRows& rows = by_software[scenario.software.name];
      for (auto list : {&RunRows::allocated, &RunRows::reserved, &RunRows::fullest})
        std::ranges::copy(run.*list, std::back_inserter(rows.*list));
    }
  std::vector<MemoryRows> all;
  for (const auto& [software, rows] : by_software)
    for (const auto& [quantity, of_quantity] : {std::pair{"allocated", &rows.allocated},
                                                {"reserved", &rows.reserved},
                                                {"nvidia-smi", &rows.fullest}})
      if (!of_quantity->empty()) all.push_back({quantity, software, *of_quantity});
  return all;
}

MemoryCorrection train_memory_correction(const std::vector<MemoryRow>& rows, std::uint64_t seed) {
  WT_EXPECT(!rows.empty());
  const auto count = static_cast<Eigen::Index>(rows.size());
  const auto inputs = static_cast<Eigen::Index>(rows.front().features.size());
  Examples examples{Matrix::Ones(inputs + 1, count), Vector(count)};
  for (Eigen::Index r = 0; r < count; ++r) {
    const MemoryRow& row = rows[static_cast<std::size_t>(r)];
    for (Eigen::Index i = 0; i < inputs; ++i)
      examples.inputs(i, r) = row.features[static_cast<std::size_t>(i)];
    examples.targets(r) = std::log(row.measured / row.accounted);
  }
  MemoryCorrection correction;
  correction.most = examples.targets.array().abs().maxCoeff();
  for (Eigen::Index i = 0; i < inputs; ++i) {
    const Vector values = examples.inputs.row(i).transpose();
    correction.mean.push_back(values.mean());
    correction.scale.push_back(deviation(values));
    examples.inputs.row(i) =
        (values.array() - correction.mean.back()).matrix().transpose() / correction.scale.back();
  }
  const double unit = deviation(examples.targets);
  examples.targets /= unit;
  std::mt19937_64 random(seed);
  const double width = 1 / std::sqrt(static_cast<double>(inputs));
  Perceptron network{Matrix(units, inputs + 1), Vector::Zero(units + 1)};
  for (Eigen::Index h = 0; h < units; ++h) {
    for (Eigen::Index i = 0; i <= inputs; ++i) network.hidden(h, i) = width * uniform(random);
    network.output(h) = width * uniform(random);
  }
  Adam<Matrix> of_hidden(network.hidden);
  Adam<Vector> of_output(network.output);
  for (int number = 1; number <= steps; ++number) {
    const Perceptron slope = gradient(network, examples);
    of_hidden.step(network.hidden, slope.hidden, number);
    of_output.step(network.output, slope.output, number);
  }

  for (Eigen::Index h = 0; h < units; ++h)
    correction.hidden.push_back(list_of(network.hidden.row(h).transpose()));
  correction.output = list_of(network.output * unit);
  return correction;
}

std::set<std::string> groups_of(const MemoryRows& rows) {
  std::set<std::string> groups;
  for (const MemoryRow& row : rows.rows) groups.insert(row.group);
  return groups;
}

MemoryCorrection calibrate_memory(const MemoryRows& all, std::uint64_t seed) {
  const std::set<std::string> groups = groups_of(all);
  WT_EXPECT(groups.size() >= 2);
  MemoryCorrection correction = train_memory_correction(all.rows, seed);
  correction.quantity = all.quantity;
  correction.software = all.software;
  correction.held_out.rows = all.rows.size();
  correction.held_out.groups = groups.size();
  for (const std::string& group : groups) {
    std::vector<MemoryRow> others, held_out;
    for (const MemoryRow& row : all.rows) (row.group == group ? held_out : others).push_back(row);
    const MemoryCorrection without = train_memory_correction(others, seed);
    for (const MemoryRow& row : held_out) {
      correction.held_out.analytic += error_of(row, 1);
      correction.held_out.corrected += error_of(row, correction_factor(without, row.features));
    }
  }
  correction.held_out.analytic /= static_cast<double>(all.rows.size());
  correction.held_out.corrected /= static_cast<double>(all.rows.size());
  return correction;
}

}  // namespace windtunnel
