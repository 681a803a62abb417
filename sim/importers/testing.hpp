#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "core/file_io.hpp"
#include "core/testing.hpp"
#include "importers/base_platform.hpp"
#include "importers/importer.hpp"

/// Fixtures of this folder's tests; included by *_test.cpp only.
namespace windtunnel::testing {

inline Library shipped_library() { return Library{source_dir()}; }

inline std::filesystem::path sample(const std::string& name) {
  return source_dir() / "sim/importers/samples" / name;
}

inline std::string text_of(const std::filesystem::path& file) { return read_source(file)->text; }

/// `format` as printf fills it in.
inline std::string formatted(const char* format, double a, double b = 0, double c = 0,
                             double d = 0) {
  std::array<char, 256> buffer;
  const int length = std::snprintf(buffer.data(), buffer.size(), format, a, b, c, d);
  return {buffer.data(), static_cast<std::size_t>(length)};
}

/// `text` with every `old` replaced.
inline std::string replaced(std::string text, const std::string& old, const std::string& fresh) {
  for (std::size_t at = text.find(old); at != std::string::npos;
       at = text.find(old, at + fresh.size()))
    text.replace(at, old.size(), fresh);
  return text;
}

/// One run of the command in a folder of its own.
class ImportRun {
 public:
  explicit ImportRun(std::string kind) { request.kind = std::move(kind); }

  ImportRequest request;

  ImportRun& with(const std::string& name, const std::string& content) {
    const std::filesystem::path file = folder_->path() / name;
    std::ofstream(file, std::ios::binary) << content;
    request.inputs.push_back(file);
    return *this;
  }
  ImportRun& with(const std::filesystem::path& file) {
    request.inputs.push_back(file);
    return *this;
  }

  /// Problem with the files; empty if they were imported. Bad input leaves nothing behind.
  std::string problem() {
    try {
      run();
    } catch (const InputError& error) {
      CHECK_FALSE(std::filesystem::exists(request.output));
      return error.what();
    }
    return {};
  }

  void run() {
    std::ostringstream out, notes;
    request.output = folder_->path() / "result.json";
    run_import(request, ResultFormat::text, shipped_library(), out, notes);
    text = out.str();
    messages = notes.str();
  }

  /// The file that was written, as a platform.
  Platform platform() {
    run();
    return read_back(document(), shipped_library());
  }
  JsonValue document() const {
    Problems problems;
    JsonValue value = parse_json(read_source(request.output), problems);
    problems.throw_if_any();
    return value;
  }

  std::string text, messages;

 private:
  std::shared_ptr<TemporaryFolder> folder_ = std::make_shared<TemporaryFolder>();
};

}  // namespace windtunnel::testing
