#include "cost/codec_cost.hpp"

#include <doctest/doctest.h>

#include "cost/codec_table.hpp"
#include "cost/kernel_cost.hpp"

namespace windtunnel {
namespace {

Compressor compressor(const char* codec, std::map<std::string, double> settings) {
  Compressor c;
  c.codec = &codec_named(codec);
  c.settings = std::move(settings);
  return c;
}
Compressor powersgd(int rank) { return compressor("powersgd", {{"rank", rank}}); }
Compressor zfp(double rate) { return compressor("zfp", {{"rate", rate}}); }
Compressor fixed(double ratio, double encode_GBps, double decode_GBps) {
  const double rate = 1e9;  // bytes per second
  return compressor(
      "fixed",
      {{"ratio", ratio}, {"encode_rate", encode_GBps * rate}, {"decode_rate", decode_GBps * rate}});
}

/// Round numbers: 1 TB/s of memory, products without overhead, a millisecond to launch a codec.
Device device() {
  Device device;
  device.name = "card";
  device.multiprocessors = 100;
  device.peak[Precision::fp32] = 10_TFLOPS;
  device.memory_bandwidth = 1000_GBps;
  device.memory_efficiency = 1;
  device.gemm.peak_fraction = 1;
  CodecSpeeds codecs;
  codecs.launch = 1_ms;
  codecs.column_step = 10_us;
  codecs.selection = 50_GBps;
  codecs.mpc_encode = codecs.mpc_decode = 20_GBps;
  codecs.zfp = {{8, 100_GBps, 200_GBps}, {16, 50_GBps, 100_GBps}};
  device.codecs = codecs;
  return device;
}

/// fp32 activations as one of eight tensor ranks sends them: 1024 tokens by the hidden size (Optimus-CC's scripts).
CodecMessage activation(double hidden) { return {Bytes{4 * 1024 * hidden}, 4_B, {1024, hidden}}; }

TEST_CASE("rank 16 makes Optimus-CC's stage messages 41.7 and 48.0 times smaller") {
  // 2.5B: 1024 x 1920 x 4 = 7,864,320 B; (1024 + 1920) x 16 x 4 = 188,416 B; 41.74.
  const EncodedMessage small = encode_message(powersgd(16), device(), activation(1920));
  CHECK(small.first == 65536_B);    // P: 1024 x 16 x 4
  CHECK(small.second == 122880_B);  // Q: 1920 x 16 x 4
  CHECK(activation(1920).size / small.size() == doctest::Approx(41.74).epsilon(1e-4));
  // 8.3B: 1024 x 3072 x 4 = 12,582,912 B; (1024 + 3072) x 16 x 4 = 262,144 B; 48 exactly.
  const EncodedMessage large = encode_message(powersgd(16), device(), activation(3072));
  CHECK(large.size() == 262144_B);
  CHECK(activation(3072).size / large.size() == 48.0);
}

TEST_CASE("a rank above the matrix's own is cut to it") {
  const CodecMessage message{Bytes{4 * 10 * 100}, 4_B, {10, 100}};
  CHECK(encode_message(powersgd(50), device(), message).first == Bytes{10 * 10 * 4});
}

TEST_CASE("powersgd pays for each column twice, and for its products") {
  // 2 x 16 steps of 10 us; M Q and M'P of 2 x 1000 x 2000 x 16 = 64 MFLOP each; PQ' of as many behind.
  // Products: max(compute, memory); 10 TFLOP/s at full efficiency: 6.4 us; operands (1000 x 2000 + 3000 x 16) x 4 B = 8.192 MB: 8.192 us.
  const CodecMessage message{Bytes{4 * 1000 * 2000}, 4_B, {1000, 2000}};
  const EncodedMessage encoded = encode_message(powersgd(16), device(), message);
  CHECK(encoded.encode / 1_us == doctest::Approx(320 + 2 * 8.192).epsilon(1e-9));
  CHECK(encoded.decode / 1_us == doctest::Approx(8.192).epsilon(1e-9));
  // Error feedback: one more product, and six passes over 8 MB at 1 TB/s.
  Compressor feedback = powersgd(16);
  feedback.error_feedback = true;
  CHECK(encode_message(feedback, device(), message).encode / 1_us ==
        doctest::Approx(320 + 3 * 8.192 + 48).epsilon(1e-9));
}

TEST_CASE("zfp's ratio is the element's bits over its rate") {
  for (const double rate : {4.0, 8.0, 16.0, 24.0}) {
    CHECK(codec_named("zfp").ratio(zfp(rate), 4_B) == 32 / rate);
    CHECK(codec_named("zfp").ratio(zfp(rate), 2_B) == 16 / rate);
  }
}

TEST_CASE("zfp's throughput lies between its neighbours in the table, by time a byte") {
  // 100 MB: launch 1 ms, and at rate 12 the mean of 1 ms (100 GB/s) and 2 ms (50 GB/s).
  const CodecMessage message{100_MB, 4_B, {}};
  CHECK(encode_message(zfp(12), device(), message).encode / 1_ms == doctest::Approx(2.5));
  CHECK(encode_message(zfp(4), device(), message).encode / 1_ms == doctest::Approx(2));
  CHECK(encode_message(zfp(32), device(), message).decode / 1_ms == doctest::Approx(2));
}

TEST_CASE("a message beyond the buffer is encoded in pieces, each with a launch of its own") {
  Compressor c = zfp(8);
  c.buffer = 32_MB;
  // 100 MB in 4 pieces of at most 32 MB: 4 launches and 1 ms.
  CHECK(encode_message(c, device(), {100_MB, 4_B, {}}).encode / 1_ms == doctest::Approx(5));
}

TEST_CASE("a message in chunks is encoded as so many messages, each with its launches") {
  Compressor c = zfp(8);
  c.chunks = 4;
  CHECK(encode_message(c, device(), {100_MB, 4_B, {}}).encode / 1_ms == doctest::Approx(5));
  c.buffer = 10_MB;
  // 25 MB a chunk, in 3 pieces: 12 launches and 1 ms.
  CHECK(encode_message(c, device(), {100_MB, 4_B, {}}).encode / 1_ms == doctest::Approx(13));
}

TEST_CASE("int8 and topk send what they say") {
  CHECK(encode_message(compressor("int8", {}), device(), {Bytes{4000}, 4_B, {}}).size() ==
        Bytes{1004});
  const Compressor c = compressor("topk", {{"density", 0.01}});
  // 1000 values: 10 are sent, with 4 bytes of index each.
  CHECK(encode_message(c, device(), {Bytes{4000}, 4_B, {}}).size() / 80_B == doctest::Approx(1));
  CHECK(encode_message(c, device(), {Bytes{2000}, 2_B, {}}).size() / 60_B == doctest::Approx(1));
}

TEST_CASE("quantized blocks and signs send what they say") {
  // 1000 values of 4 bits and 5 scales of 4 bytes; 1000 bits and a scale.
  const Compressor blocks = compressor("quantized", {{"bits", 4}, {"block", 200}});
  CHECK(encode_message(blocks, device(), {Bytes{4000}, 4_B, {}}).size() / 520_B ==
        doctest::Approx(1));
  CHECK(encode_message(compressor("sign", {}), device(), {Bytes{4000}, 4_B, {}}).size() / 129_B ==
        doctest::Approx(1));
}

TEST_CASE("an exchange encodes a value twice, whatever the number of members") {
  // 80 MB at 8 bits and a scale for each 4 values: 2 bytes for 4. Over 4: parts of 20 MB. Launches of 1 ms a kernel.
  const Compressor c = compressor("quantized", {{"bits", 8}, {"block", 4}});
  const auto of = [&](RingKind kind) { return encode_ring(c, device(), kind, 80_MB, 4_B, 4); };
  const auto kernel = [](double moved) { return memory_time(1_MB * moved, device()) + 1_ms; };
  CHECK(of(RingKind::all_reduce).payload == 40_MB);
  CHECK(of(RingKind::reduce_scatter).encode / kernel(80 + 40) == doctest::Approx(1));
  CHECK(of(RingKind::reduce_scatter).decode / kernel(40 + 20) == doctest::Approx(1));
  CHECK(of(RingKind::all_gather).encode / kernel(20 + 10) == doctest::Approx(1));
  CHECK(of(RingKind::all_gather).decode / kernel(60 + 30) == doctest::Approx(1));
  CHECK(of(RingKind::all_reduce).encode / (kernel(120) + kernel(30)) == doctest::Approx(1));
}

TEST_CASE("a ring encodes again on each hop of its reduce-scatter and once for its all-gather") {
  // 80 MB over 4: blocks of 20 MB, 0.2 ms to encode at 100 GB/s, 0.1 ms to decode at 200 GB/s.
  const Compressor c = fixed(4, 100, 200);
  const auto ring = [&](RingKind kind) { return encode_ring(c, device(), kind, 80_MB, 4_B, 4); };
  CHECK(ring(RingKind::all_reduce).payload == 20_MB);
  CHECK(ring(RingKind::all_reduce).encode / 1_ms == doctest::Approx(0.8));  // 3 + 1 blocks
  CHECK(ring(RingKind::all_reduce).decode / 1_ms == doctest::Approx(0.6));  // 3 + 3
  CHECK(ring(RingKind::reduce_scatter).encode / 1_ms == doctest::Approx(0.6));
  CHECK(ring(RingKind::reduce_scatter).decode / 1_ms == doctest::Approx(0.3));
  CHECK(ring(RingKind::all_gather).encode / 1_ms == doctest::Approx(0.2));
  CHECK(ring(RingKind::all_gather).decode / 1_ms == doctest::Approx(0.3));
}

TEST_CASE("a ring whose blocks are below the threshold is left alone") {
  Compressor c = fixed(4, 100, 100);
  c.threshold = 21_MB;
  const EncodedCollective ring = encode_ring(c, device(), RingKind::all_reduce, 80_MB, 4_B, 4);
  CHECK(ring.payload == 80_MB);
  CHECK(ring.encode == 0_s);
}

TEST_CASE("topk's all-reduce gathers everybody's values") {
  // 8 members, 1/20 of the bytes: each sends 7 x 5 MB; an all-reduce of S sends 2 x 7/8 S: S = 20 MB.
  const Compressor c = compressor("topk", {{"density", 0.025}});  // 4 / (0.025 x 8) = 20
  CHECK(encode_ring(c, device(), RingKind::all_reduce, 100_MB, 4_B, 8).payload / 20_MB ==
        doctest::Approx(1));
}

TEST_CASE("rank 128 makes Optimus-CC's gradients 4.1 and 6.5 times smaller") {
  const auto stage = [](double hidden, int layers) {
    // QKV, projection, and the two of the MLP, on one of eight tensor ranks.
    return std::vector<CodecMatrix>{{3 * hidden / 8, hidden, layers},
                                    {hidden, hidden / 8, layers},
                                    {4 * hidden / 8, hidden, layers},
                                    {hidden, 4 * hidden / 8, layers}};
  };
  const auto size = [](const std::vector<CodecMatrix>& matrices) {
    double elements = 0;
    for (const CodecMatrix& m : matrices) elements += m.elements();
    return Bytes{4 * elements};
  };
  // 2.5B, 13 layers: 12 x 1920^2 x 13 / 8 x 4 = 287,539,200 B; sides 10,560 a layer x 13 x 128 x 4 = 70,287,360 B.
  const EncodedCollective small = encode_powersgd(powersgd(128), device(), stage(1920, 13), 0_B);
  CHECK(size(stage(1920, 13)) == Bytes{287539200});
  CHECK(small.payload + small.second_payload == Bytes{70287360});
  // 8.3B, 18 layers: 1,019,215,872 B; sides 16,896 x 18 x 512 = 155,713,536 B.
  const EncodedCollective large = encode_powersgd(powersgd(128), device(), stage(3072, 18), 0_B);
  CHECK(size(stage(3072, 18)) == Bytes{1019215872});
  CHECK(large.payload + large.second_payload == Bytes{155713536});
  CHECK(Bytes{287539200} / Bytes{70287360} == doctest::Approx(4.1).epsilon(0.01));
  CHECK(Bytes{1019215872} / Bytes{155713536} == doctest::Approx(6.5).epsilon(0.01));
}

TEST_CASE("gradients are orthogonalised once a matrix, between P and Q") {
  const EncodedCollective one = encode_powersgd(powersgd(16), device(), {{1000, 2000, 3}}, 100_B);
  CHECK(one.payload == Bytes{3 * 1000 * 16 * 4 + 100});
  CHECK(one.between / 1_us == doctest::Approx(3 * (160 + 8.192)).epsilon(1e-9));
  CHECK(one.encode / 1_us == doctest::Approx(3 * 8.192).epsilon(1e-9));
}

TEST_CASE("in Q chunks the longest of three is exposed, and 1/Q of the others") {
  const EncodedMessage whole{1_B, 0_B, 2_ms, 4_ms};
  const auto exposed = [&](int chunks, Seconds wire) {
    const EncodedMessage message = in_chunks(whole, chunks, wire);
    return (message.encode + wire + message.decode) / 1_ms;
  };
  CHECK(exposed(1, 10_ms) == doctest::Approx(16));
  CHECK(exposed(2, 10_ms) == doctest::Approx(10 + 3));
  CHECK(exposed(4, 1_ms) == doctest::Approx(4 + 0.75));
  CHECK(in_chunks(whole, 4, 10_ms).decode == in_chunks(whole, 4, 10_ms).encode * 2);
}

TEST_CASE("a device without a codec's speed says so") {
  Device bare = device();
  CHECK(!missing_speed(zfp(8), bare));
  bare.codecs->zfp.clear();
  CHECK(*missing_speed(zfp(8), bare) == "device card has no codecs/zfp, which zfp needs");
  bare.codecs.reset();
  CHECK(missing_speed(powersgd(4), bare).has_value());
  CHECK(!missing_speed(fixed(2, 1, 1), bare));
}

}  // namespace
}  // namespace windtunnel
