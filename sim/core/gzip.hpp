#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace windtunnel {

/// Packs a text piece by piece in gzip format (RFC 1952), the same bytes for the same text: no name, no time.
class GzipPacker {
 public:
  using Take = std::function<void(std::string_view packed)>;
  explicit GzipPacker(Take take);
  ~GzipPacker();
  GzipPacker(const GzipPacker&) = delete;
  GzipPacker& operator=(const GzipPacker&) = delete;

  void pack(std::string_view text);
  /// Nothing may follow.
  void finish();

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
  Take take_;
};

/// `text` in gzip format.
std::string gzip(std::string_view text);

}  // namespace windtunnel
