#include "harness/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "reports/bootstrap.h"

namespace fusebench {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> copy(samples.begin(), samples.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

double quantile_of_sorted(std::span<const double> samples, double p) {
  if (samples.empty()) return kNaN;
  const double position = std::clamp(p, 0.0, 1.0) * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, samples.size() - 1);
  return std::lerp(samples[below], samples[above], position - static_cast<double>(below));
}

// The largest k with 2 P(Binomial(n, 1/2) < k) <= 5%: the median lies between the k-th smallest and the k-th largest of
// n samples with at least 95% probability, whatever their distribution (David & Nagaraja, Order Statistics, 7.1).
// Probabilities are summed from their logarithms, since 2^-n underflows from n = 1075 on.
std::size_t interval_rank(std::size_t n) {
  double log_probability = -static_cast<double>(n) * std::numbers::ln2;
  double below = 0;
  for (std::size_t k = 0; k <= n / 2; ++k) {
    below += std::exp(log_probability);
    if (2 * below > 0.05) return k;
    log_probability += std::log(static_cast<double>(n - k) / static_cast<double>(k + 1));
  }
  return n / 2;
}

// The same for samples whose neighbours are alike: the variance of how many lie below the median grows by
// (1 + r) / (1 - r), as a first-order autoregression's does.
std::size_t interval_rank_of(std::span<const double> samples) {
  const std::size_t n = samples.size();
  const std::size_t rank = std::max<std::size_t>(interval_rank(n), 1);
  if (n < kSamplesFor95) return rank;
  const double r = reports::rank_correlation(samples);
  const double middle = static_cast<double>(n + 1) / 2;
  const double apart = (middle - static_cast<double>(rank)) * std::sqrt((1 + r) / (1 - r));
  return apart < middle - 1 ? static_cast<std::size_t>(middle - apart) : 1;
}

}  // namespace

double median(std::span<const double> samples) { return quantile(samples, 0.5); }

double quantile(std::span<const double> samples, double p) { return quantile_of_sorted(sorted(samples), p); }

double mean(std::span<const double> samples) {
  if (samples.empty()) return kNaN;
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

Interval median_interval(std::span<const double> samples) {
  if (samples.empty()) return {kNaN, kNaN};
  const std::vector<double> ordered = sorted(samples);
  const std::size_t rank = interval_rank_of(samples);
  return {ordered[rank - 1], ordered[ordered.size() - rank]};
}

double relative_interval(std::span<const double> samples) {
  const Interval interval = median_interval(samples);
  return (interval.hi - interval.lo) / 2 / median(samples);
}

std::vector<double> paired_ratios(std::span<const double> base, std::span<const double> subject) {
  std::vector<double> ratios(std::min(base.size(), subject.size()));
  std::transform(base.begin(), base.begin() + static_cast<std::ptrdiff_t>(ratios.size()), subject.begin(),
                 ratios.begin(), [](double b, double s) { return b / s; });
  return ratios;
}

}  // namespace fusebench
