// CPU attention: the naive steps, the softmax between the eigen variant's products, and the fused kernel, each against
// plain loops in double.
#include <stdexcept>

#include "kernels/elementwise.h"
#include "kernels/fused.h"
#include "kernels/primitives.h"
#include "tests/cpu_kernels.h"

namespace fusebench::cpu_test {
namespace {

using kernels::AttentionKernel;
using kernels::cpu_elementwise;
using kernels::cpu_fused;
using kernels::cpu_primitives;

constexpr DType fp32 = DType::fp32;

const std::vector<AttentionShape> shapes{
    {.batch = 1, .seq = 1, .keys = 1, .heads = 1, .kv_heads = 1, .head_dim = 1},
    {.batch = 2, .seq = 33, .keys = 33, .heads = 4, .kv_heads = 4, .head_dim = 64},
    {.batch = 2, .seq = 65, .keys = 65, .heads = 4, .kv_heads = 2, .head_dim = 64, .causal = true},
    {.batch = 1, .seq = 1, .keys = 2048, .heads = 3, .kv_heads = 3, .head_dim = 80, .causal = true},
    {.batch = 1, .seq = 1, .keys = 2049, .heads = 6, .kv_heads = 3, .head_dim = 80},
    {.batch = 2, .seq = 7, .keys = 131, .heads = 6, .kv_heads = 3, .head_dim = 6, .causal = true},
    {.batch = 1, .seq = 70, .keys = 300, .heads = 6, .kv_heads = 3, .head_dim = 256, .causal = true},
    {.batch = 1, .seq = 129, .keys = 257, .heads = 8, .kv_heads = 1, .head_dim = 2, .causal = true},
    {.batch = 3, .seq = 5, .keys = 3, .heads = 2, .kv_heads = 1, .head_dim = 10, .causal = true},  // rows without keys
    {.batch = 1, .seq = 4, .keys = 4, .heads = 2, .kv_heads = 1, .head_dim = 2, .causal = true},
    {.batch = 1, .seq = 4, .keys = 5, .heads = 2, .kv_heads = 1, .head_dim = 2, .causal = true},
    {.batch = 1, .seq = 4, .keys = 6, .heads = 2, .kv_heads = 1, .head_dim = 2, .causal = true},
    {.batch = 1, .seq = 4, .keys = 9, .heads = 2, .kv_heads = 1, .head_dim = 2, .causal = true},
};

std::int64_t score_rows(const AttentionShape& shape) { return shape.batch * shape.heads * shape.seq; }
std::int64_t query_size(const AttentionShape& shape) { return score_rows(shape) * shape.head_dim; }
std::int64_t key_size(const AttentionShape& shape) {
  return shape.batch * shape.keys * shape.kv_heads * shape.head_dim;
}

struct Inputs {
  Floats q;
  Floats k;
  Floats v;
};

Inputs draw_inputs(const AttentionShape& shape) {
  return {draw(query_size(shape), 1, 2.0F), draw(key_size(shape), 2), draw(key_size(shape), 3)};
}

// What one query sees: offsets of its row in q, and of its visible keys in k and v.
struct View {
  std::int64_t query;
  std::vector<std::int64_t> keys;
};

// In the order of the scores' rows: batch, head, query.
std::vector<View> views(const AttentionShape& shape) {
  std::vector<View> all;
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t h = 0; h < shape.heads; ++h) {
      for (std::int64_t s = 0; s < shape.seq; ++s) {
        View view{((b * shape.seq + s) * shape.heads + h) * shape.head_dim, {}};
        for (std::int64_t key = 0; key < shape.keys; ++key) {
          const bool visible = !shape.causal || shape.keys - 1 - key >= shape.seq - 1 - s;
          const std::int64_t kv_head = h * shape.kv_heads / shape.heads;
          if (visible) view.keys.push_back(((b * shape.keys + key) * shape.kv_heads + kv_head) * shape.head_dim);
        }
        all.push_back(view);
      }
    }
  }
  return all;
}

Doubles view_scores(const AttentionShape& shape, const Inputs& in, const View& view) {
  Doubles scores;
  for (const std::int64_t key : view.keys) {
    double sum = 0;
    for (std::int64_t d = 0; d < shape.head_dim; ++d) {
      sum += static_cast<double>(in.q[view.query + d]) * static_cast<double>(in.k[key + d]);
    }
    scores.push_back(sum / std::sqrt(static_cast<double>(shape.head_dim)));
  }
  return scores;
}

Doubles softmax(Doubles scores) {
  if (scores.empty()) return scores;
  const double max = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - max);
  for (double& score : scores) score /= sum;
  return scores;
}

Doubles expected_attention(const AttentionShape& shape, const Inputs& in) {
  Doubles out(static_cast<std::size_t>(query_size(shape)), 0.0);
  for (const View& view : views(shape)) {
    const Doubles weights = softmax(view_scores(shape, in, view));
    for (std::size_t i = 0; i < view.keys.size(); ++i) {
      for (std::int64_t d = 0; d < shape.head_dim; ++d) {
        out[static_cast<std::size_t>(view.query + d)] += weights[i] * static_cast<double>(in.v[view.keys[i] + d]);
      }
    }
  }
  return out;
}

// [batch, heads, seq, keys]; visible keys come first in a row
Doubles expected_scores(const AttentionShape& shape, const Inputs& in, bool probabilities) {
  Doubles all;
  for (const View& view : views(shape)) {
    Doubles row = view_scores(shape, in, view);
    if (probabilities) row = softmax(row);
    row.resize(static_cast<std::size_t>(shape.keys), probabilities ? 0.0 : -std::numeric_limits<double>::infinity());
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

struct NaiveRun {
  Floats scores;
  Floats probabilities;
  Floats out;
};

NaiveRun run_naive(const AttentionShape& shape, const Inputs& in) {
  const auto& steps = cpu_primitives();
  const std::int64_t rows = score_rows(shape);
  NaiveRun run{Floats(rows * shape.keys), Floats(rows * shape.keys), Floats(query_size(shape))};
  Floats max(rows);
  Floats weights(rows * shape.keys);
  Floats sum(rows);
  steps.scores(exec, fp32, in.q.data(), in.k.data(), run.scores.data(), shape);
  steps.row_max(exec, run.scores.data(), max.data(), rows, shape.keys);
  steps.exp_minus_max(exec, fp32, run.scores.data(), max.data(), weights.data(), rows, shape.keys);
  steps.row_sum(exec, fp32, weights.data(), sum.data(), rows, shape.keys);
  steps.divide_rows(exec, fp32, weights.data(), sum.data(), run.probabilities.data(), rows, shape.keys);
  steps.weighted_values(exec, fp32, run.probabilities.data(), in.v.data(), run.out.data(), shape);
  for (const Floats* step : {&max, &weights, &sum}) REQUIRE(step->guards_intact());
  return run;
}

Floats naive_attention(const AttentionShape& shape, const Inputs& in) { return run_naive(shape, in).out; }

// Values end their rows, with NaN before them where the stride leaves room.
Floats fused_attention(const AttentionShape& shape, const Inputs& in) {
  const std::int64_t row = shape.key_stride();
  const std::int64_t stride = shape.resolved_value_stride();
  Floats v(shape.batch * shape.keys * stride);
  for (std::int64_t key = 0; key < shape.batch * shape.keys; ++key) {
    std::copy_n(in.v.data() + key * row, row, v.data() + (key + 1) * stride - row);
  }
  Floats out(query_size(shape));
  cpu_fused().attention(exec, AttentionKernel::cpu, fp32, in.q.data(), in.k.data(), v.data() + stride - row, out.data(),
                        shape);
  return out;
}

const std::vector<decltype(&naive_attention)> attentions{naive_attention, fused_attention};

}  // namespace

TEST_CASE("CPU attention") {
  for (const AttentionShape& shape : shapes) {
    INFO("seq " << shape.seq << ", keys " << shape.keys << ", head_dim " << shape.head_dim);
    const Inputs in = draw_inputs(shape);
    for (const auto attention : attentions) require_close(attention(shape, in), expected_attention(shape, in), 4e-6);
  }
}

TEST_CASE("CPU attention reads values that lie apart, and nothing between them") {
  for (AttentionShape shape : shapes) {
    const Inputs in = draw_inputs(shape);
    const Doubles expected = expected_attention(shape, in);
    for (const std::int64_t stride : {shape.key_stride() + 1, 3 * shape.key_stride()}) {
      shape.value_stride = stride;
      INFO("seq " << shape.seq << ", keys " << shape.keys << ", head_dim " << shape.head_dim << ", stride " << stride);
      require_close(fused_attention(shape, in), expected, 4e-6);
    }
  }
}

TEST_CASE("CPU attention's scores and probabilities") {
  for (const AttentionShape& shape : shapes) {
    INFO("seq " << shape.seq << ", keys " << shape.keys << ", head_dim " << shape.head_dim);
    const Inputs in = draw_inputs(shape);
    const NaiveRun naive = run_naive(shape, in);
    require_close(naive.scores, expected_scores(shape, in, false), 4e-6);
    require_close(naive.probabilities, expected_scores(shape, in, true), 4e-6);

    Floats unmasked = naive.scores;  // masked_softmax must not depend on what lies behind the mask
    std::replace(unmasked.data(), unmasked.data() + unmasked.size(), -infinity, 1e30F);
    Floats probabilities(unmasked.size());
    cpu_elementwise().masked_softmax(exec, fp32, unmasked.data(), probabilities.data(), shape);
    require_close(probabilities, expected_scores(shape, in, true), 4e-6);
  }
}

TEST_CASE("CPU attention with logits of +-60000") {
  const AttentionShape shape{.batch = 1, .seq = 3, .keys = 200, .heads = 2, .kv_heads = 2, .head_dim = 4};
  Inputs in = draw_inputs(shape);
  for (std::int64_t i = 0; i < in.q.size(); ++i) in.q[i] = i % shape.head_dim == 0 ? 120000.0F : 0.0F;
  for (std::int64_t i = 0; i < in.k.size(); ++i) in.k[i] = i % 3 == 0 ? 1.0F : -1.0F;
  for (const auto attention : attentions) require_close(attention(shape, in), expected_attention(shape, in), 4e-6);
}

TEST_CASE("CPU attention takes nothing from masked keys, infinite ones included") {
  const AttentionShape shape{
      .batch = 1, .seq = 40, .keys = 140, .heads = 4, .kv_heads = 2, .head_dim = 8, .causal = true};
  Inputs in = draw_inputs(shape);
  const Doubles clean = expected_attention(shape, in);
  const std::int64_t stride = shape.kv_heads * shape.head_dim;
  const std::int64_t hidden_from_all_but_last = (shape.keys - 1) * stride;
  for (std::int64_t i = 0; i < stride; ++i) {
    in.k[hidden_from_all_but_last + i] = nan;
    in.v[hidden_from_all_but_last + i] = i % 2 == 0 ? infinity : nan;
  }
  const std::int64_t last_query = (shape.seq - 1) * shape.heads * shape.head_dim;
  for (const auto attention : attentions) {
    const Floats out = attention(shape, in);
    Doubles expected = clean;
    std::fill(expected.begin() + last_query, expected.end(), std::numeric_limits<double>::quiet_NaN());
    require_close(out, expected, 4e-6);
  }
}

TEST_CASE("CPU attention passes NaN on") {
  const AttentionShape shape{.batch = 1, .seq = 2, .keys = 150, .heads = 2, .kv_heads = 2, .head_dim = 4};
  Inputs in = draw_inputs(shape);
  Doubles expected = expected_attention(shape, in);
  in.q[1] = nan;
  std::fill_n(expected.begin(), shape.head_dim, std::numeric_limits<double>::quiet_NaN());
  for (const auto attention : attentions) require_close(attention(shape, in), expected, 4e-6);
}

TEST_CASE("CPU attention of a batch does not depend on the others") {
  const AttentionShape shape{.batch = 3, .seq = 9, .keys = 30, .heads = 4, .kv_heads = 2, .head_dim = 16};
  const Inputs in = draw_inputs(shape);
  Inputs changed = in;
  std::fill_n(changed.q.data(), query_size(shape) / 3, 7.0F);
  std::fill_n(changed.k.data(), key_size(shape) / 3, -7.0F);
  const std::int64_t first_batch = query_size(shape) / 3;
  for (const auto attention : attentions) {
    const Floats before = attention(shape, in);
    const Floats after = attention(shape, changed);
    REQUIRE(std::equal(before.data() + first_batch, before.data() + before.size(), after.data() + first_batch));
    REQUIRE_FALSE(std::equal(before.data(), before.data() + first_batch, after.data()));
  }
}

TEST_CASE("CPU attention gives the same bits on any number of threads") {
  const AttentionShape shape{
      .batch = 2, .seq = 70, .keys = 300, .heads = 6, .kv_heads = 3, .head_dim = 80, .causal = true};
  const Inputs in = draw_inputs(shape);
  require_same_on_any_threads([&] {
    const NaiveRun naive = run_naive(shape, in);
    Floats probabilities(naive.scores.size());
    cpu_elementwise().masked_softmax(exec, fp32, naive.scores.data(), probabilities.data(), shape);
    return std::vector<Floats>{naive.scores, naive.probabilities, naive.out, probabilities, fused_attention(shape, in)};
  });
}

TEST_CASE("CPU attention refuses the kernels and dtypes of GPUs, naive attention values that lie apart") {
  Floats x(1, 1.0F);
  float* p = x.data();
  const auto& fused = cpu_fused();
  REQUIRE_THROWS_AS(fused.attention(exec, AttentionKernel::portable, fp32, p, p, p, p, {}), std::invalid_argument);
  REQUIRE_THROWS_AS(fused.attention(exec, AttentionKernel::cpu, DType::fp16, p, p, p, p, {}), std::invalid_argument);
  REQUIRE_THROWS_AS(cpu_primitives().weighted_values(exec, fp32, p, p, p, {.value_stride = 2}), std::invalid_argument);
}

}  // namespace fusebench::cpu_test
