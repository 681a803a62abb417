#include "calibrate/linear_belief.hpp"

#include <cmath>
#include <cstddef>
#include <numeric>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  WT_EXPECT(a.size() == b.size());
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace

LinearBelief::LinearBelief(const std::vector<double>& spreads)
    : covariance_(spreads.size(), std::vector<double>(spreads.size(), 0)) {
  for (std::size_t i = 0; i < spreads.size(); ++i) covariance_[i][i] = spreads[i] * spreads[i];
}

std::vector<double> LinearBelief::times_covariance(const std::vector<double>& vector) const {
  std::vector<double> product;
  for (const std::vector<double>& row : covariance_) product.push_back(dot(row, vector));
  return product;
}

double LinearBelief::variance(const std::vector<double>& gradient) const {
  return dot(gradient, times_covariance(gradient));
}

double LinearBelief::variance_after(const std::vector<double>& asked,
                                    const std::vector<double>& gradient, double noise) const {
  const std::vector<double> moved = times_covariance(gradient);
  const double shared = dot(asked, moved);
  return variance(asked) - shared * shared / (noise * noise + dot(gradient, moved));
}

void LinearBelief::measure(const std::vector<double>& gradient, double noise) {
  const std::vector<double> moved = times_covariance(gradient);
  const double scale = 1 / (noise * noise + dot(gradient, moved));
  for (std::size_t i = 0; i < moved.size(); ++i)
    for (std::size_t j = 0; j < moved.size(); ++j) covariance_[i][j] -= scale * moved[i] * moved[j];
}

double LinearBelief::spread(std::size_t constant) const {
  return std::sqrt(covariance_[constant][constant]);
}

}  // namespace windtunnel
