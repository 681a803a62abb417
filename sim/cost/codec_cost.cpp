#include "cost/codec_cost.hpp"

#include <algorithm>
#include <cmath>

#include "core/contracts.hpp"
#include "cost/kernel_cost.hpp"

namespace windtunnel {
namespace {

constexpr double bits_per_byte = 8;
constexpr Bytes index_size{4};   // of a value of topk
constexpr Bytes scale_size{4};   // one fp32 scale a message of int8
constexpr Bytes factor_size{4};  // powersgd sends its factors in fp32

double pieces_of(const Compressor& compressor, Bytes size) {
  if (compressor.buffer == Bytes{0} || size <= compressor.buffer) return 1;
  return std::ceil(size / compressor.buffer);
}

/// Linear in the time a byte between the rates of the table, constant beyond them.
template <class Throughput>
BytesPerSecond interpolated(const std::vector<ZfpSpeed>& table, double rate, const Throughput& of) {
  const auto above = std::find_if(table.begin(), table.end(),
                                  [rate](const ZfpSpeed& speed) { return speed.rate >= rate; });
  if (above == table.begin()) return of(table.front());
  if (above == table.end()) return of(table.back());
  const ZfpSpeed& below = *(above - 1);
  const double share = (rate - below.rate) / (above->rate - below.rate);
  const Seconds a_byte = 1_B / of(below) * (1 - share) + 1_B / of(*above) * share;
  return 1_B / a_byte;
}

/// Encoding or decoding of `size` bytes at `throughput`, launches included.
Seconds streaming_time(const Compressor& compressor, const Device& device, Bytes size,
                       BytesPerSecond throughput) {
  return device.codecs->launch * pieces_of(compressor, size) + size / throughput;
}

Seconds encode_time(const Compressor& c, const Device& device, Bytes size, Bytes element) {
  switch (c.codec) {
    case CodecKind::zfp:
      return streaming_time(
          c, device, size,
          interpolated(device.codecs->zfp, c.rate, [](const ZfpSpeed& s) { return s.encode; }));
    case CodecKind::mpc:
      return streaming_time(c, device, size, *device.codecs->mpc_encode);
    case CodecKind::int8:
      return memory_time(size * 2 + size / compression_ratio(c, element), device) +
             device.codecs->launch * pieces_of(c, size);
    case CodecKind::topk:
      return streaming_time(c, device, size, *device.codecs->selection);
    case CodecKind::fixed:
      return c.encode_rate ? size / *c.encode_rate : Seconds{0};
    case CodecKind::powersgd:
      break;
  }
  WT_UNREACHABLE();
}

Seconds decode_time(const Compressor& c, const Device& device, Bytes size, Bytes element) {
  switch (c.codec) {
    case CodecKind::zfp:
      return streaming_time(
          c, device, size,
          interpolated(device.codecs->zfp, c.rate, [](const ZfpSpeed& s) { return s.decode; }));
    case CodecKind::mpc:
      return streaming_time(c, device, size, *device.codecs->mpc_decode);
    case CodecKind::int8:
      return memory_time(size + size / compression_ratio(c, element), device) +
             device.codecs->launch * pieces_of(c, size);
    case CodecKind::topk:
      return memory_time(size + size / compression_ratio(c, element) * 3, device) +
             device.codecs->launch * pieces_of(c, size);
    case CodecKind::fixed:
      return c.decode_rate ? size / *c.decode_rate : Seconds{0};
    case CodecKind::powersgd:
      break;
  }
  WT_UNREACHABLE();
}

Bytes wire_size(const Compressor& c, Bytes size, Bytes element) {
  return size / compression_ratio(c, element) +
         (c.codec == CodecKind::int8 ? scale_size : Bytes{0});
}

/// Products of PowerSGD, in the precision its factors have: fp32, by tensor cores where they take it.
class PowerSgd {
 public:
  PowerSgd(const Compressor& compressor, const Device& device)
      : compressor_(compressor), device_(device) {
    context_.device = &device;
    context_.precision = device.peak.contains(Precision::tf32) ? Precision::tf32 : Precision::fp32;
  }

  double rank(const CodecMatrix& m) const {
    return std::min<double>(compressor_.rank, std::min(m.rows, m.columns));
  }
  Bytes p_size(const CodecMatrix& m) const { return factor_size * (m.rows * rank(m) * m.count); }
  Bytes q_size(const CodecMatrix& m) const { return factor_size * (m.columns * rank(m) * m.count); }
  /// One orthogonalisation of each matrix's factor.
  Seconds columns(const CodecMatrix& m) const {
    return *device_.codecs->column_step * (rank(m) * m.count);
  }
  Seconds make_p(const CodecMatrix& m) const { return product(m.rows, rank(m), m.columns, m); }
  Seconds make_q(const CodecMatrix& m) const { return product(m.columns, rank(m), m.rows, m); }
  Seconds restore(const CodecMatrix& m) const { return product(m.rows, m.columns, rank(m), m); }
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

EncodedMessage powersgd_message(const Compressor& c, const Device& device, const CodecMatrix& m) {
  const PowerSgd powersgd(c, device);
  EncodedMessage encoded;
  encoded.first = powersgd.p_size(m);
  encoded.second = powersgd.q_size(m);
  encoded.encode = powersgd.columns(m) * 2 + powersgd.make_p(m) + powersgd.make_q(m);
  if (c.error_feedback) encoded.encode += powersgd.restore(m) + powersgd.feedback(m);
  encoded.decode = powersgd.restore(m);
  return encoded;
}

}  // namespace

double compression_ratio(const Compressor& c, Bytes element) {
  switch (c.codec) {
    case CodecKind::zfp:
      return element / 1_B * bits_per_byte / c.rate;
    case CodecKind::mpc:
    case CodecKind::fixed:
      return c.ratio;
    case CodecKind::int8:
      return element / 1_B;
    case CodecKind::topk:
      return element / (c.density * (element + index_size));
    case CodecKind::powersgd:
      break;
  }
  WT_UNREACHABLE();
}

EncodedMessage encode_message(const Compressor& c, const Device& device, const CodecMessage& m) {
  WT_EXPECT(!missing_speed(c, device) && m.size > Bytes{0});
  if (c.codec == CodecKind::powersgd) return powersgd_message(c, device, m.matrix);
  const double chunks = c.chunks;
  const Bytes piece = m.size / chunks;
  return {wire_size(c, piece, m.element) * chunks, Bytes{0},
          encode_time(c, device, piece, m.element) * chunks,
          decode_time(c, device, piece, m.element) * chunks};
}

EncodedCollective encode_ring(const Compressor& c, const Device& device, RingKind kind,
                              Bytes payload, Bytes element, int members) {
  WT_EXPECT(c.codec != CodecKind::powersgd && members > 0 && !missing_speed(c, device));
  const double n = members;
  const Bytes block = payload / n;
  EncodedCollective encoded{payload, {}, {}, {}, {}};
  if (members == 1 || !is_compressed(c, block)) return encoded;
  encoded.payload = payload / compression_ratio(c, element);
  if (c.codec == CodecKind::topk) {
    WT_EXPECT(kind != RingKind::all_gather);
    const bool to_all = kind == RingKind::all_reduce;
    encoded.encode = encode_time(c, device, payload, element);
    encoded.decode = decode_time(c, device, to_all ? payload : block, element) * (n - 1);
    // All values of the other n-1 members to everybody: as many bytes as an all-reduce of n/2 times as much.
    if (to_all) encoded.payload *= n / 2;
    return encoded;
  }
  const bool reduces = kind != RingKind::all_gather, gathers = kind != RingKind::reduce_scatter;
  const double encoded_blocks = (reduces ? n - 1 : 0) + (gathers ? 1 : 0);
  encoded.encode = encode_time(c, device, block, element) * encoded_blocks;
  if (reduces) encoded.decode += decode_time(c, device, block, element) * (n - 1);
  if (gathers) encoded.decode += decode_time(c, device, block * (n - 1), element);
  return encoded;
}

EncodedCollective encode_powersgd(const Compressor& c, const Device& device,
                                  const std::vector<CodecMatrix>& matrices, Bytes rest) {
  WT_EXPECT(c.codec == CodecKind::powersgd && !missing_speed(c, device));
  const PowerSgd powersgd(c, device);
  EncodedCollective encoded;
  encoded.payload = rest;
  for (const CodecMatrix& m : matrices) {
    encoded.payload += powersgd.p_size(m);
    encoded.second_payload += powersgd.q_size(m);
    encoded.encode += powersgd.make_p(m);
    encoded.between += powersgd.columns(m) + powersgd.make_q(m);
    encoded.decode += powersgd.restore(m) + powersgd.feedback(m);
  }
  return encoded;
}

EncodedMessage in_chunks(const EncodedMessage& message, int chunks, Seconds wire) {
  WT_EXPECT(chunks > 0);
  const Seconds codec = message.encode + message.decode;
  if (chunks == 1 || codec == Seconds{0}) return message;
  const Seconds longest = std::max({message.encode, wire, message.decode});
  const Seconds whole = longest + (codec + wire - longest) / static_cast<double>(chunks);
  const double exposed = (whole - wire) / codec;
  EncodedMessage overlapped = message;
  overlapped.encode = message.encode * exposed;
  overlapped.decode = message.decode * exposed;
  return overlapped;
}

std::vector<std::string> codec_keys(const Compressor& c, const CodecSpeeds& speeds) {
  switch (c.codec) {
    case CodecKind::fixed:
      return {};
    case CodecKind::powersgd:
      return {"column_step"};
    case CodecKind::mpc:
      return {"launch", "mpc_encode", "mpc_decode"};
    case CodecKind::topk:
      return {"launch", "selection"};
    case CodecKind::int8:
      return {"launch"};
    case CodecKind::zfp:
      break;
  }
  std::vector<std::string> keys{"launch"};
  for (std::size_t i = 0; i < speeds.zfp.size(); ++i) {
    // The rates that enclose the one in use.
    const bool starts = i + 1 == speeds.zfp.size() || speeds.zfp[i + 1].rate > c.rate;
    const bool ends = i == 0 || speeds.zfp[i - 1].rate < c.rate;
    if (!starts || !ends) continue;
    for (const char* key : {"/encode", "/decode"}) keys.push_back("zfp/" + std::to_string(i) + key);
  }
  return keys;
}

std::optional<std::string> missing_speed(const Compressor& c, const Device& device) {
  const auto missing = [&](const char* key) -> std::optional<std::string> {
    return "device " + device.name + " has no codecs/" + key + ", which " + name_of(c.codec) +
           " needs";
  };
  if (c.codec == CodecKind::fixed) return std::nullopt;
  if (!device.codecs) return missing("launch");
  const CodecSpeeds& speeds = *device.codecs;
  if (c.codec == CodecKind::powersgd && !speeds.column_step) return missing("column_step");
  if (c.codec == CodecKind::topk && !speeds.selection) return missing("selection");
  if (c.codec == CodecKind::mpc && !speeds.mpc_encode) return missing("mpc_encode");
  if (c.codec == CodecKind::zfp && speeds.zfp.empty()) return missing("zfp");
  return std::nullopt;
}

}  // namespace windtunnel
