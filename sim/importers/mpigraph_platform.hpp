#pragma once

#include <string>
#include <vector>

#include "importers/base_platform.hpp"
#include "importers/importer.hpp"
#include "importers/mpigraph_findings.hpp"

namespace windtunnel {

/// The platform file of an import: the base with the nodes and rates that were found. What was changed beside them goes to
/// `notes`. InputError where the base cannot have these nodes or carry these rates.
JsonValue platform_with_rates(BasePlatform& base, const MpigraphFindings& found,
                              const ImportRequest& request, std::vector<std::string>& notes);

}  // namespace windtunnel
