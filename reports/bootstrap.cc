#include "reports/bootstrap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace fusebench::reports {

namespace {

constexpr std::uint64_t kSeed = 42;

// Student's 99.5% quantile for 1 to 20 degrees of freedom, the last one kept for more, and the normal distribution's.
constexpr std::array kStudent = {63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169,
                                 3.106,  3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845};
constexpr double kNormal = 2.576;
constexpr double kLeastFreedom = 2;  // one would make every interval of few samples endless

double median_of_sorted(std::span<const double> values) {
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> copy(samples.begin(), samples.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

// Each sample's place among all; equal samples share the middle of theirs, so that a coarse clock makes no trend.
std::vector<double> ranks_of(std::span<const double> samples) {
  const std::vector<double> ordered = sorted(samples);
  std::vector<double> ranks;
  for (double sample : samples) {
    const auto [first, last] = std::equal_range(ordered.begin(), ordered.end(), sample);
    ranks.push_back(static_cast<double>((first - ordered.begin()) + (last - ordered.begin()) - 1) / 2);
  }
  return ranks;
}

// Medians of resamples of one series. A resample is counted by place in the sorted samples: its median is found without
// sorting it.
class Resampler {
 public:
  explicit Resampler(std::span<const double> samples)
      : ordered_(sorted(samples)), places_(samples.size()), counts_(samples.size()), block_(block_length(samples)) {
    std::vector<std::size_t> order(samples.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return samples[a] < samples[b]; });
    for (std::size_t place = 0; place < order.size(); ++place) places_[order[place]] = place;
  }

  // Blocks are the independent values; one goes to the median, one to the block length, found in the same samples.
  double freedom() const {
    const std::size_t blocks = ordered_.size() / block_;
    return blocks > 3 ? static_cast<double>(blocks - 2) : 1;
  }

  double median(std::mt19937_64& bits) {
    const std::size_t n = ordered_.size();
    std::fill(counts_.begin(), counts_.end(), 0U);
    for (std::size_t drawn = 0; drawn < n;) {
      std::size_t at = ((bits() >> 32) * n) >> 32;  // not std::uniform_int_distribution: libraries differ in it
      const std::size_t end = std::min(drawn + block_, n);
      for (; drawn < end; ++drawn) {
        ++counts_[places_[at]];
        at = at + 1 == n ? 0 : at + 1;
      }
    }
    return counted_median();
  }

 private:
  double counted_median() const {
    const std::size_t lower = (ordered_.size() - 1) / 2;
    std::size_t place = 0;
    std::size_t counted = counts_[0];
    while (counted <= lower) counted += counts_[++place];
    const double below = ordered_[place];
    while (counted <= ordered_.size() / 2) counted += counts_[++place];
    return (below + ordered_[place]) / 2;
  }

  std::vector<double> ordered_;
  std::vector<std::size_t> places_;
  std::vector<std::uint32_t> counts_;
  std::size_t block_;
};

double variance_of(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  return std::accumulate(values.begin(), values.end(), 0.0,
                         [mean](double sum, double value) { return sum + (value - mean) * (value - mean); }) /
         n;
}

// Degrees of freedom of the sum of two variances, each known from a few blocks (Welch 1947, Satterthwaite 1946).
double freedom_of(double base_variance, double base_freedom, double variance, double freedom) {
  const double whole = base_variance + variance;
  if (!(whole > 0)) return std::min(base_freedom, freedom);
  return whole * whole / (base_variance * base_variance / base_freedom + variance * variance / freedom);
}

// How much wider than the normal distribution's an interval is that rests on so few independent values.
double widening(double freedom) {
  const auto whole = static_cast<std::size_t>(std::clamp(freedom, kLeastFreedom, static_cast<double>(kStudent.size())));
  return kStudent[whole - 1] / kNormal;
}

}  // namespace

// In a series of n it comes out too small by about (1 + 3r)/n (Kendall 1954).
double rank_correlation(std::span<const double> samples) {
  std::vector<double> ranks = ranks_of(samples);
  const auto n = static_cast<double>(ranks.size());
  for (double& rank : ranks) rank -= (n - 1) / 2;
  const double variance = std::inner_product(ranks.begin(), ranks.end(), ranks.begin(), 0.0);
  if (variance == 0) return 0;
  const double r = std::inner_product(ranks.begin() + 1, ranks.end(), ranks.begin(), 0.0) / variance;
  return std::clamp((n * r + 1) / (n - 3), 0.0, 1.0);
}

std::size_t block_length(std::span<const double> samples) {
  const auto n = static_cast<double>(samples.size());
  const double shortest = std::ceil(std::cbrt(n));
  const double longest = std::max(shortest, std::floor(n / 3));
  const double r = rank_correlation(samples);
  if (r >= 1) return static_cast<std::size_t>(longest);
  const double best = std::cbrt(6 * std::pow(r / (1 - r * r), 2) * n);
  return static_cast<std::size_t>(std::clamp(std::ceil(best), shortest, longest));
}

RatioOfMedians ratio_of_medians(std::span<const double> base, std::span<const double> subject) {
  std::mt19937_64 bits(kSeed);
  Resampler base_resampler(base);
  Resampler subject_resampler(subject);
  std::vector<double> base_logs(kResamples);
  std::vector<double> subject_logs(kResamples);
  std::vector<double> ratios(kResamples);
  for (std::size_t i = 0; i < kResamples; ++i) {
    const double base_median = base_resampler.median(bits);
    const double subject_median = subject_resampler.median(bits);
    base_logs[i] = std::log(base_median);
    subject_logs[i] = std::log(subject_median);
    ratios[i] = subject_median / base_median;
  }
  std::sort(ratios.begin(), ratios.end());
  const auto outside = static_cast<std::size_t>(std::lround((1 - kConfidence) / 2 * kResamples));
  const double wider = widening(freedom_of(variance_of(base_logs), base_resampler.freedom(), variance_of(subject_logs),
                                           subject_resampler.freedom()));
  const double ratio = median_of_sorted(sorted(subject)) / median_of_sorted(sorted(base));
  const double lo = std::min(ratio, ratios[outside]);
  const double hi = std::max(ratio, ratios[kResamples - 1 - outside]);
  // The lower end is drawn away as base/subject: it stays above 0, and the two runs' roles may be exchanged.
  return {ratio, 1 / (1 / ratio + wider * (1 / lo - 1 / ratio)), ratio + wider * (hi - ratio)};
}

}  // namespace fusebench::reports
