// What the tests of the CPU kernels share: drawn inputs, guarded outputs, expectations by plain loops in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/types.h"
#include "tests/catch.h"

namespace fusebench::cpu_test {

inline const Exec exec{};
inline constexpr float nan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float infinity = std::numeric_limits<float>::infinity();

using Doubles = std::vector<double>;

/// Floats between guard bands, at a base that is aligned to an element alone.
class Floats {
 public:
  explicit Floats(std::int64_t size, float value = nan)
      : all_(static_cast<std::size_t>(front + size + back), guard), size_(size) {
    std::fill_n(data(), size, value);
  }

  float* data() { return all_.data() + front; }
  const float* data() const { return all_.data() + front; }
  std::int64_t size() const { return size_; }
  float& operator[](std::int64_t i) { return data()[i]; }
  float operator[](std::int64_t i) const { return data()[i]; }

  bool guards_intact() const {
    return std::all_of(all_.begin(), all_.begin() + front, is_guard) &&
           std::all_of(all_.end() - back, all_.end(), is_guard);
  }
  /// Bit for bit, but for the sign and payload of a NaN.
  friend bool operator==(const Floats& a, const Floats& b) {
    return std::equal(a.all_.begin(), a.all_.end(), b.all_.begin(), b.all_.end(), [](float x, float y) {
      return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
    });
  }

 private:
  static constexpr std::int64_t front = 17;
  static constexpr std::int64_t back = 16;
  static constexpr float guard = -12345.0F;
  static bool is_guard(float x) { return x == guard; }

  std::vector<float> all_;
  std::int64_t size_;
};

/// Sums of four uniforms, shifted and scaled to a standard deviation of `scale`; decided by seed and index.
inline Floats draw(std::int64_t size, std::uint64_t seed, float scale = 1.0F) {
  Floats values(size);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15ULL;
  for (std::int64_t i = 0; i < size; ++i) {
    double sum = 0;
    for (int part = 0; part < 4; ++part) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      sum += static_cast<double>(state >> 40) / static_cast<double>(1 << 24) - 0.5;
    }
    values[i] = scale * static_cast<float>(sum * std::sqrt(3.0));
  }
  return values;
}

/// Every element within `tolerance` of 1 + |expected|, infinities equal, guard bands intact; NaN only where expected.
inline void require_close(const Floats& got, const Doubles& expected, double tolerance) {
  REQUIRE(got.guards_intact());
  REQUIRE(got.size() == static_cast<std::int64_t>(expected.size()));
  std::int64_t wrong = -1;
  double worst = 0;
  for (std::int64_t i = 0; i < got.size(); ++i) {
    const double e = expected[static_cast<std::size_t>(i)];
    const auto g = static_cast<double>(got[i]);
    if (g == e || (std::isnan(g) && std::isnan(e))) continue;
    const double error = std::abs(g - e) / (1 + std::abs(e));
    if (error <= tolerance && error <= worst) continue;
    worst = error;
    if (!(error <= tolerance)) wrong = i;
  }
  if (wrong >= 0) {
    FAIL("element " << wrong << " of " << got.size() << ": got " << got[wrong] << ", expected "
                    << expected[static_cast<std::size_t>(wrong)]);
  }
  SUCCEED("worst error " << worst);
}

/// As many threads as asked for, until the end of the scope.
class Threads {
 public:
  explicit Threads(int threads) : before_(kernels::parallel_threads()) { kernels::set_parallel_threads(threads); }
  ~Threads() { kernels::set_parallel_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

/// `compute` gives the same bits on 1, 2, 3 and 8 threads.
inline void require_same_on_any_threads(const std::function<std::vector<Floats>()>& compute) {
  const auto on = [&](int threads) {
    const Threads scope(threads);
    return compute();
  };
  const std::vector<Floats> expected = on(1);
  for (const int threads : {2, 3, 8}) {
    INFO(threads << " threads");
    REQUIRE(on(threads) == expected);
  }
}

/// a[m, k] · b[n, k]ᵀ
inline Doubles expected_product(const Floats& a, const Floats& b, std::int64_t m, std::int64_t n, std::int64_t k) {
  Doubles c;
  c.reserve(static_cast<std::size_t>(m * n));
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t d = 0; d < k; ++d) sum += static_cast<double>(a[i * k + d]) * static_cast<double>(b[j * k + d]);
      c.push_back(sum);
    }
  }
  return c;
}

/// x [rows, heads, head_dim] rotated by cos and sin [seq, head_dim / 2]
inline Doubles expected_rope(const Doubles& x, const Floats& cos, const Floats& sin, Pairing pairing,
                             std::int64_t heads, std::int64_t head_dim, std::int64_t seq) {
  Doubles out(x.size());
  const std::int64_t half = head_dim / 2;
  for (std::int64_t head = 0; head < static_cast<std::int64_t>(x.size()) / head_dim; ++head) {
    for (std::int64_t i = 0; i < half; ++i) {
      const bool interleaved = pairing == Pairing::interleaved;
      const auto first = static_cast<std::size_t>(head * head_dim + (interleaved ? 2 * i : i));
      const std::size_t second = first + static_cast<std::size_t>(interleaved ? 1 : half);
      const auto c = static_cast<double>(cos[head / heads % seq * half + i]);
      const auto s = static_cast<double>(sin[head / heads % seq * half + i]);
      out[first] = x[first] * c - x[second] * s;
      out[second] = x[first] * s + x[second] * c;
    }
  }
  return out;
}

inline double silu(double g) { return std::isinf(g) && g < 0 ? 0 : g / (1 + std::exp(-g)); }

inline Doubles widened(const Floats& x) { return {x.data(), x.data() + x.size()}; }

}  // namespace fusebench::cpu_test
