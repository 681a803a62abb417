#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "scenario/corpus_fixtures.hpp"

/// Whatever a file holds, reading it ends in a scenario, an InputError or an EnvironmentError. Bytes after a zero byte are
/// a --set option. Start it with the corpus as seeds:
///   windtunnel_scenario_fuzz -max_total_time=60 $(mktemp -d) sim/scenario/corpus/{good,bad,errors}
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace windtunnel;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = bytes.find('\0');
  ReadOptions options;
  if (zero != std::string::npos) {
    const std::string option = bytes.substr(zero + 1);
    const std::size_t equals = option.find('=');
    if (equals != std::string::npos)
      options.overrides.emplace_back(option.substr(0, equals), option.substr(equals + 1));
  }
  static const Library library = test_library();
  try {
    Problems problems;
    JsonValue value = parse_json(
        std::make_shared<const SourceText>(SourceText{"fuzz.json", bytes.substr(0, zero)}),
        problems);
    read_scenario(std::move(value), corpus() / "good", library, options);
  } catch (const InputError&) {
  } catch (const EnvironmentError&) {
  }
  return 0;
}
