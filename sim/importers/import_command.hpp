#pragma once

#include <iosfwd>

#include "importers/importer.hpp"

namespace windtunnel {

enum class ImportFormat { text, json };

/// `windtunnel import`: reads the files, writes the result whole or not at all, prints to `out` what
/// was found in them, and to `messages` what was inferred, left out or could not be known. Throws
/// InputError and EnvironmentError.
void run_import(const ImportRequest& request, ImportFormat format, const Library& library,
                std::ostream& out, std::ostream& messages);

}  // namespace windtunnel
