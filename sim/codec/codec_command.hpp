#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "report/document.hpp"

namespace windtunnel {

/// Command line of `codec`.
struct CodecRequest {
  std::string file;                   ///< .npy; empty: a synthetic tensor
  std::string synthetic;              ///< "gradient" or "activation"; empty: a file
  std::size_t rows = 0, columns = 0;  ///< of a synthetic tensor; 0: 1024
  std::vector<std::string> codecs;    ///< names, or "all"; empty: all
  /// By key of a codec's setting ("rank"); where there are none: those of its MeasuredCodec.
  std::map<std::string, std::vector<double>> settings;
  int feedback_messages = 0;  ///< 0: error feedback is not looked at
  std::uint64_t seed = 0;
};

/// `windtunnel codec`: encodes and decodes the tensor with each codec. Throws InputError on unknown codecs and bad files,
/// EnvironmentError on files that cannot be read, and when a codec is asked for that this build cannot run (among all, it is left
/// out with a line on `messages`).
document::Document run_codec(const CodecRequest& request, std::ostream& messages);

}  // namespace windtunnel
