#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/count_text.hpp"
#include "core/file_io.hpp"
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

namespace windtunnel {
namespace {

/// Measurements of the script of `windtunnel probe` (tools/probe/probe.py writes the keys of each).
enum class ProbeKind {
  gemm,
  copy,        ///< inside the GPU's memory
  launch,      ///< of a kernel that does nothing: "stream", "synchronized" or "graph"
  attention,   ///< causal
  norm,        ///< of a layer
  optimizer,   ///< a step
  host_copy,   ///< between the memories of host and GPU
  codec,       ///< one call
  collective,  ///< one call; bytes of the whole tensor, as nccl-tests counts them
};

/// One measurement: what was run, and how long a call took. What a kind does not have is 0 or empty.
struct ProbeMeasurement {
  ProbeKind kind = ProbeKind::gemm;
  std::string name;       ///< of a launch, an optimizer, a collective or a codec
  std::string direction;  ///< "forward", "encode", "to_host", …
  Precision precision = Precision::bf16;
  Gemm gemm;
  double batch = 0, heads = 0, sequence = 0, head_size = 0;  ///< of attention
  double rank = 0;                                           ///< of PowerSGD
  double bits = 0;                                           ///< a value, of what is like zfp
  int ranks = 0, nodes = 0;
  Bytes bytes{};
  Seconds median{};
  Origin origin;
};

/// One file that the script wrote.
struct ProbeFile {
  enum class Device { cuda, cpu } device = Device::cuda;
  Origin device_origin, gpu_origin;
  std::string gpu, driver, torch;  ///< empty: not known
  int multiprocessors = 0;         ///< 0: not known
  std::vector<std::string> skipped;
  std::vector<ProbeMeasurement> measurements;
};

constexpr double most_bytes = 1e15, most_dimension = 1e9, most_seconds = 1e4;
constexpr double least_seconds = 1e-9;
constexpr int most_ranks = 1'000'000;

using Names = std::vector<std::pair<std::string, std::string>>;

/// One of a few words.
std::string word(ObjectReader& reader, const char* key, const std::vector<std::string>& words) {
  Names names;
  for (const std::string& each : words) names.emplace_back(each, each);
  return reader.required_enum(key, names);
}

double dimension(ObjectReader& reader, const char* key) {
  return reader.required_number(key, 1, most_dimension);
}

Bytes bytes_of(ObjectReader& reader) {
  return Bytes{reader.required_number("bytes", 1, most_bytes)};
}

Precision precision_of(ObjectReader& reader) {
  static const std::vector<std::pair<std::string, Precision>> names{
      {"fp16", Precision::fp16}, {"bf16", Precision::bf16}, {"fp32", Precision::fp32}};
  return reader.required_enum("precision", names);
}

void read_gemm(ObjectReader& reader, ProbeMeasurement& measured) {
  measured.precision = precision_of(reader);
  measured.gemm = {dimension(reader, "m"), dimension(reader, "n"), dimension(reader, "k"),
                   dimension(reader, "batch")};
}

void read_attention(ObjectReader& reader, ProbeMeasurement& measured) {
  measured.direction = word(reader, "direction", {"forward", "backward"});
  measured.precision = precision_of(reader);
  measured.batch = dimension(reader, "batch");
  measured.heads = dimension(reader, "heads");
  measured.sequence = dimension(reader, "sequence");
  measured.head_size = dimension(reader, "head_size");
}

void read_codec(ObjectReader& reader, ProbeMeasurement& measured) {
  measured.name = word(reader, "codec", {"powersgd", "topk", "int8", "mpc_like", "zfp_like"});
  measured.direction = word(reader, "direction", {"encode", "decode", "orthogonalize"});
  measured.bytes = bytes_of(reader);
  constexpr double least_density = 1e-9, most_bits = 64;
  if (measured.name == "powersgd") {
    for (const char* key : {"rows", "columns"}) dimension(reader, key);
    measured.rank = dimension(reader, "rank");
  }
  if (measured.name == "topk") reader.required_number("density", least_density, 1);
  if (measured.name == "zfp_like") measured.bits = reader.required_number("rate", 1, most_bits);
}

void read_collective(ObjectReader& reader, ProbeMeasurement& measured) {
  measured.name =
      word(reader, "name", {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"});
  measured.ranks = reader.required_int("ranks", 2, most_ranks);
  measured.nodes = reader.required_int("nodes", 1, most_ranks);
  measured.bytes = bytes_of(reader);
  if (measured.ranks % measured.nodes != 0 && reader.are_sound({"ranks", "nodes"}))
    reader.problem("ranks", std::to_string(measured.ranks) + " ranks do not divide among " +
                                std::to_string(measured.nodes) + " nodes");
}

void read_other(ObjectReader& reader, ProbeMeasurement& measured) {
  if (measured.kind == ProbeKind::launch)
    measured.name = word(reader, "name", {"stream", "synchronized", "graph"});
  else
    measured.bytes = bytes_of(reader);
  if (measured.kind == ProbeKind::norm)
    for (const char* key : {"rows", "hidden"}) dimension(reader, key);
  if (measured.kind == ProbeKind::optimizer) {
    measured.name = word(reader, "name", {"adam", "adam_fused"});
    reader.required_number("parameters", 1, most_bytes);
  }
  if (measured.kind == ProbeKind::host_copy)
    measured.direction = word(reader, "direction", {"to_device", "to_host"});
}

ProbeMeasurement read_measurement(ObjectReader& reader) {
  static const std::vector<std::pair<std::string, ProbeKind>> kinds{
      {"gemm", ProbeKind::gemm},
      {"copy", ProbeKind::copy},
      {"launch", ProbeKind::launch},
      {"attention", ProbeKind::attention},
      {"norm", ProbeKind::norm},
      {"optimizer", ProbeKind::optimizer},
      {"host_copy", ProbeKind::host_copy},
      {"codec", ProbeKind::codec},
      {"collective", ProbeKind::collective}};
  ProbeMeasurement measured;
  measured.origin = reader.value().origin;
  const std::size_t problems = reader.problems().size();
  measured.kind = reader.required_enum("kind", kinds);
  if (reader.problems().size() > problems) return measured;  // what else it has, nobody knows
  const auto read = measured.kind == ProbeKind::gemm         ? read_gemm
                    : measured.kind == ProbeKind::attention  ? read_attention
                    : measured.kind == ProbeKind::codec      ? read_codec
                    : measured.kind == ProbeKind::collective ? read_collective
                                                             : read_other;
  read(reader, measured);
  measured.median = Seconds{reader.required_number("median_s", least_seconds, most_seconds)};
  reader.required_number("spread_s", 0, most_seconds);  // between the quartiles
  reader.required_int("count", 1, 1'000'000);           // samples
  reader.reject_unknown_keys();
  return measured;
}

void read_measurements(ObjectReader& root, ProbeFile& file) {
  root.require("measurements", "the list of what was measured");
  for (ObjectReader& each :
       root.entries("measurements", "no measurements: the run may have been stopped"))
    file.measurements.push_back(read_measurement(each));
}

void read_skipped(ObjectReader& root, ProbeFile& file) {
  JsonValue* list = root.take("skipped");
  if (list == nullptr) return;
  if (!list->is_array()) return root.problem("skipped", "expected a list of texts");
  for (const JsonValue& each : list->array()) {
    if (!each.is_string()) return root.problem("skipped", "expected a list of texts");
    file.skipped.push_back(each.string());
  }
}

Origin origin_of(const JsonValue& document, const char* key) {
  const JsonValue* value = document.find(key);
  return value == nullptr ? document.origin : value->origin;
}

/// Reads a file of schema windtunnel/probe-v1.
ProbeFile read_probe(JsonValue& document, Problems& problems) {
  ObjectReader root(document, {}, problems);
  ProbeFile file;
  const std::size_t before = problems.size();
  word(root, "schema", {"windtunnel/probe-v1"});
  if (problems.size() > before) return file;
  file.device_origin = origin_of(document, "device");
  file.gpu_origin = origin_of(document, "gpu");
  file.device = root.required_enum<ProbeFile::Device>(
      "device", {{"cuda", ProbeFile::Device::cuda}, {"cpu", ProbeFile::Device::cpu}});
  file.gpu = root.optional_string("gpu", "");
  file.driver = root.optional_string("driver", "");
  file.torch = root.required_string("torch");
  for (const char* key : {"cuda", "nccl", "python"}) root.optional_string(key, "");
  file.multiprocessors = root.optional_int("multiprocessors", 0, 0, 100'000);
  root.optional_number("memory_bytes", 0, 0, most_bytes);
  precision_of(root);
  for (const char* key : {"ranks", "nodes"}) root.required_int(key, 1, most_ranks);
  root.optional_number("budget_s", 0, 0, most_seconds);
  root.optional_number("elapsed_s", 0, 0, most_seconds);
  read_skipped(root, file);
  read_measurements(root, file);
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
  ProbeKind kind;
  double lower, upper;
  double (*get)(const Device&);
  void (*set)(Device&, double);
};
constexpr GpuNumber gpu_numbers[]{{"gemm/peak_fraction", ProbeKind::gemm, 0.01, 1,
                                   [](const Device& d) { return d.gemm.peak_fraction; },
                                   [](Device& d, double x) { d.gemm.peak_fraction = x; }},
                                  {"gemm/inner_half_size", ProbeKind::gemm, 1, 1e4,
                                   [](const Device& d) { return d.gemm.inner_half_size; },
                                   [](Device& d, double x) { d.gemm.inner_half_size = x; }},
                                  {"gemm/wave_half_size", ProbeKind::gemm, 1e-3, 30,
                                   [](const Device& d) { return d.gemm.wave_half_size; },
                                   [](Device& d, double x) { d.gemm.wave_half_size = x; }},
                                  {"memory/bandwidth_efficiency", ProbeKind::copy, 0.01, 1,
                                   [](const Device& d) { return d.memory_efficiency; },
                                   [](Device& d, double x) { d.memory_efficiency = x; }},
                                  {"kernel_overhead", ProbeKind::launch, 0.05, 200,
                                   [](const Device& d) { return d.kernel_overhead / 1_us; },
                                   [](Device& d, double x) { d.kernel_overhead = 1_us * x; }}};

std::ptrdiff_t count_of(const Measurements& measurements, ProbeKind kind) {
  return std::count_if(measurements.begin(), measurements.end(),
                       [kind](const ProbeMeasurement& each) { return each.kind == kind; });
}

Seconds predict(const Device& device, double compute_efficiency, const ProbeMeasurement& measured) {
  if (measured.kind == ProbeKind::launch) return device.kernel_overhead;
  if (measured.kind == ProbeKind::copy)
    return memory_time(measured.bytes, device) + device.kernel_overhead;
  KernelContext context;
  context.device = &device;
  context.precision = measured.precision;
  context.compute_efficiency = compute_efficiency;
  return gemm_time(measured.gemm, context);
}

/// The numbers of a GPU found from measurements.
struct ProbeFit {
  Device device;  ///< the base's with them
  std::vector<const GpuNumber*>
      fitted;  ///< the others of `gpu_numbers` that have measurements are not determined
  std::vector<std::string> kept;      ///< those others' keys
  std::vector<std::string> at_bound;  ///< keys that ended where they may not go beyond
  FitError gemm, copy;
};

/// Fits the form of matrix products and the memory's efficiency and the kernel overhead (kernel_cost.hpp) together, by robust least
/// squares on the logarithms of the times. The overhead is held by the time of a kernel in a CUDA graph; without one it is the
/// base's. The form of products needs eight of them. `node` is the base's; its compute_efficiency stays, and is divided out.
ProbeFit fit_device(const NodeType& node, const Measurements& measurements) {
  ProbeFit result;
  result.device = node.device;
  Measurements used;
  const bool has_products = count_of(measurements, ProbeKind::gemm) >= least_products;
  for (const ProbeMeasurement& each : measurements)
    if ((each.kind == ProbeKind::gemm && has_products) || each.kind == ProbeKind::copy ||
        (each.kind == ProbeKind::launch && each.name == "graph"))
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
  ConstantSearch<Device> search(node.device, constants, std::vector<double>(used.size(), 1.0),
                                [&](const Device& device) {
                                  std::vector<double> residuals;
                                  for (const ProbeMeasurement& each : used)
                                    residuals.push_back(std::log(residual(device, each)));
                                  return residuals;
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
  const auto error_of = [&](ProbeKind kind) {
    std::vector<double> errors;
    for (const ProbeMeasurement& each : used)
      if (each.kind == kind) errors.push_back(residual(result.device, each) - 1);
    return fit_error(errors);
  };
  result.gemm = error_of(ProbeKind::gemm);
  result.copy = error_of(ProbeKind::copy);
  return result;
}

/// A rate and what each call costs beside it:  t = overhead + bytes / rate.
struct StreamFit {
  BytesPerSecond rate{};
  std::string text;      ///< "3 sizes, 1.2 % error"
  bool is_held = false;  ///< whether the times depend on the rate at all
};
/// Of the calls of one codec in one direction, at two sizes or more.
StreamFit fit_stream(const Measurements& calls) {
  const auto [least, most] = std::minmax_element(
      calls.begin(), calls.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
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
    std::vector<double> residuals;
    for (const ProbeMeasurement& call : calls) residuals.push_back(std::log(ratio(values, call)));
    return residuals;
  };
  const RobustFit fit = robust_fit(problem);
  double error = 0;
  for (const ProbeMeasurement& call : calls)
    error += std::abs(ratio(fit.values, call) - 1) / static_cast<double>(calls.size());
  return {1_GBps * fit.values[0],
          std::to_string(calls.size()) + " sizes, " + percent_text(error) + " error",
          total(fit.sensitivities.front()) >= least_sensitivity};
}

std::string line_of(const std::string& what, const std::string& value) {
  constexpr std::size_t width = 34;
  const std::string space(what.size() < width ? width - what.size() : 1, ' ');
  return "  " + what + space + value + "\n";
}

/// Forward: two products of s x s x d in each head, the half that the causal mask leaves; backward: five.
Flops attention_flops(const ProbeMeasurement& each) {
  const double products = each.direction == "forward" ? 2 : 5;
  return Flops{products * each.batch * each.heads * each.sequence * each.sequence * each.head_size};
}

std::string attention_text(const ProbeMeasurement& each, const Device& device) {
  const std::string what = "attention " + each.direction + ", head " +
                           significant_text(each.head_size, 4) + ", sequence " +
                           significant_text(each.sequence, 6);
  const auto peak = device.peak.find(each.precision);
  if (peak == device.peak.end()) return line_of(what, to_text(each.median));
  const double share = attention_flops(each) / each.median / peak->second;
  return line_of(what, percent_text(share) + " of the peak");
}

std::string name_of_codec(const ProbeMeasurement& each) {
  return each.name + (each.bits > 0 ? " " + significant_text(each.bits, 2) + " bits" : "") +
         (each.rank > 0 ? " rank " + significant_text(each.rank, 3) : "") + " " + each.direction;
}

/// What a line says is measured at; the largest size where there are several.
std::string key_of(const ProbeMeasurement& each) {
  switch (each.kind) {
    case ProbeKind::attention:
      return "attention " + each.direction + std::to_string(each.head_size);
    case ProbeKind::codec:
      return "codec " + name_of_codec(each);
    case ProbeKind::collective:
      return each.name + std::to_string(each.ranks);
    default:
      return std::to_string(static_cast<int>(each.kind)) + each.name + each.direction;
  }
}

double size_of(const ProbeMeasurement& each) {
  return each.kind == ProbeKind::attention ? each.sequence : each.bytes / 1_B;
}

bool has_line(const ProbeMeasurement& each) {
  if (each.kind == ProbeKind::launch) return each.name == "stream";
  if (each.kind == ProbeKind::collective) return each.name == "all_to_all";
  return each.kind != ProbeKind::gemm && each.kind != ProbeKind::copy;
}

std::string text_of(const ProbeMeasurement& each, const Device& device) {
  const std::string rate = to_text(each.bytes / each.median);
  switch (each.kind) {
    case ProbeKind::launch:
      return line_of("kernels issued by the host", to_text(each.median) + " each");
    case ProbeKind::attention:
      return attention_text(each, device);
    case ProbeKind::norm:
      return line_of("layer norm", rate);
    case ProbeKind::optimizer:
      return line_of("optimizer step (" + each.name + ")", rate);
    case ProbeKind::host_copy:
      return line_of("copy " + each.direction, rate);
    case ProbeKind::collective:
      return line_of("all_to_all, " + std::to_string(each.ranks) + " GPUs", rate + " a GPU");
    default:
      return line_of(name_of_codec(each), rate + " at " + to_text(each.bytes));
  }
}

/// What was measured and has no number in a platform file, a line each: launches from the host, attention as a share of the peak,
/// norms, optimizer, copies from and to the host, all-to-all, codecs in plain PyTorch.
std::string unplaced_text(const Measurements& measurements, const Device& device) {
  std::map<std::string, const ProbeMeasurement*> largest;
  for (const ProbeMeasurement& each : measurements) {
    if (!has_line(each)) continue;
    const ProbeMeasurement*& known = largest[key_of(each)];
    if (known == nullptr || size_of(each) > size_of(*known)) known = &each;
  }
  std::string text;
  for (const ProbeMeasurement& each : measurements)
    if (has_line(each) && largest[key_of(each)] == &each) text += text_of(each, device);
  return text;
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
    const std::string unplaced = unplaced_text(measurements_, node().device);
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
    if (probe.device == ProbeFile::Device::cpu)
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
    std::vector<NamedGpu> named;
    for (const ProbeFile& probe : probes_) named.push_back({probe.gpu, probe.gpu_origin});
    for (const Problem& problem : contradictions(named)) problems_.add(problem);
    for (const ProbeMeasurement& each : measurements_)
      if (each.kind == ProbeKind::gemm && !node().device.peak.contains(each.precision)) {
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
    for (const GpuNumber* number : fit.fitted) write_gpu(*number, fit);
    if (fit.gemm.count == 0)
      note("too few matrix products for a fit: gemm is that of " + base_.name());
    say_error("products", "matrix products", fit.gemm);
    say_error("copies", "copies", fit.copy);
    for (const GpuNumber* number : fit.fitted)
      if (number->kind == ProbeKind::launch)
        imported_.found.set("kernel_overhead_s", JsonValue(fit.device.kernel_overhead / 1_s));
      else
        imported_.found.set(number->key, JsonValue(number->get(fit.device)));
  }

  void write_gpu(const GpuNumber& number, const ProbeFit& fit) {
    const std::string key = number.key;
    if (number.kind == ProbeKind::launch)
      return set(*device_, key, amount_text(number.get(fit.device), "us"),
                 "a kernel of a CUDA graph", to_text(fit.device.kernel_overhead));
    const std::size_t slash = key.find('/');
    const FitError& error = number.kind == ProbeKind::gemm ? fit.gemm : fit.copy;
    set(*device_->find(key.substr(0, slash)), key.substr(slash + 1),
        ratio_number(number.get(fit.device)),
        (number.kind == ProbeKind::gemm ? count_text(error.count, "product")
                                        : count_text(error.count, "size") + " of copies") +
            ", " + percent_text(error.mean) + " error",
        significant_text(number.get(fit.device), fitted_digits));
  }

  void say_error(const std::string& what, const std::string& of_form, const FitError& error) {
    if (error.mean > largest_trusted_error)
      warn("the form fits the " + of_form + " badly: " + percent_text(error.mean) + " on average");
    if (error.count == 0) return;
    errors_ += "  " + what + ": error " + text_of(error) + "\n";
    imported_.found.set(what + "_mean_error", JsonValue(error.mean));
  }

  // Codecs: their speeds, and what a call of one costs.

  void write_codecs() {
    std::vector<Seconds> launches, steps;
    for (const ProbeMeasurement& each : measurements_)
      if (each.kind == ProbeKind::launch && each.name == "synchronized")
        launches.push_back(each.median);
    for (const ProbeMeasurement& each : calls_of("powersgd", "orthogonalize"))
      steps.push_back(each.median / each.rank);
    JsonValue* codecs = device_->find("codecs");
    if (codecs == nullptr && launches.empty()) return;
    if (codecs == nullptr) codecs = &device_->set("codecs", JsonValue(JsonValue::Object{}));
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
    raise_rates(*codecs);
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
      if (each.kind == ProbeKind::codec && each.name == codec && each.direction == direction &&
          each.bits == bits)
        calls.push_back(each);
    return calls;
  }

  /// Nothing where there are no two sizes, or where the times do not depend on them.
  std::optional<StreamFit> rate_of(const std::string& codec, const std::string& direction,
                                   double bits = 0) {
    const Measurements calls = calls_of(codec, direction, bits);
    std::set<double> sizes;
    for (const ProbeMeasurement& call : calls) sizes.insert(call.bytes / 1_B);
    if (sizes.size() < 2) return std::nullopt;
    const StreamFit fit = fit_stream(calls);
    if (fit.is_held) return fit;
    note(codec + " " + direction + ": no rate, the times do not depend on the size");
    return std::nullopt;
  }

  /// What plain PyTorch does in many kernels a codec does in one: its rate is a lower bound, which replaces a smaller number.
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

  void raise_rates(JsonValue& codecs) {
    const auto& known = node().device.codecs;
    if (!known) return;
    if (known->mpc_encode) {
      raise(codecs, "mpc_encode", *known->mpc_encode, "", rate_of("mpc_like", "encode"));
      raise(codecs, "mpc_decode", *known->mpc_decode, "", rate_of("mpc_like", "decode"));
    }
    JsonValue* list = codecs.find("zfp");
    for (std::size_t i = 0; list != nullptr && i < known->zfp.size(); ++i) {
      const ZfpSpeed& speed = known->zfp[i];
      const std::string what = "zfp " + significant_text(speed.rate, 2) + " bits ";
      JsonValue& entry = list->array()[i];
      raise(entry, "encode", speed.encode, what, rate_of("zfp_like", "encode", speed.rate));
      raise(entry, "decode", speed.decode, what, rate_of("zfp_like", "decode", speed.rate));
    }
  }

  // Collectives.

  /// One run for each collective and group; `over_nodes` says whether those over several nodes.
  std::vector<NcclRun> runs(bool over_nodes) const {
    std::map<std::pair<std::string, std::pair<int, int>>, NcclRun> by_group;
    for (const ProbeMeasurement& each : measurements_) {
      const CollectiveKind collective = collective_kind_of(each.name);
      if (each.kind != ProbeKind::collective || collective == CollectiveKind::all_to_all ||
          (each.nodes > 1) != over_nodes)
        continue;
      NcclRun& run = by_group[{each.name, {each.nodes, each.ranks}}];
      run.collective = collective;
      run.ranks = each.ranks;
      run.nodes = each.nodes;
      run.times.push_back({each.bytes, each.median, each.origin});
    }
    std::vector<NcclRun> result;
    for (auto& [key, run] : by_group) result.push_back(std::move(run));
    return result;
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
                    source("collectives inside a node, " + count_text(fit.error.count, "time") +
                           " of 1 MiB and more, " + percent_text(fit.error.mean) + " error"));
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
    const std::vector<NcclRun> between = runs(true);
    const NcclRun* best = nullptr;
    for (const NcclRun& run : between) {
      const auto weight = [](const NcclRun& each) {
        return std::pair(each.collective != CollectiveKind::all_reduce, each.ranks);
      };
      if (num_fitted_sizes(run) > 0 && (best == nullptr || weight(run) > weight(*best)))
        best = &run;
    }
    if (best == nullptr) return;
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

namespace formats {
Importer probe() {
  return {"probe",
          "what windtunnel probe --script measured, to a platform",
          "files of the script that windtunnel probe --script prints",
          {"--base"},
          import_by<ProbeImport>,
          Importer::Result::file,
          Importer::Files::several};
}
}  // namespace formats

}  // namespace windtunnel
