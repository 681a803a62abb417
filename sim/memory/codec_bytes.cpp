#include "memory/codec_bytes.hpp"

#include <algorithm>

namespace windtunnel {

void CodecBytes::add(const Operation& operation, double times) {
  const KeptByCodec& kept = operation.held.codec;
  KeptByCodec& sum = of(operation);
  sum.residuals += kept.residuals * times;
  sum.factors += kept.factors * times;
  sum.buffers = std::max(sum.buffers, kept.buffers);
}

void CodecBytes::add(const PassOperations& pass) {
  for (const Operation& operation : pass.before) add(operation);
  for (const Operation& operation : pass.layer) add(operation, pass.layers);
  for (const Operation& operation : pass.after) add(operation);
}

void CodecBytes::add_message(const Operation& message, bool sends, bool receives) {
  const KeptByCodec& kept = message.held.codec;
  const double ends = (sends ? 1 : 0) + (receives ? 1 : 0);
  KeptByCodec& sum = of(message);
  sum.factors += kept.factors * ends;
  sum.buffers += kept.buffers * ends;
  if (sends) sum.residuals += kept.residuals;
}

Bytes CodecBytes::total() const {
  KeptByCodec sum;
  for (const KeptByCodec& kept : by_traffic_) {
    sum.residuals += kept.residuals;
    sum.factors += kept.factors;
    sum.buffers += kept.buffers;
  }
  return sum.total();
}

}  // namespace windtunnel
