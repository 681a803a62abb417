#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/object_reader.hpp"
#include "units/amount_range.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// Text with a unit to an amount: "200 Gbps" (bits), "25 GB/s", "900 GBps" (bytes), "1.5 us", "80
/// GB" (10^9), "80 GiB" (2^30), "312 TFLOPS", "312 TFLOP/s". The space is optional; b and B are
/// distinguished; "200 gbps" is refused with both readings. Letters in the wrong case are accepted
/// only where one reading is left ("312 tflops"). Negative and infinite amounts are refused. On
/// failure the result is empty, `problem` says why and `suggestion` what to write: `range`, where the
/// amount is beyond the numbers of this machine.
template <class Amount>
std::optional<Amount> parse_quantity(std::string_view text, std::string& problem,
                                     std::string& suggestion,
                                     std::optional<AmountRange> range = {});

/// An amount of any kind as it is written.
struct WrittenAmount {
  double number = 0;
  std::string unit;   ///< "Gbps"
  double factor = 1;  ///< one such unit in SI base amounts
  std::string kind;   ///< "a data rate"
};
/// "25 Gbps" taken apart; nothing for a text that parse_quantity() takes for no amount.
std::optional<WrittenAmount> written_amount(std::string_view text);

/// Member `key` as an amount within `range`; a bare number is a problem that shows both
/// readings. A problem makes the stand-in 1 (or `fallback`).
template <class Amount>
Amount required_quantity(ObjectReader& reader, std::string_view key,
                         AmountRange range = usual_range<Amount>());
/// As required_quantity; absent: `fallback`, a text with unit, is read instead and shown as
/// defaulted.
template <class Amount>
Amount optional_quantity(ObjectReader& reader, std::string_view key, std::string_view fallback,
                         AmountRange range = usual_range<Amount>());
/// As required_quantity, but nothing when the key is absent.
template <class Amount>
std::optional<Amount> given_quantity(ObjectReader& reader, std::string_view key) {
  if (reader.take(key) == nullptr) return std::nullopt;
  return required_quantity<Amount>(reader, key);
}

/// A short text for people: "16.31 s", "20.4 ms", "61.2 GiB", "25.0 GB/s", "138 TFLOP/s".
std::string to_text(Seconds amount);
std::string to_text(Bytes amount);           ///< binary units: KiB, MiB, GiB, TiB
std::string to_text(BytesPerSecond amount);  ///< decimal units: GB/s
std::string to_text(FlopsPerSecond amount);

/// In "s" or "B/s", so that reading it again gives the same amount.
std::string exact_amount(Seconds amount);
std::string exact_amount(BytesPerSecond amount);

}  // namespace windtunnel
