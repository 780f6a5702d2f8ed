// The oracle against plain loops, its choice of rows, and the inputs of CASES.md that concern mathematics.
#include "harness/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "reference/parallel.h"
#include "tests/catch.h"
#include "tests/loops.h"

using namespace fusebench;
using fusebench::testing::Loops;
using fusebench::testing::Values;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

InputSet drawn(const Case& c) { return read_inputs(spec_of(c), DrawnSource(c)); }
std::vector<std::int64_t> every_row(const Case& c) { return choose_rows(c, {.full = true}); }

struct Shape {
  std::int64_t batch, seq, past, heads, kv_heads, head_dim;
  bool causal;
  Pairing rope;
};

const Shape kShapes[] = {
    {2, 5, 0, 4, 4, 8, false, Pairing::interleaved}, {1, 7, 3, 8, 1, 6, true, Pairing::half},
    {3, 4, 5, 6, 3, 10, true, Pairing::interleaved}, {2, 1, 9, 32, 8, 4, false, Pairing::half},
    {1, 6, 0, 8, 8, 2, true, Pairing::half},         {1, 1, 0, 1, 1, 2, true, Pairing::interleaved},
};

Case case_of(Op op, const Shape& s, DType dtype) {
  return canonical({.op = op,
                    .dtype = dtype,
                    .dim = s.heads * s.head_dim,
                    .hidden = 37,
                    .heads = s.heads,
                    .kv_heads = s.kv_heads,
                    .batch = s.batch,
                    .seq = s.seq,
                    .past = s.past,
                    .causal = s.causal,
                    .rope = s.rope});
}

double relative_l2(const Values& got, const Values& want) {
  REQUIRE(got.size() == want.size());
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  return norm == 0 ? error : std::sqrt(error / norm);
}

double unit_roundoff(DType dtype) { return dtype == DType::fp16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : 0x1p-24; }

void put(HostTensor& tensor, std::int64_t row, std::int64_t col, double value) {
  store(tensor.dtype, {&value, 1}, tensor.data.data() + (row * tensor.cols + col) * bytes_of(tensor.dtype));
}
void fill(HostTensor& tensor, double value) {
  for (std::int64_t row = 0; row < tensor.rows; ++row) {
    for (std::int64_t col = 0; col < tensor.cols; ++col) put(tensor, row, col, value);
  }
}

bool is_input(const TensorSpec& spec) { return spec.role == Role::input; }

}  // namespace

TEST_CASE("every op agrees with plain loops", "[oracle]") {
  for (const Op op : kOps) {
    for (const Shape& shape : kShapes) {
      for (const DType dtype : {DType::fp16, DType::bf16, DType::fp32}) {
        const Case c = case_of(op, shape, dtype);
        INFO(case_id(c));
        const InputSet inputs = drawn(c);
        const Expected expected = compute_expected(c, inputs, every_row(c));
        const Loops exact{.c = c, .inputs = &inputs};
        Loops rounding = exact;
        rounding.stored = [dtype](double x) { return round_to(dtype, x); };
        rounding.statistic = [](double x) { return round_to(DType::fp32, x); };
        const std::map<std::string, Values> want = exact.outputs();
        const std::map<std::string, Values> want_rounded = rounding.outputs();

        std::size_t outputs = 0;
        for (const TensorSpec& spec : spec_of(c).tensors) {
          if (is_input(spec)) continue;
          const ExpectedTensor& got = expected.tensors.at(outputs++);
          CHECK(got.name == spec.name);
          CHECK(got.cols == spec.cols);
          CHECK(relative_l2(got.expected, want.at(spec.name)) < 1e-13);

          // A sum in another order may fall on the other side of a rounding, now and then.
          const Values& replica = want_rounded.at(spec.name);
          std::size_t different = 0;
          for (std::size_t i = 0; i < replica.size(); ++i) different += got.replica[i] != replica[i] ? 1 : 0;
          CHECK(different * 50 <= replica.size());
          CHECK(relative_l2(got.replica, replica) < unit_roundoff(dtype));
          CHECK(relative_l2(got.replica, got.expected) < 20 * unit_roundoff(dtype));
          // With a single token rope turns by 0, and attention picks the one value.
          if (c.tokens() > 1) CHECK(got.replica != got.expected);
          CHECK(std::all_of(got.replica.begin(), got.replica.end(),
                            [&](double value) { return round_to(dtype, value) == value; }));
        }
        CHECK(outputs == expected.tensors.size());
      }
    }
  }
}

TEST_CASE("inputs drawn as the seed draws them are as right", "[oracle]") {
  Case c = case_of(Op::block, kShapes[2], DType::bf16);
  c.inputs = Inputs::seed;
  const InputSet inputs = drawn(c);
  const Expected expected = compute_expected(c, inputs, every_row(c));
  const std::map<std::string, Values> want = Loops{.c = c, .inputs = &inputs}.outputs();
  for (const ExpectedTensor& got : expected.tensors) CHECK(relative_l2(got.expected, want.at(got.name)) < 1e-13);
}

TEST_CASE("an op with a mistake in it is far outside of what rounding does", "[oracle]") {
  const Shape shape{2, 24, 3, 6, 3, 16, true, Pairing::interleaved};
  for (const DType dtype : {DType::fp16, DType::bf16}) {
    const auto check = [&](Op op, const char* mistake, const auto& make) {
      const Case c = case_of(op, shape, dtype);
      INFO(case_id(c) << ": " << mistake);
      const InputSet inputs = drawn(c);
      const Expected expected = compute_expected(c, inputs, every_row(c));
      Loops loops{.c = c, .inputs = &inputs};
      make(loops);
      const std::map<std::string, Values> wrong = loops.outputs();
      double worst = 0;  // of the outputs, in units of the replica's error
      for (const ExpectedTensor& tensor : expected.tensors) {
        const double replica = relative_l2(tensor.replica, tensor.expected);
        worst = std::max(worst, relative_l2(wrong.at(tensor.name), tensor.expected) / replica);
      }
      CHECK(worst > 4);
    };
    const auto other_pairing = [](Loops& l) { l.c.rope = Pairing::half; };
    const auto next_position = [](Loops& l) { l.position_shift = 1; };
    for (const Op op : {Op::rope, Op::qkv, Op::block}) {
      check(op, "the other pairing", other_pairing);
      check(op, "the next token's angles", next_position);
    }
    for (const Op op : {Op::attention, Op::block}) {
      check(op, "no mask", [](Loops& l) { l.c.causal = false; });
      check(op, "sees one key too many", [](Loops& l) { l.mask_shift = 1; });
      check(op, "does not see itself", [](Loops& l) { l.mask_shift = -1; });
      check(op, "mask aligned with the first key", [](Loops& l) { l.mask_shift = -l.c.past; });
      check(op, "KV head by modulo", [](Loops& l) { l.kv_head_by_modulo = true; });
      check(op, "scores not scaled", [](Loops& l) { l.divide_by_root_of_dim = false; });
    }
    for (const Op op : {Op::attn_out, Op::mlp, Op::block}) {
      check(op, "no residual", [](Loops& l) { l.attention_residual = l.mlp_residual = false; });
    }
    for (const Op op : {Op::rmsnorm, Op::add_rmsnorm, Op::qkv, Op::mlp, Op::block}) {
      check(op, "norm weight ignored", [](Loops& l) { l.norm_weight = false; });
    }
    check(Op::mlp, "gate and up swapped", [](Loops& l) { l.gate_and_up_swapped = true; });
  }
}

TEST_CASE("sampled rows are the same rows of the whole", "[oracle]") {
  for (const Op op : kOps) {
    for (const bool causal : {false, true}) {
      Case c = case_of(op, {3, 50, 4, 6, 3, 16, causal, Pairing::half}, DType::fp32);
      c.dtype = DType::fp16;
      INFO(case_id(c));
      const InputSet inputs = drawn(c);
      const Expected whole = compute_expected(c, inputs, every_row(c));
      const std::vector<std::int64_t> rows = {149, 0, 77, 33, 77};  // any order, also twice, not every batch's last
      const Expected some = compute_expected(c, inputs, rows);
      CHECK(some.rows == rows);
      REQUIRE(some.tensors.size() == whole.tensors.size());
      for (std::size_t t = 0; t < some.tensors.size(); ++t) {
        const auto cols = static_cast<std::size_t>(some.tensors[t].cols);
        for (std::size_t i = 0; i < rows.size(); ++i) {
          const auto row = [&](const Values& values, std::size_t at) {
            return Values(values.begin() + static_cast<std::ptrdiff_t>(at * cols),
                          values.begin() + static_cast<std::ptrdiff_t>((at + 1) * cols));
          };
          const auto at = static_cast<std::size_t>(rows[i]);
          CHECK(relative_l2(row(some.tensors[t].expected, i), row(whole.tensors[t].expected, at)) < 1e-13);
          CHECK(relative_l2(row(some.tensors[t].replica, i), row(whole.tensors[t].replica, at)) < 1e-3);
        }
      }
    }
  }
}

TEST_CASE("more rows than are computed at a time are all right", "[oracle]") {
  for (const Op op : {Op::swiglu, Op::block}) {
    const Case c = case_of(op, {2, 300, 0, 2, 1, 8, true, Pairing::half}, DType::bf16);
    INFO(case_id(c));
    const InputSet inputs = drawn(c);
    const Expected expected = compute_expected(c, inputs, every_row(c));
    const Loops loops{.c = c, .inputs = &inputs};
    const ExpectedTensor& got = expected.tensors.front();
    CHECK(relative_l2(got.expected, loops.outputs().at(got.name)) < 1e-13);
  }
}

TEST_CASE("the number of threads changes no bit", "[oracle]") {
  for (const Op op : {Op::rmsnorm, Op::attention, Op::block}) {
    const Case c = case_of(op, {2, 40, 3, 6, 3, 32, true, Pairing::half}, DType::fp16);
    INFO(case_id(c));
    const InputSet inputs = drawn(c);
    const auto with = [&](unsigned threads) {
      const reference::ThreadLimit limit(threads);
      return compute_expected(c, inputs, every_row(c));
    };
    const Expected one = with(1);
    for (const unsigned threads : {2U, 3U, 17U}) {
      const Expected many = with(threads);
      for (std::size_t t = 0; t < one.tensors.size(); ++t) {
        CHECK(many.tensors[t].expected == one.tensors[t].expected);
        CHECK(many.tensors[t].replica == one.tensors[t].replica);
      }
    }
  }
}

TEST_CASE("no rows give empty outputs; rows that are not there, and inputs that lack a tensor, are refused",
          "[oracle]") {
  const Case c = case_of(Op::block, kShapes[1], DType::fp16);
  InputSet inputs = drawn(c);
  const Expected none = compute_expected(c, inputs, {});
  REQUIRE(none.tensors.size() == 3);
  CHECK(none.tensors[0].expected.empty());
  CHECK_THROWS_AS(compute_expected(c, inputs, {c.tokens()}), std::out_of_range);
  CHECK_THROWS_AS(compute_expected(c, inputs, {-1}), std::out_of_range);
  inputs.erase("w_up");
  CHECK_THROWS_AS(compute_expected(c, inputs, {0}), std::invalid_argument);
}

// CASES.md

TEST_CASE("case 2: a causal query's last key is its own, after any past", "[oracle][cases]") {
  for (std::int64_t past = 0; past <= 5; ++past) {
    const Case c = case_of(Op::attention, {1, 4, past, 1, 1, 16, true, Pairing::half}, DType::fp16);
    InputSet inputs = drawn(c);
    fill(inputs.at("q"), 0);  // every visible key weighs the same
    fill(inputs.at("v"), 0);
    for (std::int64_t key = 0; key < c.keys(); ++key) put(inputs.at("v"), key, key, 1);
    const Expected expected = compute_expected(c, inputs, every_row(c));
    for (std::int64_t s = 0; s < 4; ++s) {
      for (std::int64_t i = 0; i < 16; ++i) {
        const double want = i <= past + s ? 1.0 / static_cast<double>(past + s + 1) : 0.0;
        CHECK(expected.tensors[0].expected[static_cast<std::size_t>(s * 16 + i)] == Approx(want).epsilon(1e-14));
      }
    }
  }
}

TEST_CASE("case 3: one new token after 2047 and 2048 others", "[oracle][cases]") {
  for (const std::int64_t past : {2047, 2048}) {
    const Case c = case_of(Op::attention, {1, 1, past, 4, 2, 16, true, Pairing::half}, DType::bf16);
    InputSet inputs = drawn(c);
    const Expected expected = compute_expected(c, inputs, {0});
    CHECK(relative_l2(expected.tensors[0].expected, Loops{.c = c, .inputs = &inputs}.outputs().at("out")) < 1e-13);

    fill(inputs.at("q"), 0);
    fill(inputs.at("v"), 0);
    put(inputs.at("v"), past, 3, 1);  // the new token's own value
    const Expected mean = compute_expected(c, inputs, {0});
    CHECK(mean.tensors[0].expected[3] == Approx(1.0 / static_cast<double>(past + 1)).epsilon(1e-13));
  }
}

TEST_CASE("case 4: logits of +-60000", "[oracle][cases]") {
  const Case c = case_of(Op::attention, {1, 3, 0, 1, 1, 4, false, Pairing::half}, DType::fp16);
  InputSet inputs = drawn(c);
  fill(inputs.at("q"), 0);
  fill(inputs.at("k"), 0);
  for (std::int64_t row = 0; row < 3; ++row) put(inputs.at("q"), row, 0, row == 1 ? -400 : 400);
  const double keys[] = {300, -300, 300};  // 400 · 300 / sqrt(4) = 60000
  for (std::int64_t row = 0; row < 3; ++row) put(inputs.at("k"), row, 0, keys[row]);
  for (std::int64_t row = 0; row < 3; ++row) {
    for (std::int64_t col = 0; col < 4; ++col) put(inputs.at("v"), row, col, static_cast<double>(1 + row));
  }
  const Expected expected = compute_expected(c, inputs, every_row(c));
  for (const Values& got : {expected.tensors[0].expected, expected.tensors[0].replica}) {
    CHECK(got[0] == 2);  // the mean of keys 0 and 2
    CHECK(got[4] == 2);  // key 1 alone
    CHECK(got[8] == 2);
  }
  put(inputs.at("v"), 2, 0, 5);
  CHECK(compute_expected(c, inputs, {0}).tensors[0].expected[0] == 3);

  // Equal logits, however large: the mean of v.
  for (std::int64_t row = 0; row < 3; ++row) put(inputs.at("k"), row, 0, 300);
  CHECK(compute_expected(c, inputs, {1}).tensors[0].expected[1] == Approx(2).epsilon(1e-15));
}

TEST_CASE("cases 5 and 6: rmsnorm of large, all-zero and one-sided rows", "[oracle][cases]") {
  const Case c = canonical({.op = Op::rmsnorm, .dtype = DType::fp16, .dim = 64, .seq = 3});
  InputSet inputs = drawn(c);
  fill(inputs.at("x"), 0);
  fill(inputs.at("weight"), 2);
  for (std::int64_t col = 0; col < 64; ++col) put(inputs.at("x"), 0, col, col % 2 == 0 ? 300 : -300);
  put(inputs.at("x"), 2, 5, 65504);
  const ExpectedTensor y = compute_expected(c, inputs, every_row(c)).tensors[0];
  for (std::size_t col = 0; col < 64; ++col) {
    CHECK(y.expected[col] == Approx(col % 2 == 0 ? 2 : -2).epsilon(1e-9));
    CHECK(y.replica[col] == (col % 2 == 0 ? 2 : -2));  // squares overflow fp16, not fp32
    CHECK(y.expected[64 + col] == 0);
    CHECK(y.replica[64 + col] == 0);
    CHECK(y.expected[128 + col] == Approx(col == 5 ? 2 * std::sqrt(64.0) : 0).epsilon(1e-9));
    CHECK(std::isfinite(y.replica[128 + col]));
  }
  // eps inside of the root: x = 1e-3 everywhere has a mean square of 1e-6, beside eps = 1e-5
  fill(inputs.at("x"), 1e-3);
  const double x = round_to(DType::fp16, 1e-3);
  CHECK(compute_expected(c, inputs, {1}).tensors[0].expected[0] == Approx(2 * x / std::sqrt(x * x + 1e-5)));
}

TEST_CASE("case 8 and 9: rope turns by the real angles, at position 1 in either pairing", "[oracle][cases]") {
  for (const Pairing pairing : {Pairing::interleaved, Pairing::half}) {
    for (const std::int64_t position : {0, 1, 4095, 131071}) {
      const Case c = case_of(Op::rope, {1, 1, position, 1, 1, 8, false, pairing}, DType::fp32);
      InputSet inputs = drawn(c);
      fill(inputs.at("q"), 0);
      const std::int64_t pair = 1;  // turns by position · theta^(-2/8)
      const std::int64_t first = pairing == Pairing::half ? pair : 2 * pair;
      const std::int64_t second = pairing == Pairing::half ? pair + 4 : 2 * pair + 1;
      put(inputs.at("q"), 0, first, 1);
      const ExpectedTensor q = compute_expected(c, inputs, {0}).tensors[0];
      const double angle = static_cast<double>(position) * std::pow(500000.0, -0.25);
      for (std::int64_t i = 0; i < 8; ++i) {
        const double want = i == first ? std::cos(angle) : i == second ? std::sin(angle) : 0;
        CHECK(std::abs(q.expected[static_cast<std::size_t>(i)] - want) < 1e-7);
      }
    }
  }
}

TEST_CASE("case 10: swiglu where sigmoid vanishes or overflows", "[oracle][cases]") {
  const Case c = canonical({.op = Op::swiglu, .dtype = DType::fp16, .hidden = 8, .seq = 2});
  InputSet inputs = drawn(c);
  const double g[] = {-kInfinity, -1e4, -65504, 65504, 0x1p-24, -0x1p-24, kInfinity, 0};
  for (std::int64_t col = 0; col < 8; ++col) {
    put(inputs.at("g"), 0, col, g[col]);
    put(inputs.at("u"), 0, col, -1);
    put(inputs.at("g"), 1, col, -kInfinity);
    put(inputs.at("u"), 1, col, col % 2 == 0 ? 65504 : -65504);
  }
  const ExpectedTensor y = compute_expected(c, inputs, every_row(c)).tensors[0];
  const double want[] = {0, 0, 0, -65504, -0x1p-25, 0x1p-25, -kInfinity, 0};
  for (std::size_t col = 0; col < 8; ++col) {
    INFO("g = " << g[col]);
    if (std::isinf(want[col])) {
      CHECK(y.expected[col] == want[col]);
    } else {
      CHECK(std::abs(y.expected[col] - want[col]) <= 1e-7 * std::abs(want[col]));
    }
    // Half of the least subnormal falls to 0 in one storage and not in the other.
    const double replica = y.replica[col];
    CHECK((replica == want[col] || std::abs(replica - want[col]) <= 0x1p-25));
    CHECK(y.expected[8 + col] == 0);
    CHECK(y.replica[8 + col] == 0);
  }
}

TEST_CASE("case 13: query heads share KV heads in consecutive groups", "[oracle][cases]") {
  const std::pair<std::int64_t, std::int64_t> groups[] = {{32, 8}, {8, 1}, {6, 3}};
  for (const auto& [heads, kv_heads] : groups) {
    const Case c = case_of(Op::attention, {2, 3, 2, heads, kv_heads, 4, false, Pairing::half}, DType::fp16);
    InputSet inputs = drawn(c);
    HostTensor& v = inputs.at("v");
    for (std::int64_t row = 0; row < v.rows; ++row) {
      for (std::int64_t col = 0; col < v.cols; ++col) {
        const std::int64_t kv_head = col / 4;
        put(v, row, col, static_cast<double>(kv_head));
      }
    }
    const ExpectedTensor out = compute_expected(c, inputs, every_row(c)).tensors[0];
    for (std::size_t i = 0; i < out.expected.size(); ++i) {
      const std::int64_t head = static_cast<std::int64_t>(i) % c.dim / 4;
      const std::int64_t kv_head = head / (heads / kv_heads);
      CHECK(out.expected[i] == Approx(static_cast<double>(kv_head)).margin(1e-13));
    }
  }
}

TEST_CASE("case 15: one batch's outputs depend on no other batch", "[oracle][cases]") {
  const Case c = case_of(Op::block, {3, 5, 2, 4, 2, 8, true, Pairing::half}, DType::fp16);
  InputSet inputs = drawn(c);
  const Expected before = compute_expected(c, inputs, every_row(c));
  for (std::int64_t col = 0; col < c.dim; ++col) put(inputs.at("x"), 7, col, kInfinity);  // of batch 1
  const Expected after = compute_expected(c, inputs, every_row(c));
  for (std::size_t t = 0; t < before.tensors.size(); ++t) {
    const auto batch = 5 * before.tensors[t].cols;
    const auto same = [&](const Values& x, const Values& y, std::int64_t b) {
      return std::equal(x.begin() + b * batch, x.begin() + (b + 1) * batch, y.begin() + b * batch);
    };
    for (const std::int64_t b : {0, 2}) {
      CHECK(same(before.tensors[t].expected, after.tensors[t].expected, b));
      CHECK(same(before.tensors[t].replica, after.tensors[t].replica, b));
    }
    CHECK_FALSE(same(before.tensors[t].expected, after.tensors[t].expected, 1));
    // Tokens 5 and 6 come before the changed one, and do not see it.
    const auto rows = 2 * before.tensors[t].cols;
    CHECK(std::equal(before.tensors[t].expected.begin() + batch, before.tensors[t].expected.begin() + batch + rows,
                     after.tensors[t].expected.begin() + batch));
  }
}
