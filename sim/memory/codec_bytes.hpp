#pragma once

#include <array>

#include "operations/operation.hpp"

namespace windtunnel {

/// Bytes that compression keeps on one rank all through an iteration, added up from what its operations keep by class of traffic. Collectives
/// of a class take turns with the largest of their buffers.
class CodecBytes {
 public:
  void add(const Operation& operation, double times = 1);
  void add(const PassOperations& pass);
  /// At each end that the rank is of a message: residuals only where it sends.
  void add_message(const Operation& message, bool sends, bool receives);
  Bytes total() const;

 private:
  KeptByCodec& of(const Operation& operation) {
    return by_traffic_[static_cast<std::size_t>(row_of(operation.label).traffic)];
  }
  std::array<KeptByCodec, num_traffic_classes> by_traffic_{};
};

}  // namespace windtunnel
