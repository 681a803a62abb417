#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/file_io.hpp"
#include "core/json_value.hpp"
#include "core/problem.hpp"
#include "core/text_list.hpp"
#include "importers/importer.hpp"
#include "importers/log_text.hpp"
#include "platform/platform.hpp"
#include "platform/platform_json.hpp"
#include "report/json_object.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// The content of the file that `option` names, by its path or as one of the library's. InputError where there is none, or it holds no object.
JsonValue file_of_option(const std::string& option, const std::string& name,
                         const LibraryKind& kind, const Library& library);

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
template <class Value>
void set_number(JsonValue& object, const std::string& key, const Value& value,
                const std::string& source) {
  object.set(key, json_of(value));
  set_source(object, key, source);
}

/// "name a base of kind mesh, as hgx-h200-4gpu, or a file that extends it with your device": what to do about another kind of base.
std::string ask_for_base(Interconnect::Kind kind);

/// True if NVLinks, [GPU][GPU], lead to every GPU, so that collectives run over them.
bool join_all(const std::vector<std::vector<int>>& lanes);

/// `document` as our own reader reads it, with devices from the library. What the reader objects to
/// is our bug: an importer checks what it read before it writes.
Platform read_back(const JsonValue& document, const Library& library);

/// A GPU model, whatever memory and form it is sold with.
struct GpuModel {
  std::string_view name;  ///< "A100"
  int nvlinks = 0;        ///< of one GPU; 0: not known, or not the same on all of its boards
};

/// The model that `text` names among other words: "NVIDIA A100-SXM4-80GB" of a driver and "a100-sxm-80gb" of a device file are
/// both an A100, "GH200" is no H200. A null pointer where `text` names no model of the list.
const GpuModel* gpu_model_in(std::string_view text);

/// A GPU as a log names it, and where.
struct NamedGpu {
  std::string name;  ///< "NVIDIA H100 80GB HBM3"
  Origin origin;
};

/// Common base of importers of measurements into a platform.
class PlatformImport {
 public:
  PlatformImport(const ImportRequest& request, const Library& library)
      : request_(request),
        library_(library),
        file_(listed(request.inputs, file_name_of)),
        base_(request.options.base, library) {}

 protected:
  const NodeType& node() const { return base_.only_node(); }
  /// NVLinks of the base's GPU; 0: not known. The name of a platform may say more than its device: H800s compute as H100s.
  int links_of_a_gpu() const;
  void note(std::string text) { imported_.notes.push_back(std::move(text)); }
  void note_kept(const std::vector<std::string>& keys) {
    for (const std::string& key : keys)
      note(key + " is that of " + base_.name() + ": no time depends on it");
  }
  void warn(std::string text) { imported_.warnings.push_back(std::move(text)); }
  void problem(const Origin& place, std::string message, std::string suggestion = {}) {
    add_problem(problems_, place, std::move(message), std::move(suggestion));
  }
  /// That the base is the wrong one.
  InputError base_error(std::string why, std::string suggestion) const;
  /// Names the document after the file that it goes to; `what` is laid into the base: " with the links of topo.txt".
  void describe_document(const std::string& what);
  /// A fabric of this kind in place of the base's, whose latencies stay. What the base says of single nodes and links is left out.
  JsonValue& replace_fabric(const std::string& kind);
  /// NICs of a node, their Gb/s, and which of them each GPU uses (nic_of_gpu). Null where that is not known: as in the base, which must have as many then if it says.
  void set_nics(int nics, double gigabits, JsonValue of_gpus, const std::string& source);
  void set_lanes(const std::vector<std::vector<int>>& lanes, const std::string& source);
  /// Reads the document back, and returns what was imported.
  Imported finished();
  /// The problems of GPUs named in logs that are of another model than the base's; those that cannot be compared are warned of. Models are
  /// compared, not memory and form: an A100-SXM4-40GB goes with a base of a100-sxm-80gb.
  std::vector<Problem> contradictions(const std::vector<NamedGpu>& named);

  const ImportRequest& request_;
  const Library& library_;
  std::string file_;  ///< the files' names without their folders, as sources name them
  BasePlatform base_;
  Problems problems_;
  Imported imported_;
};

/// Importer::import of a class that is made of a request and the library and imports with run().
template <class Import>
Imported import_by(const ImportRequest& request, const Library& library) {
  return Import(request, library).run();
}

}  // namespace windtunnel
