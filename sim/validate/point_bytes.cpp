#include <cstring>
#include <type_traits>

#include "core/contracts.hpp"
#include "validate/point_prediction.hpp"

namespace windtunnel {
namespace {

/// Values and lists one after the other, each list after its length.
class Writer {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class T>
  void put_list(const T& list) {
    put(list.size());
    for (const auto& each : list) put(each);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(&bytes) {}
  template <class T>
  void get(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    WT_EXPECT(next_ + sizeof value <= bytes_->size());
    std::memcpy(&value, bytes_->data() + next_, sizeof value);
    next_ += sizeof value;
  }
  template <class T>
  void get_list(T& list) {
    std::size_t size = 0;
    get(size);
    WT_EXPECT(size <= bytes_->size());
    list.resize(size);
    for (auto& each : list) get(each);
  }
  bool at_end() const { return next_ == bytes_->size(); }

 private:
  const std::string* bytes_;
  std::size_t next_ = 0;
};

}  // namespace

std::string to_bytes(const PointPrediction& p) {
  Writer writer;
  writer.put(p.time);
  writer.put(p.ideal_work);
  writer.put(p.interval.has_value());
  const auto [low, high] = p.interval.value_or(std::pair(Seconds{}, Seconds{}));
  writer.put(low);
  writer.put(high);
  writer.put(p.last_stage_forward);
  writer.put(p.last_stage_backward);
  writer.put(p.memory_max);
  writer.put(p.fits);
  writer.put_list(p.stage_of_rank);
  writer.put_list(p.stages);
  writer.put(p.fitted.size());
  for (const FittedNumber& number : p.fitted) {
    writer.put_list(number.name);
    writer.put_list(number.source);
  }
  return writer.take();
}

PointPrediction from_bytes(const std::string& bytes) {
  PointPrediction p;
  Reader reader(bytes);
  bool has_interval = false;
  Seconds low{}, high{};
  reader.get(p.time);
  reader.get(p.ideal_work);
  reader.get(has_interval);
  reader.get(low);
  reader.get(high);
  if (has_interval) p.interval = {low, high};
  reader.get(p.last_stage_forward);
  reader.get(p.last_stage_backward);
  reader.get(p.memory_max);
  reader.get(p.fits);
  reader.get_list(p.stage_of_rank);
  reader.get_list(p.stages);
  std::size_t num_fitted = 0;
  reader.get(num_fitted);
  for (std::size_t i = 0; i < num_fitted; ++i) {
    FittedNumber& number = p.fitted.emplace_back();
    reader.get_list(number.name);
    reader.get_list(number.source);
  }
  WT_ENSURE(reader.at_end());
  return p;
}

}  // namespace windtunnel
