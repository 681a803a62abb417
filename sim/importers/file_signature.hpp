#pragma once

#include <filesystem>
#include <string>

namespace windtunnel {

/// A kind of file that people have beside those they meant to import, known by words of its first lines.
struct FileSignature {
  const char* what;      ///< "a map of an InfiniBand fabric, of ibnetdiscover"
  const char* importer;  ///< that reads it; empty: none
};

/// The kind of a file; a null pointer where it is none of the list, or cannot be read.
const FileSignature* file_signature(const std::filesystem::path& file);

}  // namespace windtunnel
