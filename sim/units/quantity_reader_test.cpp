#include "units/quantity_reader.hpp"

#include <doctest/doctest.h>

#include <clocale>

#include "core/contracts.hpp"
#include "units/member_reader.hpp"

namespace windtunnel {
namespace {

template <class Amount>
Amount parsed(std::string_view text) {
  std::string problem;
  std::string suggestion;
  const std::optional<Amount> amount = parse_quantity<Amount>(text, problem, suggestion);
  REQUIRE_MESSAGE(amount.has_value(), problem);
  return *amount;
}

template <class Amount>
std::string refusal(std::string_view text) {
  std::string problem;
  std::string suggestion;
  CHECK_MESSAGE(!parse_quantity<Amount>(text, problem, suggestion).has_value(), text);
  return problem + " (" + suggestion + ")";
}

JsonValue json(const std::string& text) {
  Problems problems;
  JsonValue value = parse_json(std::make_shared<SourceText>(SourceText{"f.json", text}), problems);
  problems.throw_if_any();
  return value;
}

TEST_CASE("rates in bits and bytes are distinguished") {
  CHECK(parsed<BytesPerSecond>("200 Gbps") == 25_GBps);
  CHECK(parsed<BytesPerSecond>("200 GBps") == 200_GBps);
  for (const char* text :
       {"200Gbps", "200 Gb/s", "200 Gbit/s", "200 gbit/s", " 200  Gbps ", "2e2 Gbps", "200.0 Gbps",
        "0.2 Tbps", "25 GB/s", "25GB/s", "25 GBps", "25000 MB/s", "0.025 TB/s"})
    CHECK_MESSAGE(parsed<BytesPerSecond>(text) / 25_GBps == doctest::Approx(1).epsilon(1e-15),
                  text);
  CHECK(parsed<BytesPerSecond>("1 GiB/s") == BytesPerSecond{0x1p30});
  CHECK(parsed<BytesPerSecond>("8 Gib/s") == BytesPerSecond{0x1p30});
}

TEST_CASE("sizes are decimal or binary as written") {
  CHECK(parsed<Bytes>("80 GB") == 80_GB);
  CHECK(parsed<Bytes>("80 GiB") == 80_GiB);
  CHECK(parsed<Bytes>("64kB") == 64_kB);
  CHECK(parsed<Bytes>("64 KiB") == Bytes{65536});
  CHECK(parsed<Bytes>("1 MB") == 1_MB);
  CHECK(parsed<Bytes>("4096 B") == 4096_B);
  CHECK(parsed<Bytes>("0 B") == Bytes{0});
}

TEST_CASE("times go from nanoseconds to hours") {
  CHECK(parsed<Seconds>("1.5 us") == 1.5_us);
  CHECK(parsed<Seconds>("1.5 \xC2\xB5s") == 1.5_us);  // micro sign
  CHECK(parsed<Seconds>("1.5 \xCE\xBCs") == 1.5_us);  // Greek mu
  CHECK(parsed<Seconds>("700 ns") == Seconds{700 * 1e-9});
  CHECK(parsed<Seconds>("5ms") == 5_ms);
  CHECK(parsed<Seconds>("2 min") == 120_s);
  CHECK(parsed<Seconds>("48h") == 172800_s);
  CHECK(parsed<Seconds>("0 s") == 0_s);
}

TEST_CASE("rates of operations are written in any case") {
  for (const char* text :
       {"312 TFLOPS", "312 TFLOP/s", "312TFLOPS", "312 TFLOPs", "312 tflops", "312 Tflop/s"})
    CHECK_MESSAGE(parsed<FlopsPerSecond>(text) == 312_TFLOPS, text);
  CHECK(parsed<FlopsPerSecond>("0.312 PFLOPS") / 312_TFLOPS == doctest::Approx(1).epsilon(1e-15));
}

TEST_CASE("a bare number shows both readings") {
  CHECK(refusal<BytesPerSecond>("400") ==
        "'400' has no unit (could be bits or bytes) (write \"400 Gbps\" (= 50 GB/s) or \"400 "
        "GB/s\")");
  CHECK(refusal<BytesPerSecond>("25000000000") ==
        "'25000000000' has no unit (could be bits or bytes) "
        "(write \"25000000000 bps\" (= 3125000000 B/s) or \"25000000000 B/s\")");
  CHECK(refusal<Bytes>("80") ==
        "'80' has no unit (could be GB or GiB) "
        "(write \"80 GB\" (10^9 bytes each) or \"80 GiB\" (2^30 bytes each))");
  CHECK(refusal<Bytes>("85899345920") ==
        "'85899345920' has no unit (could be bytes or gigabytes) (write \"85899345920 B\")");
  CHECK(refusal<Seconds>("5") ==
        "'5' has no unit (could be seconds or microseconds) (write \"5 s\" or \"5 us\")");
  CHECK(refusal<FlopsPerSecond>("312") ==
        "'312' has no unit (could be GFLOPS or TFLOPS) (write \"312 GFLOPS\" or \"312 TFLOPS\")");
}

TEST_CASE("a unit in doubtful case shows both readings") {
  CHECK(refusal<BytesPerSecond>("200 gbps") ==
        "'200 gbps' could be bits or bytes (write \"200 Gbps\" (= 25 GB/s) or \"200 GB/s\")");
  CHECK(refusal<BytesPerSecond>("5 gib/s") ==
        "'5 gib/s' could be bits or bytes (write \"5 Gibps\" (= 0.625 GiB/s) or \"5 GiB/s\")");
  CHECK(refusal<Bytes>("80 gb") ==
        "'80 gb' could be decimal or binary "
        "(write \"80 GB\" (10^9 bytes each) or \"80 GiB\" (2^30 bytes each))");
  CHECK(refusal<Bytes>("64 KB") ==
        "'64 KB' could be decimal or binary "
        "(write \"64 kB\" (10^3 bytes each) or \"64 KiB\" (2^10 bytes each))");
  CHECK(refusal<Bytes>("8 Gb") == "'8 Gb' counts bits, not bytes (write \"1 GB\" or \"8 GB\")");
}

TEST_CASE("a mistyped unit shows the nearest") {
  CHECK(refusal<BytesPerSecond>("200 Gbsp") ==
        "'200 Gbsp' has an unknown unit (did you mean \"Gbps\"?)");
  CHECK(refusal<FlopsPerSecond>("312 TFLSOP") ==
        "'312 TFLSOP' has an unknown unit (did you mean \"TFLOPS\"?)");
  CHECK(refusal<Seconds>("3 MS") == "'3 MS' has an unknown unit (did you mean \"ms\"?)");
  CHECK(refusal<Bytes>("10 gib") == "'10 gib' has an unknown unit (did you mean \"GiB\"?)");
  CHECK(refusal<Seconds>("5 fortnights") ==
        "'5 fortnights' has an unknown unit (units: ns, us, ms, s, min, h)");
}

TEST_CASE("a unit of another kind is named as such") {
  CHECK(refusal<BytesPerSecond>("5 us") ==
        "'5 us' is a time, not a data rate (write for example \"400 Gbps\")");
  CHECK(refusal<BytesPerSecond>("25 GB") ==
        "'25 GB' is a size, not a data rate (write \"25 GB/s\")");
  CHECK(refusal<BytesPerSecond>("25 Gb") ==
        "'25 Gb' is a number of bits, not a data rate (write \"25 Gb/s\")");
  CHECK(refusal<FlopsPerSecond>("25 GB/s") ==
        "'25 GB/s' is a data rate, not a rate of operations (write for example \"312 TFLOPS\")");
}

TEST_CASE("negative and infinite amounts are refused") {
  CHECK(refusal<Seconds>("-5 us") == "'-5 us' is negative (write for example \"1.5 us\")");
  CHECK(refusal<Bytes>("nan GB") ==
        "'nan GB' is not a finite number (write for example \"80 GB\")");
  CHECK(refusal<Bytes>("inf GB") ==
        "'inf GB' is not a finite number (write for example \"80 GB\")");
  CHECK(refusal<Bytes>("1e999 GB") ==
        "'1e999 GB' is beyond the range of numbers (write for example \"80 GB\")");
  CHECK(refusal<Bytes>("1e300 TB") ==
        "'1e300 TB' is beyond the range of numbers (write for example \"80 GB\")");
}

TEST_CASE("text that is no number is refused") {
  CHECK(refusal<Seconds>("fast") ==
        "'fast' does not begin with a number (write for example \"1.5 us\")");
  CHECK(refusal<Seconds>("") == "'' does not begin with a number (write for example \"1.5 us\")");
  CHECK(refusal<Seconds>("us") ==
        "'us' does not begin with a number (write for example \"1.5 us\")");
  CHECK(
      refusal<Seconds>("1,5 us") ==
      "'1,5 us' has a comma in its number (write . before decimals and nothing between thousands)");
  CHECK(refusal<Bytes>("0x10 GB").find("unknown unit") != std::string::npos);
}

TEST_CASE("the language of the user changes nothing") {
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"}) std::setlocale(LC_ALL, name);
  CHECK(parsed<Seconds>("1.5 us") == 1.5_us);
  CHECK(to_text(1.5_us) == "1.50 us");
  std::setlocale(LC_ALL, "C");
}

TEST_CASE("members are read as amounts") {
  JsonValue value = json(R"({"bandwidth": "200 Gbps", "memory": "80 GiB"})");
  Problems problems;
  ObjectReader reader(value, "/nic", problems);
  CHECK(required_quantity<BytesPerSecond>(reader, "bandwidth") == 25_GBps);
  CHECK(optional_quantity<Bytes>(reader, "memory", "1 GB") == 80_GiB);
  CHECK(optional_quantity<Seconds>(reader, "latency", "5 us") == 5_us);
  reader.reject_unknown_keys();
  CHECK(problems.empty());
  CHECK(value.find("latency")->string() == "5 us");
  CHECK(value.find("latency")->origin.kind == OriginKind::defaulted);
}

TEST_CASE("a bare number in a file is shown with both readings and its line") {
  JsonValue value = json("{\"bandwidth\": 400}");
  Problems problems;
  ObjectReader reader(value, "/tiers/1", problems);
  CHECK(required_quantity<BytesPerSecond>(reader, "bandwidth") > BytesPerSecond{0});
  CHECK(to_text(problems.all().at(0)) ==
        "f.json:1:15: error: '400' has no unit (could be bits or bytes) at /tiers/1/bandwidth "
        "(write \"400 Gbps\" (= 50 GB/s) or \"400 GB/s\")\n"
        "   1 | {\"bandwidth\": 400}\n"
        "     |               ^~~");
}

TEST_CASE("members that are no amounts are problems and all are found") {
  JsonValue value = json(R"({"a": true, "b": "0 GB", "c": "0 s", "d": -5, "e": ["1 s"]})");
  Problems problems;
  ObjectReader reader(value, "", problems);
  required_quantity<BytesPerSecond>(reader, "a");
  required_quantity<Bytes>(reader, "b");
  CHECK(required_quantity<Seconds>(reader, "c") == 0_s);
  CHECK(optional_quantity<Seconds>(reader, "d", "2 s") == 2_s);
  required_quantity<Seconds>(reader, "e");
  required_quantity<FlopsPerSecond>(reader, "f");
  std::string all;
  for (const Problem& problem : problems.all())
    all += problem.message + " at " + problem.pointer + " (" + problem.suggestion + ")\n";
  CHECK(all ==
        "a is true, which is not a data rate at /a (write for example \"400 Gbps\")\n"
        "b is \"0 GB\", which is too small at /b (write a size from 1 B to 1 PB)\n"
        "'-5' is negative at /d (write for example \"1.5 us\")\n"
        "e is an array, which is not a time at /e (write for example \"1.5 us\")\n"
        "missing key \"f\" at  (add \"f\": a rate of operations such as \"312 TFLOPS\")\n");
}

TEST_CASE("an amount beyond its range is refused with the range") {
  const auto message = [](const char* text) {
    JsonValue value = json(std::string(R"({"nic_rate": ")") + text + "\"}");
    Problems problems;
    ObjectReader reader(value, "", problems);
    required_quantity<BytesPerSecond>(reader, "nic_rate");
    return problems.empty()
               ? ""
               : problems.all().front().message + "; " + problems.all().front().suggestion;
  };
  CHECK(message("1 Mbps") == "");
  CHECK(message("100 TB/s") == "");
  CHECK(message("70 bps") ==
        "nic_rate is \"70 bps\", which is too small; write a data rate from 1 Mbps to 100 TB/s");
  CHECK(message("1e300 TB/s") ==
        "'1e300 TB/s' is beyond the range of numbers; write a data rate from 1 Mbps to 100 TB/s");
  CHECK(message("1e999 TB/s") ==
        "'1e999 TB/s' is beyond the range of numbers; write a data rate from 1 Mbps to 100 TB/s");
  CHECK(message("1e40 GB/s") ==
        "nic_rate is \"1e40 GB/s\", which is too large; write a data rate from 1 Mbps to 100 TB/s");
}

TEST_CASE("a default that is no amount is a broken contract") {
  JsonValue value = json("{}");
  Problems problems;
  ObjectReader reader(value, "", problems);
  CHECK_THROWS_AS(optional_quantity<Seconds>(reader, "x", "5 parsecs"), ContractViolation);
}

TEST_CASE("amounts are shown in fitting units") {
  CHECK(to_text(16.31_s) == "16.31 s");
  CHECK(to_text(20.4_ms) == "20.4 ms");
  CHECK(to_text(5_us) == "5.00 us");
  CHECK(to_text(Seconds{2.5e-9}) == "2.50 ns");
  CHECK(to_text(123.456_s) == "123.5 s");
  CHECK(to_text(86400_s) == "86400 s");
  CHECK(to_text(Bytes{61.2 * 0x1p30}) == "61.2 GiB");
  CHECK(to_text(512_B) == "512 B");
  CHECK(to_text(1_MiB) == "1.00 MiB");
  CHECK(to_text(25_GBps) == "25.0 GB/s");
  CHECK(to_text(900_GBps) == "900 GB/s");
  CHECK(to_text(138_TFLOPS) == "138 TFLOP/s");
  CHECK(to_text(FlopsPerSecond{1.5e15}) == "1.50 PFLOP/s");
}

TEST_CASE("rounding moves on to the next unit") {
  CHECK(to_text(Seconds{0.99996}) == "1.000 s");   // not 1000 ms
  CHECK(to_text(Seconds{9.996e-3}) == "10.0 ms");  // not 10.00 ms
  CHECK(to_text(Seconds{999.4e-6}) == "999 us");
  CHECK(to_text(Bytes{1023.9 * 1024}) == "1.00 MiB");
  CHECK(to_text(1_ms) == "1.00 ms");
  CHECK(to_text(1_us) == "1.00 us");
}

TEST_CASE("zero and odd amounts have a text too") {
  CHECK(to_text(0_s) == "0 s");
  CHECK(to_text(0_B) == "0 B");
  CHECK(to_text(-16.31_s) == "-16.31 s");
  CHECK(to_text(Seconds{1.0 / 0.0}) == "inf s");
  CHECK(to_text(Seconds{1e300}).size() == 303);
  CHECK(to_text(Seconds{5e-324}).ends_with(" ns"));
}

TEST_CASE("a default is what the member has, and is written back as a file would write it") {
  JsonValue value = json("{}");
  Problems problems;
  ObjectReader reader(value, "", problems);
  Seconds none{}, short_time = 2_ms, day{86400};
  Bytes binary = 46_MiB, decimal = 32_MB;
  BytesPerSecond rate = 100_GBps;
  defaulted(reader, "none", none);
  defaulted(reader, "short", short_time);
  defaulted(reader, "day", day, AmountRange{"0 s", "48 h"});
  defaulted(reader, "binary", binary);
  defaulted(reader, "decimal", decimal);
  defaulted(reader, "rate", rate);
  CHECK(
      canonical_text(value) ==
      R"({"binary":"46 MiB","day":"24 h","decimal":"32 MB","none":"0 s","rate":"100 GB/s","short":"2 ms"})");
  CHECK(day / Seconds{3600} == 24);
}

TEST_CASE("a key that only some files give leaves its member alone where it is absent") {
  JsonValue value = json(R"({"share": 0.5, "count": 3})");
  Problems problems;
  ObjectReader reader(value, "", problems);
  double share = 1, other = 7;
  std::optional<int> count, absent;
  given(reader, "share", share, 0, 1);
  given(reader, "other", other, 0, 10);
  given(reader, "count", count, 1, 8);
  given(reader, "absent", absent, 1, 8);
  CHECK(share == 0.5);
  CHECK(other == 7);
  CHECK(count == 3);
  CHECK(!absent.has_value());
  CHECK(canonical_text(value) == R"({"count":3,"share":0.5})");
}

}  // namespace
}  // namespace windtunnel
