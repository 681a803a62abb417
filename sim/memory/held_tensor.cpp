#include "memory/held_tensor.hpp"

#include <array>
#include <cstddef>
#include <numeric>

#include "core/enum_array.hpp"

namespace windtunnel {
namespace {

struct KindRow {
  MemoryLine line;
  const char* name;  ///< before the name of the operation that holds the tensor, if any does
};

/// In the order of HeldKind.
constexpr std::array rows{
    KindRow{MemoryLine::weights, "weights"},
    KindRow{MemoryLine::weights, "frozen weights"},
    KindRow{MemoryLine::weights, "weights cast for products"},
    KindRow{MemoryLine::gradients, "gradients"},
    KindRow{MemoryLine::gradients, "gradients of one backward pass"},
    KindRow{MemoryLine::gradients, "buckets of gradients"},
    KindRow{MemoryLine::gradients, "gradients of the last step"},
    KindRow{MemoryLine::optimizer, "master weights"},
    KindRow{MemoryLine::optimizer, "optimizer states"},
    KindRow{MemoryLine::activations, "saved by"},
    KindRow{MemoryLine::activations, "scores of"},
    KindRow{MemoryLine::activations, "outputs sent to another stage"},
    KindRow{MemoryLine::buffers, "saved by"},
    KindRow{MemoryLine::buffers, "weight gradient of"},
    KindRow{MemoryLine::buffers, "scores of"},
    KindRow{MemoryLine::buffers, "saved by the last norm and"},
    KindRow{MemoryLine::buffers, "logits of"},
    KindRow{MemoryLine::buffers, "work space of the stack"},
    KindRow{MemoryLine::buffers, "library workspaces"},
    KindRow{MemoryLine::buffers, "gradients through"},
    KindRow{MemoryLine::buffers, "buffer of"},
    KindRow{MemoryLine::buffers, "next buffer of"},
    KindRow{MemoryLine::buffers, "buffer of"},
    KindRow{MemoryLine::buffers, "reduced by"},
    KindRow{MemoryLine::buffers, "input and output of the stage"},
    KindRow{MemoryLine::buffers, "buffers for gathered sequences"},
    KindRow{MemoryLine::buffers, "fp32 gradients of the step"},
    KindRow{MemoryLine::buffers, "matrices of Muon's step"},
    KindRow{MemoryLine::buffers, "activations on their way to the host"},
    KindRow{MemoryLine::buffers, "copies of gathered weights"},
    KindRow{MemoryLine::buffers, "codec buffers of"},
    KindRow{MemoryLine::buffers, "learned correction"},
};
static_assert(rows.size() == enumerators<HeldKind>().size());

const KindRow& row_of(HeldKind kind) { return rows[static_cast<std::size_t>(kind)]; }

}  // namespace

MemoryLine line_of(HeldKind kind) { return row_of(kind).line; }

std::string name_of(const HeldTensor& tensor) {
  const std::string name = row_of(tensor.kind).name;
  return tensor.of == Label::whole_pass ? name : name + " " + row_of(tensor.of).text;
}

Bytes sum_at(const std::vector<HeldTensor>& tensors, Moment moment) {
  // First those of a kind, so that it rounds the same however many operations they are of.
  EnumArray<HeldKind, Bytes> kinds{};
  for (const HeldTensor& tensor : tensors)
    if (tensor.held.has(moment)) kinds[tensor.kind] += tensor.bytes;
  return std::accumulate(kinds.begin(), kinds.end(), Bytes{});
}

Moment largest_of(const std::vector<HeldTensor>& tensors, std::initializer_list<Moment> moments) {
  Moment largest = *moments.begin();
  for (const Moment moment : moments)
    if (sum_at(tensors, moment) > sum_at(tensors, largest)) largest = moment;
  return largest;
}

}  // namespace windtunnel
