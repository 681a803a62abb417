#include "importers/mpigraph_platform.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/option_error.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr int written_digits = 6;  ///< means of many processes have no more

/// Writes what was found into a base.
class PlatformWriter {
 public:
  PlatformWriter(BasePlatform& base, const MpigraphFindings& found, const ImportRequest& request,
                 std::vector<std::string>& notes)
      : base_(base), found_(found), request_(request), notes_(notes) {}

  JsonValue write() {
    JsonValue& document = base_.document();
    document.set("name", JsonValue(request_.output.stem().string()));
    document.set("description", JsonValue(base_.name() + " with the rates between nodes of " +
                                          found_.file + "; nodes in order: " + node_list()));
    const std::vector<std::size_t> counts = nodes_of_types();
    std::size_t first = 0;
    for (std::size_t t = 0; t < counts.size(); ++t) {
      JsonValue& type = document.find("node_types")->array()[t];
      set_number(type, "count", JsonValue(static_cast<std::int64_t>(counts[t])),
                 "measured: nodes in " + found_.file);
      raise_nic_efficiency(type, base_.platform().node_types[t], first, first + counts[t]);
      first += counts[t];
    }
    if (document.erase("link_overrides"))
      note("link_overrides of " + base_.name() + " left out: they name nodes of another cluster");
    document.set("bandwidth_matrix", matrix_json());
    return document;
  }

 private:
  void note(std::string text) { notes_.push_back(std::move(text)); }

  /// The kinds of node, each with how many of the rows are of it. InputError where the base has
  /// another number of nodes.
  std::vector<std::size_t> nodes_of_types() {
    const auto& types = base_.platform().node_types;
    const std::size_t n = found_.rates.nodes.size();
    if (types.size() == 1) return {n};
    std::vector<std::size_t> counts;
    std::size_t sum = 0;
    for (const NodeType& type : types) {
      counts.push_back(static_cast<std::size_t>(type.count));
      sum += counts.back();
    }
    if (types.back().count == 0 && sum < n) counts.back() = n - sum, sum = n;
    if (sum != n)
      throw option_error("--base", request_.options.base,
                         base_.name() + " has " + std::to_string(sum) + " nodes of " +
                             std::to_string(types.size()) + " kinds, the table " +
                             std::to_string(n),
                         "name a base with as many, or with one kind of node");
    return counts;
  }

  /// Cards carried what was measured, so they can: where the base expects less, its efficiency is
  /// raised to the fastest pair. More than the cards' nominal rate is an error.
  void raise_nic_efficiency(JsonValue& type_json, const NodeType& type, std::size_t first,
                            std::size_t last) {
    std::size_t from = first, to = 0;
    double most = 0;
    for (std::size_t i = first; i < last; ++i)
      for (std::size_t j = 0; j < found_.rates.nodes.size(); ++j)
        if (i != j && *found_.rates.rate[i][j] > most)
          most = *found_.rates.rate[i][j], from = i, to = j;
    const BytesPerSecond nominal = type.nic_rate * type.nics;
    const BytesPerSecond attained = found_.in_bytes(most) * found_.rails;
    if (attained > nominal)
      throw option_error("--base", request_.options.base,
                         found_.file + " has " + to_text(attained) + " for " +
                             found_.pair_text(from, to) + " (" + std::to_string(found_.rails) +
                             (found_.rails == 1 ? " rail" : " rails") + "), but the " +
                             std::to_string(type.nics) + " network cards of " + base_.name() +
                             " carry " + to_text(nominal),
                         "another base, --unit or --rails");
    if (attained <= type.effective_nic_rate() * type.nics) return;
    constexpr double steps = 1000;  // three decimals, rounded up so that the matrix decides
    const double efficiency = std::min(1.0, std::ceil(attained / nominal * steps) / steps);
    set_number(type_json, "nic_efficiency", JsonValue(efficiency),
               "measured: " + found_.tool + ", " + found_.file + ": the fastest pair carries " +
                   to_text(attained) + " of " + to_text(nominal) + ", so that the matrix decides");
    note("nic_efficiency raised from " + significant_text(type.nic_efficiency, 3) + " to " +
         significant_text(efficiency, 3) + ": the fastest pair carries " + to_text(attained));
  }

  std::string node_list() const {
    constexpr std::size_t most_named = 64;
    const auto& nodes = found_.rates.nodes;
    if (nodes.size() > most_named)
      return nodes.front() + " to " + nodes.back() + ", " + std::to_string(nodes.size()) + " nodes";
    std::string list;
    for (const std::string& node : nodes) list += (list.empty() ? "" : ", ") + node;
    return list;
  }

  std::string matrix_source() const {
    std::string source = "measured: " + found_.tool + ", " + found_.file;
    if (found_.rates.processes_per_node > 1)
      source += ", mean over " + std::to_string(found_.rates.processes_per_node) + " x " +
                std::to_string(found_.rates.processes_per_node) + " processes a pair of nodes";
    if (found_.artefact)
      source += "; " + std::to_string(found_.artefact->ring.size()) +
                (found_.is_cleaned ? " rates of mpiGraph's phase artefact replaced by medians"
                                   : " rates lowered by mpiGraph's phase artefact are in it");
    if (!found_.inferred.empty())
      source += "; not measured but inferred: " + std::to_string(found_.inferred.size()) + " pairs";
    for (std::size_t i = 0; i < found_.inferred.size() && i < most_listed; ++i)
      source +=
          (i == 0 ? " (" : ", ") + found_.pair_text(found_.inferred[i].from, found_.inferred[i].to);
    if (!found_.inferred.empty()) source += found_.inferred.size() > most_listed ? ", ...)" : ")";
    return source;
  }

  JsonValue matrix_json() const {
    JsonValue matrix(JsonValue::Object{});
    matrix.set("unit", JsonValue(found_.unit_name));
    matrix.set("rails", JsonValue(std::int64_t{found_.rails}));
    matrix.set("source", JsonValue(matrix_source()));
    JsonValue::Array rows;
    for (std::size_t i = 0; i < found_.rates.nodes.size(); ++i) {
      JsonValue::Array row;
      for (std::size_t j = 0; j < found_.rates.nodes.size(); ++j)
        row.push_back(i == j ? JsonValue(std::int64_t{0})
                             : JsonValue(rounded_to(*found_.rates.rate[i][j], written_digits)));
      rows.emplace_back(std::move(row));
    }
    matrix.set("rows", JsonValue(std::move(rows)));
    return matrix;
  }

  BasePlatform& base_;
  const MpigraphFindings& found_;
  const ImportRequest& request_;
  std::vector<std::string>& notes_;
};

}  // namespace

JsonValue platform_with_rates(BasePlatform& base, const MpigraphFindings& found,
                              const ImportRequest& request, std::vector<std::string>& notes) {
  return PlatformWriter(base, found, request, notes).write();
}

}  // namespace windtunnel
