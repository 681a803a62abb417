#pragma once

#include <cstdint>
#include <string>

#include "core/text_input.hpp"

namespace windtunnel {

/// Is told of a JSON text piece by piece, as it is read.
class JsonListener {
 public:
  virtual ~JsonListener() = default;
  virtual void on_object_begin() = 0;
  virtual void on_object_end() = 0;
  virtual void on_array_begin() = 0;
  virtual void on_array_end() = 0;
  virtual void on_key(std::string& key) = 0;
  virtual void on_string(std::string& value) = 0;
  /// A number as it was written, so that no decimal is lost: "4458676416788.066".
  virtual void on_number(const std::string& text) = 0;
  /// true, false or null.
  virtual void on_word() = 0;
};

/// Reads strict JSON (RFC 8259; a byte order mark is allowed) without keeping it. InputError with
/// file, line and byte where it is no JSON or ends too early.
void stream_json(TextInput& input, JsonListener& listener);

}  // namespace windtunnel
