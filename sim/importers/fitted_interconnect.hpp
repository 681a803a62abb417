#pragma once

#include <string>

#include "core/json_value.hpp"
#include "importers/collective_fit.hpp"
#include "platform/platform.hpp"

namespace windtunnel {

/// "16 us" of 16.0 and "us": an amount as a file has it, with four digits.
JsonValue amount_text(double number, const char* unit);
/// A ratio with as many digits.
JsonValue ratio_number(double ratio);

int num_fitted(const InterconnectFit& fit);
double mean_error(const InterconnectFit& fit);  ///< of the fitted times, without their signs
double worst_error(const InterconnectFit& fit);
/// The fitted times, a line each, beside the measured ones.
std::string times_table(const InterconnectFit& fit);

/// Sets what was fitted or bounded in the `interconnect` of a node type; the rest stays as it is in `base`.
void write_constants(JsonValue& interconnect, const Interconnect& base, const InterconnectFit& fit,
                     const std::string& source);

/// What a run over several nodes says of the network cards of a node. In a ring over nodes every node sends what one GPU sends in
/// all, once, through its cards: their rate is the bus bandwidth.
struct CardRate {
  BusBandwidthFit fit;
  bool is_saturated = false;  ///< the largest size is near the limit, which then is `rate`
  BytesPerSecond rate{};
  int cards = 0;          ///< that the run's GPUs use
  double efficiency = 0;  ///< of their datasheet rate
};
CardRate card_rate(const NcclRun& run, const NodeType& node);

}  // namespace windtunnel
