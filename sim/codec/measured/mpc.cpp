#include <Eigen/Core>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>

#include "codec/measured_codec.hpp"
#include "core/contracts.hpp"

namespace windtunnel {
namespace {

constexpr std::size_t chunk_words = 1024;

template <class Word>
constexpr std::size_t bits_of = std::numeric_limits<Word>::digits;
template <class Word>
using Chunk = std::array<Word, chunk_words>;

std::uint32_t word_of(float number, std::uint32_t) { return std::bit_cast<std::uint32_t>(number); }
std::uint16_t word_of(float number, std::uint16_t) {
  return Eigen::numext::bit_cast<std::uint16_t>(Eigen::half(number));
}
float number_of(std::uint32_t word) { return std::bit_cast<float>(word); }
float number_of(std::uint16_t word) {
  return static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(word));
}

template <class Word>
void subtract_previous(Chunk<Word>& chunk) {
  for (std::size_t i = chunk.size() - 1; i > 0; --i)
    chunk[i] = static_cast<Word>(chunk[i] - chunk[i - 1]);
}
template <class Word>
void add_previous(Chunk<Word>& chunk) {
  for (std::size_t i = 1; i < chunk.size(); ++i)
    chunk[i] = static_cast<Word>(chunk[i] + chunk[i - 1]);
}

/// Each square of w words of w bits about its diagonal; done twice it changes nothing. By halves: the upper right quarter and the
/// lower left one change places, then the same within each quarter (Warren, Hacker's Delight, 2nd ed., section 7-3).
template <class Word>
void transpose_bits(Chunk<Word>& chunk) {
  constexpr std::size_t width = bits_of<Word>;
  for (std::size_t first = 0; first < chunk.size(); first += width) {
    Word mask = std::numeric_limits<Word>::max();
    for (std::size_t half = width / 2; half != 0; half /= 2) {
      mask = static_cast<Word>(mask ^ (mask << half));
      for (std::size_t i = 0; i < width; i = (i + half + 1) & ~half) {
        Word& upper = chunk[first + i];
        Word& lower = chunk[first + i + half];
        const auto moved = static_cast<Word>((upper ^ (lower >> half)) & mask);
        upper = static_cast<Word>(upper ^ moved);
        lower = static_cast<Word>(lower ^ (moved << half));
      }
    }
  }
}

template <class Word>
void append(const Chunk<Word>& chunk, std::vector<std::uint8_t>& bytes) {
  std::array<std::uint8_t, chunk_words / 8> present{};
  std::array<Word, chunk_words> others;
  std::size_t count = 0;
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    if (chunk[i] == 0) continue;
    present[i / 8] = static_cast<std::uint8_t>(present[i / 8] | 1U << i % 8);
    others[count++] = chunk[i];
  }
  const std::size_t begin = bytes.size();
  bytes.resize(begin + present.size() + count * sizeof(Word));
  std::memcpy(bytes.data() + begin, present.data(), present.size());
  std::memcpy(bytes.data() + begin + present.size(), others.data(), count * sizeof(Word));
}

/// Reads a chunk from `at`, and moves `at` behind it.
template <class Word>
Chunk<Word> take(const std::vector<std::uint8_t>& bytes, std::size_t& at) {
  Chunk<Word> chunk{};
  const std::uint8_t* const present = bytes.data() + at;
  at += chunk_words / 8;
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    const unsigned mask = 1U << i % 8;
    if ((present[i / 8] & mask) == 0) continue;
    std::memcpy(&chunk[i], bytes.data() + at, sizeof(Word));
    at += sizeof(Word);
  }
  return chunk;
}

template <class Word>
void encode_as(const std::vector<float>& values, std::vector<std::uint8_t>& bytes) {
  for (std::size_t first = 0; first < values.size(); first += chunk_words) {
    Chunk<Word> chunk;
    for (std::size_t i = 0; i < chunk.size(); ++i)
      chunk[i] = word_of(values[std::min(first + i, values.size() - 1)], Word{});
    subtract_previous(chunk);
    transpose_bits(chunk);
    subtract_previous(chunk);
    append(chunk, bytes);
  }
}

template <class Word>
void decode_as(const std::vector<std::uint8_t>& bytes, std::vector<float>& values) {
  std::size_t at = 0;
  for (std::size_t first = 0; first < values.size(); first += chunk_words) {
    Chunk<Word> chunk = take<Word>(bytes, at);
    add_previous(chunk);
    transpose_bits(chunk);
    add_previous(chunk);
    for (std::size_t i = 0; i < std::min(chunk_words, values.size() - first); ++i)
      values[first + i] = number_of(chunk[i]);
  }
  WT_ENSURE(at == bytes.size());
}

/// A lossless codec of the four stages of MPC (Yang, Mukka, Hesaaraki & Burtscher, "MPC: a massively parallel compression
/// algorithm for scientific data", IEEE CLUSTER 2015, doi 10.1109/CLUSTER.2015.59), on the CPU, in chunks of 1024 numbers taken
/// as unsigned words of w = 32 bits (16 for float16):
///   LNV1  each word less the one before it in its chunk, modulo 2^w
///   BIT   each w words transposed: word j of the result holds bit w-1-j of each
///   LNV1  again, over the transposed words
///   ZE    zero words left out: one bit a word says which, then the others
/// Features of the authors' GPU code that are not part of the stages (finding chunks again, the dimension as a parameter) are
/// left out; its ratio can differ a little from theirs. A last chunk that is not full is filled up with its last word.
class MpcCodec final : public TensorCodec {
 public:
  void encode(const Tensor& tensor) override {
    element_ = tensor.element;
    count_ = tensor.size();
    bytes_.clear();
    if (element_ == ElementType::float16)
      encode_as<std::uint16_t>(tensor.values, bytes_);
    else
      encode_as<std::uint32_t>(tensor.values, bytes_);
  }

  Bytes size() const override { return Bytes{static_cast<double>(bytes_.size())}; }
  const std::vector<float>& decode() override {
    decoded_.resize(count_);
    if (element_ == ElementType::float16)
      decode_as<std::uint16_t>(bytes_, decoded_);
    else
      decode_as<std::uint32_t>(bytes_, decoded_);
    return decoded_;
  }

 private:
  ElementType element_ = ElementType::float32;
  std::size_t count_ = 0;
  std::vector<std::uint8_t> bytes_;
  std::vector<float> decoded_;
};

std::unique_ptr<TensorCodec> make(double /*setting*/, std::uint64_t /*seed*/) {
  return std::make_unique<MpcCodec>();
}

void add_rates(const MeasuredRates& rates, JsonValue& codecs) {
  codecs.set("mpc_encode", JsonValue(rates.encode));
  codecs.set("mpc_decode", JsonValue(rates.decode));
}

}  // namespace

MeasuredCodec measured_mpc() {
  return {.name = "mpc", .settings = {0}, .make = make, .add_rates = add_rates};
}

}  // namespace windtunnel
