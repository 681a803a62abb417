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

/// Parts of the names that libraries give the kernels that communicate. The first match decides.
///   DeepEP             csrc/kernels/{intranode,internode,internode_ll}.cu; deep_ep/include/deep_ep/impls of 2026. Counting tokens
///                      (get_dispatch_layout) and copying them behind an exchange (…_epilogue) stay on the GPU and are computing
///   hybrid-EP          csrc/hybrid_ep/backend/hybrid_ep_backend.cuh
///   user buffers       transformer_engine/common/comm_gemm_overlap/userbuffers/userbuffers.cu
///   symmetric memory   torch/csrc/distributed/c10d/symm_mem/{CUDASymmetricMemoryOps,nvshmem_extension}.cu, PyTorch 2.9
///   custom all-reduce  csrc/custom_all_reduce.cuh of vLLM, and of SGLang
///   TensorRT-LLM       flashinfer/comm/trtllm_allreduce_fusion.cuh
const std::array<Kind, 7>& communication_libraries() {
  static const std::array<Kind, 7> table{{
      {"hybrid-EP", {"hybrid_ep::dispatch", "hybrid_ep::combine", "hybrid_ep::device_sync"}},
      {"DeepEP",
       {"ep::internode", "ep::intranode", "deep_ep::dispatch_impl", "deep_ep::combine_impl",
        "deep_ep::hybrid_dispatch", "deep_ep::hybrid_combine", "deep_ep::elastic::dispatch_impl",
        "deep_ep::elastic::combine_impl", "deep_ep::elastic::hybrid_dispatch",
        "deep_ep::elastic::hybrid_combine"}},
      {"NVSHMEM", {"nvshmem"}},
      {"user buffers", {"userbuffers"}},
      {"symmetric memory",
       {"one_shot_all_reduce", "two_shot_all_reduce", "multimem_", "exchangesplitandoffset",
        "alltoallv"}},
      {"custom all-reduce", {"cross_device_reduce"}},
      {"TensorRT-LLM", {"trtllm_allreduce", "oneshotallreduce", "twoshotallreduce"}},
  }};
  return table;
}

/// What other libraries call such a kernel after. Kernels that Inductor made ("triton_poi_fused_all_reduce_4") are called after all that
/// they compute on, and products that reduce their result ("gemm_allreduce") compute as well as communicate: neither counts.
bool is_called_after_a_collective(const std::string& kernel) {
  if (kernel.starts_with("triton_") || has(kernel, "gemm")) return false;
  constexpr std::array<std::string_view, 9> collectives{
      "all_reduce",    "allreduce",  "all_gather", "allgather", "reduce_scatter",
      "reducescatter", "all_to_all", "alltoall",   "sendrecv"};
  return std::any_of(collectives.begin(), collectives.end(),
                     [&](std::string_view each) { return has(kernel, each); });
}

/// Parts of the names that PyTorch, cuBLAS ("nvjet" on Hopper and Blackwell), hipBLASLt ("Cijk"), cuDNN, CUTLASS, FlashAttention, Apex,
/// Transformer Engine, DeepSeek and Triton give their kernels. Order decides: "cudnn::bn_bw" is a normalisation.
const std::array<Kind, 11>& compute_kinds() {
  static const std::array<Kind, 11> table{{
      {"attention", {"flash", "fmha", "attention", "sdpa"}},
      {"normalisation",
       {"bn_fw", "bn_bw", "batch_norm", "batchnorm", "layer_norm", "layernorm", "rms_norm",
        "rmsnorm", "groupnorm"}},
      {"optimizer kernels", {"multi_tensor", "adam", "adagrad"}},
      {"convolution", {"conv", "winograd", "dgrad", "wgrad", "fprop", "cudnn"}},
      {"cast and transpose",
       {"transpose<", "cast_transpose", "transpose_kernel", "cast_to_fp8", "cast_back",
        "quantize"}},
      {"matrix product",
       {"gemm", "gemv", "cutlass", "cublas", "nvjet", "cijk_", "splitk", "wgmma", "xmma"}},
      {"softmax and loss", {"softmax", "nll_loss", "cross_entropy"}},
      {"embedding and index",
       {"embedding", "index", "gather", "scatter", "topk", "permute", "dispatch_layout"}},
      {"pooling", {"pool"}},
      {"reduction", {"reduce"}},
      {"elementwise",
       {"elementwise", "vectorized", "fill", "dropout", "gelu", "relu", "silu", "swiglu", "rotary",
        "rope", "copy_tensor", "catarray", "triton"}},
  }};
  return table;
}

const char* first_match(const std::string& name, const auto& kinds) {
  for (const Kind& kind : kinds)
    for (const std::string_view part : kind.parts)
      if (has(name, part)) return kind.name;
  return nullptr;
}

/// "dispatch" of "void deep_ep::internode::dispatch<false, 8>(int4*)".
std::string function_in(std::string_view kernel) {
  kernel = kernel.substr(0, kernel.find_first_of("<("));
  const std::size_t from = kernel.find_last_of(": ");
  return std::string(from == std::string_view::npos ? kernel : kernel.substr(from + 1));
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

std::string communication_in(std::string_view kernel) {
  if (kernel.starts_with("void ")) kernel.remove_prefix(5);
  if (kernel.starts_with("nccl")) {
    const std::size_t from = kernel.find('_');
    if (from == std::string_view::npos) return "nccl other";
    return "nccl " +
           std::string(kernel.substr(from + 1, kernel.find_first_of("_( ", from + 1) - from - 1));
  }
  const std::string name = lower_case(kernel);
  // An unnamed namespace holds no function: "(anonymous namespace)::multimem_all_reduce_kernel<…>(…)".
  constexpr std::string_view anonymous = "(anonymous namespace)::";
  if (const std::size_t at = kernel.find(anonymous); at != std::string_view::npos)
    kernel.remove_prefix(at + anonymous.size());
  if (const char* library = first_match(name, communication_libraries()))
    return std::string(library) + " " + function_in(kernel);
  return is_called_after_a_collective(name) ? function_in(kernel) : "";
}

std::string direction_in(std::string_view name) {
  const std::size_t from = name.find(' ');
  if (from == std::string_view::npos) return "other";
  return std::string(name.substr(from + 1, name.find(' ', from + 1) - from - 1));
}

const char* compute_kind_of(std::string_view kernel) {
  const char* kind = first_match(lower_case(kernel), compute_kinds());
  return kind != nullptr ? kind : unknown_kernels;
}

}  // namespace windtunnel
