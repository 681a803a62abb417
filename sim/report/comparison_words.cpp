#include "report/comparison_words.hpp"

#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel::detail {

std::string signed_text(double number, int decimals) {
  std::string text = fixed_text(number, decimals);
  if (text.find_first_not_of("-0.") == std::string::npos) return "=";
  return (number > 0 ? "+" : "") + text;
}

std::string relative_change(double from, double to) {
  constexpr double many = 10;
  if (from == to) return "=";
  if (from == 0) return "new";
  if (to / from >= many) return "x " + significant_text(to / from, 3);
  const std::string text = signed_text((to / from - 1) * 100, 1);
  return text == "=" ? text : text + " %";
}

std::string letter_of(std::size_t run) {
  constexpr std::size_t letters = 26;
  return run < letters ? std::string(1, static_cast<char>('A' + run)) : std::to_string(run + 1);
}

std::string verdict_of(const BreakEven& found) {
  switch (found.outcome) {
    case BreakEven::Outcome::crosses:
      return "faster " + std::string(found.faster_below ? "below " : "above ") +
             to_text(found.bandwidth) + " (" + significant_text(found.factor, 3) + " times the " +
             to_text(found.bandwidth_now) + " of now), slower " +
             (found.faster_below ? "above" : "below");
    case BreakEven::Outcome::always_faster:
      return "faster at every bandwidth tried, now " + to_text(found.bandwidth_now);
    case BreakEven::Outcome::always_slower:
      return "slower at every bandwidth tried, now " + to_text(found.bandwidth_now);
    case BreakEven::Outcome::always_equal:
      return "as fast at every bandwidth tried, now " + to_text(found.bandwidth_now);
  }
  return "?";
}

std::string effect_of(const CodecBreakEven& codec) {
  const Seconds saved = codec.saved_by_job;
  std::string text = saved == Seconds{}  ? "changes nothing"
                     : codec.slows_job() ? "costs " + to_text(Seconds{} - saved) + " per iteration"
                                         : "saves " + to_text(saved) + " per iteration";
  text +=
      "; alone, a transfer " +
      (codec.bandwidth ? "gains below " + to_text(*codec.bandwidth) + " per GPU" : "always gains");
  text += " (" + to_text(codec.codec) + " of codec for " + to_text(codec.saved) + ")";
  if (codec.now > BytesPerSecond{}) text += ", now " + to_text(codec.now);
  return text;
}

const char* meaning_of(NetworkPart part) {
  return part == NetworkPart::between_nodes ? "NICs of a node" : "links inside nodes, GPU to GPU";
}

bool says_nothing(const BreakEven& found) {
  return found.part == NetworkPart::inside_nodes && found.outcome != BreakEven::Outcome::crosses;
}

}  // namespace windtunnel::detail
