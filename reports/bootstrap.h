// The ratio of two medians and its interval, from samples whose neighbours are correlated: blocks of neighbours are
// resampled, not single samples (moving blocks on a circle: Kuensch 1989, Politis & Romano 1992).
#pragma once

#include <cstddef>
#include <span>

namespace fusebench::reports {

/// Of the interval. Higher than the 95% of a record's own intervals, since a comparison judges hundreds of rows at
/// once.
inline constexpr double kConfidence = 0.99;
inline constexpr std::size_t kResamples = 2000;
/// With fewer, no interval of 95% or more can be told from the samples (harness/statistics.h), whatever is resampled.
inline constexpr std::size_t kFewestSamples = 6;

struct RatioOfMedians {
  double ratio = 0;
  double lo = 0, hi = 0;
};

/// Lag-1 correlation of the samples' ranks, which outliers do not sway, from 0 to 1: corrected for its bias in short
/// series, and 0 where it is negative. Of 4 samples or more.
double rank_correlation(std::span<const double> samples);

/// Samples in a block: (sqrt(6) r / (1 - r^2))^(2/3) n^(1/3), the best length for a first-order autoregression
/// (Carlstein 1986, Kuensch 1989), r being the rank correlation. At least n^(1/3), at most n/3.
std::size_t block_length(std::span<const double> samples);

/// median(subject) / median(base). Both hold positive finite samples in the order taken, kFewestSamples or more. The
/// interval is the resamples' percentiles, drawn away from the ratio by Student's t over the normal quantile, since few
/// blocks know little of their own spread. The same samples give the same interval, on every machine.
RatioOfMedians ratio_of_medians(std::span<const double> base, std::span<const double> subject);

}  // namespace fusebench::reports
