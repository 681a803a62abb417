#pragma once

#include <string>

#include "core/json_value.hpp"
#include "platform/platform.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// The platform file that an imported measurement is laid into: it says what a log cannot know, such
/// as the type of GPU.
class BasePlatform {
 public:
  /// A name of platforms/ or a path. InputError when there is none, or when it is wrong itself.
  BasePlatform(const std::string& name, const Library& library);

  const std::string& name() const { return name_; }  ///< as the file gives it
  const Platform& platform() const { return platform_; }
  /// The file, to be changed; names of devices stay names.
  JsonValue& document() { return document_; }
  /// Its only kind of node. InputError where it has several: a log does not say which it is of.
  JsonValue& only_node_type();
  /// The device of its only kind of node, written out where a name stood: to be changed.
  JsonValue& only_device(const Library& library);
  const NodeType& only_node() const { return platform_.node_types.front(); }

 private:
  std::string given_, name_;
  JsonValue document_;
  Platform platform_;
};

/// Sets number `key` of `object` and says where it is from.
void set_number(JsonValue& object, const std::string& key, JsonValue value,
                const std::string& source);

/// `document` as our own reader reads it, with devices from the library. What the reader objects to
/// is our bug: an importer checks what it read before it writes.
Platform read_back(const JsonValue& document, const Library& library);

}  // namespace windtunnel
