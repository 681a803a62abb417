#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/json_value.hpp"
#include "scenario/scenario.hpp"
#include "scenario/scenario_files.hpp"

namespace windtunnel {

/// One `--set pointer=value` applied to the merged scenario: the value is JSON if it can be read as such, else a string;
/// null takes the member away. A model, platform, device or software profile that is named where the pointer leads
/// through is put in place of its name first. A pointer that leads nowhere is a problem; a key that nobody knows is
/// found later, by the reader of its object.
void apply_override(JsonValue& scenario, const std::string& pointer, const std::string& value,
                    ScenarioFiles& files, Problems& problems);

/// The value that `--set pointer=text` means.
JsonValue value_of_override(const std::string& pointer, const std::string& text,
                            Problems& problems);

/// True for "/platform/nodes" and "/platform": a value at `outer` replaces what is at `inner`.
bool lies_inside(const std::string& inner, const std::string& outer);

/// Throws InputError for each pair of which one value replaces the other, whichever comes first. The same pointer twice is no such pair:
/// the last one counts.
void expect_independent(const Overrides& overrides);

/// `earlier`, then `later`, as expect_independent() accepts them. `resolved` is the scenario that `earlier` gives: where a later pointer
/// leads into an earlier value, that value is written out with the change in it.
Overrides laid_over(const Overrides& earlier, const Overrides& later, const JsonValue& resolved);

/// apply_override() with a value that is JSON already.
void apply_value(JsonValue& scenario, const std::string& pointer, JsonValue value,
                 ScenarioFiles& files, Problems& problems);

/// Puts the content of every named file in place of its name, as far as `pointer` leads through it ("" = everywhere).
void expand_names(JsonValue& scenario, ScenarioFiles& files, const std::string& pointer = {});

/// JSON pointers of a scenario's own keys, without those inside model, platform, software and the entries of compression.
const std::vector<std::string>& known_pointers();

/// True for a JSON pointer that a scenario can have a value at. What lies inside model, platform, software and a
/// compression entry is not looked at: their own readers know.
bool is_known_pointer(const std::string& pointer);

/// The known pointer that is most like `text`, which may also be written "parallel.tensor" or "tensor"; or empty.
std::string closest_known_pointer(const std::string& text);

/// Values that `--set` can change in a scenario: JSON pointers, each with the value there as `--set` takes it. Lists of plain values are
/// one value; blocks that are absent so far, such as a compression, are null. Descriptions are left out.
///
///   /model=gpt-39b
///   /model/layers=48
///   /platform/node_types/0/nic_rate=200 Gbps
///   /compression/data_gradients=null
std::vector<std::pair<std::string, std::string>> settable_values(const Scenario& scenario,
                                                                 const Library& library);

}  // namespace windtunnel
