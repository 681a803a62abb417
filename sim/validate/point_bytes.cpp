#include <cstring>
#include <type_traits>

#include "core/contracts.hpp"
#include "validate/point_prediction.hpp"

namespace windtunnel {
namespace {

/// Appends values one after the other, each list after its length.
class Writer {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void operator()(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <class List, class Each>
  void list(List& list, const Each& each) {
    (*this)(list.size());
    for (auto& value : list) each(value);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads them back in the same order.
class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(&bytes) {}
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void operator()(T& value) {
    WT_EXPECT(next_ + sizeof value <= bytes_->size());
    std::memcpy(&value, bytes_->data() + next_, sizeof value);
    next_ += sizeof value;
  }
  template <class List, class Each>
  void list(List& list, const Each& each) {
    std::size_t size = 0;
    (*this)(size);
    WT_EXPECT(size <= bytes_->size());
    list.resize(size);
    for (auto& value : list) each(value);
  }
  bool at_end() const { return next_ == bytes_->size(); }

 private:
  const std::string* bytes_;
  std::size_t next_ = 0;
};

/// Takes `archive`, a writer or a reader, through all that a prediction holds.
template <class Archive>
void go_through(PointPrediction& p, Archive& archive) {
  const auto value = [&](auto& each) { archive(each); };
  bool has_interval = p.interval.has_value();
  std::pair<Seconds, Seconds> interval = p.interval.value_or(std::pair(Seconds{}, Seconds{}));
  value(p.time);
  value(p.ideal_work);
  value(has_interval);
  value(interval.first);
  value(interval.second);
  if (has_interval) p.interval = interval;
  value(p.last_stage_forward);
  value(p.last_stage_backward);
  value(p.memory_max);
  value(p.fits);
  archive.list(p.stage_of_rank, value);
  archive.list(p.stages, value);
  archive.list(p.fitted, [&](FittedNumber& number) {
    archive.list(number.name, value);
    archive.list(number.source, value);
  });
}

}  // namespace

std::string to_bytes(PointPrediction prediction) {
  Writer writer;
  go_through(prediction, writer);
  return writer.take();
}

PointPrediction from_bytes(const std::string& bytes) {
  PointPrediction prediction;
  Reader reader(bytes);
  go_through(prediction, reader);
  WT_ENSURE(reader.at_end());
  return prediction;
}

}  // namespace windtunnel
