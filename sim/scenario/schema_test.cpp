#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/testing.hpp"
#include "scenario/corpus_fixtures.hpp"
#include "scenario/scenario.hpp"

// valijson is not written for our warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>
#pragma GCC diagnostic pop

namespace windtunnel {
namespace {

using Json = nlohmann::json;
using Adapter = valijson::adapters::NlohmannJsonAdapter;

Json load(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return Json::parse(stream, nullptr, true, true);
}

/// The published schema.
class PublishedSchema {
 public:
  PublishedSchema() : json_(load(source_dir() / "docs/scenario.schema.json")) {
    valijson::SchemaParser parser;
    parser.populateSchema(Adapter(json_), schema_);
  }

  /// The schema's complaint about `document`; empty if it accepts it.
  std::string complaint(const Json& document) const {
    valijson::Validator validator;
    valijson::ValidationResults results;
    if (validator.validate(schema_, Adapter(document), &results)) return {};
    std::string text = "refused";
    for (valijson::ValidationResults::Error error; results.popError(error);) {
      text += "\n";
      for (const std::string& part : error.context) text += part;
      text += ": " + error.description;
    }
    return text;
  }

 private:
  Json json_;
  valijson::Schema schema_;
};

/// The reader's complaint about the file. A correct request that is not simulated yet is no complaint.
std::string reader_complaint(const std::filesystem::path& file, const Library& library) {
  try {
    read_scenario(file, library);
  } catch (const UnsupportedError&) {
    return {};
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("schema and reader accept every good file") {
  const PublishedSchema schema;
  for (const auto& file : json_files(corpus() / "good")) {
    CAPTURE(file.filename().string());
    CHECK(schema.complaint(load(file)) == "");
    CHECK(reader_complaint(file, test_library()) == "");
  }
}

TEST_CASE("schema and reader refuse every file with a wrong structure") {
  const PublishedSchema schema;
  for (const auto& file : json_files(corpus() / "bad")) {
    CAPTURE(file.filename().string());
    CHECK(schema.complaint(load(file)) != "");
    CHECK(reader_complaint(file, test_library()) != "");
  }
}

TEST_CASE("the corpus is large enough to mean something") {
  CHECK(json_files(corpus() / "good").size() + json_files(corpus() / "bad").size() >= 100);
}

TEST_CASE("what we ship is allowed by the schema, the named files inline too") {
  const PublishedSchema schema;
  const std::filesystem::path root = source_dir();
  const Json plain = load(corpus() / "good/plain.json");
  for (const auto& [folder, key] :
       {std::pair{"models", "model"}, std::pair{"platforms", "platform"},
        std::pair{"platforms/software", "software"}, std::pair{"platforms/noise", "noise"}})
    for (const auto& file : json_files(root / folder)) {
      CAPTURE(file.string());
      Json document = plain;
      document[key] = load(file);
      CHECK(schema.complaint(document) == "");
    }
  for (const auto& file : json_files(root / "scenarios")) {
    CAPTURE(file.string());
    CHECK(schema.complaint(load(file)) == "");
  }
}

}  // namespace
}  // namespace windtunnel
