#include "units/amount_range.hpp"

#include <algorithm>

#include "core/contracts.hpp"
#include "units/quantity_reader.hpp"
#include "units/unit_table.hpp"

namespace windtunnel {
namespace {

template <class Amount>
Amount amount_of(const char* text) {
  std::string problem, suggestion;
  const auto amount = parse_quantity<Amount>(text, problem, suggestion);
  WT_EXPECT(amount.has_value());
  return *amount;
}

}  // namespace

template <class Amount>
RangeSide side_of(Amount amount, AmountRange range) {
  if (amount < amount_of<Amount>(range.least)) return RangeSide::below;
  return amount > amount_of<Amount>(range.most) ? RangeSide::above : RangeSide::inside;
}

template <class Amount>
Amount clamped(Amount amount, AmountRange range) {
  return std::clamp(amount, amount_of<Amount>(range.least), amount_of<Amount>(range.most));
}

template <class Amount>
std::string range_suggestion(AmountRange range) {
  return "write " + detail::unit_table<Amount>().kind + " from " + range.least + " to " +
         range.most;
}

template RangeSide side_of(Bytes, AmountRange);
template RangeSide side_of(Seconds, AmountRange);
template RangeSide side_of(BytesPerSecond, AmountRange);
template RangeSide side_of(FlopsPerSecond, AmountRange);
template BytesPerSecond clamped(BytesPerSecond, AmountRange);
template std::string range_suggestion<Bytes>(AmountRange);
template std::string range_suggestion<Seconds>(AmountRange);
template std::string range_suggestion<BytesPerSecond>(AmountRange);
template std::string range_suggestion<FlopsPerSecond>(AmountRange);

}  // namespace windtunnel
