#include "importers/base_platform.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <sstream>

#include "core/contracts.hpp"
#include "core/count_text.hpp"
#include "core/json_build.hpp"
#include "core/option_error.hpp"
#include "core/utf8.hpp"
#include "platform/network.hpp"
#include "scenario/scenario_files.hpp"

namespace windtunnel {
namespace {

/// A document as our own reader reads it, with devices from the library; those in other files are put in place of their paths.
Platform read_platform_of(JsonValue& document, const Library& library, Problems& problems) {
  ScenarioFiles files(library, {}, problems);
  JsonValue expanded = document;
  JsonValue* types = expanded.find("node_types");
  for (std::size_t i = 0; types != nullptr && types->is_array() && i < types->array().size(); ++i) {
    JsonValue* device = types->array()[i].find("device");
    if (device == nullptr || !device->is_string()) continue;
    const bool is_path = looks_like_path(device->string());
    files.expand(*device, device_files, "/node_types/" + std::to_string(i) + "/device");
    if (is_path) document.find("node_types")->array()[i].set("device", *device);
  }
  return problems.empty() ? read_platform(expanded, {}, problems) : Platform{};
}

// NVLinks: NVIDIA's datasheets (bandwidth of a GPU by that of a link); A800 and H800 have 400 GB/s of 50 GB/s a link. Consumer
// cards go by their number alone ("GeForce RTX 4090").
constexpr GpuModel models[]{
    {"K80"},      {"P4"},      {"P40"},      {"P100", 4}, {"V100", 6},  {"V100S"},  {"T4"},
    {"A2"},       {"A10"},     {"A10G"},     {"A16"},     {"A30"},      {"A40"},    {"A100", 12},
    {"A800", 8},  {"A4000"},   {"A5000"},    {"A6000"},   {"L4"},       {"L20"},    {"L40"},
    {"L40S"},     {"H20", 18}, {"H100", 18}, {"H800", 8}, {"H200", 18}, {"GH200"},  {"B100"},
    {"B200", 18}, {"B300"},    {"GB200"},    {"GB300"},   {"3090"},     {"4090"},   {"5090"},
    {"MI50"},     {"MI60"},    {"MI100"},    {"MI210"},   {"MI250"},    {"MI250X"}, {"MI300A"},
    {"MI300X"},   {"MI308X"},  {"MI325X"},   {"MI350X"},  {"MI355X"}};

/// Built-in platforms that could be the base instead.
std::string bases_with(const GpuModel& model, const Library& library) {
  std::vector<std::string> bases = library.names(platform_files.name);
  std::erase_if(bases, [&](const std::string& name) {
    try {
      const std::vector<NodeType> types = BasePlatform(name, library).platform().node_types;
      return std::ranges::any_of(
          types, [&](const NodeType& type) { return gpu_model_in(type.device.name) != &model; });
    } catch (const InputError&) {
      return true;  // a broken file is no base, and not what is spoken of
    }
  });
  const std::string gpu(model.name);
  if (!bases.empty()) return "name a --base with " + gpu + " GPUs: " + listed(bases);
  return "no built-in platform has " + gpu +
         " GPUs: write a device file for it and a platform with it, and name that as --base "
         "(docs/platforms.md)";
}

}  // namespace

JsonValue file_of_option(const std::string& option, const std::string& name,
                         const LibraryKind& kind, const Library& library) {
  JsonValue content(name, option_origin(option, name));
  Problems problems;
  ScenarioFiles(library, {}, problems).expand(content, kind, {});
  problems.throw_if_any();
  return content;
}

BasePlatform::BasePlatform(const std::string& name, const Library& library)
    : given_(name), document_(file_of_option("--base", name, platform_files, library)) {
  Problems problems;
  platform_ = read_platform_of(document_, library, problems);
  problems.throw_if_any();
  name_ = platform_.name;
}

JsonValue& BasePlatform::only_node_type() {
  JsonValue::Array& types = document_.find("node_types")->array();
  if (types.size() != 1)
    throw option_error("--base", given_,
                       name_ + " has " + std::to_string(types.size()) +
                           " kinds of node, and the file does not say which it describes",
                       "name a base with one kind of node");
  return types.front();
}

JsonValue& BasePlatform::only_device(const Library& library) {
  JsonValue& device = *only_node_type().find("device");
  Problems problems;
  ScenarioFiles files(library, {}, problems);
  if (device.is_string()) files.expand(device, device_files, "/node_types/0/device");
  problems.throw_if_any();
  return device;
}

std::string ask_for_base(Interconnect::Kind kind) {
  const char* const shipped = kind == Interconnect::Kind::mesh   ? "hgx-h200-4gpu"
                              : kind == Interconnect::Kind::pcie ? "aws-16xt4"
                                                                 : "dgx-h100";
  return std::string("name a base of kind ") + name_of(kind) + ", as " + shipped +
         ", or a file that extends it with your device";
}

bool join_all(const std::vector<std::vector<int>>& lanes) {
  Interconnect mesh;
  mesh.kind = Interconnect::Kind::mesh;
  mesh.lanes = lanes;
  std::vector<int> all(lanes.size());
  std::iota(all.begin(), all.end(), 0);
  return all.size() > 1 && num_relayed_rings(mesh, all) > 0;
}

Platform read_back(const JsonValue& document, const Library& library) {
  Problems problems;
  JsonValue copy = document;
  Platform platform = read_platform_of(copy, library, problems);
  if (!problems.empty()) throw ContractViolation(to_text(problems.all().front()));
  return platform;
}

InputError PlatformImport::base_error(std::string why, std::string suggestion) const {
  return option_error("--base", request_.options.base, std::move(why), std::move(suggestion));
}

void PlatformImport::describe_document(const std::string& what) {
  base_.document().set("name", JsonValue(request_.output.stem().string()));
  base_.document().set("description", JsonValue(base_.name() + what));
}

JsonValue& PlatformImport::replace_fabric(const std::string& kind) {
  for (const char* key : {"bandwidth_matrix", "link_overrides", "faults"})
    if (base_.document().erase(key))
      note(std::string(key) + " of " + base_.name() +
           " left out: nodes and links of another fabric");
  JsonValue& fabric = *base_.document().find("fabric");
  JsonValue fresh{JsonValue::Object{}};
  fresh.set("kind", JsonValue(kind));
  for (const std::string key : {"latency", "collective_latency"}) {
    const Source& source = base_.platform().sources.at("fabric/" + key);
    set_number(fresh, key, *fabric.find(key),
               std::string(name_of(source.evidence)) + ": " + source.text);
  }
  return fabric = std::move(fresh);
}

int PlatformImport::links_of_a_gpu() const {
  for (const std::string& name : {base_.name(), node().device.name})
    if (const GpuModel* model = gpu_model_in(name); model != nullptr && model->nvlinks > 0)
      return model->nvlinks;
  return 0;
}

void PlatformImport::set_nics(int nics, double gigabits, JsonValue of_gpus,
                              const std::string& source) {
  JsonValue& type = base_.only_node_type();
  const std::string ours = std::to_string(node().nics);
  if (nics != node().nics)
    warn("a node has " + count_text(nics, "network card") + " for training here, and " +
         base_.name() + " has " + ours);
  if (!of_gpus.is_null())
    set_number(type, "nic_of_gpu", std::move(of_gpus), source);
  else if (nics != node().nics && type.find("nic_of_gpu") != nullptr)
    throw base_error(base_.name() + " says which of its " + ours + " NICs a GPU uses (nic_of_gpu)",
                     "name a base with " + std::to_string(nics) + " NICs a node");
  set_number(type, "nics", nics, source);
  set_number(type, "nic_rate", exact_number(gigabits) + " Gbps", source);
}

void PlatformImport::set_lanes(const std::vector<std::vector<int>>& lanes,
                               const std::string& source) {
  const auto row_of = [](const std::vector<int>& row) { return array_of(row, json_of<int>); };
  set_number(*base_.only_node_type().find("interconnect"), "lanes", array_of(lanes, row_of),
             source);
}

Imported PlatformImport::finished() {
  imported_.document = base_.document();
  read_back(imported_.document, library_);
  return std::move(imported_);
}

const GpuModel* gpu_model_in(std::string_view text) {
  std::string words = lower_case(text);
  std::ranges::replace_if(
      words, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, ' ');
  std::istringstream list(words);
  for (std::string word; list >> word;)
    for (const GpuModel& model : models)
      if (lower_case(model.name) == word) return &model;
  return nullptr;
}

std::vector<Problem> PlatformImport::contradictions(const std::vector<NamedGpu>& named) {
  const std::string& device = node().device.name;
  const GpuModel* ours = gpu_model_in(device);
  std::vector<Problem> found;
  for (const NamedGpu& gpu : named) {
    const GpuModel* theirs = gpu_model_in(gpu.name);
    if (ours == nullptr || theirs == nullptr)
      warn("the GPUs were not compared: " + file_and_line(gpu.origin) + " names " + gpu.name +
           ", " + base_.name() + " has " + device + ", and " +
           (theirs == nullptr ? "the first" : "the second") +
           " is no model that is known here; make sure that they are the same");
    else if (ours != theirs)
      found.push_back({gpu.origin,
                       {},
                       "the log is of " + gpu.name + " GPUs, but " + base_.name() +
                           " has another model, " + device,
                       bases_with(*theirs, library_)});
  }
  return found;
}

}  // namespace windtunnel
