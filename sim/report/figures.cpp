#include "report/figures.hpp"

#include "report/number_text.hpp"

namespace windtunnel {
namespace {

std::string tenths(double number) { return fixed_text(number, 1); }

}  // namespace

std::string throughput_text(double rate) {
  constexpr double grouped_from = 1000;
  constexpr int most_decimals = 9;
  if (rate >= grouped_from) return grouped_text(rate);
  int decimals = 1;
  for (double first = 10; rate > 0 && rate < first && decimals < most_decimals; first /= 10)
    ++decimals;
  return fixed_text(rate, decimals);
}

const std::vector<Figure>& figures() {
  static const std::vector<Figure> table{
      {.key = "samples_per_s",
       .name = "samples/s",
       .value = [](const Report& r) { return r.samples_per_s; },
       .text = throughput_text},
      {.key = "tokens_per_s",
       .name = "tokens/s",
       .value = [](const Report& r) { return r.tokens_per_s; },
       .text = grouped_text},
      {.key = "model_tflops_per_gpu",
       .name = "TFLOP/s per GPU",
       .note = "of the model's own work, attention between all pairs of tokens",
       .value = [](const Report& r) { return r.model_flops_per_gpu / 1_TFLOPS; },
       .text = tenths},
      {.key = "hardware_tflops_per_gpu",
       .name = "hardware TFLOP/s per GPU",
       .note = "with what is recomputed",
       .value = [](const Report& r) { return r.hardware_flops_per_gpu / 1_TFLOPS; },
       .text = tenths,
       .is_shown = [](const Report&) { return false; }},
      {.key = "mfu",
       .name = "MFU",
       .value = [](const Report& r) { return r.mfu; },
       .text = percent_text,
       .name_first = true,
       .is_share = true},
      {.key = "hfu",
       .name = "HFU",
       .note = "what kernels do: with what is recomputed, of flash attention the causal half",
       .shown_with = "mfu",
       .value = [](const Report& r) { return r.hfu; },
       .text = percent_text,
       .name_first = true,
       .is_share = true,
       .is_shown = [](const Report& r) { return r.hfu != r.mfu; }},
      {.key = "model_tflops_per_gpu_causal",
       .name = "causal TFLOP/s per GPU",
       .note = "of the model's own work, causal attention counted once",
       .value = [](const Report& r) { return r.causal_flops_per_gpu / 1_TFLOPS; },
       .text = tenths,
       .is_shown = [](const Report&) { return false; }},
      {.key = "mfu_causal",
       .name = "causal MFU",
       .shown_with = "mfu",
       .value = [](const Report& r) { return r.mfu_causal; },
       .text = percent_text,
       .name_first = true,
       .is_share = true,
       // where the half of attention that a causal mask hides is much of the work that publications count
       .is_shown = [](const Report& r) { return r.mfu - r.mfu_causal > 0.05 * r.mfu; }},
  };
  return table;
}

std::string text_of(const Figure& figure, const Report& report) {
  const std::string number = figure.text(figure.value(report));
  return figure.name_first ? figure.name + " " + number : number + " " + figure.name;
}

std::vector<const Figure*> shown_figures(const Report& report) {
  std::vector<const Figure*> shown;
  for (const Figure& figure : figures())
    if (figure.is_shown == nullptr || figure.is_shown(report)) shown.push_back(&figure);
  return shown;
}

}  // namespace windtunnel
