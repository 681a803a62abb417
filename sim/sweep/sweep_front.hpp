#pragma once

#include <cstddef>
#include <vector>

#include "report/pareto_front.hpp"
#include "sweep/parts.hpp"
#include "sweep/row.hpp"

namespace windtunnel {

/// A point of a sweep whose job has a length and a price.
struct FrontPoint {
  std::size_t point = 0;
  PricedPoint priced;  ///< called by its swept values
};

/// Points that fit and have days and a cost, by number; those on the Pareto front are marked. Empty where no row has both.
std::vector<FrontPoint> front_of(const PartRows& rows, const std::vector<std::string>& columns);

}  // namespace windtunnel
