#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace windtunnel {

/// What gzip packed into `bytes`; nothing when it is no gzip format, damaged or cut off, or when it
/// unpacks to more than `most` bytes.
std::optional<std::string> gunzip(std::string_view bytes, std::size_t most);

}  // namespace windtunnel
