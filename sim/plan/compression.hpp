#pragma once

#include <optional>
#include <vector>

#include "units/quantity.hpp"

namespace windtunnel {

/// How numbers are made smaller on their way. docs/compression.md has the formulas.
enum class CodecKind {
  powersgd,  ///< low rank: one power iteration, sent as two factors P and Q (Vogels et al. 2019, arXiv:1905.13727)
  zfp,       ///< fixed bits a value (Lindstrom 2014, doi 10.1109/TVCG.2014.2346458)
  mpc,       ///< lossless; its ratio is an input (Yang et al. 2015, doi 10.1109/CLUSTER.2015.59)
  topk,      ///< the largest values and where they stand
  int8,      ///< one byte a value and one scale
  fixed,     ///< a ratio at given rates, for what-ifs
};
const char* name_of(CodecKind codec);

/// Where encoding runs. Decoding always runs in front of the pass that needs it.
enum class CodecStream {
  compute,  ///< between the passes
  codec,  ///< beside the passes that follow; with blocking pairs nothing follows before the message is sent
};

/// How one class of traffic is compressed: an entry of a scenario's `compression` block.
struct Compressor {
  CodecKind codec = CodecKind::fixed;
  int rank = 0;                 ///< powersgd
  double rate = 0;              ///< zfp, bits a value
  double ratio = 1;             ///< mpc and fixed: uncompressed / compressed bytes
  double density = 1;           ///< topk, share of the values sent
  bool error_feedback = false;  ///< what was lost is added to the next message (powersgd, topk)
  std::optional<BytesPerSecond> encode_rate, decode_rate;  ///< fixed; none: at no cost
  Bytes threshold{};  ///< smaller messages (of a ring: one hop's share) go as they are
  Bytes buffer{};     ///< larger ones are encoded in pieces of this size; 0: whole
  int chunks = 1;     ///< pieces in which encoding, transfer and decoding overlap (stage messages)
  CodecStream stream = CodecStream::compute;  ///< stage messages
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

/// What is compressed, class by class: the `compression` block of a scenario.
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
/// Whether the gradients of `stage` are compressed. Automatic stages that have not been chosen are all of them.
bool compresses_gradients(const Compression& compression, int stage);

}  // namespace windtunnel
