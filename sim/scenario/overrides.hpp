#pragma once

#include <string>

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

}  // namespace windtunnel
