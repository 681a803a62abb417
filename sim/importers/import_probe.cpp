#include <algorithm>
#include <map>
#include <utility>

#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/option_error.hpp"
#include "importers/base_platform.hpp"
#include "importers/fitted_interconnect.hpp"
#include "importers/gpu_comparison.hpp"
#include "importers/importer.hpp"
#include "importers/probe_codecs.hpp"
#include "importers/probe_file.hpp"
#include "importers/probe_fit.hpp"
#include "importers/probe_numbers.hpp"
#include "importers/probe_text.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr double largest_trusted_error = 0.15;  ///< of a fit, on average; beyond, a warning
constexpr double least_efficiency = 0.01;       ///< of network cards; less is something else

/// Files of the script, laid into a platform: the GPU, its codecs, the links inside a node, the network cards.
class ProbeImport {
 public:
  ProbeImport(const ImportRequest& request, const Library& library)
      : request_(&request), library_(&library), base_(request.options.base, library) {}

  Imported run() {
    for (const auto& input : request_->inputs) read(input);
    problems_.throw_if_any();
    check_gpus();
    numbers_.gpu = probes_.front().gpu.empty() ? "a GPU without a name" : probes_.front().gpu;
    numbers_.torch = probes_.front().torch;
    numbers_.driver = probes_.front().driver;
    JsonValue& document = base_.document();
    const std::string base_name = base_.name();
    document.set("name", JsonValue(request_->output.stem().string()));
    device_ = &base_.only_device(*library_);
    fit_gpu();
    write_probed_codecs(numbers_, *device_, node().device, base_name, measurements_);
    fit_inside_node();
    fit_between_nodes();
    if (numbers_.count == 0)
      throw option_error("import", "probe", numbers_.files + " has nothing that a platform takes",
                         "run the script without stopping it, or with more --seconds");
    document.set("description",
                 JsonValue(base_name + " with what " + numbers_.files + " measured"));
    finish_text();
    imported_.document = document;
    imported_.notes = std::move(numbers_.notes);
    read_back(document, *library_);
    return std::move(imported_);
  }

 private:
  void note(std::string text) { numbers_.notes.push_back(std::move(text)); }
  const NodeType& node() const { return base_.only_node(); }

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
    numbers_.files += (numbers_.files.empty() ? "" : ", ") + file;
    measurements_.insert(measurements_.end(), probe.measurements.begin(), probe.measurements.end());
    probes_.push_back(std::move(probe));
  }

  /// Rates and efficiencies are shares of what the base's GPU could do, so that another model's have no place in it.
  void check_gpus() {
    std::vector<NamedGpu> named;
    for (const ProbeFile& probe : probes_) named.push_back({probe.gpu, probe.gpu_origin});
    const GpuComparison comparison = compare_gpus(named, base_, *library_);
    for (const Problem& problem : comparison.contradictions) problems_.add(problem);
    imported_.warnings = comparison.unknown;
    for (const ProbeMeasurement& each : measurements_)
      if (each.kind == ProbeKind::gemm && !node().device.peak.contains(each.precision)) {
        problems_.add({each.origin,
                       {},
                       node().device.name + " has no peak rate for " + name_of(each.precision),
                       "another base"});
        break;
      }
    problems_.throw_if_any();
    for (const ProbeFile& probe : probes_)
      if (probe.multiprocessors > 0 && probe.multiprocessors != node().device.multiprocessors)
        imported_.warnings.push_back(
            "the GPU measured has " + std::to_string(probe.multiprocessors) + " multiprocessors, " +
            node().device.name + " has " + std::to_string(node().device.multiprocessors));
  }

  // The GPU.

  void fit_gpu() {
    const ProbeFit fit = fit_device(node(), measurements_);
    for (const std::string& key : fit.at_bound)
      throw option_error("--base", request_->options.base,
                         numbers_.files + " was faster than " + node().device.name +
                             " can be: " + key + " would be 1 or more",
                         "another base");
    for (const std::string& key : fit.kept)
      note(key + " is that of " + base_.name() + ": no time depends on it");
    for (const std::string& key : fit.fitted) write_gpu(key, fit);
    if (fit.gemm.count == 0)
      note("too few matrix products for a fit: gemm is that of " + base_.name());
    warn_of_error("matrix products", fit.gemm);
    warn_of_error("copies", fit.copy);
    describe(fit);
  }

  void write_gpu(const std::string& key, const ProbeFit& fit) {
    const std::string products =
        count_text(fit.gemm.count, "product") + ", " + percent_text(fit.gemm.mean) + " error";
    const Device& found = fit.device;
    const auto set_ratio = [&](const char* object, const char* name, double value,
                               const std::string& detail) {
      numbers_.set(*device_->find(object), name, ratio_number(value), detail,
                   significant_text(value, 4));
    };
    if (key == "gemm/peak_fraction")
      set_ratio("gemm", "peak_fraction", found.gemm.peak_fraction, products);
    else if (key == "gemm/inner_half_size")
      set_ratio("gemm", "inner_half_size", found.gemm.inner_half_size, products);
    else if (key == "gemm/wave_half_size")
      set_ratio("gemm", "wave_half_size", found.gemm.wave_half_size, products);
    else if (key == "memory/bandwidth_efficiency")
      set_ratio("memory", "bandwidth_efficiency", found.memory_efficiency,
                count_text(fit.copy.count, "size") + " of copies, " + percent_text(fit.copy.mean) +
                    " error");
    else
      numbers_.set(*device_, key, amount_text(found.kernel_overhead / 1_us, "us"),
                   "a kernel of a CUDA graph", to_text(found.kernel_overhead));
  }

  void warn_of_error(const std::string& what, const ProbeError& error) {
    if (error.mean > largest_trusted_error)
      imported_.warnings.push_back("the form fits the " + what +
                                   " badly: " + percent_text(error.mean) + " on average");
  }

  void describe(const ProbeFit& fit) {
    const auto add = [&](const std::string& what, const ProbeError& error) {
      if (error.count == 0) return;
      errors_ += "  " + what + ": error " + percent_text(error.mean) + " on average, " +
                 percent_text(error.worst) + " at most, over " + std::to_string(error.count) + "\n";
      imported_.found.set(what + "_mean_error", JsonValue(error.mean));
    };
    add("products", fit.gemm);
    add("copies", fit.copy);
    for (const std::string& key : fit.fitted) {
      const GemmEfficiency& gemm = fit.device.gemm;
      const double value = key == "gemm/peak_fraction"     ? gemm.peak_fraction
                           : key == "gemm/inner_half_size" ? gemm.inner_half_size
                           : key == "gemm/wave_half_size"  ? gemm.wave_half_size
                           : key == "memory/bandwidth_efficiency"
                               ? fit.device.memory_efficiency
                               : fit.device.kernel_overhead / 1_s;
      imported_.found.set(key == "kernel_overhead" ? "kernel_overhead_s" : key, JsonValue(value));
    }
  }

  // Collectives.

  /// One run for each collective and group; `over_nodes` says whether those over several nodes.
  std::vector<NcclRun> runs(bool over_nodes) const {
    static const std::map<std::string, NcclCollective> modelled{
        {"all_reduce", NcclCollective::all_reduce},
        {"all_gather", NcclCollective::all_gather},
        {"reduce_scatter", NcclCollective::reduce_scatter}};
    std::map<std::pair<std::string, std::pair<int, int>>, NcclRun> by_group;
    for (const ProbeMeasurement& each : measurements_) {
      const auto collective = modelled.find(each.name);
      if (each.kind != ProbeKind::collective || collective == modelled.end() ||
          (each.nodes > 1) != over_nodes)
        continue;
      NcclRun& run = by_group[{each.name, {each.nodes, each.ranks}}];
      run.collective = collective->second;
      run.ranks = each.ranks;
      run.nodes = each.nodes;
      run.times.push_back({each.bytes, each.median, each.origin});
    }
    std::vector<NcclRun> result;
    for (auto& [key, run] : by_group) result.push_back(std::move(run));
    return result;
  }

  void check_width(const NcclRun& run) const {
    if (run.ranks / run.nodes <= node().gpus) return;
    throw option_error("--base", request_->options.base,
                       "the collectives are of " + std::to_string(run.ranks / run.nodes) +
                           " GPUs a node, " + base_.name() + " has " + std::to_string(node().gpus),
                       "another base");
  }

  void fit_inside_node() {
    std::vector<NcclRun> inside = runs(false);
    for (const NcclRun& run : inside) check_width(run);
    std::erase_if(inside, [](const NcclRun& run) { return num_fitted_sizes(run) < least_sizes; });
    if (inside.empty()) return;
    const InterconnectFit fit = fit_interconnect(node().interconnect, inside);
    JsonValue& object = *base_.only_node_type().find("interconnect");
    const std::string detail = "collectives inside a node, " + count_text(num_fitted(fit), "time") +
                               " of 1 MiB and more, " + percent_text(mean_error(fit)) + " error";
    write_constants(object, node().interconnect, fit, numbers_.source(detail));
    numbers_.count += static_cast<int>(fit.fitted.size() + fit.bounded.size());
    for (const std::string& key : fit.kept)
      note(key + " is that of " + base_.name() + ": no time depends on it");
    const Interconnect& found = fit.interconnect;
    numbers_.show("saturated_bandwidth", to_text(found.saturated_bandwidth));
    numbers_.show("group_loss", significant_text(found.group_loss, 4));
    numbers_.show("floor_base", to_text(found.floor_base));
    numbers_.show("floor_per_gpu", to_text(found.floor_per_gpu));
    numbers_.show("half_size", to_text(found.half_size));
    numbers_.show("sharpness", significant_text(found.sharpness, 4));
    errors_ += "  collectives inside a node: error " + percent_text(mean_error(fit)) +
               " on average, " + percent_text(worst_error(fit)) + " at most, over " +
               std::to_string(num_fitted(fit)) + "\n";
    imported_.found.set("saturated_bandwidth_bytes_per_s",
                        JsonValue(found.saturated_bandwidth / BytesPerSecond{1}));
  }

  /// A gather or scatter where there is one, over as many GPUs as there are: a ring, in which the cards show; an all-reduce over two nodes
  /// is a tree, in which the links inside may be slower.
  void fit_between_nodes() {
    const std::vector<NcclRun> between = runs(true);
    const NcclRun* best = nullptr;
    for (const NcclRun& run : between) {
      const auto weight = [](const NcclRun& each) {
        return std::pair(each.collective != NcclCollective::all_reduce, each.ranks);
      };
      if (num_fitted_sizes(run) > 0 && (best == nullptr || weight(run) > weight(*best)))
        best = &run;
    }
    if (best == nullptr) return;
    check_width(*best);
    const CardRate found = card_rate(*best, base_.platform());
    if (found.efficiency > 1 || found.efficiency < least_efficiency)
      throw option_error("--base", request_->options.base,
                         "in " + numbers_.files + " a node sends " + to_text(found.rate) +
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
    numbers_.set(base_.only_node_type(), "nic_efficiency", ratio_number(found.efficiency),
                 std::string(name_of(best->collective)) + " over " +
                     count_text(best->nodes, "node") + ", " + found.algorithm +
                     ", of which a node sends " + to_text(found.rate),
                 significant_text(found.efficiency, 4));
    imported_.found.set("nic_efficiency", JsonValue(found.efficiency));
  }

  void finish_text() {
    const std::string unplaced = unplaced_text(measurements_, node().device);
    imported_.text =
        numbers_.files + ": " + numbers_.gpu + ", PyTorch " + numbers_.torch + "; " +
        count_text(measurements_.size(), "measurement") + ", laid into " + base_.name() + "\n\n" +
        numbers_.lines + "\n" + errors_ +
        (unplaced.empty() ? "" : "\nMeasured too; a platform has no number for it\n" + unplaced);
    imported_.found.set("measurements", JsonValue(static_cast<std::int64_t>(measurements_.size())));
  }

  const ImportRequest* request_;
  const Library* library_;
  BasePlatform base_;
  Problems problems_;
  std::vector<ProbeFile> probes_;
  std::vector<ProbeMeasurement> measurements_;  ///< of all files
  JsonValue* device_ = nullptr;                 ///< in the document of the base
  ProbeNumbers numbers_;
  std::string errors_;
  Imported imported_;
};

}  // namespace

Imported import_probe(const ImportRequest& request, const Library& library) {
  return ProbeImport(request, library).run();
}

}  // namespace windtunnel
