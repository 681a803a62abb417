#include <utility>

#include "passes/pass.hpp"

namespace windtunnel {
namespace {

class CollectiveCompressor {
 public:
  explicit CollectiveCompressor(const PassContext& in) : in_(in) {}

  void compress(PassOperations& pass) {
    Seconds sharding = compress(pass.before) + compress(pass.after);
    sharding += compress(pass.layer) * static_cast<double>(pass.layers);
    if (sharding > Seconds{0}) pass.before.push_back(kernel(Label::sharding_codec, sharding));
  }

 private:
  /// The codec's time of collectives over the replicas; that of the others is put before each.
  Seconds compress(std::vector<Operation>& operations) {
    Seconds sharding{};
    std::vector<Operation> result;
    for (Operation operation : operations) {
      if (is_collective(row_of(operation.label).kind)) {
        const Encoded encoded = in_.encode(operation.label, operation.payload);
        operation.payload = encoded.payload;
        operation.held.codec = encoded.kept;
        if (!is_of_tensor_group(operation.label))
          sharding += encoded.codec;
        else if (encoded.codec > Seconds{0})
          result.push_back(kernel(Label::activation_codec, encoded.codec));
      }
      result.push_back(operation);
    }
    operations = std::move(result);
    return sharding;
  }

  const PassContext& in_;
};

/// Compression of the collectives inside passes: they move fewer bytes, and a codec runs on the stream of the kernels, since it needs
/// the same multiprocessors. An activation's runs before its collective; those of sharded parameters and gradients run together before
/// the pass. Of messages between chunks only what their codec keeps stands here.
void compress_collectives(ChunkOperations& chunk, const PassContext& in) {
  if (!in.encode) return;
  for (PassOperations& pass : chunk.passes) CollectiveCompressor(in).compress(pass);
  for (Operation* message : {&chunk.message, &chunk.gradient_message})
    message->held.codec = in.encode(message->label, message->payload).kept;
}

}  // namespace

const OperationPass& compression_pass() {
  static const OperationPass pass{"compression", compress_collectives};
  return pass;
}

}  // namespace windtunnel
