// The judge on outputs that are right, and on outputs that are wrong in the ways that others' checks let pass.
#include "harness/verify.h"

#include <cmath>
#include <limits>

#include "harness/oracle.h"
#include "harness/tensor.h"
#include "tests/catch.h"

using namespace fusebench;

namespace {

Case block_case(DType dtype, std::int64_t batch, std::int64_t seq) {
  return canonical({.op = Op::block,
                    .dtype = dtype,
                    .dim = 256,
                    .hidden = 512,
                    .heads = 4,
                    .kv_heads = 2,
                    .batch = batch,
                    .seq = seq,
                    .causal = true,
                    .rope = Pairing::half});
}

std::vector<std::int64_t> all_rows(const Case& c) { return choose_rows(c, {.full = true}); }

// What a variant would leave that computes `values` exactly and rounds once.
std::vector<Output> outputs_of(const Case& c, const Expected& values, bool replica) {
  std::vector<Output> outputs;
  for (const ExpectedTensor& tensor : values.tensors) {
    HostTensor host(c.dtype, c.tokens(), tensor.cols);
    store(c.dtype, replica ? tensor.replica : tensor.expected, host.data.data());
    outputs.push_back({tensor.name, std::move(host)});
  }
  return outputs;
}

void set(HostTensor& tensor, std::int64_t row, std::int64_t col, double value) {
  const std::int64_t at = row * tensor.cols + col;
  store(tensor.dtype, std::span(&value, 1), tensor.data.data() + at * bytes_of(tensor.dtype));
}

struct Judged {
  Case c;
  InputSet inputs;
  Expected expected;
  explicit Judged(const Case& which)
      : c(which), inputs(read_inputs(spec_of(c), DrawnSource(c))), expected(compute_expected(c, inputs, all_rows(c))) {}
  std::vector<Output> right() const { return outputs_of(c, expected, true); }
  Judgement judge(const std::vector<Output>& outputs) const { return fusebench::judge(c, outputs, expected); }
};

}  // namespace

TEST_CASE("outputs that err by rounding alone pass in every dtype", "[verify]") {
  for (const DType dtype : {DType::fp16, DType::bf16, DType::fp32}) {
    const Judged j(block_case(dtype, 2, 33));
    CHECK(j.judge(j.right()).failure.empty());
    const Judgement exact = j.judge(outputs_of(j.c, j.expected, false));
    CHECK(exact.failure.empty());
    CHECK(exact.figures.rel_l2 < exact.figures.budget_rel_l2);
    CHECK(exact.figures.rows_checked == exact.figures.rows_total);
  }
}

TEST_CASE("one NaN is found, counted and located", "[verify]") {
  const Judged j(block_case(DType::fp16, 2, 33));
  std::vector<Output> outputs = j.right();
  set(outputs[0].tensor, 65, 255, std::numeric_limits<double>::quiet_NaN());
  const Judgement judgement = j.judge(outputs);
  CHECK(judgement.figures.nonfinite == 1);
  CHECK_THAT(judgement.failure, ContainsSubstring("[row 65, col 255]: got nan"));
}

TEST_CASE("a finite value where infinity is expected fails, and so does an infinity of the other sign", "[verify]") {
  Case c = canonical({.op = Op::swiglu, .dtype = DType::fp16, .hidden = 64, .seq = 2});
  InputSet inputs = read_inputs(spec_of(c), DrawnSource(c));
  set(inputs.at("g"), 1, 3, 60000);
  set(inputs.at("u"), 1, 3, 60000);
  const Expected expected = compute_expected(c, inputs, all_rows(c));
  std::vector<Output> outputs = outputs_of(c, expected, false);
  CHECK(judge(c, outputs, expected).failure.empty());
  for (const double wrong : {65504.0, -std::numeric_limits<double>::infinity()}) {
    set(outputs[0].tensor, 1, 3, wrong);
    CHECK_FALSE(judge(c, outputs, expected).failure.empty());
  }
}

TEST_CASE("zeros, a dropped row, a dropped tile and another case's output fail", "[verify]") {
  for (const DType dtype : {DType::fp16, DType::bf16}) {
    const Judged j(block_case(dtype, 2, 130));
    std::vector<Output> zeros = j.right();
    std::fill(zeros[0].tensor.data.begin(), zeros[0].tensor.data.end(), std::byte{0});
    CHECK_THAT(j.judge(zeros).failure, ContainsSubstring("all zero"));

    std::vector<Output> row = j.right();
    for (std::int64_t col = 0; col < 256; ++col) set(row[0].tensor, 200, col, 0);
    CHECK_FALSE(j.judge(row).failure.empty());

    std::vector<Output> tile = j.right();
    for (std::int64_t r = 64; r < 128; ++r) {
      for (std::int64_t col = 64; col < 128; ++col) set(tile[0].tensor, r, col, 0);
    }
    CHECK_FALSE(j.judge(tile).failure.empty());

    Case other = j.c;
    other.seed = 43;
    const Judged stale(other);
    CHECK_FALSE(j.judge(stale.right()).failure.empty());
  }
}

TEST_CASE("the other RoPE pairing fails at seq 2048 in bf16", "[verify]") {
  const Case c = block_case(DType::bf16, 1, 2048);
  const InputSet inputs = read_inputs(spec_of(c), DrawnSource(c));
  const std::vector<std::int64_t> rows = choose_rows(c, {.full = false, .rows_per_case = 64});
  const Expected expected = compute_expected(c, inputs, rows);
  Case mistaken = c;
  mistaken.rope = Pairing::interleaved;
  const Expected wrong = compute_expected(mistaken, inputs, rows);

  const auto sampled = [&](const Expected& values) {
    HostTensor host(c.dtype, c.tokens(), 256);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      store(c.dtype, std::span(values.tensors[0].replica).subspan(i * 256, 256),
            host.data.data() + rows[i] * 256 * bytes_of(c.dtype));
    }
    return std::vector<Output>{{values.tensors[0].name, std::move(host)}};
  };
  CHECK(judge(c, sampled(expected), expected).failure.empty());
  CHECK_FALSE(judge(c, sampled(wrong), expected).failure.empty());
}

TEST_CASE("a wrong row of small values is not hidden by large ones", "[verify]") {
  const Case c = canonical({.op = Op::add_rmsnorm, .dtype = DType::fp16, .dim = 64, .seq = 32});
  InputSet inputs = read_inputs(spec_of(c), DrawnSource(c));
  for (std::int64_t col = 0; col < 64; ++col) {
    set(inputs.at("x"), 5, col, 0.001);
    set(inputs.at("r"), 5, col, 0);
  }
  const Expected expected = compute_expected(c, inputs, all_rows(c));
  std::vector<Output> outputs = outputs_of(c, expected, true);
  CHECK(judge(c, outputs, expected).failure.empty());
  for (std::int64_t col = 0; col < 64; ++col) set(outputs[0].tensor, 5, col, 0.0011);
  CHECK_THAT(judge(c, outputs, expected).failure, ContainsSubstring("row 5"));
}

TEST_CASE("rows in which two variants disagree are named, worst first and few", "[verify]") {
  const Judged j(block_case(DType::fp16, 2, 33));
  const std::vector<Budget> budget = j.judge(j.right()).budgets;
  const std::vector<Output> naive = j.right();
  CHECK(disagreements(naive, outputs_of(j.c, j.expected, false), budget, 8).empty());
  std::vector<Output> wrong = naive;
  for (std::int64_t col = 0; col < 256; ++col) set(wrong[0].tensor, 40, col, 1);
  set(wrong[0].tensor, 12, 0, std::numeric_limits<double>::quiet_NaN());
  CHECK(disagreements(naive, wrong, budget, 8) == std::vector<std::int64_t>{12, 40});
  CHECK(disagreements(naive, wrong, budget, 1) == std::vector<std::int64_t>{12});
  // One element of 256 that is off by little of its row's norm, and by much of what rounding makes.
  std::vector<Output> element = naive;
  double value = 0;
  load(DType::fp16, element[0].tensor.data.data() + (20 * 256 + 7) * 2, 1, &value);
  set(element[0].tensor, 20, 7, value + 9 * budget[0].max_abs / 4);
  CHECK(disagreements(naive, element, budget, 8) == std::vector<std::int64_t>{20});
}
