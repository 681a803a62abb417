#include <algorithm>

#include "cost/kernel_cost.hpp"
#include "plan/compression.hpp"

namespace windtunnel {
namespace {

constexpr Bytes factor_size{4};  // factors are sent in fp32
constexpr int most_rank = 65536;
/// Optimus-CC's ranks (arXiv:2301.09830).
constexpr int message_rank = 16, gradient_rank = 128;

double rank_of(const Compressor& c, const CodecMatrix& m) {
  return std::min(c.setting("rank"), std::min(m.rows, m.columns));
}
Bytes p_size(const Compressor& c, const CodecMatrix& m) {
  return factor_size * (m.rows * rank_of(c, m) * m.count);
}
Bytes q_size(const Compressor& c, const CodecMatrix& m) {
  return factor_size * (m.columns * rank_of(c, m) * m.count);
}

/// Products of PowerSGD, in the precision its factors have: fp32, by tensor cores where they take it.
class Kernels {
 public:
  Kernels(const Compressor& compressor, const Device& device)
      : compressor_(compressor), device_(device) {
    context_.device = &device;
    context_.precision = device.peak.contains(Precision::tf32) ? Precision::tf32 : Precision::fp32;
  }

  /// One orthogonalisation of each matrix's factor.
  Seconds columns(const CodecMatrix& m) const {
    return *device_.codecs->column_step * (rank_of(compressor_, m) * m.count);
  }
  Seconds make_p(const CodecMatrix& m) const {
    return product(m.rows, rank_of(compressor_, m), m.columns, m);
  }
  Seconds make_q(const CodecMatrix& m) const {
    return product(m.columns, rank_of(compressor_, m), m.rows, m);
  }
  Seconds restore(const CodecMatrix& m) const {
    return product(m.rows, m.columns, rank_of(compressor_, m), m);
  }
  /// Residual added before, and what is lost written after: three passes each over the matrix in fp32.
  Seconds feedback(const CodecMatrix& m) const {
    constexpr double passes = 6;
    return compressor_.error_feedback ? memory_time(factor_size * (m.elements() * passes), device_)
                                      : Seconds{0};
  }

 private:
  Seconds product(double rows, double columns, double inner, const CodecMatrix& m) const {
    return gemm_time({rows, columns, inner}, context_) * m.count;
  }

  const Compressor& compressor_;
  const Device& device_;
  KernelContext context_;
};

/// One power iteration on the n x k matrix M with a warm-started Q (Vogels et al. 2019, arXiv:1905.13727, algorithm 1), in fp32:
///   message:    encode = 2 r t_col + GEMM(n,r,k) + GEMM(k,r,n) + [error feedback] GEMM(n,k,r) and 24 n k bytes of memory traffic
///               decode = GEMM(n,k,r);   P is n r, Q is k r values of 4 bytes
///   gradients:  P = M Q, all-reduce of P, orthogonalisation of P (r steps per matrix), Q = M'P, all-reduce of Q, M = P Q'.
///               P and Q are linear in M, so both are all-reduced as they are; nothing is encoded again on the way.
/// t_col: one step of the orthogonalisation, whose columns depend on each other: Q's and P's r columns cost 2 r steps
/// whatever their length. r <= min(n, k).
class PowerSgdCost final : public Codec {
 public:
  PowerSgdCost()
      : Codec({.name = "powersgd",
               .about = "low rank, sent as two factors; rank, error_feedback",
               .keys = {{"rank", CodecKey::Type::whole_number, 1, most_rank}},
               .form = CodecForm::factors,
               .reach = CodecReach::some_values}) {}

  std::optional<double> ratio(const Compressor& /*c*/, Bytes /*element*/) const override {
    return std::nullopt;
  }

  EncodedMessage encode_message(const Compressor& c, const Device& device,
                                const CodecMessage& message) const override {
    const CodecMatrix& m = message.matrix;
    const Kernels kernels(c, device);
    EncodedMessage encoded;
    encoded.first = p_size(c, m);
    encoded.second = q_size(c, m);
    encoded.encode = kernels.columns(m) * 2 + kernels.make_p(m) + kernels.make_q(m);
    if (c.error_feedback) encoded.encode += kernels.restore(m) + kernels.feedback(m);
    encoded.decode = kernels.restore(m);
    return encoded;
  }

  EncodedCollective encode_matrices(const Compressor& c, const Device& device,
                                    const std::vector<CodecMatrix>& matrices,
                                    Bytes rest) const override {
    const Kernels kernels(c, device);
    EncodedCollective encoded;
    encoded.payload = rest;
    for (const CodecMatrix& m : matrices) {
      encoded.payload += p_size(c, m);
      encoded.second_payload += q_size(c, m);
      encoded.encode += kernels.make_p(m);
      encoded.between += kernels.columns(m) + kernels.make_q(m);
      encoded.decode += kernels.restore(m) + kernels.feedback(m);
    }
    return encoded;
  }

  Bytes kept(const Compressor& c, const CodecMessage& message) const override {
    return p_size(c, message.matrix) + q_size(c, message.matrix);
  }

  std::vector<std::string> device_keys(const Compressor& /*c*/,
                                       const CodecSpeeds& /*speeds*/) const override {
    return {"column_step"};
  }
  std::optional<std::string> missing_key(const CodecSpeeds& speeds) const override {
    return speeds.column_step ? std::nullopt : std::optional<std::string>("column_step");
  }

  CodecTrial trial(const TrialTraffic& traffic) const override {
    const bool gradients = traffic.kind == TrialTraffic::Kind::replica_gradients;
    const std::string rank = std::to_string(gradients ? gradient_rank : message_rank);
    return {"powersgd of rank " + rank, R"("rank":)" + rank};
  }
};

}  // namespace

const Codec& powersgd_codec() {
  static const PowerSgdCost codec;
  return codec;
}

}  // namespace windtunnel
