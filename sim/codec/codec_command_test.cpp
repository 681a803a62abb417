#include "codec/codec_command.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <sstream>

#include "codec/measured_codec.hpp"
#include "core/json_value.hpp"
#include "core/problem.hpp"
#include "core/testing.hpp"

namespace windtunnel {
namespace {

CodecRequest small_gradient() {
  CodecRequest request;
  request.synthetic = "gradient";
  request.rows = 32;
  request.columns = 48;
  return request;
}

JsonValue parse(const std::string& text) {
  Problems problems;
  JsonValue value =
      parse_json(std::make_shared<const SourceText>(SourceText{"codec.json", text}), problems);
  problems.throw_if_any();
  return value;
}

JsonValue result_of(const CodecRequest& request) {
  std::ostringstream messages;
  return parse(json_of(run_codec(request, messages)));
}

std::string text_at(JsonValue& value, const char* pointer) {
  const JsonValue* found = find_at(value, pointer);
  return found == nullptr ? "nothing" : canonical_text(*found);
}

std::string refusal(const CodecRequest& request) {
  try {
    result_of(request);
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST_CASE("the JSON document says what each codec did, and how a scenario would name it") {
  CodecRequest request = small_gradient();
  request.codecs = {"powersgd", "mpc", "topk"};
  request.settings["rank"] = {3};
  JsonValue result = result_of(request);
  CHECK(text_at(result, "/schema") == "\"windtunnel/codec-v1\"");
  CHECK(text_at(result, "/tensor/bytes") == "6144");
  // 32 * 48 numbers over (32 + 48) * 3.
  CHECK(text_at(result, "/codecs/0/ratio") == "6.4");
  CHECK(text_at(result, "/codecs/0/scenario") == R"({"codec":"powersgd","rank":3})");
  CHECK(text_at(result, "/codecs/1/relative_error") == "0");
  CHECK(text_at(result, "/codecs/1/scenario/ratio") == text_at(result, "/codecs/1/ratio"));
  CHECK(text_at(result, "/codecs/2/density") == "0.01");
  CHECK(text_at(result, "/wall/device_fragment/codecs/mpc_encode").find("B/s") !=
        std::string::npos);
  // A device file needs a launch time in addition to the rates.
  CHECK(text_at(result, "/wall/device_fragment/codecs/launch") == "\"0 us\"");
  CHECK(text_at(result, "/error_feedback") == "nothing");
}

TEST_CASE("the same request gives the same document, real time apart") {
  CodecRequest request = small_gradient();
  request.feedback_messages = 3;
  JsonValue first = result_of(request), second = result_of(request);
  CHECK(first.erase("wall"));
  CHECK(second.erase("wall"));
  CHECK(canonical_text(first) == canonical_text(second));
  request.seed = 1;
  JsonValue other = result_of(request);
  other.erase("wall");
  CHECK(canonical_text(first) != canonical_text(other));
}

TEST_CASE("all codecs are measured unless some are named, each once") {
  JsonValue all = result_of(small_gradient());
  const std::size_t zfp_rates = measured_codec("zfp").missing_package == nullptr ? 3 : 0;
  CHECK(find_at(all, "/codecs")->array().size() == 2 + zfp_rates + 3);
  CodecRequest request = small_gradient();
  request.codecs = {"int8", "int8"};
  JsonValue one = result_of(request);
  CHECK(find_at(one, "/codecs")->array().size() == 1);
}

TEST_CASE("error feedback adds up new draws of a synthetic tensor") {
  CodecRequest request = small_gradient();
  request.codecs = {"int8"};
  request.feedback_messages = 4;
  JsonValue result = result_of(request);
  CHECK(text_at(result, "/error_feedback/messages") == "4");
  const auto number = [&](const char* pointer) { return std::stod(text_at(result, pointer)); };
  CHECK(number("/error_feedback/codecs/0/error_with") <
        number("/error_feedback/codecs/0/error_without"));
  CHECK(number("/error_feedback/codecs/0/telescoping") <= 1);
  request.feedback_messages = 1 << 20;
  CHECK(refusal(request).find("more than 2^28") != std::string::npos);
}

TEST_CASE("unknown names are refused with the nearest known one") {
  CodecRequest request = small_gradient();
  request.codecs = {"zpf"};
  CHECK(refusal(request).find("did you mean \"zfp\"?") != std::string::npos);
  request = small_gradient();
  request.synthetic = "gradients";
  CHECK(refusal(request).find("did you mean \"gradient\"?") != std::string::npos);
}

TEST_CASE("text, JSON and page are of the same measurement") {
  CodecRequest request = small_gradient();
  request.codecs = {"mpc", "topk"};
  std::ostringstream messages;
  const document::Document document = run_codec(request, messages);
  JsonValue written = parse(json_of(document));
  CHECK(text_at(written, "/codecs/0/codec") == "\"mpc\"");
  const std::string text = text_of(document), page = page_of(document);
  CHECK(text.find("synthetic gradient: 32 x 48 float32") != std::string::npos);
  CHECK(text.find("mpc") != std::string::npos);
  CHECK(page.find("data-at=\"/codecs/1/relative_error\"") != std::string::npos);
  // mpc loses nothing, so that the chart of errors has topk alone.
  CHECK(page.find("<title>topk") != std::string::npos);
  CHECK(page.find("<title>mpc") == std::string::npos);
}

TEST_CASE("codecs that lose nothing have no chart of errors") {
  CodecRequest request = small_gradient();
  request.codecs = {"mpc"};
  std::ostringstream messages;
  CHECK(page_of(run_codec(request, messages)).find("Relative error over") == std::string::npos);
}

}  // namespace
}  // namespace windtunnel
