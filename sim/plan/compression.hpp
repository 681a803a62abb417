#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "platform/device.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

struct Compressor;

/// Matrices of one shape. Only a codec that sends factors minds shapes.
struct CodecMatrix {
  double rows = 0, columns = 0;
  int count = 1;
  double elements() const { return rows * columns * count; }
};

/// A tensor that one rank sends to one other.
struct CodecMessage {
  Bytes size{}, element{};
  CodecMatrix matrix;  ///< as a codec sees it that sends factors
};

/// Bytes of one encoded message on the wire, and its costs.
struct EncodedMessage {
  Bytes first{}, second{};  ///< a codec in two parts sends one after the other; the others send one
  Seconds encode{}, decode{};
  Bytes size() const { return first + second; }
};

/// A compressed ring collective as one of its members sees it: codec work, and the payload whose uncompressed collective
/// moves as many bytes as the compressed one does.
struct EncodedCollective {
  Bytes payload{};         ///< of the first part, and of what is not compressed
  Bytes second_payload{};  ///< of the second part of a codec that has two
  Seconds encode{};        ///< before the collective
  Seconds between{};       ///< between the two parts
  Seconds decode{};        ///< after it
};

/// Collectives that can run as a ring.
enum class RingKind { all_reduce, reduce_scatter, all_gather };

/// A number that a codec takes from its entry of a scenario's `compression` block.
struct CodecKey {
  enum class Type {
    whole_number,  ///< must be given
    number,        ///< must be given
    data_rate,     ///< may be left out
  };
  /// Wording of the number in reports.
  enum class Standing {
    choice,      ///< a setting of the codec
    assumption,  ///< what the scenario believes the codec to attain
  };
  const char* name;
  Type type = Type::number;
  double least = 0, most = 0;  ///< of numbers; rates have their usual range
  Standing standing = Standing::choice;
};

/// Messages that a codec makes of one, in the order in which they are sent.
enum class CodecForm {
  values,   ///< one, of values that can be encoded piece by piece
  factors,  ///< two factors of a matrix: the second is made from the whole of the first, and sums of factors are factors of sums
};

/// The part of its input that a codec sends.
enum class CodecReach {
  all_values,
  some_values,  ///< what is left out goes with the next message: for sums only; takes `error_feedback`
};

/// Origin of a codec in a program.
enum class CodecOrigin {
  own_kernels,
  library,  ///< a communication library, with a threshold and a buffer of its own
  none,  ///< there is no such codec: it is for what-ifs, takes no memory and no speed of a device
};

/// Properties of a codec, its formulas apart.
struct CodecTraits {
  const char* name;   ///< in scenarios
  const char* about;  ///< what `windtunnel list codecs` says
  std::vector<CodecKey> keys = {};
  CodecForm form = CodecForm::values;
  CodecReach reach = CodecReach::all_values;
  CodecOrigin origin = CodecOrigin::own_kernels;
  /// Of gradients it sends the optimizer's momenta, which each replica must have whole (1-bit Adam: Tang et al. 2021, section 4).
  bool sends_momenta = false;
};

/// The traffic that a what-if would compress.
struct TrialTraffic {
  enum class Kind { messages, replica_gradients };
  Kind kind = Kind::messages;
  Bytes element{};  ///< of its widest value
};

/// A setting of a codec that is worth a question.
struct CodecTrial {
  std::string what;  ///< "powersgd of rank 16"
  std::string keys;  ///< of the entry, besides `codec`: R"("rank":16)"
};

/// Compression method for traffic: its cost in time and memory, and its name and keys in a scenario. One file of
/// sim/cost/codecs/ each, and one line of sim/cost/codecs.def. docs/compression.md has the formulas.
class Codec {
 public:
  explicit Codec(CodecTraits traits) : traits_(std::move(traits)) {}
  virtual ~Codec() = default;
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;

  const CodecTraits& traits() const { return traits_; }
  const char* name() const { return traits_.name; }
  bool sends_factors() const { return traits_.form == CodecForm::factors; }
  bool needs_sums() const { return traits_.reach == CodecReach::some_values; }

  /// Uncompressed bytes over bytes on the wire, for values of `element` bytes; nothing where it depends on the message.
  virtual std::optional<double> ratio(const Compressor& compressor, Bytes element) const = 0;
  /// A message from one rank to one other, encoded once.
  virtual EncodedMessage encode_message(const Compressor& compressor, const Device& device,
                                        const CodecMessage& message) const = 0;
  /// A ring collective of `payload` bytes per member. Every codec of form `values` has it, factors do not.
  virtual EncodedCollective encode_ring(const Compressor& compressor, const Device& device,
                                        RingKind kind, Bytes payload, Bytes element,
                                        int members) const;
  /// The two all-reduces of the factors of `matrices`; `rest` goes uncompressed with the first. Only factors have it.
  virtual EncodedCollective encode_matrices(const Compressor& compressor, const Device& device,
                                            const std::vector<CodecMatrix>& matrices,
                                            Bytes rest) const;
  /// Bytes that one end keeps of an encoded message.
  virtual Bytes kept(const Compressor& compressor, const CodecMessage& message) const = 0;

  /// The keys of the device's `codecs` that the cost is made from: "zfp/1/encode".
  virtual std::vector<std::string> device_keys(const Compressor& compressor,
                                               const CodecSpeeds& speeds) const = 0;
  /// The key of the device's `codecs` without which the codec cannot run, where the device lacks it.
  virtual std::optional<std::string> missing_key(const CodecSpeeds& speeds) const = 0;

  /// The setting to try on the traffic.
  virtual CodecTrial trial(const TrialTraffic& traffic) const = 0;

 private:
  CodecTraits traits_;
};

/// Stream on which encoding runs. Decoding always runs in front of the pass that needs it.
enum class CodecStream {
  compute,  ///< between the passes
  codec,  ///< overlapped with the passes that follow; with blocking pairs nothing follows before the message is sent
};

/// Compression of one class of traffic: an entry of a scenario's `compression` block.
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

/// Backward messages to compress.
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

/// True if any compression takes work of its own, outside the passes.
inline bool has_codec_work(const Compression& c) {
  return c.pipeline_forward || c.pipeline_backward || c.data_gradients || c.zero_gather;
}
/// True if anything is compressed; a fused synchronisation of the embedding does not count.
inline bool has_codecs(const Compression& c) { return has_codec_work(c) || c.tensor_activations; }
/// True if the gradients of `stage` are compressed. Before automatic stages have been chosen, all are.
bool compresses_gradients(const Compression& compression, int stage);

}  // namespace windtunnel
