#include "harness/tensor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "harness/draw.h"
#include "harness/parallel.h"
#include "harness/phases.h"
#include "tests/catch.h"

namespace fusebench {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Format {
  std::uint16_t (*to)(double);
  double (*from)(std::uint16_t);
  int mantissa_bits;
  int bias;
  std::uint16_t infinity;
};
const Format kFp16 = {to_fp16, from_fp16, 10, 15, 0x7c00};
const Format kBf16 = {to_bf16, from_bf16, 7, 127, 0x7f80};

/// What IEEE 754 says the bits mean; the value that follows the largest finite one takes infinity's place.
double meaning(const Format& format, std::uint16_t magnitude) {
  const int exponent = magnitude >> format.mantissa_bits;
  const int mantissa = magnitude & ((1 << format.mantissa_bits) - 1);
  if (exponent == 0) return std::ldexp(mantissa, 1 - format.bias - format.mantissa_bits);
  return std::ldexp((1 << format.mantissa_bits) + mantissa, exponent - format.bias - format.mantissa_bits);
}

/// Every finite value and every boundary between two of them; returns how many came out wrong.
int count_wrong_roundings(const Format& format) {
  int wrong = 0;
  for (std::uint16_t bits = 0; bits < format.infinity; ++bits) {
    const auto next = static_cast<std::uint16_t>(bits + 1);
    const auto even = bits % 2 == 0 ? bits : next;
    const double value = meaning(format, bits);
    const double middle = (value + meaning(format, next)) / 2;
    const auto negative = [](std::uint16_t magnitude) { return static_cast<std::uint16_t>(magnitude | 0x8000); };
    wrong += format.from(bits) != value || format.from(negative(bits)) != -value;
    wrong += format.to(value) != bits || format.to(-value) != negative(bits);
    wrong += format.to(middle) != even || format.to(-middle) != negative(even);
    wrong += format.to(std::nextafter(middle, 0)) != bits || format.to(-std::nextafter(middle, 0)) != negative(bits);
    wrong += format.to(std::nextafter(middle, kInfinity)) != next;
    wrong += format.to(std::nextafter(-middle, -kInfinity)) != negative(next);
  }
  return wrong;
}

TEST_CASE("fp16 and bf16 round to nearest even, at every boundary") {
  CHECK(count_wrong_roundings(kFp16) == 0);
  CHECK(count_wrong_roundings(kBf16) == 0);
}

TEST_CASE("fp16 and bf16: infinities, NaN, overflow, the smallest") {
  for (const Format& format : {kFp16, kBf16}) {
    CHECK(format.to(kInfinity) == format.infinity);
    CHECK(format.to(-kInfinity) == (format.infinity | 0x8000));
    CHECK(format.from(format.infinity) == kInfinity);
    CHECK(format.to(std::numeric_limits<double>::max()) == format.infinity);
    CHECK(std::isnan(format.from(format.to(std::nan("")))));
    CHECK(std::isnan(format.from(format.to(-std::nan("")))));
    // a payload in the low bits alone must not turn into infinity
    CHECK(std::isnan(format.from(format.to(std::bit_cast<double>(0x7ff0000000000001U)))));
    CHECK(std::isnan(format.from(static_cast<std::uint16_t>(format.infinity + 1))));
    CHECK(format.to(0.0) == 0);
    CHECK(format.to(-0.0) == 0x8000);
    CHECK(std::signbit(format.from(0x8000)));
    CHECK(format.to(std::numeric_limits<double>::denorm_min()) == 0);
    CHECK(format.to(-std::numeric_limits<double>::denorm_min()) == 0x8000);
  }
  CHECK(to_fp16(65504) == 0x7bff);
  CHECK(to_fp16(65519.999) == 0x7bff);
  CHECK(to_fp16(65520) == 0x7c00);
  CHECK(to_bf16(0x1.fep127) == 0x7f7f);
  CHECK(to_bf16(0x1.ffp127) == 0x7f80);
}

TEST_CASE("no double rounding through float") {
  // As a float this is 1 + 2^-11, a tie that goes down to 1; it lies above the tie.
  const double above_tie = 1 + 0x1p-11 + 0x1p-40;
  CHECK(static_cast<double>(static_cast<float>(above_tie)) == 1 + 0x1p-11);
  CHECK(round_to(DType::fp16, above_tie) == 1 + 0x1p-10);
  CHECK(round_to(DType::bf16, 1 + 0x1p-8 + 0x1p-40) == 1 + 0x1p-7);
  CHECK(round_to(DType::fp32, 1 + 0x1p-24 + 0x1p-50) == 1 + 0x1p-23);
  CHECK(round_to(DType::fp32, 1 + 0x1p-24) == 1);
}

TEST_CASE("store and load agree with the single conversions") {
  const std::vector<double> values = {0, -1.5, 1.0 / 3, 1e-7, 70000, -1e30, kInfinity, 0x1p-140};
  for (const DType dtype : {DType::fp16, DType::bf16, DType::fp32}) {
    std::vector<std::byte> bits(values.size() * static_cast<std::size_t>(bytes_of(dtype)) + 1, std::byte{0xab});
    store(dtype, values, bits.data());
    CHECK(bits.back() == std::byte{0xab});
    std::vector<double> back(values.size());
    load(dtype, bits.data(), static_cast<std::int64_t>(values.size()), back.data());
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(back[i] == round_to(dtype, values[i]));
  }
}

TEST_CASE("read_rows widens the rows asked for") {
  HostTensor tensor(DType::bf16, 3, 2);
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  store(tensor.dtype, values, tensor.data.data());
  std::vector<double> rows(4);
  tensor.read_rows(1, 2, rows.data());
  CHECK(rows == std::vector<double>{3, 4, 5, 6});
}

std::vector<double> widened(const HostTensor& tensor) {
  std::vector<double> values(static_cast<std::size_t>(tensor.size()));
  tensor.read_rows(0, tensor.rows, values.data());
  return values;
}

struct Moments {
  double mean = 0, variance = 0, skewness = 0, kurtosis = 0;
};

Moments moments_of(const std::vector<double>& values) {
  Moments m;
  const auto n = static_cast<double>(values.size());
  for (const double v : values) m.mean += v / n;
  double third = 0;
  double fourth = 0;
  for (const double v : values) {
    const double d = v - m.mean;
    m.variance += d * d / n;
    third += d * d * d / n;
    fourth += d * d * d * d / n;
  }
  m.skewness = third / std::pow(m.variance, 1.5);
  m.kurtosis = fourth / (m.variance * m.variance);
  return m;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b, std::size_t lag = 0) {
  const std::size_t n = std::min(a.size(), b.size()) - lag;
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t i = 0; i < n; ++i) {
    ab += a[i] * b[i + lag];
    aa += a[i] * a[i];
    bb += b[i + lag] * b[i + lag];
  }
  return ab / std::sqrt(aa * bb);
}

std::vector<double> normals(std::uint64_t seed, std::string_view name, std::size_t count) {
  const NormalDraw draw(WordStream(seed, name), 1);
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = draw(i);
  return values;
}

constexpr std::size_t kMany = 1 << 20;
const double kNoise = 1 / std::sqrt(static_cast<double>(kMany));  // of a mean or a correlation

TEST_CASE("the normal draw is normal") {
  const std::vector<double> values = normals(42, "x", kMany);
  const Moments m = moments_of(values);
  CHECK(std::abs(m.mean) < 4 * kNoise);
  CHECK(std::abs(m.variance - 1) < 4 * kNoise * std::sqrt(2));
  CHECK(std::abs(m.skewness) < 4 * kNoise * std::sqrt(6));
  CHECK(std::abs(m.kurtosis - 2.97) < 4 * kNoise * std::sqrt(24));

  // Its distribution function against the normal one's, at steps of an eighth: within the sum of noise and of the
  // approximation (excess kurtosis -0.03 moves the function by at most 0.0008).
  for (int step = -32; step <= 32; ++step) {
    const double z = step / 8.0;
    const auto below = std::count_if(values.begin(), values.end(), [&](double v) { return v < z; });
    CAPTURE(z);
    CHECK(std::abs(static_cast<double>(below) / kMany - std::erfc(-z / std::sqrt(2)) / 2) < 0.0008 + 2 * kNoise);
  }
  const auto far = std::count_if(values.begin(), values.end(), [](double v) { return std::abs(v) > 4; });
  CHECK(far > 20);  // 66 expected of a normal
  CHECK(far < 110);
}

TEST_CASE("the uniform draw is uniform and symmetric") {
  const UniformDraw draw(WordStream(42, "wq"), 0.25);
  std::vector<double> values(kMany);
  for (std::size_t i = 0; i < kMany; ++i) values[i] = draw(i);
  const Moments m = moments_of(values);
  CHECK(std::abs(m.mean) < 4 * kNoise * 0.25 / std::sqrt(3));
  CHECK(m.variance == Approx(0.25 * 0.25 / 3).epsilon(0.005));
  CHECK(m.kurtosis == Approx(1.8).epsilon(0.01));
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  CHECK(*least > -0.25);
  CHECK(*most < 0.25);
  CHECK(*most > 0.2499);
  std::array<int, 64> bins{};
  for (const double v : values) ++bins[static_cast<std::size_t>((v + 0.25) * 128)];
  double chi_squared = 0;
  for (const int count : bins) chi_squared += std::pow(count - kMany / 64.0, 2) / (kMany / 64.0);
  CHECK(chi_squared < 63 + 4 * std::sqrt(2 * 63));
}

TEST_CASE("tensors, seeds and neighbours are independent") {
  const std::vector<double> x = normals(42, "x", kMany);
  CHECK(std::abs(correlation(x, normals(42, "r", kMany))) < 4 * kNoise);
  CHECK(std::abs(correlation(x, normals(42, "w", kMany))) < 4 * kNoise);
  CHECK(std::abs(correlation(x, normals(43, "x", kMany))) < 4 * kNoise);
  CHECK(std::abs(correlation(x, normals(0, "x", kMany))) < 4 * kNoise);
  for (const std::size_t lag : {1U, 2U, 64U, 4096U}) CHECK(std::abs(correlation(x, x, lag)) < 4 * kNoise);

  // squares too: what is uncorrelated may still be dependent
  const auto squares = [](std::vector<double> values) {
    for (double& v : values) v = v * v - 1;
    return values;
  };
  CHECK(std::abs(correlation(squares(x), squares(normals(43, "x", kMany)))) < 4 * kNoise);
  CHECK(std::abs(correlation(squares(x), squares(x), 1)) < 4 * kNoise);
}

Case small_block() {
  Case c;
  c.op = Op::block;
  c.dtype = DType::fp32;
  c.dim = 256;
  c.hidden = 512;
  c.heads = 4;
  c.kv_heads = 4;
  c.batch = 1;
  c.seq = 256;
  return canonical(c);
}

std::vector<double> drawn(const Case& c, std::string_view name) {
  return widened(DrawnSource(c).read(spec_of(c).tensor(name)));
}

TEST_CASE("the draw's bits: a change here changes every published record") {
  const auto bits = [](double v) { return std::bit_cast<std::uint64_t>(v); };
  const WordStream words(42, "x");
  CHECK(words.word(0) == 0x51ada8806a3bd65aU);
  CHECK(words.word(1) == 0xef6376330e53beedU);
  CHECK(words.word(std::uint64_t{1} << 40) == 0x63d99f0b83c62315U);
  CHECK(bits(NormalDraw(words, 1)(0)) == 0xbfd7399c1ef997a8U);
  CHECK(bits(NormalDraw(words, 1)(1)) == 0x3fe279d2a52a6dd3U);
  CHECK(bits(UniformDraw(words, 1)(0)) == 0xbfd7292bbfcae216U);
  CHECK(bits(rope_frequency(500000, 1, 128)) == 0x3fea115829457fbeU);
  CHECK(bits(cos_sin(131071).cos) == 0xbfea2cebbb513e7cU);
  CHECK(bits(cos_sin(131071).sin) == 0xbfe268613f60babcU);
  Case c = small_block();
  CHECK(bits(drawn(c, "wq")[7]) == 0xbfbdcbaf80000000U);
  CHECK(bits(drawn(c, "norm1_weight")[7]) == 0x3ff1af4a00000000U);
  c.inputs = Inputs::seed;
  CHECK(bits(drawn(c, "w_down")[7]) == 0x3f998b7360000000U);
}

TEST_CASE("an element depends on seed, name and index alone") {
  Case c = small_block();
  c.seq = 2048;  // 512 Ki elements: several threads
  const HostTensor x = DrawnSource(c).read(spec_of(c).tensor("x"));
  const NormalDraw draw(WordStream(42, "x"), 1);
  std::int64_t wrong = 0;
  const std::vector<double> values = widened(x);
  for (std::size_t i = 0; i < values.size(); ++i) wrong += values[i] != round_to(c.dtype, draw(i));
  CHECK(wrong == 0);

  Case other = c;
  other.op = Op::rmsnorm;
  other.seq = 3;
  other = canonical(other);
  const std::vector<double> few = drawn(other, "x");
  CHECK(std::equal(few.begin(), few.end(), values.begin()));
}

TEST_CASE("every dtype rounds the same real numbers") {
  for (const Inputs inputs : {Inputs::balanced, Inputs::seed}) {
    Case c = small_block();
    c.inputs = inputs;
    c.past = 3;
    const auto source = [&](DType dtype, const std::string& name) {
      Case typed = c;
      typed.dtype = dtype;
      return drawn(typed, name);
    };
    for (const TensorSpec& spec : spec_of(c).tensors) {
      if (spec.role == Role::output || spec.name == "cos" || spec.name == "sin") continue;
      const std::vector<double> wide = source(DType::fp32, spec.name);
      for (const DType dtype : {DType::fp16, DType::bf16}) {
        const std::vector<double> narrow = source(dtype, spec.name);
        std::int64_t far = 0;  // the fp32 value is itself rounded: a tie may differ, nothing more
        for (std::size_t i = 0; i < wide.size(); ++i) {
          far += std::abs(narrow[i] - round_to(dtype, wide[i])) > std::abs(wide[i]) * 0x1p-7;
        }
        CAPTURE(spec.name, name_of(dtype));
        CHECK(far == 0);
        CHECK((narrow != wide || wide == std::vector<double>(wide.size(), 1)));
      }
    }
  }
}

TEST_CASE("parallel_ranges covers every element once") {
  for (const std::int64_t count : {0, 1, 2, 3, 1000, 100001}) {
    std::vector<int> visits(static_cast<std::size_t>(count));
    parallel_ranges(count, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) ++visits[static_cast<std::size_t>(i)];
    });
    CHECK(std::count(visits.begin(), visits.end(), 1) == count);
  }
}

TEST_CASE("inputs: seed, as the seed's own module is made") {
  Case c = small_block();
  c.inputs = Inputs::seed;
  c.dtype = DType::bf16;
  for (const auto& [name, fan_in] : {std::pair{"wq", 256}, {"wo", 256}, {"w_gate", 256}, {"w_down", 512}}) {
    const Moments m = moments_of(drawn(c, name));
    CAPTURE(name);
    CHECK(m.variance == Approx(1.0 / (3 * fan_in)).epsilon(0.02));
    CHECK(m.kurtosis == Approx(1.8).epsilon(0.02));
  }
  for (const double weight : drawn(c, "norm1_weight")) CHECK(weight == 1);
  const std::vector<double> cos = drawn(c, "cos");
  CHECK(moments_of(cos).variance == Approx(1).epsilon(0.1));
  CHECK(std::abs(correlation(cos, drawn(c, "sin"))) < 0.05);
  for (const double value : cos) CHECK(value == round_to(DType::bf16, value));
  CHECK(DrawnSource(c).read(spec_of(c).tensor("cos")).dtype == DType::fp32);
}

TEST_CASE("angles: positions start at past, and phases keep their accuracy") {
  Case c;
  c.op = Op::rope;
  c.dim = 128;
  c.heads = 1;
  c.seq = 2;
  for (const std::int64_t past : {0, 1, 4094, 131070}) {
    for (const double theta : {10000.0, 500000.0}) {
      c.past = past;
      c.rope_theta = theta;
      c = canonical(c);
      const std::vector<double> cos = drawn(c, "cos");
      const std::vector<double> sin = drawn(c, "sin");
      for (std::size_t i = 0; i < cos.size(); ++i) {
        const long double position = static_cast<long double>(past) + static_cast<long double>(i / 64);
        const long double angle = position * std::pow(static_cast<long double>(theta), -2.0L * (i % 64) / 128);
        CAPTURE(past, theta, i);
        CHECK(std::abs(cos[i] - static_cast<double>(std::cos(angle))) < 0x1p-24);
        CHECK(std::abs(sin[i] - static_cast<double>(std::sin(angle))) < 0x1p-24);
      }
    }
  }
}

TEST_CASE("own elementary functions against libm") {
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const double phase = i * 0.731 + i % 7 * 1e-5;
    const CosSin own = cos_sin(phase);
    worst = std::max({worst, std::abs(own.cos - std::cos(phase)), std::abs(own.sin - std::sin(phase))});
  }
  CHECK(worst < 4e-16);
  CHECK(cos_sin(0).cos == 1);
  CHECK(cos_sin(0).sin == 0);
  CHECK(cos_sin(0x1p49).sin == Approx(std::sin(0x1p49)).margin(1e-15));

  double worst_relative = 0;
  for (const double theta : {1.0, 1.5, 10000.0, 500000.0, 1e6, 1e300}) {
    for (const std::int64_t head_dim : {2, 64, 80, 128, 256}) {
      for (std::int64_t pair = 0; pair < head_dim / 2; ++pair) {
        const double expected = std::pow(theta, -2.0 * static_cast<double>(pair) / static_cast<double>(head_dim));
        worst_relative = std::max(worst_relative, std::abs(rope_frequency(theta, pair, head_dim) / expected - 1));
      }
    }
  }
  CHECK(worst_relative < 1e-13);
}

TEST_CASE("a cache holds drawn past rows and zero new ones") {
  Case c = small_block();
  c.batch = 3;
  c.seq = 2;
  c.past = 300;
  c.kv_heads = 2;
  for (const Op op : {Op::qkv, Op::block}) {
    c.op = op;
    const Case used = canonical(c);
    const InputSet inputs = read_inputs(spec_of(used), DrawnSource(used));
    for (const auto& [name, variance] : {std::pair{"k", 2.0}, {"v", 1.0}}) {
      const std::vector<double> cache = widened(inputs.at(name));
      REQUIRE(cache.size() == 3 * 302 * 128);
      std::vector<double> past;
      std::int64_t nonzero_new = 0;
      for (std::size_t i = 0; i < cache.size(); ++i) {
        if (i / 128 % 302 < 300) {
          past.push_back(cache[i]);
        } else {
          nonzero_new += cache[i] != 0;
        }
      }
      CHECK(nonzero_new == 0);
      CHECK(moments_of(past).variance == Approx(variance).epsilon(0.03));
      CHECK(std::count(past.begin(), past.end(), 0.0) < 5);
    }
    CHECK(inputs.count("out") == 0);
    CHECK(inputs.count("q") == 0);
  }
  CHECK_THROWS_AS(DrawnSource(c).read(spec_of(c).tensor("out")), std::logic_error);
}

TEST_CASE("attention's own inputs are standard normal") {
  Case c = small_block();
  c.op = Op::attention;
  c.past = 64;
  c = canonical(c);
  for (const char* name : {"q", "k", "v"}) {
    const Moments m = moments_of(drawn(c, name));
    CHECK(m.variance == Approx(1).epsilon(0.03));
    CHECK(m.mean == Approx(0).margin(0.02));
  }
}

// --- does the balanced draw balance? the block's mathematics in plain loops

using Matrix = std::vector<double>;

/// a[m, k] · b[n, k]ᵀ
Matrix product(const Matrix& a, const Matrix& b, std::size_t k) {
  const std::size_t m = a.size() / k;
  const std::size_t n = b.size() / k;
  Matrix c(m * n);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      c[i * n + j] = std::inner_product(&a[i * k], &a[i * k] + k, &b[j * k], 0.0);
    }
  }
  return c;
}

Matrix rmsnorm(Matrix x, const Matrix& weight) {
  const std::size_t cols = weight.size();
  for (std::size_t row = 0; row < x.size(); row += cols) {
    const double mean = std::inner_product(&x[row], &x[row] + cols, &x[row], 0.0) / static_cast<double>(cols);
    for (std::size_t j = 0; j < cols; ++j) x[row + j] *= weight[j] / std::sqrt(mean + 1e-5);
  }
  return x;
}

struct Attended {
  Matrix logits;
  Matrix out;
};

/// Without rotation, which changes no variance.
Attended attend(const Case& c, const Matrix& q, const Matrix& k, const Matrix& v) {
  const auto seq = static_cast<std::size_t>(c.seq);
  const auto d = static_cast<std::size_t>(c.head_dim());
  const auto dim = static_cast<std::size_t>(c.dim);
  Attended result;
  result.out.resize(seq * dim);
  for (std::size_t head = 0; head < dim; head += d) {
    for (std::size_t i = 0; i < seq; ++i) {
      const std::size_t visible = c.causal ? i + 1 : seq;
      std::vector<double> weights;
      for (std::size_t j = 0; j < visible; ++j) {
        const double* key = &k[j * dim + head];
        const double logit = std::inner_product(key, key + d, &q[i * dim + head], 0.0) / std::sqrt(d);
        result.logits.push_back(logit);
        weights.push_back(std::exp(logit));
      }
      const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
      for (std::size_t j = 0; j < visible; ++j) {
        for (std::size_t e = 0; e < d; ++e) {
          result.out[i * dim + head + e] += weights[j] / sum * v[j * dim + head + e];
        }
      }
    }
  }
  return result;
}

double deviation(const Matrix& values) { return std::sqrt(moments_of(values).variance); }

TEST_CASE("balanced: logits spread by about 2, and each branch adds about as much as the residual holds") {
  Case c = small_block();
  for (const bool causal : {false, true}) {
    c.causal = causal;
    const Matrix n = rmsnorm(drawn(c, "x"), drawn(c, "norm1_weight"));
    const Attended attended =
        attend(c, product(n, drawn(c, "wq"), 256), product(n, drawn(c, "wk"), 256), product(n, drawn(c, "wv"), 256));
    CAPTURE(causal);
    CHECK(deviation(attended.logits) == Approx(2).epsilon(0.1));
    const double branch = deviation(product(attended.out, drawn(c, "wo"), 256));
    CHECK(branch > 0.8);
    CHECK(branch < 1.6);
  }

  c.op = Op::mlp;
  c = canonical(c);
  const Matrix n = rmsnorm(drawn(c, "h"), drawn(c, "norm_weight"));
  Matrix hidden = product(n, drawn(c, "w_gate"), 256);
  const Matrix up = product(n, drawn(c, "w_up"), 256);
  for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] *= up[i] / (1 + std::exp(-hidden[i]));
  CHECK(deviation(product(hidden, drawn(c, "w_down"), 512)) == Approx(1).epsilon(0.1));
}

TEST_CASE("balanced: attn_out's branch is as large as its residual") {
  Case c = small_block();
  c.op = Op::attn_out;
  c = canonical(c);
  CHECK(deviation(product(drawn(c, "a"), drawn(c, "wo"), 256)) == Approx(1).epsilon(0.05));
}

}  // namespace
}  // namespace fusebench
