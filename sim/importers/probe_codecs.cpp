#include "importers/probe_codecs.hpp"

#include <optional>
#include <set>

#include "importers/fitted_interconnect.hpp"
#include "importers/probe_fit.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

class ProbedCodecs {
 public:
  ProbedCodecs(ProbeNumbers& numbers, JsonValue& device, const Device& known,
               const std::string& base, const std::vector<ProbeMeasurement>& measurements)
      : numbers_(&numbers),
        device_(&device),
        known_(&known),
        base_(base),
        measurements_(&measurements) {}

  void write() {
    JsonValue* codecs = device_->find("codecs");
    write_call_cost(codecs);
    codecs = device_->find("codecs");
    if (codecs == nullptr) return;
    const auto steps = calls_of("powersgd", "orthogonalize");
    if (!steps.empty()) {
      std::vector<Seconds> times;
      for (const ProbeMeasurement& each : steps) times.push_back(each.median / each.rank);
      const Seconds step = median_of(times);
      numbers_->set(*codecs, "column_step", amount_text(step / 1_us, "us"),
                    "Gram-Schmidt in plain PyTorch, " + std::to_string(steps.size()) + " times",
                    to_text(step));
    }
    if (const auto rate = rate_of("topk", "encode"))
      numbers_->set(*codecs, "selection", amount_text(rate->rate / 1_GBps, "GB/s"),
                    "torch.topk, " + fit_text(*rate), to_text(rate->rate));
    raise_mpc(*codecs);
    raise_zfp(*codecs);
    if (!kept_codecs_.empty())
      numbers_->notes.push_back(
          "below what " + base_ +
          " has, and only a lower bound, since plain PyTorch launches dozens of kernels where a "
          "codec has one; kept: " +
          kept_codecs_);
  }

 private:
  std::vector<ProbeMeasurement> calls_of(const std::string& codec, const std::string& direction,
                                         double bits = 0) const {
    std::vector<ProbeMeasurement> calls;
    for (const ProbeMeasurement& each : *measurements_)
      if (each.kind == ProbeKind::codec && each.name == codec && each.direction == direction &&
          each.bits == bits)
        calls.push_back(each);
    return calls;
  }

  void write_call_cost(JsonValue* codecs) {
    std::vector<Seconds> times;
    for (const ProbeMeasurement& each : *measurements_)
      if (each.kind == ProbeKind::launch && each.name == "synchronized")
        times.push_back(each.median);
    if (times.empty()) return;
    if (codecs == nullptr) codecs = &device_->set("codecs", JsonValue(JsonValue::Object{}));
    const Seconds launch = median_of(times);
    numbers_->set(*codecs, "launch", amount_text(launch / 1_us, "us"),
                  "a kernel and the wait for it", to_text(launch));
  }

  static std::string fit_text(const StreamFit& fit) {
    return std::to_string(fit.count) + " sizes, " + percent_text(fit.error) + " error";
  }

  /// Nothing where there are no two sizes, or where the times do not depend on them.
  std::optional<StreamFit> rate_of(const std::string& codec, const std::string& direction,
                                   double bits = 0) {
    const std::vector<ProbeMeasurement> calls = calls_of(codec, direction, bits);
    std::set<double> sizes;
    for (const ProbeMeasurement& call : calls) sizes.insert(call.bytes / 1_B);
    if (sizes.size() < 2) return std::nullopt;
    const StreamFit fit = fit_stream(calls);
    if (fit.is_held) return fit;
    numbers_->notes.push_back(codec + " " + direction +
                              ": no rate, the times do not depend on the size");
    return std::nullopt;
  }

  /// What plain PyTorch does in many kernels a codec does in one: its rate is a lower bound, which replaces a smaller number.
  void raise(JsonValue& object, const std::string& key, BytesPerSecond known,
             const std::string& what, const std::optional<StreamFit>& fit) {
    if (!fit) return;
    if (fit->rate > known)
      numbers_->set(object, key, amount_text(fit->rate / 1_GBps, "GB/s"),
                    "lower bound: plain PyTorch, not the codec's own kernel; " + fit_text(*fit),
                    what + to_text(fit->rate) + ", a lower bound");
    else
      kept_codecs_ += (kept_codecs_.empty() ? "" : ", ") + what + key + " " + to_text(fit->rate);
  }

  void raise_mpc(JsonValue& codecs) {
    const auto& known = known_->codecs;
    if (!known || !known->mpc_encode) return;
    raise(codecs, "mpc_encode", *known->mpc_encode, "", rate_of("mpc_like", "encode"));
    raise(codecs, "mpc_decode", *known->mpc_decode, "", rate_of("mpc_like", "decode"));
  }

  void raise_zfp(JsonValue& codecs) {
    const auto& known = known_->codecs;
    JsonValue* list = codecs.find("zfp");
    if (!known || list == nullptr) return;
    for (std::size_t i = 0; i < known->zfp.size(); ++i) {
      const ZfpSpeed& speed = known->zfp[i];
      const std::string what = "zfp " + significant_text(speed.rate, 2) + " bits ";
      JsonValue& entry = list->array()[i];
      raise(entry, "encode", speed.encode, what, rate_of("zfp_like", "encode", speed.rate));
      raise(entry, "decode", speed.decode, what, rate_of("zfp_like", "decode", speed.rate));
    }
  }

  ProbeNumbers* numbers_;
  JsonValue* device_;
  const Device* known_;
  std::string base_;
  const std::vector<ProbeMeasurement>* measurements_;
  std::string kept_codecs_;
};

}  // namespace

void write_probed_codecs(ProbeNumbers& numbers, JsonValue& device, const Device& known,
                         const std::string& base,
                         const std::vector<ProbeMeasurement>& measurements) {
  ProbedCodecs(numbers, device, known, base, measurements).write();
}

}  // namespace windtunnel
