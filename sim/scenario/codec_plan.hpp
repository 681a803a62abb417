#pragma once

#include <vector>

#include "cost/codec_cost.hpp"
#include "cost/stage_cost.hpp"
#include "plan/plan.hpp"
#include "platform/platform.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {

/// Compression made concrete for one plan: which messages are encoded, what they weigh, what encoding them costs. The
/// referred objects must outlive it.
class CodecPlan {
 public:
  CodecPlan(const Transformer& model, const Plan& plan, const SoftwareProfile& software);

  /// What the program of `stage` compresses.
  CompressedTraffic traffic_of(StageId stage) const;
  /// What one rank sends, in the order of MessageRow.
  std::vector<Bytes> message_sizes(const Device& device) const;
  /// The rows of a device's work table behind DeviceRow, in the order of CodecRow and BucketRow; none where nothing is
  /// compressed.
  std::vector<Work> rows(const Device& device) const;

 private:
  bool is_encoded(const std::optional<Compressor>& compressor) const;
  CodecParts parts_of(const std::optional<Compressor>& compressor) const;
  EncodedMessage encoded(const std::optional<Compressor>& compressor, const Device& device) const;

  const Plan& plan_;
  const Compression& compression_;
  CodecMessage message_;  ///< between stages, one rank's
};

}  // namespace windtunnel
