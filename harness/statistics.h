// Statistics of latency samples, which must be finite and in the order taken. All intervals are 95%, by order
// statistics: nothing is assumed of the distribution.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace fusebench {

/// With fewer, even the range holds the median less often than in 95% of cases: 1 - 2^(1-n).
inline constexpr std::size_t kSamplesFor95 = 6;

struct Interval {
  double lo = 0, hi = 0;
};

double median(std::span<const double> samples);              ///< of an empty span: NaN
double quantile(std::span<const double> samples, double p);  ///< linear between order statistics
double mean(std::span<const double> samples);
/// Binomial order statistics; the range when too few. Neighbours that are alike know less than as many independent
/// samples: the ranks lie apart by sqrt((1 + r) / (1 - r)) as much, r being the samples' rank correlation
/// (reports/bootstrap.h).
Interval median_interval(std::span<const double> samples);
/// Half the interval's width over the median.
double relative_interval(std::span<const double> samples);
/// base[i] / subject[i] for samples taken in the same round.
std::vector<double> paired_ratios(std::span<const double> base, std::span<const double> subject);

}  // namespace fusebench
