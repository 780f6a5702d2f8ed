// The reference's own parts, against values computed by hand and formats decoded from their definition.
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include "reference/ops.h"
#include "reference/parallel.h"
#include "tests/catch.h"

using namespace fusebench::reference;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A 16-bit pattern by the definition of its format.
double decoded(unsigned bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const auto mantissa = static_cast<double>(bits & ((1U << mantissa_bits) - 1));
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa == 0 ? sign * kInfinity : std::nan("");
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(1 + std::ldexp(mantissa, -mantissa_bits), exponent - bias);
}

struct Format16 {
  Rounding rounding;
  int exponent_bits, mantissa_bits;
};
constexpr Format16 kFormats[] = {{Rounding::fp16, 5, 10}, {Rounding::bf16, 8, 7}};

Stack one_lane(const Matrix& values, Rounding rounding = Rounding::none) { return spread(values, {rounding}); }

Source source_of(const Matrix& m) {
  return {.rows = m.rows(), .cols = m.cols(), .read = [m](Index r, Index rows, Index c, Index cols, double* out) {
            Eigen::Map<Matrix>(out, rows, cols) = m.block(r, c, rows, cols);
          }};
}

/// To the last bit. (Catch cannot print an Eigen expression.)
bool same(const Matrix& a, const Matrix& b) { return a == b; }

Matrix matrix(Index rows, Index cols, std::initializer_list<double> values) {
  Matrix out(rows, cols);
  std::copy(values.begin(), values.end(), out.data());
  return out;
}

}  // namespace

TEST_CASE("every value of a 16-bit format is itself, and all between round to nearest even", "[rounding]") {
  for (const Format16& f : kFormats) {
    const unsigned infinity = ((1U << f.exponent_bits) - 1) << f.mantissa_bits;
    for (unsigned bits = 0; bits < 0x10000U; ++bits) {
      const double value = decoded(bits, f.exponent_bits, f.mantissa_bits);
      const double got = rounded(f.rounding, value);
      if (std::isnan(value) ? !std::isnan(got)
                            : std::bit_cast<std::uint64_t>(got) != std::bit_cast<std::uint64_t>(value))
        FAIL("pattern " << bits << " became " << got);
    }
    for (unsigned bits = 0; bits < infinity; ++bits) {
      const double low = decoded(bits, f.exponent_bits, f.mantissa_bits);
      // the step past the largest finite value is where infinity begins
      const double high = bits + 1 < infinity ? decoded(bits + 1, f.exponent_bits, f.mantissa_bits)
                                              : 2 * low - decoded(bits - 1, f.exponent_bits, f.mantissa_bits);
      const double above = bits + 1 < infinity ? high : kInfinity;
      const double middle = low + (high - low) / 2;
      const double even = bits % 2 == 0 ? low : above;
      for (const double sign : {1.0, -1.0}) {
        const bool right = rounded(f.rounding, sign * middle) == sign * even &&
                           rounded(f.rounding, sign * std::nextafter(middle, 0)) == sign * low &&
                           rounded(f.rounding, sign * std::nextafter(middle, kInfinity)) == sign * above;
        if (!right) FAIL("between pattern " << bits << " and the next, sign " << sign);
      }
    }
  }
}

TEST_CASE("extremes round as they should", "[rounding]") {
  for (const Rounding format : {Rounding::fp16, Rounding::bf16, Rounding::fp32}) {
    CHECK(rounded(format, std::numeric_limits<double>::max()) == kInfinity);
    CHECK(rounded(format, -kInfinity) == -kInfinity);
    CHECK(std::isnan(rounded(format, std::nan(""))));
    CHECK(rounded(format, std::numeric_limits<double>::denorm_min()) == 0);
    CHECK(std::signbit(rounded(format, -1e-300)));
    CHECK(std::signbit(rounded(format, -0.0)));
  }
  CHECK(rounded(Rounding::fp16, 65519.999) == 65504);
  CHECK(rounded(Rounding::fp16, 65520) == kInfinity);
  CHECK(rounded(Rounding::none, 1.0 / 3) == 1.0 / 3);
  CHECK(rounded(Rounding::none, -kInfinity) == -kInfinity);
}

TEST_CASE("fp32 rounds as the processor does", "[rounding]") {
  std::mt19937_64 words(1);
  for (int i = 0; i < 2'000'000; ++i) {
    const auto value = std::bit_cast<double>(words());
    // of every second one the exponent is near those of fp32's values
    const double near =
        std::ldexp(std::frexp(value, std::array<int, 1>{}.data()), static_cast<int>(words() % 300) - 155);
    for (const double x : {value, near}) {
      if (std::isnan(x)) continue;
      if (rounded(Rounding::fp32, x) != static_cast<double>(static_cast<float>(x))) FAIL(x);
    }
  }
}

TEST_CASE("work is done once each, and what it throws comes out", "[parallel]") {
  for (const unsigned threads : {1U, 2U, 5U, 16U}) {
    const ThreadLimit limit(threads);
    std::vector<std::atomic<int>> done(100);
    for_each_index(100, [&](Index i) { ++done[static_cast<std::size_t>(i)]; });
    for (const auto& times : done) CHECK(times == 1);
    for_each_index(0, [](Index) { FAIL("there is no work"); });
    CHECK_THROWS_AS(for_each_index(50,
                                   [](Index i) {
                                     if (i == 13) throw std::domain_error("13");
                                   }),
                    std::domain_error);
  }
}

TEST_CASE("rmsnorm by hand", "[reference]") {
  const Vector weight = Vector::Constant(4, 1).cwiseProduct(Eigen::Vector4d(1, 2, 3, 4));
  const Stack y = rmsnorm(one_lane(matrix(1, 4, {1, -1, 3, -5})), weight, 7);  // mean 9, + 7 = 16
  CHECK(y.values.isApprox(matrix(1, 4, {0.25, -0.5, 2.25, -5})));
}

TEST_CASE("add_rmsnorm normalises what was stored", "[reference]") {
  const Stack x = spread(matrix(1, 2, {1, 2048}), {Rounding::none, Rounding::fp16});
  const Stack r = spread(matrix(1, 2, {0x1p-12, 1}), x.roundings);  // neither sum is an fp16 value
  const SumAndNorm out = add_rmsnorm(x, r, Vector::Ones(2), 0, Rounding::fp16);
  CHECK(same(out.h.lane(0), matrix(1, 2, {1 + 0x1p-12, 2049})));
  CHECK(same(out.h.lane(1), matrix(1, 2, {1, 2048})));
  CHECK(out.y.values(0, 1) == Approx(2048 / std::sqrt((2048.0 * 2048 + 1) / 2)).epsilon(1e-15));
  CHECK(same(out.y.lane(1), rmsnorm(spread(out.h.lane(1), {Rounding::fp16}), Vector::Ones(2), 0).values));
}

TEST_CASE("rope by hand: a quarter turn takes (a, b) to (-b, a), in either pairing", "[reference]") {
  Phases phases{.cos = matrix(2, 2, {0, 1, 1, 1}), .sin = matrix(2, 2, {1, 0, 0, 0}), .pairs = Pairs::neighbours};
  const Stack x = one_lane(matrix(1, 8, {1, 2, 3, 4, 5, 6, 7, 8}));  // two heads
  CHECK(same(rope(x, phases, {0}).values, matrix(1, 8, {-2, 1, 3, 4, -6, 5, 7, 8})));
  CHECK(same(rope(x, phases, {1}).values, x.values));
  phases.pairs = Pairs::halves;
  CHECK(same(rope(x, phases, {0}).values, matrix(1, 8, {-3, 2, 1, 4, -7, 6, 5, 8})));
}

TEST_CASE("rope stores its four products", "[reference]") {
  // 2049/2048 · 2049/2048 is no fp16 value: 1 + 2^-10 each, the square of 1 + 2^-10 + ... rounds down
  const double a = 1 + 0x1p-10;
  const Phases phases{.cos = matrix(1, 1, {a}), .sin = matrix(1, 1, {a}), .pairs = Pairs::neighbours};
  const Stack y = rope(spread(matrix(1, 2, {a, a}), {Rounding::none, Rounding::fp16}), phases, {0});
  CHECK(y.values(0, 1) == 2 * a * a);
  CHECK(y.values(1, 1) == 2 * (1 + 0x1p-9));
  CHECK(y.values(1, 0) == 0);
}

TEST_CASE("attention by hand", "[reference]") {
  // scores log(3)·2/sqrt(4) = log 3 and 0: probabilities 3/4 and 1/4
  const AttentionShape shape{.seq = 1, .keys = 2, .heads = 1, .kv_heads = 1, .head_dim = 4, .causal = true};
  const Stack q = one_lane(matrix(1, 4, {1, 0, 0, 0}));
  const HeadReader k = head_reader(source_of(matrix(2, 4, {2 * std::log(3), 0, 0, 0, 0, 9, 9, 9})), shape);
  const HeadReader v = head_reader(source_of(matrix(2, 4, {4, 8, 0, -4, 0, 0, 4, 4})), shape);
  CHECK(attention(q, {0}, shape, k, v).values.isApprox(matrix(1, 4, {3, 6, 1, -2}), 1e-15));
}

TEST_CASE("a query that sees no key gives 0, in every lane", "[reference]") {
  // three queries, one key: the last sees it, the others nothing
  const AttentionShape shape{.seq = 3, .keys = 1, .heads = 2, .kv_heads = 1, .head_dim = 2, .causal = true};
  const Stack q = spread(Matrix::Ones(3, 4), {Rounding::none, Rounding::bf16});
  const HeadReader k = head_reader(source_of(matrix(1, 2, {1, 1})), shape);
  const HeadReader v = head_reader(source_of(matrix(1, 2, {5, 7})), shape);
  const Stack out = attention(q, {0, 1, 2}, shape, k, v);
  for (Index lane = 0; lane < 2; ++lane) {
    CHECK(out.lane(lane).topRows(2).isZero(0));
    CHECK(same(out.lane(lane).row(2), matrix(1, 4, {5, 7, 5, 7})));
  }
  const Stack alone = attention(one_lane(Matrix::Ones(1, 4)), {0}, shape, k, v);
  CHECK(alone.values.isZero(0));
}

TEST_CASE("what a query does not see cannot harm it, not even infinities", "[reference]") {
  const AttentionShape shape{.seq = 2, .keys = 2, .heads = 1, .kv_heads = 1, .head_dim = 2, .causal = true};
  const Stack q = one_lane(matrix(2, 2, {1, 0, 1, 0}));
  const HeadReader k = head_reader(source_of(matrix(2, 2, {1, 1, 1, 1})), shape);
  const HeadReader v = head_reader(source_of(matrix(2, 2, {5, 7, kInfinity, std::nan("")})), shape);
  const Stack out = attention(q, {0, 1}, shape, k, v);
  CHECK(same(out.values.row(0), matrix(1, 2, {5, 7})));
  CHECK(out.values(1, 0) == kInfinity);
  CHECK(std::isnan(out.values(1, 1)));
}

TEST_CASE("softmax subtracts the row's maximum", "[reference]") {
  const AttentionShape shape{.seq = 1, .keys = 2, .heads = 1, .kv_heads = 1, .head_dim = 1, .causal = false};
  for (const double score : {1e5, -1e5}) {
    const HeadReader k = head_reader(source_of(matrix(2, 1, {score, score})), shape);
    const HeadReader v = head_reader(source_of(matrix(2, 1, {1, 2})), shape);
    CHECK(attention(one_lane(matrix(1, 1, {1})), {0}, shape, k, v).values(0, 0) == 1.5);
  }
}

TEST_CASE("products, residuals and swiglu by hand", "[reference]") {
  const Source w = source_of(matrix(3, 2, {1, 2, 3, 4, 5, 6}));
  const Stack a = one_lane(matrix(2, 2, {1, 10, -1, 0.5}));
  CHECK(same(product(a, w).values, matrix(2, 3, {21, 43, 65, 0, -1, -2})));
  CHECK(same(attn_out(a, source_of(matrix(2, 2, {1, 2, 3, 4})), one_lane(matrix(2, 2, {1, 2, 3, 4}))).values,
             matrix(2, 2, {22, 45, 3, 3})));
  const Stack y = swiglu(one_lane(matrix(1, 3, {0, 1, -1})), one_lane(matrix(1, 3, {5, 2, 2})));
  const double e = std::exp(1.0);
  CHECK(y.values.isApprox(matrix(1, 3, {0, 2 * e / (1 + e), -2 / (1 + e)}), 1e-15));
}

TEST_CASE("a product is rounded lane by lane", "[reference]") {
  const Stack a = spread(matrix(1, 2, {1, 1}), {Rounding::none, Rounding::fp16, Rounding::bf16, Rounding::fp32});
  const Stack y = product(a, source_of(matrix(1, 2, {1, 0x1p-9})));
  CHECK(same(y.values, matrix(4, 1, {1 + 0x1p-9, 1 + 0x1p-9, 1, 1 + 0x1p-9})));
  const Stack large = product(a, source_of(matrix(1, 2, {60000, 60000})));
  CHECK(same(large.values, matrix(4, 1, {120000, kInfinity, rounded(Rounding::bf16, 120000), 120000})));
}

TEST_CASE("silu is 0 at minus infinity, and NaN stays NaN", "[reference]") {
  for (const Rounding format : {Rounding::none, Rounding::fp16, Rounding::bf16, Rounding::fp32}) {
    const Stack g = one_lane(matrix(1, 4, {-kInfinity, kInfinity, -1e300, std::nan("")}), format);
    const Stack u = one_lane(matrix(1, 4, {3, 3, -3, 3}), format);
    const Stack y = swiglu(g, u);
    CHECK(y.values(0, 0) == 0);
    CHECK(y.values(0, 1) == kInfinity);
    CHECK(y.values(0, 2) == 0);
    CHECK(std::isnan(y.values(0, 3)));
  }
}

TEST_CASE("mlp by hand", "[reference]") {
  // h = (3, 4), eps so that the root is 5: n = (0.6, 0.8); gate = n0, up = 10·n1; down spreads it
  const MlpWeights weights{.norm = Vector::Ones(2),
                           .eps = 12.5,
                           .w_gate = source_of(matrix(1, 2, {1, 0})),
                           .w_up = source_of(matrix(1, 2, {0, 10})),
                           .w_down = source_of(matrix(2, 1, {1, -2}))};
  const double activated = 0.6 / (1 + std::exp(-0.6)) * 8;
  CHECK(mlp(one_lane(matrix(1, 2, {3, 4})), weights)
            .values.isApprox(matrix(1, 2, {3 + activated, 4 - 2 * activated}), 1e-15));
}
