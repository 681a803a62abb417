#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/json_build.hpp"
#include "core/option_error.hpp"
#include "core/text_list.hpp"
#include "importers/base_platform.hpp"
#include "importers/collective_fit.hpp"
#include "importers/importer.hpp"
#include "importers/nccl_run.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

void describe_as_json(const InterconnectFit& fit, JsonValue& found) {
  const Interconnect& constants = fit.interconnect;
  add_members(
      found,
      {{"saturated_bandwidth_bytes_per_s", constants.saturated_bandwidth / BytesPerSecond{1}},
       {"group_loss", constants.group_loss},
       {"floor_base_s", constants.floor_base},
       {"floor_per_gpu_s", constants.floor_per_gpu},
       {"half_size_bytes", constants.half_size / 1_B},
       {"sharpness", constants.sharpness},
       {"mean_error", fit.error.mean},
       {"worst_error", fit.error.worst},
       {"kept", array_of(fit.kept)},
       {"times", array_of(fit.times, [](const FittedTime& time) {
          constexpr std::array roles{"fit", "floor", "nothing"};
          return object_of({{"collective", nccl_name_of(time.collective)},
                            {"gpus", time.ranks},
                            {"bytes", time.bytes / 1_B},
                            {"measured_s", time.measured},
                            {"fitted_s", time.fitted},
                            {"used_for", roles[static_cast<std::size_t>(time.role)]}});
        })}});
}

/// "; run on NVIDIA A100-SXM4-40GB", so that the source still says it when the warning is forgotten.
std::string gpus_text(const NcclRun& run) {
  return (run.gpus.empty() ? "" : "; run on ") +
         listed(run.gpus, [](const NamedGpu& gpu) { return gpu.name; });
}

std::string limit_text(const BusBandwidthFit& fit) {
  if (fit.num_times < least_sizes) return {};
  return ", " + to_text(fit.saturated) + " at infinite size (fit, " + percent_text(fit.mean_error) +
         " error)";
}

std::string source_text(const std::vector<NcclRun>& runs, const std::string& files,
                        const InterconnectFit& fit) {
  std::vector<std::string> collectives, sizes;
  const auto add = [](std::vector<std::string>& list, const std::string& item) {
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
  };
  for (const NcclRun& run : runs) {
    add(collectives, nccl_name_of(run.collective));
    add(sizes, std::to_string(run.ranks));
  }
  return "fitted: nccl-tests " + listed(collectives) + " on " + listed(sizes) + " GPUs, " + files +
         " (" + std::to_string(fit.error.count) + " times of 1 MiB and more, " +
         percent_text(fit.error.mean) + " error)";
}

JsonValue json_of(const NcclRun& run, const CardRate& rate, bool is_kept) {
  const BusBandwidthFit& fit = rate.fit;
  JsonValue found =
      object_of({{"nodes", run.nodes},
                 {"gpus", run.ranks},
                 {"largest_bus_bandwidth_bytes_per_s", fit.largest_measured / BytesPerSecond{1}}});
  if (fit.num_times >= least_sizes)
    add_members(found, {{"saturated_bus_bandwidth_bytes_per_s", fit.saturated / BytesPerSecond{1}},
                        {"mean_error", fit.mean_error}});
  add_members(found, {{"algorithm", rate.algorithm},
                      {"node_bytes_per_s", rate.rate / BytesPerSecond{1}},
                      {"bound_inside_node", rate.is_bound_inside}});
  if (!is_kept) found.set("nic_efficiency", JsonValue(rate.efficiency));
  return found;
}

/// One import of runs of nccl-tests: all inside one node, or one over several.
class NcclImport : PlatformImport {
 public:
  using PlatformImport::PlatformImport;

  Imported run() {
    for (const auto& input : request_.inputs) read(input);
    problems_.throw_if_any();
    check_sizes();
    problems_.throw_if_any();
    if (is_inside_node())
      fit_inside_node();
    else
      fit_between_nodes();
    describe_document(" with " + what_ + " of " + file_);
    return finished();
  }

 private:
  void read(const std::filesystem::path& input) {
    const std::string file = file_name_of(input);
    const std::size_t problems_before = problems_.size();
    auto source = read_source_or_stdin(input);
    const std::size_t first = source->text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    NcclRun run;
    if (first != std::string::npos && source->text[first] == '{') {
      JsonValue document = parse_json(source, problems_);
      if (problems_.size() == problems_before) run = read_nccl_json(document, problems_);
    } else {
      const LogText log(source, problems_, find_nccl_header);
      if (problems_.size() == problems_before) run = read_nccl_text(log, problems_);
    }
    if (problems_.size() == problems_before) place_ranks(run, file);
    if (problems_.size() > problems_before) return;
    say_what_was_odd(file, run);
    runs_.push_back(std::move(run));
  }

  /// Without a list of ranks the bandwidths tell how many GPUs took part; how many a node had is that of the base.
  void place_ranks(NcclRun& run, const std::string& file) {
    if (run.least_ranks == 0) return;
    const int per_node = node().gpus;
    std::vector<int> possible;
    for (int ranks = run.least_ranks; ranks <= run.most_ranks; ++ranks)
      if (ranks < per_node || ranks % per_node == 0) possible.push_back(ranks);
    if (possible.size() != 1)
      return problem(run.times.front().origin,
                     "the file lists no ranks, and its bandwidths allow " +
                         std::to_string(run.least_ranks) + " to " + std::to_string(run.most_ranks) +
                         " GPUs, of which " + base_.name() + " has " + std::to_string(per_node) +
                         " a node",
                     "keep the lines \"#  Rank 0 ... on HOST device 0\" of nccl-tests");
    run.ranks = possible.front();
    run.nodes = std::max(1, run.ranks / per_node);
    note(file + ": no list of ranks; its bus bandwidth is that of " + std::to_string(run.ranks) +
         " GPUs, taken as " + count_text(run.nodes, "node") + " of " + base_.name());
  }

  void say_what_was_odd(const std::string& file, const NcclRun& run) {
    if (!run.has_end) note(file + ": the summary at its end is missing; its lines are complete");
    if (run.num_in_place > 0)
      note(file + ": " + std::to_string(run.num_in_place) + " lines have in-place times only");
    if (!run.hosts_known && run.least_ranks == 0)
      note(file + ": no list of ranks; " + std::to_string(run.ranks) +
           " GPUs of one node, from nThread and nGpus");
    if (run.num_empty > 0)
      note(file + ": " + std::to_string(run.num_empty) + " lines of 0 B left out");
  }

  void check_sizes() {
    for (const NcclRun& run : runs_) {
      const int count = num_fitted_sizes(run);
      // Over several nodes, and of exchanges, the largest size alone says something.
      const int least = is_over_nodes(run) || is_exchange(run) ? 1 : least_sizes;
      if (count < least)
        problem(run.times.empty() ? Origin{} : run.times.back().origin,
                std::to_string(count) + " sizes of 1 MiB or more, where a fit needs " +
                    std::to_string(least),
                "run with -b 1M -e 4G -f 2");
    }
  }

  /// Over more nodes than an NVLink domain has.
  bool is_over_nodes(const NcclRun& run) const { return run.nodes > base_.platform().domain_nodes; }
  static bool is_exchange(const NcclRun& run) {
    return run.collective == CollectiveKind::all_to_all;
  }

  bool is_inside_node() const {
    const auto count = std::count_if(runs_.begin(), runs_.end(),
                                     [this](const NcclRun& run) { return is_over_nodes(run); });
    if (count > 0 && runs_.size() > 1)
      throw option_error(
          "import", "nccl-tests",
          "a run over several nodes, and " + std::to_string(runs_.size() - 1) + " others",
          "import runs inside one node together, and one over several nodes on its "
          "own, with the first result as --base");
    return count == 0;
  }

  // Inside one node.

  void fit_inside_node() {
    JsonValue& type = base_.only_node_type();
    check_gpus_inside();
    JsonValue& interconnect = *type.find("interconnect");
    const auto first_exchange = std::stable_partition(
        runs_.begin(), runs_.end(), [](const NcclRun& run) { return !is_exchange(run); });
    const std::vector<NcclRun> exchanges(first_exchange, runs_.end());
    runs_.erase(first_exchange, runs_.end());
    for (const NcclRun& run : exchanges) take_exchange(run, interconnect);
    what_ = "collectives inside a node fitted to times";
    if (runs_.empty()) return note_gpu(exchanges);
    const InterconnectFit fit = fit_interconnect(node().interconnect, runs_);
    write_constants(interconnect, node().interconnect, fit, source_text(runs_, file_, fit));
    note_kept(fit.kept);
    for (const std::string& key : fit.bounded)
      note(key + " is only bounded: the times exclude that of " + base_.name() +
           " and depend no further on it");
    note_gpu(runs_);
    describe_inside(fit);
  }

  /// What one GPU sends while all exchange with each other.
  void take_exchange(const NcclRun& run, JsonValue& interconnect) {
    const BusBandwidthFit fit = fit_bus_bandwidth(run);
    set_number(interconnect, "all_to_all", amount_text(fit.largest_measured / 1_GBps, "GB/s"),
               "measured: nccl-tests alltoall on " + std::to_string(run.ranks) + " GPUs, " + file_ +
                   " (the largest bus bandwidth" + gpus_text(run) + ")");
    imported_.text += file_ + ": alltoall on " + std::to_string(run.ranks) +
                      " GPUs inside one node, laid into " + base_.name() + "\n\n  all_to_all  " +
                      to_text(fit.largest_measured) + " sent by a GPU" + limit_text(fit) + "\n";
    imported_.found.set("all_to_all_bytes_per_s",
                        JsonValue(fit.largest_measured / BytesPerSecond{1}));
  }

  /// What is fitted are rates and latencies of the GPU's own links, so that another model's have no place in the base.
  void check_gpus_inside() {
    for (const Problem& problem : contradictions(named_gpus())) problems_.add(problem);
    for (const NcclRun& run : runs_)
      if (run.ranks / run.nodes > node().gpus)
        problems_.add(base_error("the run is of " + std::to_string(run.ranks / run.nodes) +
                                     (run.nodes == 1 ? " GPUs of one node, " : " GPUs a node, ") +
                                     base_.name() + " has " + std::to_string(node().gpus) +
                                     " a node",
                                 "another base")
                          .problems()
                          .front());
    problems_.throw_if_any();
  }

  std::vector<NamedGpu> named_gpus() const {
    std::vector<NamedGpu> named;
    for (const NcclRun& run : runs_) named.insert(named.end(), run.gpus.begin(), run.gpus.end());
    return named;
  }

  void note_gpu(const std::vector<NcclRun>& runs) {
    for (const NcclRun& run : runs)
      if (!run.gpus.empty())
        return note("the runs name their GPU " + run.gpus.front().name +
                    "; the device stays that of " + base_.name() + ", " + node().device.name);
    note("the runs do not name their GPU: taken as that of " + base_.name() + ", " +
         node().device.name);
  }

  void describe_inside(const InterconnectFit& fit) {
    std::string& text = imported_.text;
    const int nodes = runs_.front().nodes;
    text +=
        (text.empty() ? "" : "\n") + file_ + ": inside " +
        (nodes == 1 ? "one node" : "an NVLink domain, " + std::to_string(nodes) + " of its nodes") +
        ", laid into " + base_.name() + "\n\n";
    for (const auto& [key, value] : shown_constants(fit.interconnect))
      text += "  " + left_aligned(key, 21) + value + "\n";
    text += "\n" + times_table(fit);
    const auto num_between = std::count_if(
        fit.times.begin(), fit.times.end(),
        [](const FittedTime& time) { return time.role == FittedTime::Role::not_modelled; });
    text += "\n  error " + text_of(fit.error) + " times of 1 MiB and more\n";
    if (num_between > 0)
      note(std::to_string(num_between) +
           " sizes below 1 MiB left out: too long for the floor, and nothing else is modelled "
           "there");
    if (fit.error.mean > largest_trusted_error)
      note("the form fits these times badly: " + percent_text(fit.error.mean) + " on average");
    describe_as_json(fit, imported_.found);
  }

  // Between nodes.

  /// What is taken is the rate of the network cards, which another GPU may well have beside it; but no other number of the
  /// result is then of the GPUs that ran.
  void warn_of_other_gpus() {
    for (const Problem& problem : contradictions(named_gpus()))
      warn(file_and_line(problem.origin) + ": " + problem.message +
           ". Only nic_efficiency is taken from the log: compute, memory and the links inside a "
           "node stay those of " +
           node().device.name +
           ". If your nodes have the GPUs of the log, the result is not their platform: " +
           problem.suggestion);
  }

  void fit_between_nodes() {
    JsonValue& type = base_.only_node_type();
    const NodeType& node = this->node();
    const NcclRun& run = runs_.front();
    const int gpus = run.ranks / run.nodes;
    if (gpus > node.gpus)
      throw base_error("the run is of " + std::to_string(gpus) + " GPUs a node, " + base_.name() +
                           " has " + std::to_string(node.gpus),
                       "another base");
    warn_of_other_gpus();
    const CardRate found = card_rate(run, base_.platform());
    check_efficiency(found);
    what_ = "the rate of network cards fitted to times";
    if (found.fit.num_times < least_sizes)
      note(std::to_string(found.fit.num_times) +
           " sizes of 1 MiB or more are too few for a fit: the largest "
           "bus bandwidth is taken as it is");
    else if (!found.is_saturated)
      note(
          "the largest size does not saturate the network: its bus bandwidth is taken, and the "
          "limit may be up to " +
          to_text(found.fit.saturated));
    const bool is_kept = found.is_bound_inside && found.efficiency <= node.nic_efficiency;
    if (is_kept) {
      note("the links inside a node set the pace of this run: its network cards carry at least " +
           to_text(found.rate) + ", and nic_efficiency stays that of " + base_.name());
    } else {
      set_number(type, "nic_efficiency", ratio_number(found.efficiency),
                 (found.is_saturated ? "fitted: " : "measured: ") + std::string("nccl-tests ") +
                     nccl_name_of(run.collective) + " on " + std::to_string(run.nodes) +
                     " nodes of " + std::to_string(gpus) + " GPUs, " + file_ + " (" +
                     found.algorithm + ", of which a node sends " + to_text(found.rate) +
                     (found.is_saturated ? " at infinite size" : " at the largest size") +
                     gpus_text(run) + ")");
    }
    if (run.collective == CollectiveKind::all_reduce && run.nodes == 2)
      note("over two nodes NCCL's own choice is read as " + found.algorithm +
           (run.is_always_ring ? ", since the file shows NCCL_ALGO=Ring"
                               : "; under NCCL_ALGO=Ring the cards would have carried " +
                                     to_text(found.fit.largest_measured)));
    note_latency(run);
    describe_between(run, found, is_kept);
  }

  void check_efficiency(const CardRate& found) const {
    std::string measured = file_ + " has a bus bandwidth of " + to_text(found.fit.largest_measured);
    if (found.algorithm != "a ring")
      measured += ", with which a node sends " + to_text(found.rate) + " (" + found.algorithm + ")";
    const std::string cards = std::to_string(found.cards) + " network cards of " + base_.name() +
                              " that its GPUs use carry " + to_text(node().nic_rate * found.cards) +
                              " (" + to_text(node().nic_rate) + " each)";
    if (found.efficiency < least_efficiency)
      throw base_error(measured + ", less than 1 % of what the " + cards,
                       "another base, or a run of larger sizes");
    if (found.efficiency > 1)
      throw base_error(
          measured + ", but the " + cards,
          "another base: with faster cards, or one whose nodes share an NVLink domain; reductions "
          "inside the network's switches (SHARP) go beyond the cards, and are not modelled");
  }

  void note_latency(const NcclRun& run) {
    Seconds shortest = run.times.front().time;
    for (const CollectiveTime& time : run.times) shortest = std::min(shortest, time.time);
    note("latencies of the fabric stay those of " + base_.name() + "; the shortest time was " +
         to_text(shortest));
  }

  void describe_between(const NcclRun& run, const CardRate& found, bool is_kept) {
    imported_.text =
        file_ + ": " + nccl_name_of(run.collective) + " over " + std::to_string(run.nodes) +
        " nodes of " + std::to_string(run.ranks / run.nodes) + " GPUs, laid into " + base_.name() +
        "\n\n  bus bandwidth        " + to_text(found.fit.largest_measured) + " at most" +
        limit_text(found.fit) + "\n  algorithm            " + found.algorithm +
        "\n  a node sends         " + to_text(found.rate) + "\n  network cards in use " +
        std::to_string(found.cards) + "\n  nic_efficiency       " +
        (is_kept
             ? significant_text(node().nic_efficiency, fitted_digits) + ", as in " + base_.name()
             : significant_text(found.efficiency, fitted_digits)) +
        "\n";
    imported_.found = json_of(run, found, is_kept);
  }

  std::vector<NcclRun> runs_;
  std::string what_;
};

}  // namespace

namespace formats {
Importer nccl_tests() {
  return {
      "nccl-tests",
      "times of NCCL's collectives, to a platform",
      "output of all_reduce_perf, all_gather_perf, reduce_scatter_perf or alltoall_perf: text, or "
      "JSON of -J",
      {"--base"},
      import_by<NcclImport>,
      Importer::Result::file,
      Importer::Files::several};
}
}  // namespace formats

}  // namespace windtunnel
