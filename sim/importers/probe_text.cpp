#include "importers/probe_text.hpp"

#include <map>

#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

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
  switch (each.kind) {
    case ProbeKind::gemm:
    case ProbeKind::copy:
      return false;
    case ProbeKind::launch:
      return each.name == "stream";
    case ProbeKind::collective:
      return each.name == "all_to_all";
    default:
      return true;
  }
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

}  // namespace

std::string unplaced_text(const std::vector<ProbeMeasurement>& measurements, const Device& device) {
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

}  // namespace windtunnel
