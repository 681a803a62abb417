#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace windtunnel {

enum class CodecFormat { text, json };

/// What the command line of `codec` says.
struct CodecRequest {
  std::string file;                      ///< .npy; empty: a synthetic tensor
  std::string synthetic;                 ///< "gradient" or "activation"; empty: a file
  std::size_t rows = 0, columns = 0;     ///< of a synthetic tensor; 0: 1024
  std::vector<std::string> codecs;       ///< names, or "all"; empty: all
  std::vector<int> ranks;                ///< of powersgd; empty: 4 and 16
  std::vector<double> rates, densities;  ///< of zfp: 8, 16 and 24; of topk: 0.01
  int feedback_messages = 0;             ///< 0: error feedback is not looked at
  std::uint64_t seed = 0;
  std::string output;  ///< file that takes the JSON document; empty: none
  CodecFormat format = CodecFormat::text;
};

/// `windtunnel codec`: encodes and decodes the tensor with each codec and writes a table or one JSON document to `out`. Throws
/// InputError on unknown codecs and bad files, EnvironmentError on files that cannot be read or written, and when zfp alone
/// is asked for and this build has none (among all, it is left out with a line on `messages`).
void run_codec(const CodecRequest& request, std::ostream& out, std::ostream& messages);

/// The names of the codecs that are measured.
const std::vector<std::string>& measured_codecs();

}  // namespace windtunnel
