#include "importers/kernel_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>

#include "core/utf8.hpp"

namespace windtunnel {
namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// Whether `word` stands in `text` between characters that are no letters: "tp" in "mesh_tp".
bool has_word(const std::string& text, std::string_view word) {
  const auto is_letter = [&](std::size_t at) {
    return at < text.size() && std::isalpha(static_cast<unsigned char>(text[at])) != 0;
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    if ((at == 0 || !is_letter(at - 1)) && !is_letter(at + word.size())) return true;
  return false;
}

bool has_any_word(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return has_word(text, word); });
}

struct Kind {
  const char* name;
  std::initializer_list<std::string_view> parts;  ///< of a kernel's name in lower case
};

/// Parts of the names that PyTorch, cuBLAS, cuDNN, CUTLASS, FlashAttention, Apex and Triton give
/// their kernels. Order decides: "cudnn::bn_bw" is a normalisation.
const std::array<Kind, 10>& kinds() {
  static const std::array<Kind, 10> table{{
      {"attention", {"flash", "fmha", "attention", "sdpa"}},
      {"normalisation",
       {"bn_fw", "bn_bw", "batch_norm", "batchnorm", "layer_norm", "layernorm", "rms_norm",
        "rmsnorm", "groupnorm"}},
      {"optimizer kernels", {"multi_tensor", "adam", "adagrad"}},
      {"convolution", {"conv", "winograd", "dgrad", "wgrad", "fprop", "cudnn"}},
      {"matrix product", {"gemm", "gemv", "cutlass", "cublas", "splitk", "wgmma", "xmma"}},
      {"softmax and loss", {"softmax", "nll_loss", "cross_entropy"}},
      {"embedding and index", {"embedding", "index", "gather", "scatter"}},
      {"pooling", {"pool"}},
      {"reduction", {"reduce"}},
      {"elementwise",
       {"elementwise", "vectorized", "fill", "dropout", "gelu", "relu", "catarray", "triton"}},
  }};
  return table;
}

}  // namespace

const char* name_of(CommClass comm) {
  switch (comm) {
    case CommClass::tensor:
      return "tensor_comm";
    case CommClass::pipeline:
      return "pipeline_comm";
    case CommClass::data:
      return "data_comm";
    case CommClass::embedding:
      return "embedding_sync";
    case CommClass::other:
      return "other_comm";
  }
  return "";
}

CommClass comm_class_of(std::string_view description) {
  const std::string text = lower_case(description);
  // Groups over several dimensions at once belong to none of them.
  if (has(text, "context") || has(text, "expert") || has_any_word(text, {"cp", "ep"}))
    return CommClass::other;
  if (has(text, "embedding")) return CommClass::embedding;
  const bool tensor = has(text, "tensor") || has_any_word(text, {"tp"});
  const bool pipeline = has(text, "pipeline") || has_any_word(text, {"pp"});
  const bool data = has_word(text, "data") || has_any_word(text, {"dp", "ddp", "fsdp", "hsdp"});
  if (tensor + pipeline + data != 1) return CommClass::other;
  return tensor ? CommClass::tensor : pipeline ? CommClass::pipeline : CommClass::data;
}

std::string collective_in(std::string_view kernel) {
  const std::size_t from = kernel.find('_');
  if (from == std::string_view::npos) return "other";
  return std::string(kernel.substr(from + 1, kernel.find_first_of("_( ", from + 1) - from - 1));
}

std::string direction_in(std::string_view name) {
  const std::size_t from = name.find(' ');
  if (from == std::string_view::npos) return "other";
  return std::string(name.substr(from + 1, name.find(' ', from + 1) - from - 1));
}

bool is_communication(std::string_view kernel) { return kernel.starts_with("nccl"); }

const char* compute_kind_of(std::string_view kernel) {
  const std::string name = lower_case(kernel);
  for (const Kind& kind : kinds())
    for (const std::string_view part : kind.parts)
      if (has(name, part)) return kind.name;
  return "other kernels";
}

}  // namespace windtunnel
