#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/compression.hpp"
#include "platform/device.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// Matrices of one shape. Only powersgd minds shapes.
struct CodecMatrix {
  double rows = 0, columns = 0;
  int count = 1;
  double elements() const { return rows * columns * count; }
};

/// A tensor that one rank sends to one other.
struct CodecMessage {
  Bytes size{}, element{};
  CodecMatrix matrix;  ///< as powersgd sees it
};

/// What one encoded message is on the wire, and what it costs.
struct EncodedMessage {
  Bytes first{}, second{};  ///< powersgd sends P, then Q; the others one part
  Seconds encode{}, decode{};
  Bytes size() const { return first + second; }
};

/// What a compressed ring collective is, seen by one of its members: codec work, and the payload whose uncompressed collective
/// moves as many bytes as the compressed one does.
struct EncodedCollective {
  Bytes payload{};         ///< powersgd: of P, and of what is not compressed
  Bytes second_payload{};  ///< powersgd: of Q
  Seconds encode{};        ///< before the collective
  Seconds between{};       ///< powersgd: between P and Q
  Seconds decode{};        ///< after it
};

/// Which collective is compressed.
enum class RingKind { all_reduce, reduce_scatter, all_gather };

/// Uncompressed bytes over bytes on the wire of an elementwise codec (not powersgd), for values of `element` bytes:
///   zfp: bits of an element / rate;  mpc, fixed: as given;  int8: element / 1 byte;
///   topk: element / (density (element + 4 bytes of index)).
double compression_ratio(const Compressor& compressor, Bytes element);

/// Whether a message of this size is compressed at all.
inline bool is_compressed(const Compressor& compressor, Bytes size) {
  return size >= compressor.threshold;
}

/// A message from one rank to one other; encoded once (seeds: MVAPICH, Optimus-CC). S bytes in ceil(S / buffer) pieces, or, in
/// Q chunks, Q times what S / Q bytes take:
///   zfp, mpc:  t = pieces * launch + S / C      C: throughput of the device file, for zfp linear in 1/C between its rates
///   fixed:     t = S / rate
///   int8:      encode reads S twice and writes S/ratio, decode the other way round, at the memory rate; 4 bytes of scale
///   topk:      encode S / selection; decode fills S and reads, adds and writes the values sent, at the memory rate
///   powersgd:  one power iteration on the n x k matrix M with a warm-started Q (Vogels et al. 2019, algorithm 1), fp32:
///              encode = 2 r t_col + GEMM(n,r,k) + GEMM(k,r,n) + [error feedback] GEMM(n,k,r) and 24 n k bytes of memory traffic
///              decode = GEMM(n,k,r);   P is n r, Q is k r values of 4 bytes.
/// t_col: one step of the orthogonalisation, whose columns depend on each other: Q's and P's r columns cost 2 r steps
/// whatever their length. r <= min(n, k). Ignores what the kernels take from computing beside them.
EncodedMessage encode_message(const Compressor& compressor, const Device& device,
                              const CodecMessage& message);

/// A ring over `members` of S bytes a member. An elementwise codec cannot add compressed numbers, so each hop of the
/// reduce-scatter decodes, adds and encodes again; the all-gather encodes once and forwards:
///   all-reduce: encode n blocks of S/n, decode n-1 blocks one by one and n-1 together
///   reduce-scatter: n-1 and n-1;   all-gather: 1, and n-1 together
/// topk has no fixed positions to add at: an all-reduce gathers every member's values, S/ratio from each, at all.
/// A block below the threshold is not compressed. Not for powersgd.
EncodedCollective encode_ring(const Compressor& compressor, const Device& device, RingKind kind,
                              Bytes payload, Bytes element, int members);

/// PowerSGD's all-reduce of a set of matrices: P = M Q, all-reduce of P, orthogonalisation of P (r steps a matrix),
/// Q = M'P, all-reduce of Q, M = P Q'. P and Q are linear in M, so both are all-reduced as they are; nothing is encoded again on
/// the way. `rest`: bytes of vectors, which go uncompressed with P.
EncodedCollective encode_powersgd(const Compressor& compressor, const Device& device,
                                  const std::vector<CodecMatrix>& matrices, Bytes rest);

/// What is left to wait for of a message's codec work when it goes in Q equal pieces, one behind the other through three machines:
/// the encoder (E in all), the wire (x = bytes / bandwidth) and the decoder (D).
///   whole = max(E, x, D) + (E + x + D - max(E, x, D)) / Q;   left of E + D: whole - x, shared between both ends in proportion
/// A flow shop of equal jobs in series: the first piece passes all three, the others follow as fast as the slowest allows. The latency
/// of the way is not in x: pieces are on the way at the same time, so the last one pays it once, after its bytes.
EncodedMessage in_chunks(const EncodedMessage& message, int chunks, Seconds wire);

/// The keys of the device's `codecs` that the codec's cost is made from: "zfp/1/encode".
std::vector<std::string> codec_keys(const Compressor& compressor, const CodecSpeeds& speeds);

/// Why the codec cannot run on this device; nothing when it can.
std::optional<std::string> missing_speed(const Compressor& compressor, const Device& device);

}  // namespace windtunnel
