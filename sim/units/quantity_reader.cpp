#include "units/quantity_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "core/contracts.hpp"
#include "core/utf8.hpp"
#include "units/unit_table.hpp"

namespace windtunnel {
namespace {

using detail::Unit;
using detail::unit_table;
using detail::UnitTable;

/// Bare numbers from here on are taken for base units (25000000000 is bytes per second), smaller
/// ones for giga.
constexpr double large_number = 1e6;

struct Complaint {
  std::string problem;
  std::string suggestion;
  bool is_beyond_numbers = false;
};

Complaint beyond_numbers(std::string problem, std::string suggestion) {
  return {std::move(problem), std::move(suggestion), true};
}

/// "400 Gbps" taken apart.
struct Written {
  std::string_view all;
  std::string_view number;
  std::string unit;  ///< µ as u
  double value = 0;
};

/// As text_for_message, but in single quotes.
std::string in_quotes(std::string_view text) {
  std::string shown = text_for_message(JsonValue(std::string(text))).substr(1);
  if (shown.ends_with('"')) shown.pop_back();
  return "'" + shown + "'";
}

std::string example(const UnitTable& table) {
  return "write for example \"" + table.example + "\"";
}

std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// U+00B5 (micro sign) and U+03BC (Greek mu) as "u".
std::string with_plain_micro(std::string_view unit) {
  for (const std::string_view micro : {"\xC2\xB5", "\xCE\xBC"})
    if (unit.starts_with(micro)) return "u" + std::string(unit.substr(micro.size()));
  return std::string(unit);
}

const Unit* find_unit(const UnitTable& table, std::string_view name) {
  const auto found = std::find_if(table.units.begin(), table.units.end(),
                                  [&](const Unit& unit) { return unit.name == name; });
  return found == table.units.end() ? nullptr : &*found;
}

/// Units that differ from `name` in case only, one for each factor.
std::vector<const Unit*> readings(const UnitTable& table, std::string_view name) {
  std::vector<const Unit*> found;
  for (const Unit& unit : table.units) {
    if (lower_case(unit.name) != lower_case(name)) continue;
    const bool known = std::any_of(found.begin(), found.end(),
                                   [&](const Unit* other) { return other->factor == unit.factor; });
    if (!known) found.push_back(&unit);
  }
  return found;
}

/// "400 Gbps" (= 50 GB/s) or "400 GB/s"; `prefix` is the G.
std::string bits_or_bytes(std::string_view number, double value, const std::string& prefix) {
  constexpr double bits_per_byte = 8;
  const std::string amount(number);
  return "write \"" + amount + " " + prefix + "bps\" (= " + exact_number(value / bits_per_byte) +
         " " + prefix + "B/s) or \"" + amount + " " + prefix + "B/s\"";
}

std::string decimal_or_binary(std::string_view number, std::size_t power_of_1000) {
  constexpr std::string_view decimal = "kMGTP";
  constexpr std::string_view binary = "KMGTP";
  const std::string amount(number);
  return "write \"" + amount + " " + decimal[power_of_1000 - 1] + "B\" (10^" +
         std::to_string(3 * power_of_1000) + " bytes each) or \"" + amount + " " +
         binary[power_of_1000 - 1] + "iB\" (2^" + std::to_string(10 * power_of_1000) +
         " bytes each)";
}

template <class Amount>
Complaint no_unit(const Written& written) {
  const bool large = written.value >= large_number;
  const std::string number(written.number);
  const std::string problem = in_quotes(written.all) + " has no unit (could be ";
  if constexpr (std::is_same_v<Amount, BytesPerSecond>)
    return {problem + "bits or bytes)", bits_or_bytes(number, written.value, large ? "" : "G")};
  constexpr double few_gigabytes = 1000;
  if constexpr (std::is_same_v<Amount, Bytes>)
    return written.value >= few_gigabytes
               ? Complaint{problem + "bytes or gigabytes)", "write \"" + number + " B\""}
               : Complaint{problem + "GB or GiB)", decimal_or_binary(number, 3)};
  if constexpr (std::is_same_v<Amount, Seconds>)
    return {problem + "seconds or microseconds)",
            "write \"" + number + " s\" or \"" + number + " us\""};
  const std::string unit = large ? "FLOPS" : "GFLOPS";
  return {problem + (large ? "FLOPS or TFLOPS)" : "GFLOPS or TFLOPS)"),
          "write \"" + number + " " + unit + "\" or \"" + number + " TFLOPS\""};
}

/// Bits where bytes are wanted, and gb, KB or G, which some mean as 2^30 and some as 10^9.
std::optional<Complaint> doubtful_size(const Written& written) {
  if (const Unit* bits = find_unit(detail::bit_table(), written.unit)) {
    const std::string bytes = bits->name.substr(0, bits->name.find('b')) + "B";
    const double in_bytes =
        written.value * bits->factor / find_unit(unit_table<Bytes>(), bytes)->factor;
    return Complaint{in_quotes(written.all) + " counts bits, not bytes",
                     "write \"" + exact_number(in_bytes) + " " + bytes + "\" or \"" +
                         std::string(written.number) + " " + bytes + "\""};
  }
  const std::string lower = lower_case(written.unit);
  const std::size_t power = std::string_view("kmgtp").find(lower.front()) + 1;
  if (power == 0 || (lower.size() > 1 && lower.substr(1) != "b")) return std::nullopt;
  return Complaint{in_quotes(written.all) + " could be decimal or binary",
                   decimal_or_binary(written.number, power)};
}

/// The other kind of amount that this unit would be right for, if there is one.
std::optional<std::string> other_kind(const UnitTable& wanted, const std::string& unit) {
  for (const UnitTable* table :
       {&unit_table<Bytes>(), &unit_table<Seconds>(), &unit_table<BytesPerSecond>(),
        &unit_table<FlopsPerSecond>(), &detail::bit_table()})
    if (table != &wanted && find_unit(*table, unit) != nullptr) return table->kind;
  return std::nullopt;
}

template <class Amount>
Complaint bad_unit(const Written& written) {
  const UnitTable& table = unit_table<Amount>();
  if constexpr (std::is_same_v<Amount, BytesPerSecond>) {
    const std::vector<const Unit*> found = readings(table, written.unit);
    if (found.size() > 1) {
      const std::string& name = found.front()->name;
      return {
          in_quotes(written.all) + " could be bits or bytes",
          bits_or_bytes(written.number, written.value, name.substr(0, name.find_first_of("bB")))};
    }
  }
  if constexpr (std::is_same_v<Amount, Bytes>)
    if (const auto complaint = doubtful_size(written)) return *complaint;
  if (const auto kind = other_kind(table, written.unit)) {
    const bool rate_without_time = find_unit(table, written.unit + "/s") != nullptr;
    return {in_quotes(written.all) + " is " + *kind + ", not " + table.kind,
            rate_without_time
                ? "write \"" + std::string(written.number) + " " + written.unit + "/s\""
                : example(table)};
  }
  std::vector<std::string> names;
  for (const Unit& unit : table.units) names.push_back(unit.name);
  const std::string nearest = closest_match(written.unit, names);
  return {in_quotes(written.all) + " has an unknown unit",
          nearest.empty() ? "units: " + table.usual : "did you mean \"" + nearest + "\"?"};
}

/// The factor of a known unit, in any case where the case decides nothing.
std::optional<double> factor_of(const UnitTable& table, const std::string& unit) {
  if (const Unit* found = find_unit(table, unit)) return found->factor;
  const std::vector<const Unit*> found = readings(table, unit);
  if (table.any_case && found.size() == 1) return found.front()->factor;
  return std::nullopt;
}

/// Splits `text`; a complaint about the number when there is none.
std::optional<Complaint> split(std::string_view text, const UnitTable& table, Written& written) {
  written.all = trimmed(text);
  const char* const begin = written.all.data();
  const auto [end, error] = std::from_chars(begin, begin + written.all.size(), written.value);
  if (error == std::errc::invalid_argument)
    return Complaint{in_quotes(text) + " does not begin with a number", example(table)};
  written.number = written.all.substr(0, static_cast<std::size_t>(end - begin));
  const std::string_view rest = trimmed(written.all.substr(written.number.size()));
  written.unit = with_plain_micro(rest);
  if (error == std::errc::result_out_of_range)
    return beyond_numbers(in_quotes(text) + " is beyond the range of numbers", example(table));
  if (!std::isfinite(written.value))
    return Complaint{in_quotes(text) + " is not a finite number", example(table)};
  if (rest.starts_with(','))
    return Complaint{in_quotes(text) + " has a comma in its number",
                     "write . before decimals and nothing between thousands"};
  if (std::signbit(written.value))
    return Complaint{in_quotes(text) + " is negative", example(table)};
  return std::nullopt;
}

template <class Amount>
std::optional<Amount> refused(Complaint complaint, std::string& problem, std::string& suggestion,
                              std::optional<AmountRange> range = {}) {
  if (complaint.is_beyond_numbers && range) complaint.suggestion = range_suggestion<Amount>(*range);
  problem = std::move(complaint.problem);
  suggestion = std::move(complaint.suggestion);
  return std::nullopt;
}

/// The amount at `member`; nothing, and a problem at `key`, when there is none within the range.
template <class Amount>
std::optional<Amount> amount_from(ObjectReader& reader, std::string_view key,
                                  const JsonValue& member, AmountRange range) {
  const std::string text = member.is_string() ? member.string() : text_for_message(member);
  std::string problem;
  std::string suggestion;
  if (!member.is_string() && !member.is_number()) {
    reader.problem(key,
                   std::string(key) + " is " + text + ", which is not " + unit_table<Amount>().kind,
                   example(unit_table<Amount>()));
    return std::nullopt;
  }
  const std::optional<Amount> amount = parse_quantity<Amount>(text, problem, suggestion, range);
  if (!amount) {
    reader.problem(key, problem, suggestion);
    return std::nullopt;
  }
  const RangeSide side = side_of(*amount, range);
  if (side == RangeSide::inside) return amount;
  reader.problem(key,
                 std::string(key) + " is " + text_for_message(member) + ", which is too " +
                     (side == RangeSide::below ? "small" : "large"),
                 range_suggestion<Amount>(range));
  return std::nullopt;
}

}  // namespace

template <class Amount>
std::optional<Amount> parse_quantity(std::string_view text, std::string& problem,
                                     std::string& suggestion, std::optional<AmountRange> range) {
  const UnitTable& table = unit_table<Amount>();
  Written written;
  if (auto complaint = split(text, table, written))
    return refused<Amount>(*complaint, problem, suggestion, range);
  if (written.unit.empty()) return refused<Amount>(no_unit<Amount>(written), problem, suggestion);
  const std::optional<double> factor = factor_of(table, written.unit);
  if (!factor) return refused<Amount>(bad_unit<Amount>(written), problem, suggestion);
  const double amount = written.value * *factor;
  if (!std::isfinite(amount))
    return refused<Amount>(
        beyond_numbers(in_quotes(text) + " is beyond the range of numbers", example(table)),
        problem, suggestion, range);
  return Amount{amount};
}

std::optional<WrittenAmount> written_amount(std::string_view text) {
  for (const UnitTable* table : {&unit_table<Bytes>(), &unit_table<Seconds>(),
                                 &unit_table<BytesPerSecond>(), &unit_table<FlopsPerSecond>()}) {
    Written written;
    if (split(text, *table, written) || written.unit.empty()) continue;
    if (const std::optional<double> factor = factor_of(*table, written.unit))
      return WrittenAmount{written.value, written.unit, *factor, table->kind};
  }
  return std::nullopt;
}

template <class Amount>
Amount required_quantity(ObjectReader& reader, std::string_view key, AmountRange range) {
  const JsonValue* member = reader.take(key);
  if (member == nullptr)
    reader.require(key,
                   unit_table<Amount>().kind + " such as \"" + unit_table<Amount>().example + "\"");
  constexpr Amount stand_in{1};
  return member == nullptr ? stand_in
                           : amount_from<Amount>(reader, key, *member, range).value_or(stand_in);
}

template <class Amount>
Amount optional_quantity(ObjectReader& reader, std::string_view key, std::string_view fallback,
                         AmountRange range) {
  std::string problem;
  std::string suggestion;
  const std::optional<Amount> default_amount =
      parse_quantity<Amount>(fallback, problem, suggestion);
  WT_EXPECT(default_amount.has_value());
  const JsonValue* member = reader.take(key);
  if (member == nullptr) reader.set_default(key, std::string(fallback));
  return member == nullptr
             ? *default_amount
             : amount_from<Amount>(reader, key, *member, range).value_or(*default_amount);
}

template std::optional<Bytes> parse_quantity(std::string_view, std::string&, std::string&,
                                             std::optional<AmountRange>);
template std::optional<Seconds> parse_quantity(std::string_view, std::string&, std::string&,
                                               std::optional<AmountRange>);
template std::optional<BytesPerSecond> parse_quantity(std::string_view, std::string&, std::string&,
                                                      std::optional<AmountRange>);
template std::optional<FlopsPerSecond> parse_quantity(std::string_view, std::string&, std::string&,
                                                      std::optional<AmountRange>);

template Bytes required_quantity(ObjectReader&, std::string_view, AmountRange);
template Seconds required_quantity(ObjectReader&, std::string_view, AmountRange);
template BytesPerSecond required_quantity(ObjectReader&, std::string_view, AmountRange);
template FlopsPerSecond required_quantity(ObjectReader&, std::string_view, AmountRange);

template Bytes optional_quantity(ObjectReader&, std::string_view, std::string_view, AmountRange);
template Seconds optional_quantity(ObjectReader&, std::string_view, std::string_view, AmountRange);
template BytesPerSecond optional_quantity(ObjectReader&, std::string_view, std::string_view,
                                          AmountRange);
template FlopsPerSecond optional_quantity(ObjectReader&, std::string_view, std::string_view,
                                          AmountRange);

std::string exact_amount(Seconds amount) { return exact_number(amount.value()) + " s"; }
std::string exact_amount(BytesPerSecond amount) { return exact_number(amount.value()) + " B/s"; }

}  // namespace windtunnel
