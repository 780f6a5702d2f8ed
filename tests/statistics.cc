#include "harness/statistics.h"

#include <cmath>
#include <functional>
#include <numbers>
#include <random>
#include <vector>

#include "tests/catch.h"

using namespace fusebench;

namespace {

// Large and small by turns: neighbours are not alike.
std::vector<double> one_to(int n) {
  std::vector<double> values;
  for (int i = 1; i <= n; ++i) values.push_back(i % 2 == 0 ? i / 2 : n - i / 2);
  return values;
}

using Uniform = std::function<double()>;  // between 0 and 1

// How often the interval of n samples of a series holds the median of its distribution.
double coverage(std::size_t n, double true_median, const std::function<std::vector<double>(const Uniform&)>& series) {
  std::mt19937_64 bits(n);
  const Uniform uniform = [&bits] { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; };
  constexpr int trials = 20000;
  int held = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const Interval interval = median_interval(series(uniform));
    held += interval.lo <= true_median && true_median <= interval.hi;
  }
  return static_cast<double>(held) / trials;
}

std::function<std::vector<double>(const Uniform&)> independent(std::size_t n,
                                                               const std::function<double(double)>& quantile_function) {
  return [=](const Uniform& uniform) {
    std::vector<double> samples(n);
    for (double& sample : samples) sample = quantile_function(uniform());
    return samples;
  };
}

double normal(const Uniform& uniform) {
  return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform());
}

}  // namespace

TEST_CASE("median takes the middle, or halfway between the two middles") {
  CHECK(median(std::vector<double>{3, 1, 2}) == 2);
  CHECK(median(std::vector<double>{4, 1, 3, 2}) == 2.5);
  CHECK(median(std::vector<double>{7}) == 7);
}

TEST_CASE("nothing is known of no samples") {
  const std::vector<double> none;
  CHECK(std::isnan(median(none)));
  CHECK(std::isnan(mean(none)));
  CHECK(std::isnan(quantile(none, 0.05)));
  CHECK(std::isnan(median_interval(none).lo));
  CHECK(std::isnan(relative_interval(none)));
  CHECK(paired_ratios(none, std::vector<double>{1}).empty());
}

TEST_CASE("quantiles are linear between order statistics, as numpy's default") {
  const std::vector<double> samples = one_to(50);
  CHECK(quantile(samples, 0) == 1);
  CHECK(quantile(samples, 1) == 50);
  CHECK(quantile(samples, 0.05) == Approx(3.45));   // numpy.percentile(range(1, 51), 5)
  CHECK(quantile(samples, 0.95) == Approx(47.55));  // numpy.percentile(range(1, 51), 95)
  CHECK(quantile(std::vector<double>{9}, 0.95) == 9);
}

TEST_CASE("mean") { CHECK(mean(one_to(50)) == Approx(25.5)); }

// Ranks from the published tables of distribution-free intervals of the median (95%).
TEST_CASE("the median's interval lies at the tabulated ranks") {
  struct Known {
    int n, lo, hi;
  };
  for (const Known known : {Known{6, 1, 6}, Known{8, 1, 8}, Known{9, 2, 8}, Known{10, 2, 9}, Known{20, 6, 15},
                            Known{25, 8, 18}, Known{50, 18, 33}, Known{100, 40, 61}}) {
    const Interval interval = median_interval(one_to(known.n));
    CAPTURE(known.n);
    CHECK(interval.lo == known.lo);
    CHECK(interval.hi == known.hi);
  }
}

TEST_CASE("the interval is the range where samples are too few") {
  const Interval interval = median_interval(std::vector<double>{5, 3, 4});
  CHECK(interval.lo == 3);
  CHECK(interval.hi == 5);
}

TEST_CASE("the interval of many samples does not underflow") {
  const Interval interval = median_interval(one_to(10000));
  CHECK(interval.lo == Approx(4902).margin(2));  // n/2 - 1.96 sqrt(n)/2
  CHECK(interval.hi == Approx(5099).margin(2));
}

TEST_CASE("relative interval is half the width over the median") {
  CHECK(relative_interval(one_to(50)) == Approx((33.0 - 18.0) / 2 / 25.5));
  CHECK(relative_interval(std::vector<double>(50, 12.5)) == 0);
}

TEST_CASE("the interval of independent samples holds the median as often as it promises, whatever the distribution") {
  const auto uniform = [](double u) { return u; };
  const auto exponential = [](double u) { return -std::log1p(-u); };
  const auto heavy_tailed = [](double u) { return std::pow(1 - u, -2); };  // Pareto without a mean
  // 1 - 2 P(Binomial(n, 1/2) < rank) for continuous distributions, or a little more: a correlation is now and then seen
  // by chance.
  struct Known {
    std::size_t n;
    double least;
  };
  for (const Known known : {Known{6, 0.96875}, Known{10, 0.978516}, Known{25, 0.956715}, Known{50, 0.967161}}) {
    CAPTURE(known.n);
    const double tolerance = 4 * std::sqrt(known.least * (1 - known.least) / 20000);
    for (const double held : {coverage(known.n, 0.5, independent(known.n, uniform)),
                              coverage(known.n, std::log(2.0), independent(known.n, exponential)),
                              coverage(known.n, 4, independent(known.n, heavy_tailed))}) {
      CHECK(held > known.least - tolerance);
      CHECK(held < known.least + 0.025);
    }
  }
  CHECK(coverage(kSamplesFor95 - 1, 0.5, independent(kSamplesFor95 - 1, uniform)) < 0.95);
}

TEST_CASE("the interval allows for samples that are like their neighbours") {
  const std::size_t n = GENERATE(50, 200);
  const double r = GENERATE(0.3, 0.6, 0.8);
  const double held = coverage(n, 0, [=](const Uniform& uniform) {
    std::vector<double> samples = {normal(uniform)};
    while (samples.size() < n) samples.push_back(r * samples.back() + std::sqrt(1 - r * r) * normal(uniform));
    return samples;
  });
  CAPTURE(n, r);
  CHECK(held > 0.93);
}

TEST_CASE("the interval allows for turns that have a level of their own") {
  const double held = coverage(50, 0, [](const Uniform& uniform) {
    std::vector<double> samples;
    for (int turn = 0; turn < 5; ++turn) {
      const double level = normal(uniform);
      for (int i = 0; i < 10; ++i) samples.push_back(level + 0.3 * normal(uniform));
    }
    return samples;
  });
  CHECK(held > 0.92);  // which is all that the range of 5 levels can give; plain ranks give 0.57
}

TEST_CASE("ratios pair the samples of a round") {
  const std::vector<double> ratios = paired_ratios(std::vector<double>{10, 20, 30}, std::vector<double>{5, 5});
  REQUIRE(ratios.size() == 2);
  CHECK(ratios[0] == 2);
  CHECK(ratios[1] == 4);
}

TEST_CASE("pairing removes drift that both share") {
  std::vector<double> base, subject;
  for (int round = 0; round < 50; ++round) {
    const double drift = 1 + 0.02 * round;  // a device that gets slower
    base.push_back(100 * drift);
    subject.push_back(50 * drift);
  }
  const Interval paired = median_interval(paired_ratios(base, subject));
  CHECK(paired.lo == Approx(2));
  CHECK(paired.hi == Approx(2));
  CHECK(relative_interval(base) > 0.05);
}
