#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/mapped.hpp"
#include "core/object_reader.hpp"
#include "core/option_error.hpp"
#include "core/quantile.hpp"
#include "core/text_list.hpp"
#include "cost/kernel_cost.hpp"
#include "importers/base_platform.hpp"
#include "importers/collective_fit.hpp"
#include "importers/importer.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"
#include "workload/transformer.hpp"

namespace windtunnel::formats {
namespace {

constexpr double most_bytes = 1e15, most_dimension = 1e9, most_seconds = 1e4;
constexpr double least_seconds = 1e-9;
constexpr int most_ranks = 1'000'000;

/// Kinds of measurements of `windtunnel probe`, with their keys as tools/probe/probe.py writes them: numbers, or one of a few words. Copies are
/// inside the GPU's memory, attention is causal, bytes of a collective are those of the whole tensor.
const std::string precision_words = "fp16|bf16|fp32";
const std::pair<std::string, std::string> keys_of_kind[]{
    {"gemm", "precision=" + precision_words + " m n k batch"},
    {"copy", "bytes"},
    {"launch", "name=stream|synchronized|graph"},
    {"attention",
     "direction=forward|backward precision=" + precision_words + " batch heads sequence head_size"},
    {"norm", "bytes rows hidden"},
    {"optimizer", "bytes name=adam|adam_fused parameters"},
    {"host_copy", "bytes direction=to_device|to_host"},
    {"codec",
     "codec=powersgd|topk|int8|mpc_like|zfp_like direction=encode|decode|orthogonalize bytes"},
    {"collective", "name=all_reduce|all_gather|reduce_scatter|all_to_all ranks nodes bytes"}};
const std::map<std::string, std::string> keys_of_codec{
    {"powersgd", "rows columns rank"}, {"topk", "density"}, {"zfp_like", "rate"}};
/// Bounds of numbers; of others, 1 and `most_dimension`.
const std::map<std::string, std::pair<double, double>> bounds{{"bytes", {1, most_bytes}},
                                                              {"parameters", {1, most_bytes}},
                                                              {"density", {1e-9, 1}},
                                                              {"rate", {1, 64}}};

/// One measurement: what was run, and how long a call took.
struct ProbeMeasurement {
  std::string kind;
  std::map<std::string, std::string> words;
  std::map<std::string, double> numbers;
  Precision precision = Precision::bf16;
  int ranks = 0, nodes = 0;  ///< of a collective
  Bytes bytes{};
  Seconds median{};
  Origin origin;

  std::string word(const std::string& key) const { return value_in(words, key, ""); }
  /// 0 where the kind has no such number.
  double number(const std::string& key) const { return value_in(numbers, key, 0); }
};

/// One file that the script wrote.
struct ProbeFile {
  bool has_gpu = true;
  Origin device_origin, gpu_origin;
  std::string gpu, driver, torch;  ///< empty: not known
  int multiprocessors = 0;         ///< 0: not known
  std::vector<std::string> skipped;
  std::vector<ProbeMeasurement> measurements;
};

/// One of a few words, as in "forward|backward".
std::string word(ObjectReader& reader, const std::string& key, const std::string& words) {
  std::vector<std::pair<std::string, std::string>> names;
  std::istringstream list(words);
  for (std::string each; std::getline(list, each, '|');) names.emplace_back(each, each);
  return reader.required_enum(key, names);
}

void read_keys(ObjectReader& reader, const std::string& keys, ProbeMeasurement& measured) {
  std::istringstream list(keys);
  for (std::string key; list >> key;) {
    const std::size_t equals = key.find('=');
    const auto known = bounds.find(key);
    if (equals != std::string::npos)
      measured.words[key.substr(0, equals)] =
          word(reader, key.substr(0, equals), key.substr(equals + 1));
    else if (key == "ranks" || key == "nodes")
      measured.numbers[key] = reader.required_int(key, key == "ranks" ? 2 : 1, most_ranks);
    else if (known != bounds.end())
      measured.numbers[key] =
          reader.required_number(key, known->second.first, known->second.second);
    else
      measured.numbers[key] = reader.required_number(key, 1, most_dimension);
  }
}

ProbeMeasurement read_measurement(ObjectReader& reader) {
  ProbeMeasurement measured;
  measured.origin = reader.value().origin;
  const std::size_t problems = reader.problems().size();
  measured.kind =
      word(reader, "kind", joined(keys_of_kind, "|", [](const auto& each) { return each.first; }));
  if (reader.problems().size() > problems) return measured;  // what else it has, nobody knows
  for (const auto& [kind, keys] : keys_of_kind)
    if (kind == measured.kind) read_keys(reader, keys, measured);
  measured.ranks = static_cast<int>(measured.number("ranks"));
  measured.nodes = static_cast<int>(measured.number("nodes"));
  if (measured.nodes > 0 && measured.ranks % measured.nodes != 0 &&
      reader.are_sound({"ranks", "nodes"}))
    reader.problem("ranks", std::to_string(measured.ranks) + " ranks do not divide among " +
                                std::to_string(measured.nodes) + " nodes");
  if (const auto more = keys_of_codec.find(measured.word("codec")); more != keys_of_codec.end())
    read_keys(reader, more->second, measured);
  for (const Precision precision : {Precision::fp16, Precision::fp32})
    if (measured.word("precision") == name_of(precision)) measured.precision = precision;
  measured.bytes = Bytes{measured.number("bytes")};
  measured.median = Seconds{reader.required_number("median_s", least_seconds, most_seconds)};
  reader.required_number("spread_s", 0, most_seconds);  // between the quartiles
  reader.required_int("count", 1, 1'000'000);           // samples
  reader.reject_unknown_keys();
  return measured;
}

/// Reads a file of schema windtunnel/probe-v1.
ProbeFile read_probe(JsonValue& document, Problems& problems) {
  ObjectReader root(document, {}, problems);
  ProbeFile file;
  const std::size_t before = problems.size();
  word(root, "schema", "windtunnel/probe-v1");
  if (problems.size() > before) return file;
  for (const auto& [key, origin] :
       {std::pair{"device", &file.device_origin}, {"gpu", &file.gpu_origin}}) {
    const JsonValue* value = document.find(key);
    *origin = (value == nullptr ? document : *value).origin;
  }
  file.has_gpu = word(root, "device", "cuda|cpu") == "cuda";
  file.gpu = root.optional_string("gpu", "");
  file.driver = root.optional_string("driver", "");
  file.torch = root.required_string("torch");
  for (const char* key : {"cuda", "nccl", "python"}) root.optional_string(key, "");
  file.multiprocessors = root.optional_int("multiprocessors", 0, 0, 100'000);
  root.optional_number("memory_bytes", 0, 0, most_bytes);
  word(root, "precision", precision_words);
  for (const char* key : {"ranks", "nodes"}) root.required_int(key, 1, most_ranks);
  root.optional_number("budget_s", 0, 0, most_seconds);
  root.optional_number("elapsed_s", 0, 0, most_seconds);
  if (const JsonValue* const list = root.take("skipped")) {
    if (list->is_array() && std::ranges::all_of(list->array(), std::mem_fn(&JsonValue::is_string)))
      for (const JsonValue& each : list->array()) file.skipped.push_back(each.string());
    else
      root.problem("skipped", "expected a list of texts");
  }
  root.require("measurements", "the list of what was measured");
  for (ObjectReader& each :
       root.entries("measurements", "no measurements: the run may have been stopped"))
    file.measurements.push_back(read_measurement(each));
  root.reject_unknown_keys();
  return file;
}

using Measurements = std::vector<ProbeMeasurement>;

constexpr int least_products = 8;           ///< for three constants
constexpr double least_sensitivity = 1e-2;  ///< of the times to a constant, summed over all
constexpr double near_bound = 0.999;

/// A number of a GPU that a kind of measurement holds, by its key in a device file.
struct GpuNumber {
  const char* key;
  const char* kind;
  double lower, upper;
  double (*get)(const Device&);
  void (*set)(Device&, double);
};
constexpr GpuNumber gpu_numbers[]{
    {"gemm/peak_fraction", "gemm", 0.01, 1, [](const Device& d) { return d.gemm.peak_fraction; },
     [](Device& d, double x) { d.gemm.peak_fraction = x; }},
    {"gemm/inner_half_size", "gemm", 1, 1e4, [](const Device& d) { return d.gemm.inner_half_size; },
     [](Device& d, double x) { d.gemm.inner_half_size = x; }},
    {"gemm/wave_half_size", "gemm", 1e-3, 30, [](const Device& d) { return d.gemm.wave_half_size; },
     [](Device& d, double x) { d.gemm.wave_half_size = x; }},
    {"memory/bandwidth_efficiency", "copy", 0.01, 1,
     [](const Device& d) { return d.memory_efficiency; },
     [](Device& d, double x) { d.memory_efficiency = x; }},
    {"kernel_overhead", "launch", 0.05, 200,
     [](const Device& d) { return d.kernel_overhead / 1_us; },
     [](Device& d, double x) { d.kernel_overhead = 1_us * x; }}};

std::ptrdiff_t count_of(const Measurements& measurements, std::string_view kind) {
  return std::ranges::count(measurements, kind, &ProbeMeasurement::kind);
}

Seconds predict(const Device& device, double compute_efficiency, const ProbeMeasurement& measured) {
  if (measured.kind == "launch") return device.kernel_overhead;
  if (measured.kind == "copy") return memory_time(measured.bytes, device) + device.kernel_overhead;
  KernelContext context;
  context.device = &device;
  context.precision = measured.precision;
  context.compute_efficiency = compute_efficiency;
  const Gemm gemm{measured.number("m"), measured.number("n"), measured.number("k"),
                  measured.number("batch")};
  return gemm_time(gemm, context);
}

/// The numbers of a GPU found from measurements.
struct ProbeFit {
  Device device;  ///< the base's with them
  std::vector<const GpuNumber*>
      fitted;  ///< the others of `gpu_numbers` that have measurements are not determined
  std::vector<std::string> kept;      ///< those others' keys
  std::vector<std::string> at_bound;  ///< keys that ended where they may not go beyond
  Score gemm, copy;
};

/// Fits the form of matrix products and the memory's efficiency and the kernel overhead (kernel_cost.hpp) together, by robust least
/// squares on the logarithms of the times. The overhead is held by the time of a kernel in a CUDA graph; without one it is the
/// base's. The form of products needs eight of them. `node` is the base's; its compute_efficiency stays, and is divided out.
ProbeFit fit_device(const NodeType& node, const Measurements& measurements) {
  ProbeFit result;
  result.device = node.device;
  Measurements used;
  const bool has_products = count_of(measurements, "gemm") >= least_products;
  for (const ProbeMeasurement& each : measurements)
    if ((each.kind == "gemm" && has_products) || each.kind == "copy" ||
        (each.kind == "launch" && each.word("name") == "graph"))
      used.push_back(each);
  std::vector<const GpuNumber*> numbers;
  std::vector<FittedConstant<Device>> constants;
  for (const GpuNumber& each : gpu_numbers) {
    if (count_of(used, each.kind) == 0) continue;
    numbers.push_back(&each);
    constants.push_back({each.key, each.set,
                         std::clamp(each.get(node.device), each.lower, each.upper), each.lower,
                         each.upper});
  }
  if (constants.empty()) return result;
  const auto residual = [&](const Device& device, const ProbeMeasurement& each) {
    return predict(device, node.compute_efficiency, each) / each.median;
  };
  ConstantSearch<Device> search(
      node.device, constants, std::vector<double>(used.size(), 1.0), [&](const Device& device) {
        return mapped(
            used, [&](const ProbeMeasurement& each) { return std::log(residual(device, each)); });
      });
  // From starts whose half sizes are smaller and larger than the base's.
  const RobustFit fit = search.best_fit(
      {1.0, 0.2, 5.0}, {1.0, 0.2, 5.0}, [](const std::string& key, double inner, double wave) {
        return key == "gemm/inner_half_size" ? inner : key == "gemm/wave_half_size" ? wave : 1.0;
      });
  std::vector<double> values = fit.values;
  for (std::size_t i = 0; i < constants.size(); ++i) {
    if (total(fit.sensitivities[i]) < least_sensitivity) {
      result.kept.push_back(constants[i].key);
      values[i] = constants[i].start;
      continue;
    }
    result.fitted.push_back(numbers[i]);
    if (constants[i].upper <= 1 && values[i] >= constants[i].upper * near_bound)
      result.at_bound.push_back(constants[i].key);
  }
  result.device = search.with(values);
  const auto error_of = [&](std::string_view kind) {
    std::vector<double> errors;
    for (const ProbeMeasurement& each : used)
      if (each.kind == kind) errors.push_back(residual(result.device, each) - 1);
    return errors.empty() ? Score{} : score_errors(errors);
  };
  result.gemm = error_of("gemm");
  result.copy = error_of("copy");
  return result;
}

/// A rate and what each call costs besides it:  t = overhead + bytes / rate.
struct StreamFit {
  BytesPerSecond rate{};
  std::string text;      ///< "3 sizes, 1.2 % error"
  bool is_held = false;  ///< whether the times depend on the rate at all
};
/// Fits the calls of one codec in one direction, at two sizes or more.
StreamFit fit_stream(const Measurements& calls) {
  const auto [least, most] = std::ranges::minmax_element(calls, {}, &ProbeMeasurement::bytes);
  constexpr double range = 1e4, least_overhead = 1e-8;
  const double rate = most->bytes / most->median / 1_GBps;
  FitProblem problem;
  problem.weights.assign(calls.size(), 1.0);
  problem.start = {rate, std::max(least->median / 1_s / 2, least_overhead * 2)};
  problem.lower = {rate / range, least_overhead};
  problem.upper = {rate * range, std::max(least->median / 1_s, least_overhead) * 2};
  const auto ratio = [](const std::vector<double>& values, const ProbeMeasurement& call) {
    return (Seconds{values[1]} + call.bytes / (1_GBps * values[0])) / call.median;
  };
  problem.residuals = [&](const std::vector<double>& values) {
    return mapped(calls,
                  [&](const ProbeMeasurement& call) { return std::log(ratio(values, call)); });
  };
  const RobustFit fit = robust_fit(problem);
  double error = 0;
  for (const ProbeMeasurement& call : calls)
    error += std::abs(ratio(fit.values, call) - 1) / static_cast<double>(calls.size());
  return {1_GBps * fit.values[0],
          std::to_string(calls.size()) + " sizes, " + percent_text(error) + " error",
          total(fit.sensitivities.front()) >= least_sensitivity};
}

/// A line on a measurement that no number of a platform holds.
struct UnplacedLine {
  std::string what, at,
      value;        ///< "attention forward, head 128", ", sequence 4096", "61.0 % of the peak"
  double size = 0;  ///< of lines of the same, the largest is shown
};

/// None where a platform has a number for it.
std::optional<UnplacedLine> line_of(const ProbeMeasurement& each, const Device& device) {
  const std::string rate = to_text(each.bytes / each.median), name = each.word("name"),
                    direction = each.word("direction");
  const double size = each.bytes / 1_B, bits = each.number("rate"), rank = each.number("rank");
  if (each.kind == "launch" && name == "stream")
    return UnplacedLine{"kernels issued by the host", "", to_text(each.median) + " each"};
  if (each.kind == "attention") {
    // A share of the peak. Forward: two products of s x s x d in each head, the half that the causal mask leaves; backward: five.
    const double sequence = each.number("sequence"), width = each.number("head_size");
    const Flops flops{(direction == "forward" ? 2 : 5) * each.number("batch") *
                      each.number("heads") * sequence * sequence * width};
    const auto peak = device.peak.find(each.precision);
    return UnplacedLine{"attention " + direction + ", head " + significant_text(width, 4),
                        ", sequence " + significant_text(sequence, 6),
                        peak == device.peak.end()
                            ? to_text(each.median)
                            : percent_text(flops / each.median / peak->second) + " of the peak",
                        sequence};
  }
  if (each.kind == "norm") return UnplacedLine{"layer norm", "", rate, size};
  if (each.kind == "optimizer")
    return UnplacedLine{"optimizer step (" + name + ")", "", rate, size};
  if (each.kind == "host_copy") return UnplacedLine{"copy " + direction, "", rate, size};
  if (name == "all_to_all")
    return UnplacedLine{"all_to_all, " + std::to_string(each.ranks) + " GPUs", "", rate + " a GPU",
                        size};
  if (each.kind != "codec") return {};
  return UnplacedLine{each.word("codec") +
                          (bits > 0 ? " " + significant_text(bits, 2) + " bits" : "") +
                          (rank > 0 ? " rank " + significant_text(rank, 3) : "") + " " + direction,
                      "", rate + " at " + to_text(each.bytes), size};
}

/// Files of the script, laid into a platform: the GPU, its codecs, the links inside a node, the network cards.
class ProbeImport : PlatformImport {
 public:
  using PlatformImport::PlatformImport;

  Imported run() {
    for (const auto& input : request_.inputs) read(input);
    problems_.throw_if_any();
    check_gpus();
    gpu_ = probes_.front().gpu.empty() ? "a GPU without a name" : probes_.front().gpu;
    device_ = &base_.only_device(library_);
    fit_gpu();
    write_codecs();
    fit_inside_node();
    fit_between_nodes();
    if (num_written_ == 0)
      throw option_error("import", "probe", file_ + " has nothing that a platform takes",
                         "run the script without stopping it, or with more --seconds");
    describe_document(" with what " + file_ + " measured");
    // Launches from the host, attention, norms, optimizer, copies from and to the host, all-to-all, codecs in plain PyTorch: a line each.
    std::vector<UnplacedLine> lines;  // in the order in which the largest of each come
    for (const ProbeMeasurement& each : measurements_) {
      const auto line = line_of(each, node().device);
      if (!line) continue;
      const auto known = std::ranges::find(lines, line->what, &UnplacedLine::what);
      if (known != lines.end() && known->size >= line->size) continue;
      if (known != lines.end()) lines.erase(known);
      lines.push_back(*line);
    }
    std::string unplaced;
    for (const UnplacedLine& line : lines)
      unplaced += "  " + left_aligned(line.what + line.at, 33) + " " + line.value + "\n";
    imported_.text =
        file_ + ": " + gpu_ + ", PyTorch " + probes_.front().torch + "; " +
        count_text(measurements_.size(), "measurement") + ", laid into " + base_.name() + "\n\n" +
        lines_ + "\n" + errors_ +
        (unplaced.empty() ? "" : "\nMeasured too; a platform has no number for it\n" + unplaced);
    imported_.found.set("measurements", json_of(measurements_.size()));
    return finished();
  }

 private:
  void read(const std::filesystem::path& input) {
    const std::string file = file_name_of(input);
    const std::size_t before = problems_.size();
    JsonValue document = parse_json(read_source_or_stdin(input), problems_);
    if (problems_.size() > before) return;
    ProbeFile probe = read_probe(document, problems_);
    if (problems_.size() > before) return;
    if (!probe.has_gpu)
      problems_.add({probe.device_origin, "/device",
                     "the script found no GPU: its numbers are those of a processor",
                     "run it where PyTorch sees the GPU (python3 -c \"import torch; "
                     "print(torch.cuda.is_available())\")"});
    for (const std::string& skipped : probe.skipped)
      note(file + ": left out by the script: " + skipped);
    measurements_.insert(measurements_.end(), probe.measurements.begin(), probe.measurements.end());
    probes_.push_back(std::move(probe));
  }

  /// Rates and efficiencies are shares of what the base's GPU could do, so that another model's have no place in it.
  void check_gpus() {
    const auto gpu_of = [](const ProbeFile& probe) {
      return NamedGpu{probe.gpu, probe.gpu_origin};
    };
    for (const Problem& problem : contradictions(mapped(probes_, gpu_of))) problems_.add(problem);
    for (const ProbeMeasurement& each : measurements_)
      if (each.kind == "gemm" && !node().device.peak.contains(each.precision)) {
        problem(each.origin,
                node().device.name + " has no peak rate for " + name_of(each.precision),
                "another base");
        break;
      }
    problems_.throw_if_any();
    for (const ProbeFile& probe : probes_)
      if (probe.multiprocessors > 0 && probe.multiprocessors != node().device.multiprocessors)
        warn("the GPU measured has " + std::to_string(probe.multiprocessors) +
             " multiprocessors, " + node().device.name + " has " +
             std::to_string(node().device.multiprocessors));
  }

  /// "measured: windtunnel probe on NVIDIA A100-SXM4-80GB, PyTorch 2.3, probe.json (12 products)"
  std::string source(const std::string& detail) const {
    const ProbeFile& first = probes_.front();
    return "measured: windtunnel probe on " + gpu_ + ", PyTorch " + first.torch +
           (first.driver.empty() ? "" : ", driver " + first.driver) + ", " + file_ + " (" + detail +
           ")";
  }
  /// Writes a number with its source, and shows it.
  void set(JsonValue& object, const std::string& key, JsonValue value, const std::string& detail,
           const std::string& shown) {
    set_number(object, key, std::move(value), source(detail));
    show(key, shown);
    ++num_written_;
  }
  void show(const std::string& key, const std::string& value) {
    lines_ += "  " + left_aligned(key, 22) + (key.size() < 22 ? "" : " ") + value + "\n";
  }

  // The GPU.

  void fit_gpu() {
    const ProbeFit fit = fit_device(node(), measurements_);
    for (const std::string& key : fit.at_bound)
      throw base_error(file_ + " was faster than " + node().device.name + " can be: " + key +
                           " would be 1 or more",
                       "another base");
    note_kept(fit.kept);
    for (const GpuNumber* number : fit.fitted) {
      const std::string key = number->key;
      const double value = number->get(fit.device);
      const std::size_t slash = key.find('/');
      if (slash == std::string::npos) {
        set(*device_, key, amount_text(value, "us"), "a kernel of a CUDA graph",
            to_text(fit.device.kernel_overhead));
        continue;
      }
      const bool is_gemm = number->kind == std::string_view("gemm");
      const Score& error = is_gemm ? fit.gemm : fit.copy;
      set(*device_->find(key.substr(0, slash)), key.substr(slash + 1), ratio_number(value),
          (is_gemm ? count_text(error.scored, "product")
                   : count_text(error.scored, "size") + " of copies") +
              ", " + percent_text(error.mape) + " error",
          significant_text(value, fitted_digits));
    }
    if (fit.gemm.scored == 0)
      note("too few matrix products for a fit: gemm is that of " + base_.name());
    say_error("products", "matrix products", fit.gemm);
    say_error("copies", "copies", fit.copy);
    for (const GpuNumber* number : fit.fitted)
      if (number->kind == std::string_view("launch"))
        imported_.found.set("kernel_overhead_s", JsonValue(fit.device.kernel_overhead / 1_s));
      else
        imported_.found.set(number->key, JsonValue(number->get(fit.device)));
  }

  void say_error(const std::string& what, const std::string& of_form, const Score& error) {
    if (error.mape > largest_trusted_error)
      warn("the form fits the " + of_form + " badly: " + percent_text(error.mape) + " on average");
    if (error.scored == 0) return;
    errors_ += "  " + what + ": error " + text_of(error) + "\n";
    imported_.found.set(what + "_mean_error", JsonValue(error.mape));
  }

  // Codecs: their speeds, and what a call of one costs.

  void write_codecs() {
    std::vector<Seconds> launches, steps;
    for (const ProbeMeasurement& each : measurements_)
      if (each.kind == "launch" && each.word("name") == "synchronized")
        launches.push_back(each.median);
    for (const ProbeMeasurement& each : calls_of("powersgd", "orthogonalize"))
      steps.push_back(each.median / each.number("rank"));
    JsonValue* codecs = device_->find("codecs");
    if (codecs == nullptr && launches.empty()) return;
    if (codecs == nullptr) codecs = &device_->set("codecs", empty_object());
    const auto set_time = [&](const char* key, const std::vector<Seconds>& times,
                              const std::string& detail) {
      if (times.empty()) return;
      const Seconds time = upper_median_of(times);
      set(*codecs, key, amount_text(time / 1_us, "us"), detail, to_text(time));
    };
    set_time("launch", launches, "a kernel and the wait for it");
    set_time("column_step", steps,
             "Gram-Schmidt in plain PyTorch, " + std::to_string(steps.size()) + " times");
    if (const auto fit = rate_of("topk", "encode"))
      set(*codecs, "selection", amount_text(fit->rate / 1_GBps, "GB/s"), "torch.topk, " + fit->text,
          to_text(fit->rate));
    const auto& known = node().device.codecs;
    if (known && known->mpc_encode) {
      raise(*codecs, "mpc_encode", *known->mpc_encode, "", rate_of("mpc_like", "encode"));
      raise(*codecs, "mpc_decode", *known->mpc_decode, "", rate_of("mpc_like", "decode"));
    }
    JsonValue* list = codecs->find("zfp");
    for (std::size_t i = 0; known && list != nullptr && i < known->zfp.size(); ++i) {
      const ZfpSpeed& speed = known->zfp[i];
      const std::string what = "zfp " + significant_text(speed.rate, 2) + " bits ";
      JsonValue& entry = list->array()[i];
      raise(entry, "encode", speed.encode, what, rate_of("zfp_like", "encode", speed.rate));
      raise(entry, "decode", speed.decode, what, rate_of("zfp_like", "decode", speed.rate));
    }
    if (!kept_rates_.empty())
      note("below what " + base_.name() +
           " has, and only a lower bound, since plain PyTorch launches dozens of kernels where a "
           "codec has one; kept: " +
           listed(kept_rates_));
  }

  Measurements calls_of(const std::string& codec, const std::string& direction,
                        double bits = 0) const {
    Measurements calls;
    for (const ProbeMeasurement& each : measurements_)
      if (each.word("codec") == codec && each.word("direction") == direction &&
          each.number("rate") == bits)
        calls.push_back(each);
    return calls;
  }

  /// Nothing where there are no two sizes, or where the times do not depend on them.
  std::optional<StreamFit> rate_of(const std::string& codec, const std::string& direction,
                                   double bits = 0) {
    const Measurements calls = calls_of(codec, direction, bits);
    const bool have_sizes = std::ranges::any_of(
        calls, [&](const ProbeMeasurement& call) { return call.bytes != calls.front().bytes; });
    if (!have_sizes) return std::nullopt;
    const StreamFit fit = fit_stream(calls);
    if (fit.is_held) return fit;
    note(codec + " " + direction + ": no rate, the times do not depend on the size");
    return std::nullopt;
  }

  /// A codec does in one kernel what plain PyTorch does in many: its rate is a lower bound, which replaces a smaller number.
  void raise(JsonValue& object, const std::string& key, BytesPerSecond known,
             const std::string& what, const std::optional<StreamFit>& fit) {
    if (!fit) return;
    if (fit->rate > known)
      set(object, key, amount_text(fit->rate / 1_GBps, "GB/s"),
          "lower bound: plain PyTorch, not the codec's own kernel; " + fit->text,
          what + to_text(fit->rate) + ", a lower bound");
    else
      kept_rates_.push_back(what + key + " " + to_text(fit->rate));
  }

  // Collectives.

  /// One run for each collective and group; `over_nodes` says whether those over several nodes.
  std::vector<NcclRun> runs(bool over_nodes) const {
    std::map<std::tuple<std::string, int, int>, NcclRun> by_group;
    for (const ProbeMeasurement& each : measurements_) {
      const std::string name = each.word("name");
      const CollectiveKind collective = collective_kind_of(name);
      if (each.kind != "collective" || collective == CollectiveKind::all_to_all ||
          (each.nodes > 1) != over_nodes)
        continue;
      NcclRun& run = by_group[{name, each.nodes, each.ranks}];
      run.collective = collective;
      run.ranks = each.ranks;
      run.nodes = each.nodes;
      run.times.push_back({each.bytes, each.median, each.origin});
    }
    return mapped(by_group, [](const auto& group) { return group.second; });
  }

  void check_width(const NcclRun& run) const {
    if (run.ranks / run.nodes > node().gpus)
      throw base_error("the collectives are of " + std::to_string(run.ranks / run.nodes) +
                           " GPUs a node, " + base_.name() + " has " + std::to_string(node().gpus),
                       "another base");
  }

  void fit_inside_node() {
    std::vector<NcclRun> inside = runs(false);
    for (const NcclRun& run : inside) check_width(run);
    std::erase_if(inside, [](const NcclRun& run) { return num_fitted_sizes(run) < least_sizes; });
    if (inside.empty()) return;
    const InterconnectFit fit = fit_interconnect(node().interconnect, inside);
    write_constants(*base_.only_node_type().find("interconnect"), node().interconnect, fit,
                    source("collectives inside a node, " + count_text(fit.error.scored, "time") +
                           " of 1 MiB and more, " + percent_text(fit.error.mape) + " error"));
    num_written_ += fit.fitted.size() + fit.bounded.size();
    note_kept(fit.kept);
    for (const auto& [key, value] : shown_constants(fit.interconnect)) show(key, value);
    errors_ += "  collectives inside a node: error " + text_of(fit.error) + "\n";
    imported_.found.set("saturated_bandwidth_bytes_per_s",
                        JsonValue(fit.interconnect.saturated_bandwidth / BytesPerSecond{1}));
  }

  /// A gather or scatter where there is one, over as many GPUs as there are: a ring, in which the cards show; an all-reduce over two nodes
  /// is a tree, in which the links inside may be slower.
  void fit_between_nodes() {
    std::vector<NcclRun> between = runs(true);
    std::erase_if(between, [](const NcclRun& run) { return num_fitted_sizes(run) == 0; });
    const auto best = std::ranges::max_element(between, {}, [](const NcclRun& run) {
      return std::pair(run.collective != CollectiveKind::all_reduce, run.ranks);
    });
    if (best == between.end()) return;
    check_width(*best);
    const CardRate found = card_rate(*best, base_.platform());
    if (found.efficiency > 1 || found.efficiency < least_efficiency)
      throw base_error("in " + file_ + " a node sends " + to_text(found.rate) +
                           " to others, where the network cards of " + base_.name() + " carry " +
                           to_text(node().nic_rate * found.cards),
                       "another base");
    if (!found.is_saturated)
      note(
          "the largest size between nodes does not saturate the network: its bus bandwidth is "
          "taken as it is");
    if (found.is_bound_inside && found.efficiency <= node().nic_efficiency)
      return note("between nodes the links inside set the pace: a node sent " +
                  to_text(found.rate) +
                  ", and its network cards carry at least that; nic_efficiency stays that of " +
                  base_.name());
    set(base_.only_node_type(), "nic_efficiency", ratio_number(found.efficiency),
        std::string(nccl_name_of(best->collective)) + " over " + count_text(best->nodes, "node") +
            ", " + found.algorithm + ", of which a node sends " + to_text(found.rate),
        significant_text(found.efficiency, fitted_digits));
    imported_.found.set("nic_efficiency", JsonValue(found.efficiency));
  }

  std::vector<ProbeFile> probes_;
  Measurements measurements_;  ///< of all files
  std::string gpu_;
  JsonValue* device_ = nullptr;  ///< in the document of the base
  std::size_t num_written_ = 0;
  std::string lines_;   ///< of the text: a key and its value each
  std::string errors_;  ///< of the fits, a line each
  std::vector<std::string> kept_rates_;
};

}  // namespace

Importer probe() {
  return {"probe",
          "what windtunnel probe --script measured, to a platform",
          "files of the script that windtunnel probe --script prints",
          {"--base"},
          import_by<ProbeImport>,
          Importer::Result::file,
          Importer::Files::several};
}

}  // namespace windtunnel::formats
