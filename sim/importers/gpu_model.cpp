#include "importers/gpu_model.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace windtunnel {
namespace {

// NVLinks: NVIDIA's datasheets (bandwidth of a GPU by that of a link); A800 and H800 have 400 GB/s of 50 GB/s a link. Consumer
// cards go by their number alone ("GeForce RTX 4090").
constexpr std::array models{
    GpuModel{"K80"},      GpuModel{"P4"},       GpuModel{"P40"},     GpuModel{"P100", 4},
    GpuModel{"V100", 6},  GpuModel{"V100S"},    GpuModel{"T4"},      GpuModel{"A2"},
    GpuModel{"A10"},      GpuModel{"A10G"},     GpuModel{"A16"},     GpuModel{"A30"},
    GpuModel{"A40"},      GpuModel{"A100", 12}, GpuModel{"A800", 8}, GpuModel{"A4000"},
    GpuModel{"A5000"},    GpuModel{"A6000"},    GpuModel{"L4"},      GpuModel{"L20"},
    GpuModel{"L40"},      GpuModel{"L40S"},     GpuModel{"H20", 18}, GpuModel{"H100", 18},
    GpuModel{"H800", 8},  GpuModel{"H200", 18}, GpuModel{"GH200"},   GpuModel{"B100"},
    GpuModel{"B200", 18}, GpuModel{"B300"},     GpuModel{"GB200"},   GpuModel{"GB300"},
    GpuModel{"3090"},     GpuModel{"4090"},     GpuModel{"5090"},    GpuModel{"MI50"},
    GpuModel{"MI60"},     GpuModel{"MI100"},    GpuModel{"MI210"},   GpuModel{"MI250"},
    GpuModel{"MI250X"},   GpuModel{"MI300A"},   GpuModel{"MI300X"},  GpuModel{"MI308X"},
    GpuModel{"MI325X"},   GpuModel{"MI350X"},   GpuModel{"MI355X"},
};

bool is_in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
char upper(char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); }

}  // namespace

const GpuModel* gpu_model_in(std::string_view text) {
  for (auto from = text.begin(); from != text.end();) {
    from = std::find_if(from, text.end(), is_in_word);
    const auto end = std::find_if_not(from, text.end(), is_in_word);
    std::string word(from, end);
    std::transform(word.begin(), word.end(), word.begin(), upper);
    const auto model = std::find_if(models.begin(), models.end(),
                                    [&](const GpuModel& each) { return each.name == word; });
    if (model != models.end()) return &*model;
    from = end;
  }
  return nullptr;
}

}  // namespace windtunnel
