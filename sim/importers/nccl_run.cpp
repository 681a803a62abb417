#include "importers/nccl_run.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/object_reader.hpp"
#include "core/quantile.hpp"
#include "core/utf8.hpp"
#include "report/number_text.hpp"

namespace windtunnel {
namespace {

constexpr double rounding = 0.011;          ///< GB/s: two columns of two decimals each
constexpr double relative_rounding = 0.01;  ///< times have three digits at least
constexpr double microsecond = 1e-6;
constexpr double gigabyte = 1e9;

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
    problems.add({place,
                  {},
                  name + " says nothing that a platform file holds",
                  "import runs of all_reduce_perf, all_gather_perf, reduce_scatter_perf and "
                  "alltoall_perf"});
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
  problems.add({place,
                {},
                "the file does not say which collective it is of, and its bandwidths do not tell",
                "keep the line \"# Collective test starting: all_reduce_perf\", or write it"});
  return std::nullopt;
}

/// Finds what is wrong with a line; nothing: it is right.
std::optional<std::string> contradiction(const NcclLine& line, CollectiveKind collective,
                                         int ranks) {
  const double algbw = algorithm_bandwidth(line);
  if (!agree(line.algbw, algbw))
    return "algbw is " + significant_text(line.algbw, 4) + " GB/s, but " +
           significant_text(line.bytes, 10) + " B in " + significant_text(line.time_us, 6) +
           " us are " + significant_text(algbw, 4);
  const double busbw = algbw * bus_factor(collective, ranks);
  if (agree(line.busbw, busbw)) return std::nullopt;
  return "busbw is " + significant_text(line.busbw, 4) + " GB/s, but " + nccl_name_of(collective) +
         " over " + std::to_string(ranks) + " GPUs makes it " + significant_text(busbw, 4);
}

/// Adds what one rank says of its GPU, where it says something that no other did.
void add_gpu(const std::string& name, const Origin& place, NcclRun& run) {
  const bool is_known = std::any_of(run.gpus.begin(), run.gpus.end(),
                                    [&](const NamedGpu& gpu) { return gpu.name == name; });
  if (!name.empty() && !is_known) run.gpus.push_back({name, place});
}

/// Checks lines against each other and puts them into `run`; `name` is that of the program
/// ("all_reduce_perf"), or empty when the file does not say: then the factor must tell.
void add_lines(const std::vector<NcclLine>& lines, const std::string& name, const Origin& place,
               NcclRun& run, Problems& problems) {
  if (run.ranks < 2) {
    problems.add({place,
                  {},
                  "one GPU alone has no collective",
                  run.hosts_known ? "run on two GPUs or more"
                                  : "keep the lines \"#  Rank 0 ... on HOST device 0\" of "
                                    "nccl-tests if there were more"});
    return;
  }
  const auto collective = collective_of(name, place, lines, run.ranks, problems);
  if (!collective) return;
  run.collective = *collective;
  for (const NcclLine& line : lines) {
    if (line.wrong != 0) {
      problems.add({line.origin,
                    {},
                    "nccl-tests found " + significant_text(line.wrong, 6) +
                        " wrong values: the times of such a run mean nothing",
                    "repair it and run again"});
    } else if (const auto what = contradiction(line, run.collective, run.ranks)) {
      problems.add({line.origin, {}, *what, "is a column missing, or in another unit?"});
    }
    run.times.push_back({Bytes{line.bytes}, Seconds{line.time_us * microsecond}, line.origin});
  }
}

/// What the lines of the header say before the table begins.
struct Preamble {
  std::string program;
  Origin place;  ///< of the program's name, else of the column header
  int threads = 0, gpus = 0;
  std::map<std::string, int> ranks_of_host;
  std::set<std::string> groups;
};

/// Where the columns of the table are.
struct Columns {
  std::size_t lead = 0;   ///< columns before the first time
  std::size_t group = 0;  ///< columns of one way of running (out of place, in place)
  bool has_wrong = false;
  bool has_error =
      false;  ///< releases before 2.11: the largest difference from the right result, instead of a number of wrong ones
};

class NcclTextReader {
 public:
  NcclTextReader(const LogText& log, Problems& problems) : log_(log), problems_(problems) {}

  NcclRun read() {
    run_.has_end = false;
    for (const LogLine& line : log_.lines()) read_line(line);
    if (!columns_) {
      log_.problem(log_.end(),
                   "no table of nccl-tests in the file: no line \"# size count type ... algbw "
                   "busbw\"",
                   "the file may be truncated, or be something else");
      return std::move(run_);
    }
    if (lines_.empty() && problems_.empty())
      log_.problem(log_.end(), "the table has no line", "the file may be truncated");
    if (columns_->has_error && !wrong_.empty())
      log_.problem(
          place_of_wrong_,
          "nccl-tests found " + wrong_ + " wrong values: the times of such a run mean nothing",
          "repair it and run again");
    if (problems_.empty()) count_ranks();
    if (problems_.empty()) add_lines(lines_, preamble_.program, preamble_.place, run_, problems_);
    return std::move(run_);
  }

 private:
  void read_line(const LogLine& line) {
    const std::vector<LogWord>& words = line.words;
    run_.is_always_ring = run_.is_always_ring || says_ring(line.text);
    if (words.front().text == "#") return words.size() > 1 ? read_comment(line) : void();
    if (words.size() < 2 || !count_in(words[0].text) || !count_in(words[1].text)) return;
    if (columns_) read_row(line);
  }

  /// "-x NCCL_ALGO=Ring" of a launcher, or NCCL's own "NCCL_ALGO set by environment to Ring".
  static bool says_ring(const std::string& text) {
    const std::size_t at = text.find("NCCL_ALGO");
    if (at == std::string::npos) return false;
    const std::string value = lower_case(text).substr(at + std::string_view("NCCL_ALGO").size());
    for (const std::string_view form : {"=", "=\"", "='", " set by environment to "})
      if (value.starts_with(form)) {
        const std::string_view algorithm = std::string_view(value).substr(form.size());
        if (algorithm.starts_with("ring") && !algorithm.starts_with("ring,")) return true;
      }
    return false;
  }

  void read_comment(const LogLine& line) {
    const std::vector<LogWord>& words = line.words;
    const std::string& what = words[1].text;
    if (what == "Collective" && words.size() > 4 && words[3].text == "starting:") {
      preamble_.program = words[4].text;
      preamble_.place = log_.at(line, words[4]);
    } else if (what == "nThread") {
      for (std::size_t i = 1; i + 1 < words.size(); ++i) {
        const auto count = count_in(words[i + 1].text);
        if (words[i].text == "nThread") preamble_.threads = static_cast<int>(count.value_or(0));
        if (words[i].text == "nGpus") preamble_.gpus = static_cast<int>(count.value_or(0));
      }
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

  /// "#  Rank  0 Group  0 Pid 1234 on host device  0 [0000:07:00] NVIDIA A100-SXM4-80GB"
  void read_rank(const LogLine& line) {
    const std::vector<LogWord>& words = line.words;
    for (std::size_t i = 2; i + 1 < words.size(); ++i) {
      if (words[i].text == "Group") preamble_.groups.insert(words[i + 1].text);
      if (words[i].text == "on") ++preamble_.ranks_of_host[words[i + 1].text];
      if (!words[i].text.ends_with(']')) continue;
      if (i + 1 < words.size()) read_gpu(line, i + 1);
      break;
    }
  }

  /// The name is the rest of the line.
  void read_gpu(const LogLine& line, std::size_t from) {
    const LogWord& first = line.words[from];
    std::string name = first.text;
    for (std::size_t j = from + 1; j < line.words.size(); ++j) name += " " + line.words[j].text;
    LogWord whole = first;
    whole.length = line.words.back().column + line.words.back().length - first.column;
    add_gpu(name, log_.at(line, whole), run_);
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
    if (preamble_.program.empty()) preamble_.place = log_.at(line);
  }

  void read_row(const LogLine& line) {
    const std::vector<LogWord>& words = line.words;
    constexpr std::size_t time_of_day = 2;  // -S: date and time, two words
    const std::size_t both = columns_->lead + 2 * columns_->group;
    const std::size_t one = columns_->lead + columns_->group;
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
    const std::size_t at = columns_->lead;
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
    if (preamble_.groups.size() > 1)
      log_.problem(preamble_.place,
                   "the ranks are in " + std::to_string(preamble_.groups.size()) +
                       " groups (NCCL_TESTS_SPLIT), which compete for the same links",
                   "import a run of one group");
    for (const auto& [host, ranks] : preamble_.ranks_of_host) run_.ranks += ranks;
    run_.nodes = std::max(1, static_cast<int>(preamble_.ranks_of_host.size()));
    run_.hosts_known = run_.ranks > 0;
    if (!run_.hosts_known) {
      run_.ranks = preamble_.threads * preamble_.gpus;
      infer_ranks();
    }
    if (run_.ranks == 0)
      log_.problem(preamble_.place, "the file does not say how many GPUs took part",
                   "keep the lines \"#  Rank 0 ... on HOST device 0\" of nccl-tests");
    for (const auto& [host, ranks] : preamble_.ranks_of_host)
      if (ranks * run_.nodes != run_.ranks)
        return log_.problem(preamble_.place,
                            "nodes have different numbers of GPUs: " + host + " has " +
                                std::to_string(ranks) + " of " + std::to_string(run_.ranks),
                            "run with as many on each");
  }

  /// Without a list of ranks, nThread and nGpus are those of one process. The bandwidths of an all-reduce tell how many there were:
  /// busbw / algbw = 2 (n-1)/n, which no other collective makes more than 1.
  void infer_ranks() {
    double bus = 0, algorithm = 0, unsure = 0;
    for (const NcclLine& line : lines_) {
      bus += line.busbw;
      algorithm += line.algbw;
      unsure += rounding / 2;
    }
    const bool is_all_reduce = preamble_.program.empty() || preamble_.program == "all_reduce_perf";
    if (!is_all_reduce || algorithm <= unsure || bus / algorithm <= 1 + relative_rounding) return;
    const auto ranks_at = [](double factor) { return factor < 2 ? 2 / (2 - factor) : 1e9; };
    const double least = ranks_at((bus - unsure) / (algorithm + unsure));
    const double most = ranks_at((bus + unsure) / (algorithm - unsure));
    if (run_.ranks >= least && run_.ranks <= most) return;
    run_.least_ranks = static_cast<int>(std::ceil(least));
    run_.most_ranks = static_cast<int>(std::floor(most));
    run_.ranks = static_cast<int>(std::lround(ranks_at(bus / algorithm)));
  }

  const LogText& log_;
  Problems& problems_;
  NcclRun run_;
  Preamble preamble_;
  std::string
      wrong_;  ///< the number in the line "# Out of bounds values : 0 OK", where it is above 0
  Origin place_of_wrong_;
  std::optional<Columns> columns_;
  std::vector<NcclLine> lines_;
};

constexpr double most = 1e18;  ///< of any number
constexpr int most_ranks = 1'000'000;

/// One of "out_of_place" and "in_place"; nothing when it was not run.
std::optional<NcclLine> read_way(ObjectReader& result, const char* key, double bytes) {
  auto way = result.optional_child(key);
  if (!way) return std::nullopt;
  NcclLine line;
  line.bytes = bytes;
  line.origin = way->value().origin;
  if (way->has("cpu_time") && !way->has("time")) {
    way->problem("cpu_time",
                 "cpu_time is the time until the call returns, not until the GPUs are done",
                 "run nccl-tests without -C");
    return line;
  }
  line.time_us = way->required_number("time", 1e-6, most);
  line.algbw = way->required_number("alg_bw", 0, most);
  line.busbw = way->required_number("bus_bw", 0, most);
  line.wrong = way->optional_number("nwrong", 0, 0, most);
  return line;
}

std::vector<NcclLine> read_results(ObjectReader& root, NcclRun& run) {
  std::vector<NcclLine> lines;
  root.require("results", "the list of nccl-tests -J");
  for (ObjectReader& result :
       root.entries("results", "no results: the file may be of a run that was stopped")) {
    const double bytes = result.required_number("size", 0, most);
    if (bytes == 0) {
      ++run.num_empty;
      continue;
    }
    auto line = read_way(result, "out_of_place", bytes);
    if (!line) {
      line = read_way(result, "in_place", bytes);
      ++run.num_in_place;
    }
    if (!line) {
      result.problem("out_of_place", "neither out_of_place nor in_place has a time");
      continue;
    }
    lines.push_back(*line);
  }
  return lines;
}

/// Without MPI the file lists its first device only; the configuration says how many there were.
void read_ranks(ObjectReader& root, NcclRun& run) {
  auto config = root.optional_child("config");
  if (!config) {
    root.problem("config", "config is missing, so the number of GPUs is not known");
    return;
  }
  const int listed_threads = config->required_int("nthreads", 1, most_ranks);
  const int gpus = config->required_int("ngpus", 1, most_ranks);
  JsonValue* devices = config->take("devices");
  if (devices == nullptr) devices = root.take("devices");
  std::map<std::string, int> processes;
  if (devices != nullptr && devices->is_array())
    for (std::size_t i = 0; i < devices->array().size(); ++i) {
      ObjectReader device(devices->array()[i], "/devices/" + std::to_string(i), root.problems());
      ++processes[device.required_string("hostname")];
      const std::string gpu = device.optional_string("device_info", "");
      if (!gpu.empty()) add_gpu(gpu, device.value().find("device_info")->origin, run);
    }
  // With MPI, each process reports its first device.
  int num_processes = 0;
  for (const auto& [host, count] : processes) num_processes += count;
  run.hosts_known = num_processes > 0;
  run.ranks = std::max(1, num_processes) * listed_threads * gpus;
  run.nodes = std::max<int>(1, static_cast<int>(processes.size()));
  for (const auto& [host, count] : processes)
    if (count * run.nodes != num_processes)
      root.problem("config", "nodes have different numbers of processes: " + host + " has " +
                                 std::to_string(count) + " of " + std::to_string(num_processes));
}

}  // namespace

const char* nccl_name_of(CollectiveKind collective) {
  constexpr std::array names{"all_reduce", "all_gather", "reduce_scatter", "alltoall"};
  return names[static_cast<std::size_t>(collective)];
}

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

NcclRun read_nccl_text(const LogText& log, Problems& problems) {
  return NcclTextReader(log, problems).read();
}

NcclRun read_nccl_json(JsonValue& document, Problems& problems) {
  ObjectReader root(document, {}, problems);
  NcclRun run;
  const std::vector<NcclLine> lines = read_results(root, run);
  read_ranks(root, run);
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

}  // namespace windtunnel
