// Random numbers that are the same on every machine: integers from a counter, one correctly rounded multiplication to
// a double, nothing of libm but sqrt. The words are SplitMix64's, which gives its i-th word without the ones before.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "harness/mix.h"

namespace fusebench {

/// The stream of 64-bit words of one tensor of one seed.
class WordStream {
 public:
  WordStream(std::uint64_t seed, std::string_view tensor);

  std::uint64_t word(std::uint64_t index) const { return mix(key_ + index * kMixStride); }

 private:
  std::uint64_t key_;
};

/// Normal of mean 0 and a standard deviation, from two words an element: the number of set bits of one (binomial, 64
/// fair coins) smoothed by the sum of three uniforms of one bit's width from the other. Mean and variance are exact,
/// the excess kurtosis is -0.03, and values reach 8 standard deviations.
class NormalDraw {
 public:
  NormalDraw(WordStream words, double sigma) : words_(words), scale_(sigma / std::sqrt(kVariance)) {}

  double operator()(std::uint64_t element) const {
    const std::uint64_t coins = words_.word(2 * element);
    const std::uint64_t smooth = words_.word(2 * element + 1);
    const std::int64_t steps = static_cast<std::int64_t>(std::popcount(coins)) << kBits;
    const auto sum =
        static_cast<std::int64_t>((smooth & kMask) + (smooth >> kBits & kMask) + (smooth >> 2 * kBits & kMask));
    return static_cast<double>(2 * (steps + sum) - kTwiceMean) * scale_;
  }

 private:
  static constexpr int kBits = 21;
  static constexpr std::uint64_t kMask = (std::uint64_t{1} << kBits) - 1;
  static constexpr std::int64_t kTwiceMean = (std::int64_t{64} << kBits) + 3 * static_cast<std::int64_t>(kMask);
  /// Of twice the sum: 4 · (64/4 · 4^21 + 3 · (4^21 - 1)/12).
  static constexpr double kVariance = 65.0 * (1LL << 2 * kBits) - 1.0;

  WordStream words_;
  double scale_;
};

/// Uniform on (-bound, bound), symmetric, from one word an element.
class UniformDraw {
 public:
  UniformDraw(WordStream words, double bound) : words_(words), scale_(bound * 0x1p-53) {}

  double operator()(std::uint64_t element) const {
    const auto steps = static_cast<std::int64_t>(words_.word(element) >> 11);  // 53 bits
    return static_cast<double>(2 * steps + 1 - (std::int64_t{1} << 53)) * scale_;
  }

 private:
  WordStream words_;
  double scale_;
};

}  // namespace fusebench
