#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/json_build.hpp"
#include "core/text_list.hpp"
#include "importers/base_platform.hpp"
#include "importers/importer.hpp"
#include "importers/log_text.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "units/amount_range.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel::formats {
namespace {

/// One entry of a test's matrix: between two GPUs, or the host and a GPU.
struct CopyRate {
  int row = 0, column = 0;
  BytesPerSecond rate{};
};

/// Measurements of nvbandwidth by test: "device_to_device_memcpy_read_ce". Tests without a matrix in GB/s have none.
struct CopyLog {
  std::map<std::string, std::vector<CopyRate>> tests;
  std::vector<NamedGpu> gpus;
};

/// Adds a cell of `test`; "N/A" is none. Returns what is wrong with it.
std::string add_cell(CopyLog& log, const std::string& test, std::size_t row, std::size_t column,
                     const std::string& text) {
  constexpr std::size_t most_gpus = 1000;
  if (text == "N/A") return {};
  const auto number = number_in(text);
  const BytesPerSecond rate{number.value_or(-1) * 1e9};
  if (!number || side_of(rate) != RangeSide::inside)
    return "\"" + text + "\" is no rate of a copy in GB/s";
  if (row >= most_gpus || column >= most_gpus) return "more than a thousand GPUs";
  log.tests[test].push_back({static_cast<int>(row), static_cast<int>(column), rate});
  return {};
}

/// Reads the output of nvbandwidth: for each GPU "Device 0: NVIDIA H100 80GB HBM3 (00000000:18:00)", of each test "Running NAME.", what its
/// matrix holds with the unit, a line of columns, and its rows behind their numbers.
CopyLog read_copy_text(const LogText& text) {
  CopyLog log;
  std::string test;
  std::size_t columns = 0;
  bool is_rate = false;
  for (const LogLine& line : text.lines()) {
    const std::vector<LogWord>& words = line.words;
    const auto is_number = [](const LogWord& word) { return count_in(word.text).has_value(); };
    const bool is_matrix = is_rate && is_number(words[0]);
    if (words[0].text == "Device" && words.size() > 2 &&
        line.text.find(": ") != std::string::npos) {
      log.gpus.push_back({line.text.substr(line.text.find(": ") + 2), text.at(line, words[1])});
    } else if (words[0].text == "Running" && words.size() == 2) {
      test = words[1].text.substr(0, words[1].text.find('.'));
      log.tests[test];
      is_rate = false;
    } else if (line.text.find("(row)") != std::string::npos) {
      is_rate = !test.empty() && line.text.find("(GB/s)") != std::string::npos;
      columns = 0;
    } else if (is_matrix && columns == 0) {
      columns = words.size();
    } else if (is_matrix) {
      if (words.size() != columns + 1)
        text.problem(text.at(line),
                     "a row of " + count_text(words.size() - 1, "rate") + " below " +
                         count_text(columns, "column"),
                     "the file may be truncated");
      const auto row = static_cast<std::size_t>(*count_in(words[0].text));
      for (std::size_t i = 1; i < words.size(); ++i)
        if (const std::string wrong = add_cell(log, test, row, i - 1, words[i].text);
            !wrong.empty())
          text.problem(line, words[i], wrong);
    } else {
      is_rate = false;
    }
  }
  return log;
}

/// nvbandwidth -j: {"nvbandwidth": {"testcases": [{"name": …, "bandwidth_description": …, "bandwidth_matrix": [["N/A", "270.1"], …]}]}}
CopyLog read_copy_json(const JsonValue& document, Problems& problems) {
  CopyLog log;
  const auto text_of = [](const JsonValue* value) {
    return value != nullptr && value->is_string() ? value->string() : std::string();
  };
  const auto items_of = [](const JsonValue* value) {
    return value != nullptr && value->is_array() ? value->array() : JsonValue::Array{};
  };
  for (const JsonValue& gpu : items_of(find_at(document, "/nvbandwidth/GPU Device list")))
    log.gpus.push_back({text_of(&gpu), gpu.origin});
  for (const JsonValue& test : items_of(find_at(document, "/nvbandwidth/testcases"))) {
    const std::string name = text_of(test.find("name"));
    log.tests[name];
    if (text_of(test.find("bandwidth_description")).find("(GB/s)") == std::string::npos) continue;
    const JsonValue::Array rows = items_of(test.find("bandwidth_matrix"));
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::size_t k = 0; const JsonValue& cell : items_of(&rows[i]))
        if (const std::string wrong = add_cell(
                log, name, i, k++, cell.is_number() ? canonical_text(cell) : text_of(&cell));
            !wrong.empty())
          problems.add({cell.origin, {}, wrong, {}});
  }
  return log;
}

class NvbandwidthImport : PlatformImport {
 public:
  using PlatformImport::PlatformImport;

  Imported run() {
    const auto source = read_source_or_stdin(request_.inputs.front());
    const std::size_t begin = source->text.find_first_not_of(" \t\r\n");
    if (begin != std::string::npos && source->text[begin] == '{') {
      const JsonValue document = parse_json(source, problems_);
      problems_.throw_if_any();
      log_ = read_copy_json(document, problems_);
    } else {
      const LogText text(source, problems_,
                         [](std::string_view line) { return line.find("Running "); });
      log_ = read_copy_text(text);
    }
    problems_.throw_if_any();
    base_.only_node_type();
    if (auto wrong = contradictions(log_.gpus); !wrong.empty()) throw InputError(std::move(wrong));
    const std::string rows = file_ + ": nvbandwidth, laid into " + base_.name() + "\n";
    describe_document(" with the copies of " + file_);
    // All GPUs at once, as they offload in training; else one after the other
    const auto host =
        take("host and GPU, all at once", {"host_to_all_memcpy_ce", "all_to_host_memcpy_ce"});
    const auto host_alone =
        take("host and GPU", {"host_to_device_memcpy_ce", "device_to_host_memcpy_ce"});
    const auto peers = take(
        "GPU and GPU", {"device_to_device_memcpy_read_ce", "device_to_device_memcpy_write_ce"});
    if (!host && !host_alone && !peers) {
      problem({OriginKind::file, source, 1, 1, 1}, "no rates of copies by nvbandwidth in the file",
              "run nvbandwidth -t host_to_device_memcpy_ce device_to_host_memcpy_ce "
              "device_to_device_memcpy_read_ce");
      problems_.throw_if_any();
    }
    // A copy between pinned memory of the host and the GPU, as offloading makes them, attains this share of the link.
    if (const auto& rates = host ? host : host_alone; rates && !node().host) {
      note("copies between host and GPU are only printed: " + base_.name() + " has no host");
    } else if (rates) {
      const double efficiency = rates->mean / node().host->link;
      if (efficiency > 1)
        throw base_error("copies between host and GPU attain " + to_text(rates->mean) +
                             ", and host/link of " + base_.name() + " is " +
                             to_text(node().host->link),
                         "name a base with this node's link, as import nccl-topo reads it");
      set_number(*base_.only_node_type().find("host"), "link_efficiency", efficiency,
                 source_of(*rates));
      imported_.text += "    host/link_efficiency " + percent_text(efficiency) + "\n";
    }
    // No message of NCCL is faster than a copy engine's. It may be slower: its kernels use few channels while all GPUs send.
    const BytesPerSecond given = node().interconnect.point_to_point;
    if (peers && given <= peers->mean) {
      note("interconnect/point_to_point stays " + to_text(given) + ": copies attain " +
           to_text(peers->mean) + ", which bounds what NCCL sends from one GPU to another");
    } else if (peers) {
      set_number(*base_.only_node_type().find("interconnect"), "point_to_point",
                 exact_number(peers->mean.value() / 1e9) + " GB/s", source_of(*peers));
      imported_.text += "    interconnect/point_to_point " + to_text(peers->mean) + "\n";
    }
    const auto name = [](const auto& test) { return test.first; };
    constexpr std::size_t most_named = 8;
    if (!log_.tests.empty())
      note(count_text(log_.tests.size(), "test") +
           " of which no number is used: " + listed(log_.tests, name, most_named));

    imported_.text = rows + imported_.text;
    return finished();
  }

 private:
  /// Mean, least and most of some tests together.
  struct Rates {
    BytesPerSecond mean{}, least{}, most{};
    std::string tests;  ///< their names
  };

  std::optional<Rates> take(const char* what, const std::vector<std::string>& tests) {
    std::vector<CopyRate> cells;
    std::vector<std::string> found;
    for (const std::string& test : tests) {
      const auto at = log_.tests.find(test);
      if (at == log_.tests.end() || at->second.empty()) continue;
      found.push_back(test);
      cells.insert(cells.end(), at->second.begin(), at->second.end());
      log_.tests.erase(at);
    }
    if (cells.empty()) return std::nullopt;
    const auto [least, most] = std::ranges::minmax_element(cells, {}, &CopyRate::rate);
    Rates rates{{}, least->rate, most->rate, joined(found, " and ")};
    for (const CopyRate& cell : cells) rates.mean += cell.rate / static_cast<double>(cells.size());
    imported_.text += "\n  " + std::string(what) + ": mean " + to_text(rates.mean) + ", from " +
                      to_text(rates.least) + " (row " + std::to_string(least->row) + ", column " +
                      std::to_string(least->column) + ") to " + to_text(rates.most) + "\n";
    imported_.found.set(rates.tests, object_of({{"mean_bytes_per_s", rates.mean.value()},
                                                {"least_bytes_per_s", rates.least.value()},
                                                {"most_bytes_per_s", rates.most.value()},
                                                {"copies", cells.size()}}));
    return rates;
  }

  std::string source_of(const Rates& rates) const {
    return "measured: nvbandwidth, " + file_ + ", mean of " + rates.tests + ", " +
           to_text(rates.mean) + " (" + to_text(rates.least) + " to " + to_text(rates.most) + ")";
  }

  CopyLog log_;
};

}  // namespace

Importer nvbandwidth() {
  return {"nvbandwidth",
          "copies between GPUs and with the host, to a platform",
          "output of nvbandwidth, text or JSON (-j)",
          {"--base"},
          import_by<NvbandwidthImport>};
}

}  // namespace windtunnel::formats
