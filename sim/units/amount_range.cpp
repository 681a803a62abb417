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

template <class Amount>
struct Ends {
  Amount least, most;
};

template <class Amount>
Ends<Amount> read_ends(AmountRange range) {
  return {amount_of<Amount>(range.least), amount_of<Amount>(range.most)};
}

/// Parses the ends of a range. Those of the default range are parsed once.
template <class Amount>
Ends<Amount> ends_of(AmountRange range) {
  constexpr AmountRange usual = usual_range<Amount>();
  static const Ends<Amount> usual_ends = read_ends<Amount>(usual);
  const bool is_usual = range.least == usual.least && range.most == usual.most;
  return is_usual ? usual_ends : read_ends<Amount>(range);
}

}  // namespace

template <class Amount>
RangeSide side_of(Amount amount, AmountRange range) {
  const Ends<Amount> ends = ends_of<Amount>(range);
  if (amount < ends.least) return RangeSide::below;
  return amount > ends.most ? RangeSide::above : RangeSide::inside;
}

template <class Amount>
Amount clamped(Amount amount, AmountRange range) {
  const Ends<Amount> ends = ends_of<Amount>(range);
  return std::clamp(amount, ends.least, ends.most);
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
