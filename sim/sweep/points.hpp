#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json_value.hpp"

namespace windtunnel {

/// Values that one point of a sweep sets: JSON pointers and values, in the order of the file.
using PointValues = std::vector<std::pair<std::string, JsonValue>>;

/// The points of a sweep, counted from 0 and always in the same order, so that every process numbers them alike: the combinations
/// of the matrix, the last pointer changing fastest, less what `exclude` matches; then what `include` and `points` list. A point that is
/// there already is not added again, but takes the label that it is listed with.
class SweepPoints {
 public:
  /// From a `sweep` block that check_sweep() finds nothing wrong with. Throws InputError when there are no points, or too many, or when its
  /// `baseline` is none of them.
  explicit SweepPoints(const JsonValue& sweep);

  std::size_t size() const { return kept_.size() + included_.size(); }
  PointValues values(std::size_t point) const;
  /// The name that the file gives the point; empty: none.
  std::string label(std::size_t point) const;
  bool has_labels() const { return !labels_.empty(); }
  /// The point that the others are compared with.
  std::optional<std::size_t> baseline() const { return baseline_; }
  /// Every pointer that some point sets: the matrix's, then those that only listed points have.
  const std::vector<std::string>& columns() const { return columns_; }

  /// True if every point has a value of its own at `pointer`.
  bool all_set(const std::string& pointer) const;

  /// The different values that points set at `pointer`.
  std::vector<JsonValue> tried(const std::string& pointer) const;

  std::size_t num_combinations() const { return num_combinations_; }  ///< of the matrix
  std::size_t num_excluded() const { return num_combinations_ - kept_.size(); }
  std::size_t num_included() const { return included_.size(); }

 private:
  struct Axis {
    std::string pointer;
    std::vector<JsonValue> values;
    std::vector<std::string> texts;  ///< canonical
  };
  using Combination = std::uint32_t;

  void read_matrix(const JsonValue& matrix);
  void exclude(const JsonValue* points);
  void include(const JsonValue* points);
  /// The number of the point with these values, if it is a combination of the matrix.
  std::optional<std::size_t> combination_with(const PointValues& values) const;
  void find_baseline(const JsonValue& baseline);
  std::size_t index_on(const Axis& axis, Combination combination) const;

  std::vector<Axis> axes_;
  std::vector<std::size_t>
      strides_;  ///< of an axis: by how much a combination's number grows with its value
  std::vector<std::string> columns_;
  std::vector<Combination> kept_;
  std::vector<PointValues> included_;
  std::map<std::size_t, std::string> labels_;
  std::optional<std::size_t> baseline_;
  std::size_t num_combinations_ = 0;
};

/// Short name of a swept key among `columns`: "micro_batch", or "data_gradients/rank" if another key ends in "/rank" too.
std::string short_name(const std::string& column, const std::vector<std::string>& columns);

}  // namespace windtunnel
