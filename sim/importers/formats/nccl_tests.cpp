#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/json_build.hpp"
#include "core/object_reader.hpp"
#include "core/option_error.hpp"
#include "core/quantile.hpp"
#include "core/text_list.hpp"
#include "core/utf8.hpp"
#include "importers/base_platform.hpp"
#include "importers/collective_fit.hpp"
#include "importers/importer.hpp"
#include "importers/log_text.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel::formats {
namespace {

constexpr double rounding = 0.011;          ///< GB/s: two columns of two decimals each
constexpr double relative_rounding = 0.01;  ///< times have three digits at least
constexpr double microsecond = 1e-6;
constexpr double gigabyte = 1e9;
constexpr double largest_number = 1e18;  ///< of any number

/// A line before it is checked against the rest of the run.
struct NcclLine {
  double bytes = 0, time_us = 0, algbw = 0, busbw = 0, wrong = 0;
  Origin origin;
};

double algorithm_bandwidth(const NcclLine& line) {
  return line.bytes / (line.time_us * microsecond) / gigabyte;
}

bool agree(double printed, double computed) {
  return std::abs(printed - computed) <= rounding + relative_rounding * computed;
}

/// The collective of a program's name, or what the factor of its lines tells.
std::optional<CollectiveKind> collective_of(const std::string& name, const Origin& place,
                                            const std::vector<NcclLine>& lines, int ranks,
                                            Problems& problems) {
  for (const CollectiveKind each : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                    CollectiveKind::reduce_scatter, CollectiveKind::all_to_all})
    if (name == std::string(nccl_name_of(each)) + "_perf") return each;
  if (!name.empty()) {
    add_problem(problems, place, name + " says nothing that a platform file holds",
                "import runs of all_reduce_perf, all_gather_perf, reduce_scatter_perf and "
                "alltoall_perf");
    return std::nullopt;
  }
  std::vector<double> factors;
  for (const NcclLine& line : lines)
    if (line.busbw > 1) factors.push_back(line.busbw / algorithm_bandwidth(line));
  // With two ranks an all-reduce has the factor of a broadcast; a gather and a scatter always have
  // one, and cost the same.
  if (!factors.empty() && ranks > 2)
    for (const CollectiveKind each : {CollectiveKind::all_reduce, CollectiveKind::all_gather})
      if (agree(median_of(factors), bus_factor(each, ranks))) return each;
  add_problem(problems, place,
              "the file does not say which collective it is of, and its bandwidths do not tell",
              "keep the line \"# Collective test starting: all_reduce_perf\", or write it");
  return std::nullopt;
}

void add_wrong_values(const std::string& number, const Origin& place, Problems& problems) {
  add_problem(problems, place,
              "nccl-tests found " + number + " wrong values: the times of such a run mean nothing",
              "repair it and run again");
}

/// Adds what one rank says of its GPU, where it says something that no other did.
void add_gpu(const std::string& name, const Origin& place, NcclRun& run) {
  const bool is_known =
      std::ranges::any_of(run.gpus, [&](const NamedGpu& gpu) { return gpu.name == name; });
  if (!name.empty() && !is_known) run.gpus.push_back({name, place});
}

/// Checks lines against each other and puts them into `run`; `name` is that of the program
/// ("all_reduce_perf"), or empty when the file does not say: then the factor must tell.
void add_lines(const std::vector<NcclLine>& lines, const std::string& name, const Origin& place,
               NcclRun& run, Problems& problems) {
  if (run.ranks < 2) {
    add_problem(problems, place, "one GPU alone has no collective",
                run.hosts_known ? "run on two GPUs or more"
                                : "keep the lines \"#  Rank 0 ... on HOST device 0\" of "
                                  "nccl-tests if there were more");
    return;
  }
  const auto collective = collective_of(name, place, lines, run.ranks, problems);
  if (!collective) return;
  run.collective = *collective;
  for (const NcclLine& line : lines) {
    const double algbw = algorithm_bandwidth(line),
                 busbw = algbw * bus_factor(run.collective, run.ranks);
    std::string wrong;
    if (!agree(line.algbw, algbw))
      wrong = "algbw is " + significant_text(line.algbw, 4) + " GB/s, but " +
              significant_text(line.bytes, 10) + " B in " + significant_text(line.time_us, 6) +
              " us are " + significant_text(algbw, 4);
    else if (!agree(line.busbw, busbw))
      wrong = "busbw is " + significant_text(line.busbw, 4) + " GB/s, but " +
              nccl_name_of(run.collective) + " over " + std::to_string(run.ranks) +
              " GPUs makes it " + significant_text(busbw, 4);
    if (line.wrong != 0)
      add_wrong_values(significant_text(line.wrong, 6), line.origin, problems);
    else if (!wrong.empty())
      add_problem(problems, line.origin, wrong, "is a column missing, or in another unit?");
    run.times.push_back({Bytes{line.bytes}, Seconds{line.time_us * microsecond}, line.origin});
  }
}

/// Positions of the table's columns.
struct Columns {
  std::size_t lead = 0;   ///< columns before the first time
  std::size_t group = 0;  ///< columns of one way of running (out of place, in place)
  bool has_wrong = false;
  bool has_error =
      false;  ///< releases before 2.11: the largest difference from the right result, not a number of wrong ones
};

/// Reads what nccl-tests prints, among whatever else was printed there. Its column header says which columns there are: -I adds
/// some, -S a time of day, older versions have other leading ones. A line must agree with itself: algbw is size over time, and busbw
/// algbw times the collective's factor (nccl-tests, doc/PERFORMANCE.md), which also finds times in another unit.
class NcclTextReader {
 public:
  NcclTextReader(const LogText& log, Problems& problems) : log_(log), problems_(problems) {}

  NcclRun read() {
    run_.has_end = false;
    // A line like a row begins with a number of bytes, or most of its words are numbers, not what other programs print in between.
    const auto is_number = [](const LogWord& word) { return number_in(word.text).has_value(); };
    for (const LogLine& line : log_.lines()) {
      const std::vector<LogWord>& words = line.words;
      run_.is_always_ring = run_.is_always_ring || says_ring(line.text);
      if (words.empty()) continue;
      if (words[0].text == "#" && words.size() > 1)
        read_comment(line);
      else if (columns_ && words.size() > 1 && count_in(words[0].text) && count_in(words[1].text))
        read_row(line);
      else if (columns_ && !run_.has_end &&
               (count_in(words[0].text) ||
                (words.size() >= columns_->group &&
                 2 * std::ranges::count_if(words, is_number) > std::ssize(words))))
        run_.unread.push_back(log_.at(line));
    }
    if (!columns_) {
      log_.problem(log_.end(),
                   "no table of nccl-tests in the file: no line \"# size count type ... algbw "
                   "busbw\"",
                   "the file may be truncated, or be something else");
      return std::move(run_);
    }
    if (lines_.empty() && problems_.empty() && !run_.unread.empty())
      log_.problem(run_.unread.front(), "no row of the table begins with a size and a count",
                   "cut what stands before them, as the tag of a launcher");
    else if (lines_.empty() && problems_.empty())
      log_.problem(log_.end(), "the table has no line", "the file may be truncated");
    if (columns_->has_error && !wrong_.empty())
      add_wrong_values(wrong_, place_of_wrong_, problems_);
    if (problems_.empty()) count_ranks();
    if (problems_.empty()) add_lines(lines_, program_, place_, run_, problems_);
    return std::move(run_);
  }

 private:
  /// "-x NCCL_ALGO=Ring" of a launcher, or NCCL's own "NCCL_ALGO set by environment to Ring".
  static bool says_ring(const std::string& text) {
    const std::size_t at = text.find("NCCL_ALGO");
    if (at == std::string::npos) return false;
    const std::string value = lower_case(text).substr(at + std::string_view("NCCL_ALGO").size());
    return std::ranges::any_of(
        std::array{"=ring", "=\"ring", "='ring", " set by environment to ring"},
        [&](const std::string& form) {
          return value.starts_with(form) && !value.starts_with(form + ",");
        });
  }

  void read_comment(const LogLine& line) {
    const std::vector<LogWord>& words = line.words;
    const std::string& what = words[1].text;
    if (what == "Collective" && words.size() > 4 && words[3].text == "starting:") {
      program_ = words[4].text;
      place_ = log_.at(line, words[4]);
    } else if (what == "nThread") {
      for (std::size_t i = 1; i + 1 < words.size(); ++i)
        for (const auto& [name, number] : {std::pair{"nThread", &threads_}, {"nGpus", &gpus_}})
          if (words[i].text == name)
            *number = static_cast<int>(count_in(words[i + 1].text).value_or(0));
    } else if (what == "Rank") {
      read_rank(line);
    } else if (what == "Avg" || what == "Out") {
      run_.has_end = true;
      if (what == "Out" && words.size() > 6 && words[5].text == ":" && words[6].text != "0")
        wrong_ = words[6].text, place_of_wrong_ = log_.at(line);
    } else if (what == "size" && words.size() > 2 && words[2].text == "count") {
      read_columns(line);
    }
  }

  /// "#  Rank  0 Group  0 Pid 1234 on host device  0 [0000:07:00] NVIDIA A100-SXM4-80GB": the name is the rest of the line.
  void read_rank(const LogLine& line) {
    const std::vector<LogWord>& words = line.words;
    for (std::size_t i = 2; i + 1 < words.size(); ++i) {
      if (words[i].text == "Group") groups_.insert(words[i + 1].text);
      if (words[i].text == "on") ++ranks_of_host_[words[i + 1].text];
      if (!words[i].text.ends_with(']')) continue;
      LogWord name = words[i + 1];
      name.length = words.back().column + words.back().length - name.column;
      const std::span rest = std::span(words).subspan(i + 1);
      return add_gpu(joined(rest, " ", std::mem_fn(&LogWord::text)), log_.at(line, name), run_);
    }
  }

  void read_columns(const LogLine& line) {
    if (columns_)
      return log_.problem(line, line.words[1], "a second table begins here",
                          "the file holds several runs: import one of them");
    std::vector<std::size_t> times;
    Columns columns;
    for (std::size_t i = 1; i < line.words.size(); ++i) {
      const std::string& name = line.words[i].text;
      if (name == "cputime")
        return log_.problem(line, line.words[i],
                            "cputime is the time until the call returns, not until "
                            "the GPUs are done",
                            "run nccl-tests without -C");
      if (name == "time") times.push_back(i - 1);
      columns.has_wrong = columns.has_wrong || name == "#wrong";
      columns.has_error = columns.has_error || name == "error";
    }
    if (times.size() != 2)
      return log_.problem(line, line.words[1],
                          "the header names " + std::to_string(times.size()) +
                              " columns \"time\", where nccl-tests has two");
    columns.lead = times[0];
    columns.group = times[1] - times[0];
    columns_ = columns;
    if (program_.empty()) place_ = log_.at(line);
  }

  void read_row(const LogLine& line) {
    const std::vector<LogWord>& words = line.words;
    constexpr std::size_t time_of_day = 2;  // -S: date and time, two words
    const std::size_t at = columns_->lead, one = at + columns_->group, both = one + columns_->group;
    const std::size_t count = words.size();
    const bool has_both = count == both || count == both + time_of_day;
    if (!has_both && count != one && count != one + time_of_day)
      return log_.problem(
          line, words.back(),
          "the line has " + std::to_string(count) + " columns, the header names " +
              std::to_string(both),
          "the file may be truncated, or another process have printed into the line");
    NcclLine result;
    result.origin = log_.at(line);
    result.bytes = static_cast<double>(*count_in(words[0].text));
    if (result.bytes == 0) return void(++run_.num_empty);
    if (!has_both) ++run_.num_in_place;
    const auto read = [&](std::size_t column, const char* name) {
      const auto number = number_in(words[column].text);
      if (!number || *number < 0)
        log_.problem(
            line, words[column],
            std::string(name) + " is \"" + words[column].text + "\", which is no number above 0");
      return number.value_or(0);
    };
    result.time_us = read(at, "time");
    result.algbw = read(at + 1, "algbw");
    result.busbw = read(at + 2, "busbw");
    if (columns_->has_wrong && !is_missing(words[at + 3].text))
      result.wrong = read(at + 3, "#wrong");
    // Rounding of sums; "Out of bounds values" at the end counts what is more.
    if (columns_->has_error && !is_missing(words[at + 3].text)) read(at + 3, "error");
    if (result.time_us == 0 && problems_.empty()) log_.problem(line, words[at], "a time of 0");
    lines_.push_back(result);
  }

  void count_ranks() {
    if (groups_.size() > 1)
      log_.problem(place_,
                   "the ranks are in " + std::to_string(groups_.size()) +
                       " groups (NCCL_TESTS_SPLIT), which compete for the same links",
                   "import a run of one group");
    for (const auto& [host, ranks] : ranks_of_host_) run_.ranks += ranks;
    run_.nodes = std::max(1, static_cast<int>(ranks_of_host_.size()));
    run_.hosts_known = run_.ranks > 0;
    if (!run_.hosts_known) {
      run_.ranks = threads_ * gpus_;
      // Without a list of ranks, nThread and nGpus are those of one process. The bandwidths of an all-reduce tell how many there were:
      // busbw / algbw = 2 (n-1)/n, which no other collective makes more than 1.
      double bus = 0, algorithm = 0, unsure = 0;
      for (const NcclLine& line : lines_) {
        bus += line.busbw;
        algorithm += line.algbw;
        unsure += rounding / 2;
      }
      const bool is_all_reduce = program_.empty() || program_ == "all_reduce_perf";
      if (!is_all_reduce || algorithm <= unsure || bus / algorithm <= 1 + relative_rounding) return;
      const auto ranks_at = [](double factor) { return factor < 2 ? 2 / (2 - factor) : 1e9; };
      const double least = ranks_at((bus - unsure) / (algorithm + unsure));
      const double most = ranks_at((bus + unsure) / (algorithm - unsure));
      if (run_.ranks >= least && run_.ranks <= largest_number) return;
      run_.least_ranks = static_cast<int>(std::ceil(least));
      run_.most_ranks = static_cast<int>(std::floor(most));
      run_.ranks = static_cast<int>(std::lround(ranks_at(bus / algorithm)));
    }
    if (run_.ranks == 0)
      log_.problem(place_, "the file does not say how many GPUs took part",
                   "keep the lines \"#  Rank 0 ... on HOST device 0\" of nccl-tests");
    for (const auto& [host, ranks] : ranks_of_host_)
      if (ranks * run_.nodes != run_.ranks)
        return log_.problem(place_,
                            "nodes have different numbers of GPUs: " + host + " has " +
                                std::to_string(ranks) + " of " + std::to_string(run_.ranks),
                            "run with as many on each");
  }

  const LogText& log_;
  Problems& problems_;
  NcclRun run_;
  // From the header lines in front of the table:
  std::string program_;
  Origin place_;  ///< of the program's name, else of the column header
  int threads_ = 0, gpus_ = 0;
  std::map<std::string, int> ranks_of_host_;
  std::set<std::string> groups_;
  std::string
      wrong_;  ///< the number in the line "# Out of bounds values : 0 OK", where it is above 0
  Origin place_of_wrong_;
  std::optional<Columns> columns_;
  std::vector<NcclLine> lines_;
};

/// One of "out_of_place" and "in_place"; nothing when it was not run.
std::optional<NcclLine> read_way(ObjectReader& result, const char* key, double bytes) {
  auto columns = result.optional_child(key);
  if (!columns) return std::nullopt;
  NcclLine line;
  line.bytes = bytes;
  line.origin = columns->value().origin;
  if (columns->has("cpu_time") && !columns->has("time")) {
    columns->problem("cpu_time",
                     "cpu_time is the time until the call returns, not until the GPUs are done",
                     "run nccl-tests without -C");
    return line;
  }
  line.time_us = columns->required_number("time", 1e-6, largest_number);
  line.algbw = columns->required_number("alg_bw", 0, largest_number);
  line.busbw = columns->required_number("bus_bw", 0, largest_number);
  line.wrong = columns->optional_number("nwrong", 0, 0, largest_number);
  return line;
}

/// Position of "# size count ... algbw", the line that names the columns.
std::size_t find_nccl_header(std::string_view text) {
  const std::size_t at = text.find('#');
  if (at == std::string_view::npos) return at;
  const std::string_view rest = text.substr(at + 1);
  const std::size_t first = rest.find_first_not_of(" \t");
  const bool is_header =
      first != std::string_view::npos && rest.substr(first).starts_with("size") &&
      rest.find("count") != std::string_view::npos && rest.find("algbw") != std::string_view::npos;
  return is_header ? at : std::string_view::npos;
}

/// Reads what nccl-tests -J writes. With MPI, each process reports its first device; without, the file lists one device only, and the
/// configuration says how many there were.
NcclRun read_nccl_json(JsonValue& document, Problems& problems) {
  ObjectReader root(document, {}, problems);
  NcclRun run;
  std::vector<NcclLine> lines;
  root.require("results", "the list of nccl-tests -J");
  for (ObjectReader& result :
       root.entries("results", "no results: the file may be of a run that was stopped")) {
    const double bytes = result.required_number("size", 0, largest_number);
    if (bytes == 0) {
      ++run.num_empty;
      continue;
    }
    auto line = read_way(result, "out_of_place", bytes);
    if (!line) {
      line = read_way(result, "in_place", bytes);
      ++run.num_in_place;
    }
    if (line)
      lines.push_back(*line);
    else
      result.problem("out_of_place", "neither out_of_place nor in_place has a time");
  }
  auto config = root.optional_child("config");
  if (config) {
    const int listed_threads = config->required_int("nthreads", 1, 1'000'000);
    const int gpus = config->required_int("ngpus", 1, 1'000'000);
    JsonValue* devices = config->take("devices");
    if (devices == nullptr) devices = root.take("devices");
    std::map<std::string, int> processes;
    int num_processes = 0;
    if (devices != nullptr && devices->is_array())
      for (JsonValue& each : devices->array()) {
        ObjectReader device(each, "/devices/" + std::to_string(num_processes++), problems);
        ++processes[device.required_string("hostname")];
        const std::string gpu = device.optional_string("device_info", "");
        if (!gpu.empty()) add_gpu(gpu, device.value().find("device_info")->origin, run);
      }
    run.hosts_known = num_processes > 0;
    run.ranks = std::max(1, num_processes) * listed_threads * gpus;
    run.nodes = std::max<int>(1, static_cast<int>(processes.size()));
    for (const auto& [host, count] : processes)
      if (count * run.nodes != num_processes)
        root.problem("config", "nodes have different numbers of processes: " + host + " has " +
                                   std::to_string(count) + " of " + std::to_string(num_processes));
  } else {
    root.problem("config", "config is missing, so the number of GPUs is not known");
  }
  std::string program;
  Origin place = document.origin;
  if (JsonValue* arguments = root.take("args"); arguments != nullptr && arguments->is_array() &&
                                                !arguments->array().empty() &&
                                                arguments->array().front().is_string()) {
    place = arguments->array().front().origin;
    program = std::filesystem::path(arguments->array().front().string()).filename().string();
  }
  if (problems.empty()) add_lines(lines, program, place, run, problems);
  return run;
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
  for (const NcclRun& run : runs) {
    collectives.emplace_back(nccl_name_of(run.collective));
    sizes.push_back(std::to_string(run.ranks));
  }
  const auto each_once = [](const std::vector<std::string>& list) {
    std::vector<std::string> once;
    for (const std::string& item : list)
      if (std::ranges::count(once, item) == 0) once.push_back(item);
    return listed(once);
  };
  return "fitted: nccl-tests " + each_once(collectives) + " on " + each_once(sizes) + " GPUs, " +
         files + " (" + std::to_string(fit.error.scored) + " times of 1 MiB and more, " +
         percent_text(fit.error.mape) + " error)";
}

/// One import of runs of nccl-tests: all inside one node, or one over several.
class NcclImport : PlatformImport {
 public:
  using PlatformImport::PlatformImport;

  Imported run() {
    for (const auto& input : request_.inputs) read(input);
    problems_.throw_if_any();
    // Over more nodes than an NVLink domain has.
    const auto is_over_nodes = [&](const NcclRun& run) {
      return run.nodes > base_.platform().domain_nodes;
    };
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

    problems_.throw_if_any();
    const bool is_between = std::ranges::any_of(runs_, is_over_nodes);
    if (is_between && runs_.size() > 1)
      throw option_error(
          "import", "nccl-tests",
          "a run over several nodes, and " + std::to_string(runs_.size() - 1) + " others",
          "import runs inside one node together, and one over several nodes on its "
          "own, with the first result as --base");
    if (is_between)
      fit_between_nodes();
    else
      fit_inside_node();
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
      if (problems_.size() == problems_before) run = NcclTextReader(log, problems_).read();
    }
    if (problems_.size() > problems_before) return;
    if (run.least_ranks > 0) {
      // Without a list of ranks the bandwidths tell how many GPUs took part; how many a node had is that of the base.
      const int per_node = node().gpus;
      std::vector<int> possible;
      for (int ranks = run.least_ranks; ranks <= run.most_ranks; ++ranks)
        if (ranks < per_node || ranks % per_node == 0) possible.push_back(ranks);
      if (possible.size() != 1)
        return problem(run.times.front().origin,
                       "the file lists no ranks, and its bandwidths allow " +
                           std::to_string(run.least_ranks) + " to " +
                           std::to_string(run.most_ranks) + " GPUs, of which " + base_.name() +
                           " has " + std::to_string(per_node) + " a node",
                       "keep the lines \"#  Rank 0 ... on HOST device 0\" of nccl-tests");
      run.ranks = possible.front();
      run.nodes = std::max(1, run.ranks / per_node);
      note(file + ": no list of ranks; its bus bandwidth is that of " + std::to_string(run.ranks) +
           " GPUs, taken as " + count_text(run.nodes, "node") + " of " + base_.name());
    }
    for (const Origin& place : run.unread)
      warn(file_and_line(place) +
           ": the line is left out: it looks like a row of the table, but does not begin with a "
           "size and a count");
    if (!run.has_end) note(file + ": the summary at its end is missing; its lines are complete");
    if (run.num_in_place > 0)
      note(file + ": " + std::to_string(run.num_in_place) + " lines have in-place times only");
    if (!run.hosts_known && run.least_ranks == 0)
      note(file + ": no list of ranks; " + std::to_string(run.ranks) +
           " GPUs of one node, from nThread and nGpus");
    if (run.num_empty > 0)
      note(file + ": " + std::to_string(run.num_empty) + " lines of 0 B left out");

    runs_.push_back(std::move(run));
  }

  static bool is_exchange(const NcclRun& run) {
    return run.collective == CollectiveKind::all_to_all;
  }

  // Inside one node.

  void fit_inside_node() {
    JsonValue& type = base_.only_node_type();
    // The fit gives rates and latencies of the GPU's own links, so those of another model have no place in the base.
    for (const NcclRun& run : runs_) {
      for (const Problem& problem : contradictions(run.gpus)) problems_.add(problem);
      if (run.ranks / run.nodes > node().gpus)
        problems_.add(base_error("the run is of " + std::to_string(run.ranks / run.nodes) +
                                     (run.nodes == 1 ? " GPUs of one node, " : " GPUs a node, ") +
                                     base_.name() + " has " + std::to_string(node().gpus) +
                                     " a node",
                                 "another base")
                          .problems()
                          .front());
    }
    problems_.throw_if_any();

    JsonValue& interconnect = *type.find("interconnect");
    const auto first_exchange = std::stable_partition(
        runs_.begin(), runs_.end(), [](const NcclRun& run) { return !is_exchange(run); });
    const std::vector<NcclRun> exchanges(first_exchange, runs_.end());
    runs_.erase(first_exchange, runs_.end());
    for (const NcclRun& run : exchanges) {
      // Rate of one GPU while all exchange with each other.
      const BusBandwidthFit fit = fit_bus_bandwidth(run);
      const std::string on_gpus = " on " + std::to_string(run.ranks) + " GPUs";
      set_number(interconnect, "all_to_all", amount_text(fit.largest_measured / 1_GBps, "GB/s"),
                 "measured: nccl-tests alltoall" + on_gpus + ", " + file_ +
                     " (the largest bus bandwidth" + gpus_text(run) + ")");
      imported_.text += file_ + ": alltoall" + on_gpus + " inside one node, laid into " +
                        base_.name() + "\n\n  all_to_all  " + to_text(fit.largest_measured) +
                        " sent by a GPU" + limit_text(fit) + "\n";
      imported_.found.set("all_to_all_bytes_per_s",
                          JsonValue(fit.largest_measured / BytesPerSecond{1}));
    }
    what_ = "collectives inside a node fitted to times";
    if (runs_.empty()) return note_gpu(exchanges);
    const InterconnectFit fit = fit_interconnect(node().interconnect, runs_);
    write_constants(interconnect, node().interconnect, fit, source_text(runs_, file_, fit));
    note_kept(fit.kept);
    for (const std::string& key : fit.bounded)
      note(key + " is only bounded: the times exclude that of " + base_.name() +
           " and depend no further on it");
    note_gpu(runs_);
    std::string& text = imported_.text;
    const int nodes = runs_.front().nodes;
    text +=
        (text.empty() ? "" : "\n") + file_ + ": inside " +
        (nodes == 1 ? "one node" : "an NVLink domain, " + std::to_string(nodes) + " of its nodes") +
        ", laid into " + base_.name() + "\n\n";
    for (const auto& [key, value] : shown_constants(fit.interconnect))
      text += "  " + left_aligned(key, 21) + value + "\n";
    text += "\n" + times_table(fit);
    const auto num_between = std::ranges::count_if(fit.times, [](const FittedTime& time) {
      return time.role == FittedTime::Role::not_modelled;
    });
    text += "\n  error " + text_of(fit.error) + " times of 1 MiB and more\n";
    if (num_between > 0)
      note(std::to_string(num_between) +
           " sizes below 1 MiB left out: too long for the floor, and nothing else is modelled "
           "there");
    if (fit.error.mape > largest_trusted_error)
      note("the form fits these times badly: " + percent_text(fit.error.mape) + " on average");
    const Interconnect& constants = fit.interconnect;
    add_members(
        imported_.found,
        {{"saturated_bandwidth_bytes_per_s", constants.saturated_bandwidth / BytesPerSecond{1}},
         {"group_loss", constants.group_loss},
         {"floor_base_s", constants.floor_base},
         {"floor_per_gpu_s", constants.floor_per_gpu},
         {"half_size_bytes", constants.half_size / 1_B},
         {"sharpness", constants.sharpness},
         {"mean_error", fit.error.mape},
         {"worst_error", fit.error.worst_ape},
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

  void note_gpu(const std::vector<NcclRun>& runs) {
    const auto named =
        std::ranges::find_if(runs, [](const NcclRun& run) { return !run.gpus.empty(); });
    note((named == runs.end() ? "the runs do not name their GPU: taken as that of "
                              : "the runs name their GPU " + named->gpus.front().name +
                                    "; the device stays that of ") +
         base_.name() + ", " + node().device.name);
  }

  // Between nodes.

  void fit_between_nodes() {
    JsonValue& type = base_.only_node_type();
    const NodeType& node = this->node();
    const NcclRun& run = runs_.front();
    const int gpus = run.ranks / run.nodes;
    if (gpus > node.gpus)
      throw base_error("the run is of " + std::to_string(gpus) + " GPUs a node, " + base_.name() +
                           " has " + std::to_string(node.gpus),
                       "another base");
    // Only the rate of the network cards is taken, which another GPU may well share; but then no other number of the
    // result is then of the GPUs that ran.
    for (const Problem& problem : contradictions(run.gpus))
      warn(file_and_line(problem.origin) + ": " + problem.message +
           ". Only nic_efficiency is taken from the log: compute, memory and the links inside a "
           "node stay those of " +
           node.device.name +
           ". If your nodes have the GPUs of the log, the result is not their platform: " +
           problem.suggestion);

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
    if (found.fit.num_times >= least_sizes && found.fit.mean_error > largest_trusted_error)
      warn("the form fits these times badly, and the rate of the cards with them: " +
           percent_text(found.fit.mean_error) + " on average");
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
    note("latencies of the fabric stay those of " + base_.name() + "; the shortest time was " +
         to_text(std::ranges::min(run.times, {}, &CollectiveTime::time).time));

    imported_.text =
        file_ + ": " + nccl_name_of(run.collective) + " over " + std::to_string(run.nodes) +
        " nodes of " + std::to_string(gpus) + " GPUs, laid into " + base_.name() +
        "\n\n  bus bandwidth        " + to_text(found.fit.largest_measured) + " at most" +
        limit_text(found.fit) + "\n  algorithm            " + found.algorithm +
        "\n  a node sends         " + to_text(found.rate) + "\n  network cards in use " +
        std::to_string(found.cards) + "\n  nic_efficiency       " +
        (is_kept ? significant_text(node.nic_efficiency, fitted_digits) + ", as in " + base_.name()
                 : significant_text(found.efficiency, fitted_digits)) +
        "\n";
    const auto number = [](BytesPerSecond rate) { return rate / BytesPerSecond{1}; };
    const bool has_fit = found.fit.num_times >= least_sizes;
    imported_.found = object_of(
        {{"nodes", run.nodes},
         {"gpus", run.ranks},
         {"largest_bus_bandwidth_bytes_per_s", number(found.fit.largest_measured)},
         {"saturated_bus_bandwidth_bytes_per_s", only_if(has_fit, number(found.fit.saturated))},
         {"mean_error", only_if(has_fit, found.fit.mean_error)},
         {"algorithm", found.algorithm},
         {"node_bytes_per_s", number(found.rate)},
         {"bound_inside_node", found.is_bound_inside},
         {"nic_efficiency", only_if(!is_kept, found.efficiency)}});
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

  std::vector<NcclRun> runs_;
  std::string what_;
};

}  // namespace

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

}  // namespace windtunnel::formats
