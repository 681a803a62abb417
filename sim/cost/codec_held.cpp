#include "cost/codec_held.hpp"

#include <algorithm>

#include "cost/codec_cost.hpp"

namespace windtunnel {
namespace {

constexpr Bytes single{4};  // of an fp32 value
constexpr double ends = 2;  // one block on its way out, one on its way in

/// One encoded message or block of `size` uncompressed bytes.
Bytes encoded_buffer(const Compressor& c, Bytes size, Bytes element) {
  if (!is_compressed(c, size)) return {};
  const Bytes at_once = c.buffer > Bytes{0} ? std::min(size, c.buffer) : size;
  return c.codec->kept(c, {at_once, element, {}});
}

}  // namespace

KeptByCodec kept_of_message(const Compressor& c, const CodecMessage& message) {
  KeptByCodec kept;
  if (!is_compressed(c, message.size)) return kept;
  if (c.codec->sends_factors())
    kept.factors = c.codec->kept(c, message);
  else
    kept.buffers = encoded_buffer(c, message.size, message.element);
  if (c.error_feedback) kept.residuals = single * (message.size / message.element);
  return kept;
}

KeptByCodec kept_of_ring(const Compressor& c, Bytes payload, Bytes element, int members) {
  KeptByCodec kept;
  if (members > 1) kept.buffers = encoded_buffer(c, payload / members, element) * ends;
  return kept;
}

KeptByCodec kept_of_gradients(const Compressor& c, Bytes payload, Bytes element, int members) {
  KeptByCodec kept;
  if (!c.codec->sends_factors()) kept = kept_of_ring(c, payload, element, members);
  if (c.error_feedback) kept.residuals = single * (payload / element);
  return kept;
}

KeptByCodec kept_of_gradients(const Compressor& c, const std::vector<CodecMatrix>& matrices,
                              Bytes element, int members) {
  double elements = 0;
  for (const CodecMatrix& matrix : matrices) elements += matrix.elements();
  KeptByCodec kept = kept_of_gradients(c, element * elements, element, members);
  for (const CodecMatrix& matrix : matrices)
    if (c.codec->sends_factors())
      kept.factors += c.codec->kept(c, {element * matrix.elements(), element, matrix});
  return kept;
}

}  // namespace windtunnel
