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

/// Rate of one node's network cards, from a run over several nodes or NVLink domains. What a node sends is that of the
/// algorithm that the simulation takes too (all_reduce_crossing()): in a ring what one GPU sends in all, so that the cards' rate is
/// the bus bandwidth; over two nodes a tree, some half of it.
struct CardRate {
  BusBandwidthFit fit;
  bool is_saturated = false;  ///< the largest size is near the limit, which then is `rate`
  std::string algorithm;      ///< "a ring"
  BytesPerSecond rate{};      ///< out of a node, as the algorithm sends
  int cards = 0;              ///< that the run's GPUs use
  double efficiency = 0;      ///< of their datasheet rate
  /// The work inside a node, as `base` has it, lasts about as long as the run: its cards carry at least `rate`.
  bool is_bound_inside = false;
};
CardRate card_rate(const NcclRun& run, const Platform& base);

}  // namespace windtunnel
