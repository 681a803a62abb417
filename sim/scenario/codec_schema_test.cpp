#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/testing.hpp"
#include "cost/codec_table.hpp"

namespace windtunnel {
namespace {

using Json = nlohmann::json;

Json definitions() {
  std::ifstream stream(source_dir() / "docs/scenario.schema.json");
  return Json::parse(stream).at("definitions");
}

/// The codec's entry in the schema's list of what a compressed class may hold. Codecs without keys share one.
const Json& entry_of(const Codec& codec, const Json& all) {
  for (const Json& entry : all.at("codec").at("anyOf")) {
    const Json& name = entry.at("properties").at("codec");
    const Json names = name.contains("enum") ? name.at("enum") : Json::array({name.at("const")});
    if (std::find(names.begin(), names.end(), codec.name()) != names.end()) return entry;
  }
  FAIL("the schema has no codec ", codec.name());
  return all;
}

std::vector<std::string> required_keys(const Codec& codec) {
  std::vector<std::string> keys{"codec"};
  for (const CodecKey& key : codec.traits().keys)
    if (key.type != CodecKey::Type::data_rate) keys.emplace_back(key.name);
  return keys;
}

std::vector<std::string> known_keys(const Codec& codec) {
  std::vector<std::string> keys{"codec"};
  for (const CodecKey& key : codec.traits().keys) keys.emplace_back(key.name);
  if (codec.needs_sums()) keys.emplace_back("error_feedback");
  for (const char* key : {"threshold", "buffer", "messages", "chunks", "stream", "stages"})
    keys.emplace_back(key);
  return keys;
}

TEST_CASE("the schema lists the codecs of the table, in their order") {
  const Json all = definitions();
  Json names = Json::array({nullptr});
  for (const Codec* codec : codecs()) names.push_back(codec->name());
  CHECK(all.at("codec_name").at("enum") == names);
}

TEST_CASE("the schema gives each codec the keys of its entry in the table") {
  const Json all = definitions();
  for (const Codec* codec : codecs()) {
    CAPTURE(codec->name());
    const Json& entry = entry_of(*codec, all);
    CHECK(entry.at("required").get<std::vector<std::string>>() == required_keys(*codec));
    CHECK(entry.at("propertyNames").at("enum").get<std::vector<std::string>>() ==
          known_keys(*codec));
    CHECK(entry.at("properties").contains("chunks") == codec->sends_factors());
  }
}

TEST_CASE("the schema gives each key of a codec the range that the reader takes") {
  const Json all = definitions();
  for (const Codec* codec : codecs())
    for (const CodecKey& key : codec->traits().keys) {
      if (key.type == CodecKey::Type::data_rate) continue;
      CAPTURE(key.name);
      const Json& definition = all.at(std::string("codec_") + key.name);
      CHECK(definition.at("minimum") == key.least);
      CHECK(definition.at("maximum") == key.most);
    }
}

}  // namespace
}  // namespace windtunnel
