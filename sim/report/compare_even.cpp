#include <algorithm>
#include <cmath>

#include "report/compare_sections.hpp"
#include "report/comparison_words.hpp"
#include "report/number_text.hpp"
#include "report/terminal_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel::html {
namespace {

using detail::with_spaces;

/// A break-even on a logarithmic axis of bandwidth: where the second run is the faster one, and where the network is now.
std::string break_even_picture(const BreakEven& found) {
  constexpr double lowest = 1.0 / 64, span = 4096;  // the factors that are searched: 1/64 to 64
  constexpr double percent = 100;
  const auto place = [&](double factor) {
    return std::clamp(std::log(factor / lowest) / std::log(span), 0.0, 1.0) * percent;
  };
  const auto text = [](double share) { return fixed_text(share, 2) + "%"; };
  const auto rect = [&](const char* kind, double from, double to) {
    return "<rect class=\"" + std::string(kind) + "\" x=\"" + text(from) + "\" width=\"" +
           text(to - from) + "\" y=\"0\" height=\"14\"/>";
  };
  std::string svg = "<svg class=\"axis even\" height=\"40\" aria-hidden=\"true\">";
  switch (found.outcome) {
    case BreakEven::Outcome::crosses:
      svg += rect(found.faster_below ? "faster" : "slower", 0, place(found.factor)) +
             rect(found.faster_below ? "slower" : "faster", place(found.factor), percent);
      break;
    case BreakEven::Outcome::always_faster:
      svg += rect("faster", 0, percent);
      break;
    case BreakEven::Outcome::always_slower:
      svg += rect("slower", 0, percent);
      break;
    case BreakEven::Outcome::always_equal:
      svg += rect("f-idle", 0, percent);
      break;
  }
  svg += "<line class=\"now\" x1=\"50%\" x2=\"50%\" y1=\"0\" y2=\"18\"/>";
  for (const double factor : {1.0 / 64, 1.0 / 8, 1.0, 8.0, 64.0})
    svg += "<text x=\"" + text(place(factor)) + "\" y=\"32\" text-anchor=\"" +
           (factor == 1.0 / 64 ? "start"
            : factor == 64.0   ? "end"
                               : "middle") +
           "\">" + escaped(to_text(found.bandwidth_now * factor)) + (factor == 1.0 ? " now" : "") +
           "</text>";
  return svg + "</svg>";
}

std::string break_even_list(const Comparison& comparison) {
  std::string html;
  for (std::size_t i = 0; i < comparison.break_evens.size(); ++i) {
    const BreakEven& found = comparison.break_evens[i];
    const std::string exact =
        found.outcome == BreakEven::Outcome::crosses
            ? " Equal at " +
                  number("/break_even/" + std::to_string(i) + "/bandwidth_bytes_per_s",
                         to_text(found.bandwidth)) +
                  "."
            : "";
    html += "<li><b>" + escaped(found.what) + "</b>, " + escaped(detail::meaning_of(found.part)) +
            ": " + escaped(detail::verdict_of(found)) + "." + exact + break_even_picture(found) +
            "</li>\n";
  }
  if (html.empty()) return "";
  return "<p class=\"quiet\">The bandwidth of the network is multiplied by 1/64 to 64 and both "
         "runs "
         "are simulated again, until their times cross. Green: faster than what it is compared "
         "with; red: slower.</p>\n<ul class=\"evens\">\n" +
         html + "</ul>\n";
}

std::string codec_list(const Comparison& comparison) {
  std::string html;
  for (const CodecBreakEven& codec : comparison.codecs)
    html +=
        "<li class=\"" + std::string(codec.slows_job() ? "bad" : "") + "\">" + letter(codec.run) +
        escaped(with_spaces(name_of(codec.traffic)) + ": " + detail::effect_of(codec)) + "</li>\n";
  if (html.empty()) return "";
  return "<h3>What compressing does to the job</h3>\n<p class=\"quiet\">Simulated without each "
         "codec. A transfer alone gains while its codec takes less time than the bytes it saves; "
         "in "
         "a job it may have been hidden.</p>\n<ul class=\"evens\">\n" +
         html + "</ul>\n";
}

}  // namespace

bool has_break_evens(const Comparison& comparison) {
  return !comparison.break_evens.empty() || !comparison.codecs.empty();
}

std::string break_even_section(const Comparison& comparison) {
  if (!has_break_evens(comparison)) return "";
  return section({"break-even", "Break-even bandwidths",
                  break_even_list(comparison) + codec_list(comparison)});
}

}  // namespace windtunnel::html
