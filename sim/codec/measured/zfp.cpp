#include "codec/measured_codec.hpp"
#ifdef WINDTUNNEL_WITH_ZFP
#include <dlfcn.h>

#include "codec/zfp_module.hpp"
#include "core/contracts.hpp"
#include "core/problem.hpp"
#endif

namespace windtunnel {
namespace {

#ifdef WINDTUNNEL_WITH_ZFP

constexpr const char* missing_package = nullptr;

detail::ZfpModule load_zfp() {
  void* const module = dlopen(detail::zfp_module, RTLD_LAZY | RTLD_LOCAL);
  const void* const functions =
      module == nullptr ? nullptr : dlsym(module, detail::zfp_module_symbol);
  if (functions == nullptr) throw EnvironmentError(std::string("cannot load zfp: ") + dlerror());
  return *static_cast<const detail::ZfpModule*>(functions);
}

const detail::ZfpModule& zfp() {
  static const detail::ZfpModule loaded = load_zfp();
  return loaded;
}

/// zfp with a fixed number of bits a value (Lindstrom, IEEE TVCG 20(12), 2014, doi 10.1109/TVCG.2014.2346458), on the message
/// as a flat list of float32 numbers, as a communication library sees it: blocks of 4 numbers of 4 * rate bits. Rates are
/// multiples of 1/4 bit, from 2.25 (9 bits of exponent a block); others become the next.
class ZfpCodec final : public TensorCodec {
 public:
  explicit ZfpCodec(double rate) : rate_(rate) {}

  void encode(const Tensor& tensor) override {
    count_ = tensor.size();
    size_ = zfp().encode(tensor.values, rate_, buffer_);
    WT_ENSURE(size_ > 0);
  }

  Bytes size() const override { return Bytes{static_cast<double>(size_)}; }
  const std::vector<float>& decode() override {
    decoded_.resize(count_);
    const bool read = zfp().decode(buffer_, rate_, decoded_);
    WT_ENSURE(read);
    return decoded_;
  }

 private:
  double rate_;
  std::size_t count_ = 0, size_ = 0;
  std::vector<std::uint64_t> buffer_;
  std::vector<float> decoded_;
};

std::unique_ptr<TensorCodec> make(double rate, std::uint64_t /*seed*/) {
  return std::make_unique<ZfpCodec>(rate);
}

#else

constexpr const char* missing_package = "libzfp-dev";
constexpr std::unique_ptr<TensorCodec> (*make)(double, std::uint64_t) = nullptr;

#endif

void add_rates(const MeasuredRates& rates, JsonValue& codecs) {
  if (codecs.find("zfp") == nullptr) codecs.set("zfp", JsonValue(JsonValue::Array{}));
  JsonValue entry(JsonValue::Object{});
  entry.set("rate", rates.setting);
  entry.set("encode", JsonValue(rates.encode));
  entry.set("decode", JsonValue(rates.decode));
  entry.set("source", JsonValue(rates.source));
  codecs.find("zfp")->array().push_back(std::move(entry));
}

}  // namespace

MeasuredCodec measured_zfp() {
  return {.name = "zfp",
          .settings = {8, 16, 24},
          .option_text = "Bits per value of zfp (default 8, 16, 24); may be repeated",
          .option_type = "BITS",
          .missing_package = missing_package,
          .make = make,
          .add_rates = add_rates};
}

}  // namespace windtunnel
