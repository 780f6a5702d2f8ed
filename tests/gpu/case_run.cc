// On a device: every op's variants pass in every dtype on ordinary and odd shapes, aligned and not; wrong kernels fail.
#include "harness/case_run.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/faults.h"
#include "tests/skip.h"

using namespace fusebench;
using faults::Bench;

namespace {

bool skipped() { return cuda_device_count() == 0 && testing::skip("no CUDA device"); }

// Every variant that takes the case, "fused.portable" too.
void check_all(Bench& bench, const Case& c) {
  std::vector<std::string> names;
  for (const Variant* variant : bench.variants.all(c.op, Backend::cuda)) names.push_back(variant->name);
  for (const Row& row : run_case(c, names, bench.context).rows) {
    INFO(case_id(c) << " " << row.variant << " base + " << bench.context.base_offset_elements << ": " << row.reason);
    const std::vector<DType>& dtypes = bench.variants.find(c.op, Backend::cuda, row.variant)->dtypes;
    const bool takes = std::find(dtypes.begin(), dtypes.end(), c.dtype) != dtypes.end();
    CHECK(row.verdict == (takes ? Verdict::pass : Verdict::unsupported));
    if (row.verdict == Verdict::pass) CHECK(row.deterministic.value == true);
  }
}

struct Shape {
  std::int64_t dim, hidden, heads, kv_heads, batch, seq, past;
};

}  // namespace

TEST_CASE("every op passes in every dtype and convention", "[gpu][case_run]") {
  if (skipped()) return;
  Bench bench(Backend::cuda);
  const std::vector<Shape> shapes = {{256, 512, 4, 2, 2, 33, 0}, {192, 130, 6, 3, 3, 1, 65}, {128, 64, 1, 1, 1, 70, 5}};
  for (const Shape& s : shapes) {
    for (const Op op : kOps) {
      for (const DType dtype : {DType::fp16, DType::bf16, DType::fp32}) {
        for (const bool causal : {false, true}) {
          check_all(bench, canonical({.op = op,
                                      .dtype = dtype,
                                      .dim = s.dim,
                                      .hidden = s.hidden,
                                      .heads = s.heads,
                                      .kv_heads = s.kv_heads,
                                      .batch = s.batch,
                                      .seq = s.seq,
                                      .past = s.past,
                                      .causal = causal,
                                      .rope = causal ? Pairing::half : Pairing::interleaved}));
        }
      }
    }
  }
}

TEST_CASE("bases that are aligned to an element alone take a slower path that is right", "[gpu][case_run]") {
  if (skipped()) return;
  Bench bench(Backend::cuda);
  bench.context.base_offset_elements = 1;
  for (const Op op : kOps) {
    for (const DType dtype : {DType::fp16, DType::bf16}) {
      check_all(bench, canonical({.op = op,
                                  .dtype = dtype,
                                  .dim = 128,
                                  .hidden = 200,
                                  .heads = 2,
                                  .kv_heads = 1,
                                  .batch = 2,
                                  .seq = 19,
                                  .past = 2,
                                  .causal = true,
                                  .rope = Pairing::half}));
    }
  }
}

TEST_CASE("dims that no vector divides take a slower path that is right", "[gpu][case_run]") {
  if (skipped()) return;
  Bench bench(Backend::cuda);
  for (const Op op : kOps) {
    check_all(bench, canonical({.op = op,
                                .dtype = DType::fp16,
                                .dim = 6,
                                .hidden = 7,
                                .heads = 3,
                                .kv_heads = 3,
                                .batch = 1,
                                .seq = 5,
                                .past = 1}));
    check_all(bench, canonical({.op = op,
                                .dtype = DType::bf16,
                                .dim = 90,
                                .hidden = 33,
                                .heads = 9,
                                .kv_heads = 3,
                                .batch = 2,
                                .seq = 3}));
  }
}

TEST_CASE("a plan replayed as a graph is checked like a stream's", "[gpu][case_run]") {
  if (skipped()) return;
  Bench bench(Backend::cuda);
  bench.measure.graph = {true};
  bench.measure.cache = {CacheMode::cold, CacheMode::hot};
  for (const Op op : kOps) {
    check_all(bench, canonical({.op = op,
                                .dtype = DType::fp16,
                                .dim = 256,
                                .hidden = 512,
                                .heads = 4,
                                .kv_heads = 4,
                                .batch = 2,
                                .seq = 33}));
  }
}

TEST_CASE("wrong kernels get their verdict on a device", "[gpu][case_run]") {
  if (skipped()) return;
  Bench bench(Backend::cuda);
  for (const faults::Fault& fault : faults::wrong_kernels()) {
    bench.variants.add(faults::spoiled(bench, fault.name, fault.spoil));
    for (const DType dtype : {DType::fp16, DType::bf16}) {
      const CaseResult result = run_case(faults::attention_case(dtype), {fault.name, "fused"}, bench.context);
      INFO(fault.name << ": " << result.rows[0].reason);
      CHECK(result.rows[0].verdict == Verdict::fail);
      CHECK_THAT(result.rows[0].reason, ContainsSubstring(fault.says));
      CHECK(result.rows[1].verdict == Verdict::pass);
    }
  }
}

TEST_CASE("a block with the other RoPE pairing fails at seq 2048 in bf16", "[gpu][case_run]") {
  if (skipped()) return;
  Bench bench(Backend::cuda);
  bench.variants.add({.name = "other_pairing",
                      .op = Op::block,
                      .backend = Backend::cuda,
                      .dtypes = {DType::bf16},
                      .plan = [](const Case& c, const Target& target) {
                        Case mistaken = c;
                        mistaken.rope = c.rope == Pairing::half ? Pairing::interleaved : Pairing::half;
                        return registry().find(Op::block, Backend::cuda, "fused")->plan(mistaken, target);
                      }});
  const Case c = canonical({.op = Op::block,
                            .dtype = DType::bf16,
                            .dim = 512,
                            .hidden = 1024,
                            .heads = 4,
                            .kv_heads = 2,
                            .seq = 2048,
                            .causal = true,
                            .rope = Pairing::half});
  const CaseResult result = run_case(c, {"other_pairing", "fused"}, bench.context);
  INFO(result.rows[0].reason << " / " << result.rows[1].reason);
  CHECK(result.rows[0].verdict == Verdict::fail);
  CHECK(result.rows[1].verdict == Verdict::pass);
}
