// Attention against softmax(q·kᵀ / sqrt(d) + mask)·v in double: borders of its tiles, every padded head_dim,
// GQA, the causal alignment, logits of any size, and what lies beyond the last key.
#include <algorithm>
#include <cstring>
#include <limits>

#include "harness/parallel.h"
#include "kernels/fused_cuda.h"
#include "tests/catch.h"
#include "tests/gpu/product.h"

namespace {

using namespace fusebench;
using namespace fusebench::testing;
using kernels::AttentionKernel;
using kernels::multiprocessors;

const Exec stream{Backend::cuda, nullptr};

template <typename T>
struct Problem {
  AttentionShape shape;
  std::vector<T> q, k, v;
  bool exact_scores = false;  ///< every q·k is exact in fp32

  explicit Problem(const AttentionShape& s, double scale = 2.0)
      : shape(s),
        q(draw<T>(s.batch * s.seq * s.heads * s.head_dim, 1, scale)),
        k(draw<T>(s.batch * s.keys * s.kv_heads * s.head_dim, 2, scale)),
        v(draw<T>(s.batch * s.keys * s.kv_heads * s.head_dim, 3)) {}
};

struct Expected {
  std::vector<double> value, slack;
};

/// The slack: rounding of probabilities to T, fp32 sums over keys, and what fp32 scores do to exp.
template <typename T>
Expected expect(const Problem<T>& problem) {
  const AttentionShape& shape = problem.shape;
  const std::int64_t d = shape.head_dim;
  const double scale = 1.0 / std::sqrt(static_cast<double>(d));
  const std::vector<double> q = widened(problem.q), k = widened(problem.k), v = widened(problem.v);
  Expected expected{std::vector<double>(q.size()), std::vector<double>(q.size())};
  const auto set_row = [&](std::int64_t row) {
    const std::int64_t h = row % shape.heads, s = row / shape.heads % shape.seq, b = row / shape.heads / shape.seq;
    const std::int64_t visible = shape.causal ? std::max<std::int64_t>(shape.keys - shape.seq + s + 1, 0) : shape.keys;
    const std::int64_t kv_pitch = shape.kv_heads * d;
    const std::int64_t first = b * shape.keys * kv_pitch + h / (shape.heads / shape.kv_heads) * d;
    std::vector<double> scores;
    double max = -std::numeric_limits<double>::infinity(), score_error = 0.0, sum = 0.0;
    for (std::int64_t key = 0; key < visible; ++key) {
      double dot = 0.0, magnitude = 0.0;
      for (std::int64_t i = 0; i < d; ++i) {
        const double product =
            q[static_cast<std::size_t>(row * d + i)] * k[static_cast<std::size_t>(first + key * kv_pitch + i)];
        dot += product;
        magnitude += std::abs(product);
      }
      scores.push_back(dot * scale);
      max = std::max(max, dot * scale);
      if (!problem.exact_scores) {
        score_error = std::max(score_error, magnitude * scale * static_cast<double>(d) * 0x1p-23);
      }
    }
    for (double& score : scores) sum += score = std::exp(score - max);
    const double relative =
        Format<T>::unit_roundoff + static_cast<double>(visible) * 0x1p-23 + 2.0 * score_error + 0x1p-20;
    std::vector<double> total(static_cast<std::size_t>(d)), magnitude(total), plain(total);
    for (std::int64_t key = 0; key < visible; ++key) {
      const double weight = scores[static_cast<std::size_t>(key)] / sum;
      for (std::size_t i = 0; i < total.size(); ++i) {
        const double value = v[static_cast<std::size_t>(first + key * kv_pitch) + i];
        total[i] += weight * value;
        magnitude[i] += weight * std::abs(value);
        plain[i] += std::abs(value) / sum;
      }
    }
    for (std::size_t i = 0; i < total.size(); ++i) {
      const std::size_t at = static_cast<std::size_t>(row * d) + i;
      expected.value[at] = total[i];
      expected.slack[at] = relative * magnitude[i] + Format<T>::smallest * plain[i];
    }
  };
  parallel_ranges(shape.batch * shape.seq * shape.heads, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) set_row(row);
  });
  return expected;
}

/// What `values` are the last `row` columns of; the other columns are NaN.
template <typename T>
std::vector<T> with_columns_before(const std::vector<T>& values, std::int64_t row, std::int64_t stride) {
  const auto keys = static_cast<std::int64_t>(values.size()) / row;
  std::vector<T> wide(static_cast<std::size_t>(keys * stride), rounded<T>(std::nan("")));
  for (std::int64_t key = 0; key < keys; ++key) {
    std::copy_n(values.begin() + key * row, row, wide.begin() + (key + 1) * stride - row);
  }
  return wide;
}

/// One launch; k and v lie between NaNs. `offset` counts elements past an aligned base.
template <typename T>
std::vector<T> launch(const Problem<T>& problem, AttentionKernel kernel, std::int64_t offset = 0) {
  constexpr std::int64_t surroundings = 128 * 256;
  const std::int64_t row = problem.shape.key_stride(), stride = problem.shape.resolved_value_stride();
  const DeviceBuffer<T> q(problem.q, offset), k(problem.k, offset, surroundings),
      v(with_columns_before(problem.v, row, stride), offset, surroundings);
  DeviceBuffer<T> out(static_cast<std::int64_t>(problem.q.size()), offset, output_guard);
  kernels::cuda::attention(stream, kernel, Format<T>::dtype, q.data(), k.data(), v.data() + stride - row, out.data(),
                           problem.shape);
  const std::vector<T> result = out.read();
  CHECK(out.guards_intact());
  return result;
}

/// Those for aligned rows.
std::vector<AttentionKernel> aligned_kernels(std::int64_t head_dim) {
  std::vector<AttentionKernel> kernels = {AttentionKernel::portable};
  if (has_hopper() && (head_dim == 64 || head_dim == 128)) kernels.push_back(AttentionKernel::hopper);
  return kernels;
}

template <typename T>
void check(const Problem<T>& problem, const std::vector<AttentionKernel>& kernels, std::int64_t offset = 0) {
  const AttentionShape& s = problem.shape;
  const Expected expected = expect(problem);
  for (const AttentionKernel kernel : kernels) {
    CAPTURE(s.batch, s.seq, s.keys, s.heads, s.kv_heads, s.head_dim, s.causal, s.value_stride,
            name_of(Format<T>::dtype), offset, static_cast<int>(kernel));
    CHECK(mismatch(launch(problem, kernel, offset), expected.value, expected.slack) == "");
  }
}

template <typename T>
void check(const Problem<T>& problem) {
  check(problem, aligned_kernels(problem.shape.head_dim));
}

void check_both_types(const AttentionShape& shape) {
  check(Problem<__half>(shape));
  check(Problem<__nv_bfloat16>(shape));
}

void check_unaligned(const AttentionShape& shape, std::int64_t offset) {
  check(Problem<__half>(shape), {AttentionKernel::portable_unaligned}, offset);
  check(Problem<__nv_bfloat16>(shape), {AttentionKernel::portable_unaligned}, offset);
}

template <typename T>
bool same_bits(const T* a, const T* b, std::size_t n) {
  return std::memcmp(a, b, n * sizeof(T)) == 0;
}

}  // namespace

TEST_CASE("attention is right on both sides of its tiles, for every padded head_dim") {
  if (skip_without_device()) return;
  for (const std::int64_t seq : {1, 33, 65, 127, 128, 129}) {
    for (const std::int64_t head_dim : {8, 40, 64, 80, 96, 128, 160, 192, 256}) {
      check_both_types({.batch = 2, .seq = seq, .keys = seq, .heads = 4, .kv_heads = 2, .head_dim = head_dim});
      check_both_types(
          {.batch = 1, .seq = seq, .keys = seq, .heads = 2, .kv_heads = 2, .head_dim = head_dim, .causal = true});
    }
  }
}

TEST_CASE("attention with more blocks than multiprocessors takes large tiles, and is right there") {
  if (skip_without_device()) return;
  const std::int64_t heads = multiprocessors();
  for (const std::int64_t head_dim : {64, 72, 96, 128}) {
    for (const std::int64_t seq : {97, 128, 129}) {
      check_both_types(
          {.batch = 1, .seq = seq, .keys = seq + 30, .heads = heads, .kv_heads = heads, .head_dim = head_dim});
    }
    check_both_types(
        {.batch = 1, .seq = 150, .keys = 155, .heads = heads, .kv_heads = heads, .head_dim = head_dim, .causal = true});
    check_both_types({.batch = 2,
                      .seq = 45,
                      .keys = 145,
                      .heads = 3 * heads,
                      .kv_heads = heads,
                      .head_dim = head_dim,
                      .causal = true});
  }
}

TEST_CASE("attention with element loads takes any head_dim and any base") {
  if (skip_without_device()) return;
  for (const std::int64_t head_dim : {1, 2, 5, 33, 64, 100, 127, 130, 192, 255, 256}) {
    for (const std::int64_t seq : {1, 33, 65, 129}) {
      check_unaligned({.batch = 2, .seq = seq, .keys = seq + 3, .heads = 4, .kv_heads = 2, .head_dim = head_dim}, 1);
      check_unaligned(
          {.batch = 1, .seq = seq, .keys = seq, .heads = 1, .kv_heads = 1, .head_dim = head_dim, .causal = true}, 0);
    }
  }
}

TEST_CASE("attention reads values that lie apart, and nothing between them") {
  if (skip_without_device()) return;
  for (const std::int64_t head_dim : {8, 64, 96, 128, 192, 256}) {
    for (const std::int64_t seq : {1, 65, 129, 300}) {
      AttentionShape shape{.batch = 2, .seq = seq, .keys = seq + 3, .heads = 4, .kv_heads = 2, .head_dim = head_dim};
      shape.value_stride = (4 + 2 * 2) * head_dim;  // as a product of q, k and v at once leaves them
      check_both_types(shape);
      shape.causal = true;
      shape.value_stride = shape.key_stride() + 8;
      check_both_types(shape);
    }
  }
  for (const std::int64_t head_dim : {64, 96, 128}) {
    const std::int64_t heads = multiprocessors();
    check_both_types({.batch = 1,
                      .seq = 129,
                      .keys = 129,
                      .heads = heads,
                      .kv_heads = heads,
                      .head_dim = head_dim,
                      .value_stride = 3 * heads * head_dim});
  }
  for (const std::int64_t head_dim : {5, 64, 100, 128, 256}) {
    AttentionShape shape{.batch = 2, .seq = 65, .keys = 70, .heads = 4, .kv_heads = 2, .head_dim = head_dim};
    for (const std::int64_t others : {1, 8}) {
      shape.value_stride = shape.key_stride() + others;
      for (const std::int64_t offset : {0, 1}) check_unaligned(shape, offset);
    }
  }
}

TEST_CASE("attention aligns the last query with the last key") {
  if (skip_without_device()) return;
  for (const bool causal : {false, true}) {
    for (std::int64_t past = 0; past <= 5; ++past) {
      check_both_types(
          {.batch = 2, .seq = 4, .keys = past + 4, .heads = 4, .kv_heads = 4, .head_dim = 64, .causal = causal});
    }
    for (const std::int64_t past : {60, 63, 64, 100}) {
      check_both_types(
          {.batch = 1, .seq = 70, .keys = past + 70, .heads = 6, .kv_heads = 3, .head_dim = 128, .causal = causal});
    }
  }
}

TEST_CASE("attention of one new token reads every key of a long cache", "[large]") {
  if (skip_without_device()) return;
  for (const std::int64_t past : {2046, 2047, 2048, 5000}) {
    for (const bool causal : {false, true}) {
      check_both_types(
          {.batch = 1, .seq = 1, .keys = past + 1, .heads = 8, .kv_heads = 2, .head_dim = 128, .causal = causal});
      check_both_types(
          {.batch = 3, .seq = 1, .keys = past + 1, .heads = 4, .kv_heads = 4, .head_dim = 64, .causal = causal});
    }
  }
}

TEST_CASE("attention maps query heads to kv heads") {
  if (skip_without_device()) return;
  for (const auto& [heads, kv_heads] : {std::pair{32, 8}, {8, 1}, {6, 3}, {7, 7}, {130, 1}}) {
    for (const bool causal : {false, true}) {
      check_both_types(
          {.batch = 2, .seq = 70, .keys = 73, .heads = heads, .kv_heads = kv_heads, .head_dim = 64, .causal = causal});
    }
  }
}

TEST_CASE("attention keeps the order of blocks when k and v exceed L2", "[large]") {
  if (skip_without_device()) return;
  check(Problem<__half>({.batch = 2, .seq = 65, .keys = 2048, .heads = 40, .kv_heads = 40, .head_dim = 128}));
}

TEST_CASE("attention subtracts the row's maximum: logits of 60000 and -60000") {
  if (skip_without_device()) return;
  for (const std::int64_t keys : {129, 130}) {  // of the last slice one has the other sign, or one of two
    const AttentionShape shape{.batch = 1, .seq = 5, .keys = keys, .heads = 2, .kv_heads = 2, .head_dim = 64};
    for (const double sign : {1.0, -1.0}) {
      for (const int step : {0, 1, 2}) {  // all keys alike; every third one 1 lower; every third one of the other sign
        CAPTURE(sign, step);
        Problem<__half> problem(shape);
        problem.exact_scores = true;
        std::fill(problem.q.begin(), problem.q.end(), rounded<__half>(0.0));
        std::fill(problem.k.begin(), problem.k.end(), rounded<__half>(0.0));
        for (std::size_t i = 0; i < problem.q.size(); i += 64) {
          problem.q[i] = rounded<__half>(240.0);
          problem.q[i + 40] = rounded<__half>(8.0);
        }
        for (std::size_t i = 0, key = 0; i < problem.k.size(); i += 64, ++key) {
          const bool third = key % 3 == 0;
          problem.k[i] = rounded<__half>(step == 2 && third ? -sign * 2000.0 : sign * 2000.0);
          problem.k[i + 40] = rounded<__half>(step == 1 && third ? -1.0 : 0.0);
        }
        check(problem);
      }
    }
  }
}

TEST_CASE("attention of keys that grow from tile to tile rescales what came before") {
  if (skip_without_device()) return;
  const AttentionShape shape{.batch = 1, .seq = 70, .keys = 500, .heads = 2, .kv_heads = 1, .head_dim = 64};
  Problem<__half> growing(shape), shrinking(shape);
  for (std::size_t i = 0; i < growing.k.size(); ++i) {
    const double key = static_cast<double>(i / 64);
    growing.k[i] = rounded<__half>(to_double(growing.k[i]) * key / 100.0);
    shrinking.k[i] = rounded<__half>(to_double(shrinking.k[i]) * (500.0 - key) / 100.0);
  }
  check(growing);
  check(shrinking);
}

// Hopper's kernel keeps a row's maximum until a slice's sum of powers exceeds 2^15, and then makes the scores anew.
TEST_CASE("attention of scores that outgrow what was seen is right, in all rows or in one") {
  if (skip_without_device()) return;
  const auto check_growing = [](AttentionShape shape, std::int64_t every) {
    for_types<__half, __nv_bfloat16>([&]<typename T>() {
      Problem<T> problem(shape);
      const std::int64_t d = shape.head_dim;
      for (std::size_t i = 0; i < problem.k.size(); ++i) {  // from the last key to the first, as slices are taken
        const std::int64_t key = static_cast<std::int64_t>(i) / d / shape.kv_heads % shape.keys;
        problem.k[i] = rounded<T>(to_double(problem.k[i]) * static_cast<double>(shape.keys - key) / 60.0);
      }
      for (std::size_t i = 0; i < problem.q.size(); ++i) {
        const std::int64_t row = static_cast<std::int64_t>(i) / d / shape.heads;
        problem.q[i] = rounded<T>(to_double(problem.q[i]) * (row % every == 0 ? 1.0 : 0.01));
      }
      check(problem);
    });
  };
  for (const std::int64_t head_dim : {64, 128}) {
    for (const std::int64_t every : {1, 37}) {
      for (const bool causal : {false, true}) {
        for (const auto& [seq, kv_heads] : {std::pair{300, 1}, {256, 2}, {300, 2}}) {  // twins of heads, rows, none
          check_growing({.batch = 1,
                         .seq = seq,
                         .keys = 700,
                         .heads = 2,
                         .kv_heads = kv_heads,
                         .head_dim = head_dim,
                         .causal = causal},
                        every);
        }
      }
    }
    check_growing({.batch = 1, .seq = 65, .keys = 300, .heads = 300, .kv_heads = 150, .head_dim = head_dim}, 1);
  }
}

TEST_CASE("attention rows that see no key are 0") {
  if (skip_without_device()) return;
  for (const std::int64_t seq : {6, 70, 200}) {
    for (const std::int64_t keys : {1, 3, 5}) {
      for (const std::int64_t kv_heads : {2, 4}) {
        check_both_types(
            {.batch = 2, .seq = seq, .keys = keys, .heads = 4, .kv_heads = kv_heads, .head_dim = 64, .causal = true});
      }
      check_unaligned({.batch = 1, .seq = seq, .keys = keys, .heads = 1, .kv_heads = 1, .head_dim = 5, .causal = true},
                      1);
    }
  }
}

TEST_CASE("attention reads nothing of the batch after its own, not even with weight 0") {
  if (skip_without_device()) return;
  for (const std::int64_t head_dim : {64, 96, 128, 192, 256}) {
    const AttentionShape shape{
        .batch = 2, .seq = 33, .keys = 33, .heads = 2, .kv_heads = 2, .head_dim = head_dim, .causal = true};
    for (const AttentionKernel kernel : aligned_kernels(head_dim)) {
      Problem<__half> problem(shape);
      const std::vector<__half> clean = launch(problem, kernel);
      for (auto* tensor : {&problem.k, &problem.v}) {
        std::fill(tensor->begin() + static_cast<std::ptrdiff_t>(tensor->size() / 2), tensor->end(),
                  rounded<__half>(std::nan("")));
      }
      const std::vector<__half> poisoned = launch(problem, kernel);
      CHECK(same_bits(clean.data(), poisoned.data(), clean.size() / 2));
      CHECK(std::isnan(to_double(poisoned.back())));
    }
  }
}

TEST_CASE("attention of a batch does not depend on the other batches by a bit, nor on the launch") {
  if (skip_without_device()) return;
  for (const AttentionKernel kernel : aligned_kernels(128)) {
    for (const bool causal : {false, true}) {
      const AttentionShape shape{
          .batch = 3, .seq = 129, .keys = 140, .heads = 8, .kv_heads = 2, .head_dim = 128, .causal = causal};
      Problem<__nv_bfloat16> problem(shape);
      const auto first = launch(problem, kernel), second = launch(problem, kernel);
      CHECK(same_bits(first.data(), second.data(), first.size()));
      const std::size_t queries = problem.q.size() / 3, keys = problem.k.size() / 3;
      for (std::size_t i = 0; i < queries; ++i) problem.q[queries + i] = rounded<__nv_bfloat16>(0.25);
      for (std::size_t i = 0; i < keys; ++i) problem.k[keys + i] = problem.v[keys + i] = rounded<__nv_bfloat16>(3.0);
      const auto changed = launch(problem, kernel);
      CHECK(same_bits(first.data(), changed.data(), queries));
      CHECK_FALSE(same_bits(first.data() + queries, changed.data() + queries, queries));
      CHECK(same_bits(first.data() + 2 * queries, changed.data() + 2 * queries, queries));
    }
  }
}

TEST_CASE("Hopper attention is right with every number of slices in its ring, and from tile to tile") {
  if (skip_without_hopper()) return;
  for (const std::int64_t head_dim : {64, 128}) {
    for (const bool causal : {false, true}) {
      for (const std::int64_t keys : {127, 128, 129, 256, 257, 384, 512, 640, 700}) {
        for (const std::int64_t seq : {1, 64, 65, 130, 256}) {
          if (seq > keys) continue;
          for (const std::int64_t kv_heads : {1, 2}) {  // twins are two heads, or two tiles of rows
            check_both_types({.batch = 1,
                              .seq = seq,
                              .keys = keys,
                              .heads = 2,
                              .kv_heads = kv_heads,
                              .head_dim = head_dim,
                              .causal = causal});
          }
        }
      }
      check_both_types(
          {.batch = 2, .seq = 256, .keys = 300, .heads = 6, .kv_heads = 2, .head_dim = head_dim, .causal = causal});
      // Blocks take up to five tiles of one to four slices, in turning order: twins of rows, none, twins of heads.
      const std::int64_t kv_heads = multiprocessors() / 2 + 3;
      for (const auto& [seq, group] : {std::pair{500, 1}, {300, 1}, {300, 2}}) {
        check(Problem<__half>({.batch = 2,
                               .seq = seq,
                               .keys = seq,
                               .heads = kv_heads * group,
                               .kv_heads = kv_heads,
                               .head_dim = head_dim,
                               .causal = causal}),
              {AttentionKernel::hopper});
      }
    }
  }
}

TEST_CASE("attention refuses what its kernel cannot take") {
  if (skip_without_device()) return;
  const DeviceBuffer<__half> buffer(4096);
  DeviceBuffer<__half> out(4096);
  const auto call = [&](AttentionKernel kernel, DType dtype, std::int64_t head_dim, std::int64_t kv_heads,
                        std::int64_t offset, std::int64_t value_stride = 0) {
    kernels::cuda::attention(stream, kernel, dtype, buffer.data() + offset, buffer.data(), buffer.data(), out.data(),
                             {.heads = 2, .kv_heads = kv_heads, .head_dim = head_dim, .value_stride = value_stride});
  };
  CHECK_THROWS_AS(call(AttentionKernel::portable, DType::fp32, 64, 2, 0), std::invalid_argument);
  CHECK_THROWS_AS(call(AttentionKernel::portable, DType::fp16, 64, 2, 1), std::invalid_argument);
  CHECK_THROWS_AS(call(AttentionKernel::portable, DType::fp16, 60, 2, 0), std::invalid_argument);
  CHECK_THROWS_AS(call(AttentionKernel::portable_unaligned, DType::fp16, 257, 2, 0), std::invalid_argument);
  CHECK_THROWS_AS(call(AttentionKernel::portable, DType::fp16, 64, 3, 0), std::invalid_argument);
  CHECK_THROWS_AS(call(AttentionKernel::cpu, DType::fp16, 64, 2, 0), std::invalid_argument);
  CHECK_THROWS_AS(call(AttentionKernel::hopper, DType::fp16, 96, 2, 0), std::invalid_argument);
  CHECK_THROWS_AS(call(AttentionKernel::hopper, DType::fp16, 64, 2, 1), std::invalid_argument);
  CHECK_THROWS_AS(call(AttentionKernel::portable, DType::fp16, 64, 2, 0, 132), std::invalid_argument);
  CHECK_THROWS_AS(call(AttentionKernel::hopper, DType::fp16, 64, 2, 0, 132), std::invalid_argument);
  CHECK_NOTHROW(call(AttentionKernel::portable_unaligned, DType::fp16, 60, 2, 1));
  CHECK_NOTHROW(call(AttentionKernel::portable_unaligned, DType::fp16, 64, 2, 0, 132));
}
