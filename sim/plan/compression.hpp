#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/codec.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// Where encoding runs. Decoding always runs in front of the pass that needs it.
enum class CodecStream {
  compute,  ///< between the passes
  codec,  ///< beside the passes that follow; with blocking pairs nothing follows before the message is sent
};

/// How one class of traffic is compressed: an entry of a scenario's `compression` block.
struct Compressor {
  const Codec* codec = nullptr;
  std::map<std::string, double> settings;  ///< by the codec's own key; rates in bytes per second
  bool error_feedback = false;             ///< what was lost is added to the next message
  Bytes threshold{};  ///< smaller messages (of a ring: one hop's share) go as they are
  Bytes buffer{};     ///< larger ones are encoded in pieces of this size; 0: whole
  int chunks = 1;     ///< pieces in which encoding, transfer and decoding overlap (stage messages)
  CodecStream stream = CodecStream::compute;  ///< stage messages

  /// The value of a key that must be given.
  double setting(const std::string& key) const;
};

/// Which backward messages are compressed.
enum class CompressedMessages {
  all,
  epilogue,  ///< those that a stage sends after its last forward pass
};

/// The stages whose gradients are compressed.
struct CompressedStages {
  enum class Kind {
    all,
    listed,
    automatic,  ///< the shortest prefix with the least iteration time on an otherwise idle network
  };
  Kind kind = Kind::all;
  std::vector<int> listed;
};

/// Compression of each class of traffic: the `compression` block of a scenario.
struct Compression {
  std::optional<Compressor> pipeline_forward, pipeline_backward, data_gradients, tensor_activations,
      zero_gather;
  CompressedMessages backward_messages = CompressedMessages::all;
  CompressedStages gradient_stages;
  bool fused_embedding_sync = false;
};

/// Whether anything is compressed by work of its own, outside the passes.
inline bool has_codec_work(const Compression& c) {
  return c.pipeline_forward || c.pipeline_backward || c.data_gradients || c.zero_gather;
}
/// Whether anything is compressed at all, but for an embedding that is synchronised at once.
inline bool has_codecs(const Compression& c) { return has_codec_work(c) || c.tensor_activations; }
/// Whether the gradients of `stage` are compressed. Automatic stages that have not been chosen are all of them.
bool compresses_gradients(const Compression& compression, int stage);

}  // namespace windtunnel
