#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/hash.hpp"
#include "core/json_value.hpp"
#include "platform/platform_json.hpp"
#include "scenario/key_table.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {
namespace {

void drop_nulls(JsonValue& value) {
  if (value.is_array())
    for (JsonValue& element : value.array()) drop_nulls(element);
  if (!value.is_object()) return;
  std::erase_if(value.object(),
                [](const JsonValue::Member& member) { return member.value.is_null(); });
  for (JsonValue::Member& member : value.object()) drop_nulls(member.value);
}

/// Entries of "source" that are missing for the defaulted and overridden numbers of `object`.
JsonValue::Object missing_sources(const JsonValue& object) {
  JsonValue::Object missing;
  const JsonValue* source = object.find("source");
  for (const auto& [key, key_origin, value] : object.object()) {
    if (value.origin.kind == OriginKind::file || key == "name" || key == "description" ||
        key == "source" || !carries_number(value) ||
        (source != nullptr && source->find(key) != nullptr))
      continue;
    const bool given = value.origin.kind == OriginKind::command_line;
    missing.push_back({key, value.origin,
                       JsonValue(std::string(given ? "assumed: given on the command line"
                                                   : "assumed: the documented default"),
                                 value.origin)});
  }
  return missing;
}

void add_missing_sources(JsonValue& value) {
  if (value.is_array())
    for (JsonValue& element : value.array()) add_missing_sources(element);
  if (!value.is_object()) return;
  for (JsonValue::Member& member : value.object())
    if (member.key != "source") add_missing_sources(member.value);
  JsonValue::Object missing = missing_sources(value);
  if (missing.empty()) return;
  JsonValue* source = value.find("source");
  if (source == nullptr) source = &value.set("source", JsonValue(JsonValue::Object{}));
  if (!source->is_object())
    *source = JsonValue(JsonValue::Object{{"*", source->origin, *source}}, source->origin);
  for (JsonValue::Member& entry : missing) source->object().push_back(std::move(entry));
}

/// Leaves out what describes and does not act. `outermost`: the object's own name is only a label.
void leave_out_labels(const JsonValue& value, bool outermost, LeftOut& left_out) {
  if (value.is_array())
    for (const JsonValue& element : value.array()) leave_out_labels(element, false, left_out);
  if (!value.is_object()) return;
  for (const JsonValue::Member& member : value.object()) {
    if (member.key == "$schema" || member.key == "description" || member.key == "source" ||
        (outermost && member.key == "name"))
      left_out.insert(&member.value);
    else
      leave_out_labels(member.value, false, left_out);
  }
}

/// True if any class of traffic has an entry in the compression block.
bool compresses(const JsonValue& tree) {
  const JsonValue* block = tree.find("compression");
  return block != nullptr && block->is_object() &&
         std::ranges::any_of(block->object(), [](const JsonValue::Member& member) {
           return !member.value.is_null();
         });
}

/// Leaves out the values that nodes have at `pointer`.
void leave_out_of_nodes(const JsonValue& tree, const std::string& pointer, LeftOut& left_out) {
  const JsonValue* types = find_at(tree, "/platform/node_types");
  if (types == nullptr || !types->is_array()) return;
  for (const JsonValue& type : types->array())
    if (const JsonValue* part = find_at(type, pointer)) left_out.insert(part);
}

/// The host's memory is no part of a scenario that offloads nothing, nor is a key that says what is so without it.
void leave_out_idle(const JsonValue& tree, LeftOut& left_out) {
  for (const Key& key : key_table()) {
    const JsonValue* value = key.idle_by_default ? find_at(tree, key.pointer) : nullptr;
    if (value != nullptr && canonical_text(*value) == canonical_text(default_of(key)))
      left_out.insert(value);
  }
  for (const char* key :
       {"/training/optimizer_offload_fraction", "/training/activation_offload_fraction"})
    if (find_at(tree, key) != nullptr) return;
  leave_out_of_nodes(tree, "/host", left_out);
}

std::string origin_text(const Origin& origin) {
  switch (origin.kind) {
    case OriginKind::defaulted:
      return "default";
    case OriginKind::command_line:
      return "--set";
    case OriginKind::searched:
      return "found by search";
    case OriginKind::file:
      break;
  }
  if (!origin.source) return {};
  std::string text = origin.source->name + ":" + std::to_string(origin.line);
  std::ranges::replace_if(
      text, [](char c) { return c >= 0 && c < ' '; }, '?');
  return text;
}

/// Lines of JSON, each with what is to stand in its comment.
class LineWriter {
 public:
  void write(const JsonValue& value, const std::string& key, const char* comma, int depth) {
    const std::string text = value.is_object() ? std::string{} : pretty_text(value);
    const bool is_open_object = value.is_object() && !value.object().empty();
    if (!is_open_object && text.find('\n') == std::string::npos) {
      add(key + (value.is_object() ? "{}" : text) + comma, value.origin, depth);
      return;
    }
    add(key + (is_open_object ? "{" : "["), value.origin, depth);
    if (is_open_object)
      write_members(value.object(), depth + 1);
    else
      for (const JsonValue& element : value.array())
        write(element, {}, &element == &value.array().back() ? "" : ",", depth + 1);
    lines_.emplace_back(indent(depth) + (is_open_object ? "}" : "]") + comma, std::string{});
  }

  std::string text() const {
    constexpr std::size_t rightmost_comment = 48;
    std::size_t column = 0;
    for (const auto& [line, comment] : lines_) column = std::max(column, line.size());
    column = std::min(column + 2, rightmost_comment);
    std::string all;
    for (const auto& [line, comment] : lines_) {
      all += line;
      if (!comment.empty())
        all +=
            std::string(line.size() + 2 > column ? 2 : column - line.size(), ' ') + "// " + comment;
      all += '\n';
    }
    return all;
  }

 private:
  static std::string indent(int depth) {
    std::string blanks;
    blanks.resize(static_cast<std::size_t>(2 * depth), ' ');
    return blanks;
  }
  void add(const std::string& text, const Origin& origin, int depth) {
    lines_.emplace_back(indent(depth) + text, origin_text(origin));
  }
  void write_members(const JsonValue::Object& members, int depth) {
    for (const JsonValue::Member& member : members)
      write(member.value, pretty_text(JsonValue(member.key)) + ": ",
            &member == &members.back() ? "" : ",", depth);
  }

  std::vector<std::pair<std::string, std::string>> lines_;
};

}  // namespace

void make_self_contained(JsonValue& tree) {
  drop_nulls(tree);
  for (const char* part : {"platform", "software"})
    if (JsonValue* value = tree.find(part)) {
      if (std::string_view(part) == "software") {
        add_missing_sources(*value);
        continue;
      }
      // No number stands in the outermost object of a platform, and its `source` is one text.
      for (JsonValue::Member& member : value->object())
        if (member.key != "source") add_missing_sources(member.value);
    }
}

std::string resolved_text(const JsonValue& resolved) {
  LineWriter writer;
  writer.write(resolved, {}, "", 0);
  return writer.text();
}

std::string resolved_hash(const JsonValue& tree) {
  LeftOut left_out;
  if (!compresses(tree)) leave_out_of_nodes(tree, "/device/codecs", left_out);
  leave_out_idle(tree, left_out);
  for (const char* key : {"$schema", "name", "sweep", "search", "extends"})
    if (const JsonValue* value = tree.find(key)) left_out.insert(value);
  for (const char* part : {"model", "platform", "software", "noise"})
    if (const JsonValue* value = tree.find(part)) leave_out_labels(*value, true, left_out);
  if (const JsonValue* schedule = find_at(tree, "/parallel/schedule"))
    leave_out_labels(*schedule, true, left_out);
  return fnv1a_128_hex(canonical_text(tree, left_out));
}

}  // namespace windtunnel
