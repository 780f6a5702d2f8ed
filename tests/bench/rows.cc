#include "tests/bench/rows.h"

#include <fmt/format.h>

namespace fusebench::bench {

namespace {

Row row_of(std::size_t number, const std::string& variant) {
  Row row;
  row.c = canonical({.op = Op::block,
                     .dim = 4096,
                     .hidden = 14336,
                     .heads = 32,
                     .kv_heads = 8,
                     .batch = 2,
                     .seq = static_cast<std::int64_t>(64 * (number + 1)),
                     .causal = true});
  row.variant = variant;
  row.verdict = Verdict::pass;
  row.kernel = "rmsnorm_row + gemm_portable + flash_portable";
  row.check = Verification{.rel_l2 = 1e-4, .max_abs = 1e-3, .budget_rel_l2 = 4e-4, .budget_max_abs = 4e-3};
  for (int i = 0; i < 50; ++i) row.samples_us.push_back(1000.0 + (i * 7) % 50 + 0.125 * static_cast<double>(number));
  row.speedup_vs_naive = Ratio{.value = 3.25, .lo = 3.2, .hi = 3.3};
  row.speedup_vs_cublas = Ratio{.value = 1.25, .lo = 1.2, .hi = 1.3};
  row.flops = 1e12;
  row.bytes_compulsory = 436207616;
  row.bytes_modelled = std::int64_t{536870912};
  row.launches = 8;
  for (int i = 0; i < 8; ++i) {
    StepRow& step = row.steps.emplace_back();
    step.name = fmt::format("step {}", i);
    step.kernel = "gemm_portable";
    step.bytes_read = 1 << 20;
    step.bytes_written = 1 << 18;
  }
  return row;
}

}  // namespace

std::vector<Row> rows_of(std::size_t cases) {
  std::vector<Row> rows;
  for (std::size_t number = 0; number < cases; ++number) {
    for (const char* variant : {"naive", "cublas", "fused"}) rows.push_back(row_of(number, variant));
  }
  return rows;
}

std::string lines_of(const std::vector<Row>& rows) {
  std::string text = "{\"schema\":1,\"name\":\"bench\"}\n";
  for (const Row& row : rows) text += reports::to_line(to_json(row));
  return text;
}

}  // namespace fusebench::bench
