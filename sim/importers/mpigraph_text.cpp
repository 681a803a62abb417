#include "core/json_build.hpp"
#include "importers/mpigraph_findings.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

std::string ring_text(const MpigraphFindings& found) {
  std::string text;
  for (std::size_t i = 0; i < found.artefact->ring.size() && i < most_listed; ++i)
    text += found.rates.nodes[found.artefact->ring[i]] + " → ";
  return text + (found.artefact->ring.size() > most_listed ? "… → " : "") +
         found.rates.nodes[found.artefact->ring.front()];
}

JsonValue artefact_json(const MpigraphFindings& found) {
  if (!found.artefact) return {};
  JsonValue value(JsonValue::Object{});
  JsonValue::Array ring;
  for (const std::size_t node : found.artefact->ring) ring.emplace_back(found.rates.nodes[node]);
  value.set("ring", JsonValue(std::move(ring)));
  value.set("slowest", JsonValue(std::string(found.partner())));
  value.set("mean_bytes_per_s",
            JsonValue(found.in_bytes(found.artefact->mean_rate) / BytesPerSecond{1}));
  value.set("usual_bytes_per_s",
            JsonValue(found.in_bytes(found.artefact->usual_rate) / BytesPerSecond{1}));
  value.set("chance", JsonValue(found.artefact->chance));
  value.set("cleaned", JsonValue(found.is_cleaned));
  return value;
}

}  // namespace

std::string count_text(std::size_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

std::string basis_text(const InferredPair& pair) {
  return pair.basis == InferredPair::Basis::reverse ? "the other direction"
                                                    : "the median of both nodes' rates";
}

std::string findings_text(const MpigraphFindings& found) {
  const auto rate = [&](double number) { return to_text(found.in_bytes(number)); };
  std::string text =
      found.file + ": " + found.tool + ", " + count_text(found.rates.nodes.size(), "node", "nodes");
  if (found.rates.processes_per_node > 1)
    text += " of " + std::to_string(found.rates.processes_per_node) + " processes";
  text += "\n\n  a pair, one rail   median " + rate(found.statistics.median) + ", from " +
          rate(found.statistics.least) + " to " + rate(found.statistics.most) + ", spread " +
          percent_text(found.statistics.spread) + "\n  rails              " +
          std::to_string(found.rails) + "\n  two directions     differ by " +
          percent_text(found.statistics.mean_asymmetry) + " on average, " +
          percent_text(found.statistics.most_asymmetry) + " at most\n";
  if (found.difference_of_tables)
    text += "  Send and Recv      differ by " + percent_text(*found.difference_of_tables) +
            " (median)\n";
  text += "  phase artefact     ";
  if (found.artefact)
    text += "the slowest " + std::string(found.partner()) + " make one ring, " + ring_text(found) +
            "\n                     " + rate(found.artefact->mean_rate) + " on it against " +
            rate(found.artefact->usual_rate) + "; " +
            (found.is_cleaned ? "replaced by medians" : "kept") + "\n";
  else
    text += found.rates.nodes.size() < 6 ? "not judged below 6 nodes\n" : "none\n";
  text += "  pairs inferred     " +
          (found.inferred.empty() ? std::string("none") : std::to_string(found.inferred.size())) +
          "\n";
  return text;
}

JsonValue findings_json(const MpigraphFindings& found) {
  JsonValue json(JsonValue::Object{});
  const auto rate = [&](double number) {
    return JsonValue(found.in_bytes(number) / BytesPerSecond{1});
  };
  JsonValue::Array nodes;
  for (const std::string& node : found.rates.nodes) nodes.emplace_back(node);
  json.set("table", JsonValue(std::string(name_of(found.kind))));
  json.set("nodes", JsonValue(std::move(nodes)));
  json.set("processes_per_node", JsonValue(std::int64_t{found.rates.processes_per_node}));
  json.set("rails", JsonValue(std::int64_t{found.rails}));
  json.set("median_bytes_per_s", rate(found.statistics.median));
  json.set("least_bytes_per_s", rate(found.statistics.least));
  json.set("most_bytes_per_s", rate(found.statistics.most));
  json.set("spread", JsonValue(found.statistics.spread));
  json.set("mean_asymmetry", JsonValue(found.statistics.mean_asymmetry));
  json.set("most_asymmetry", JsonValue(found.statistics.most_asymmetry));
  if (found.difference_of_tables)
    json.set("send_recv_difference", JsonValue(*found.difference_of_tables));
  json.set("phase_artefact", artefact_json(found));
  json.set("inferred", array_of(found.inferred, [&](const InferredPair& pair) {
             JsonValue item(JsonValue::Object{});
             item.set("from", JsonValue(found.rates.nodes[pair.from]));
             item.set("to", JsonValue(found.rates.nodes[pair.to]));
             item.set("bytes_per_s", rate(pair.rate));
             item.set("basis", JsonValue(basis_text(pair)));
             return item;
           }));
  return json;
}

}  // namespace windtunnel
