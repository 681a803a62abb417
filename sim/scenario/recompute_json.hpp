#pragma once

#include "scenario/key_table.hpp"

namespace windtunnel {

/// `training/recompute_modules`: a list of names, which only "recompute": "selective" asks for.
void read_recomputed_modules(ObjectReader& reader, const Key& key, PlanChoice& choice);

}  // namespace windtunnel
