#include "harness/oracle.h"

#include <benchmark/benchmark.h>

namespace fusebench {

namespace {

Case small_block(std::int64_t seq) {
  return canonical(
      {.op = Op::block, .dim = 512, .hidden = 1024, .heads = 8, .kv_heads = 2, .batch = 1, .seq = seq, .causal = true});
}

void DrawInputs(benchmark::State& state) {
  const Case c = small_block(state.range(0));
  const OpSpec spec = spec_of(c);
  std::int64_t elements = 0;
  for (auto unused : state) {
    (void)unused;
    const InputSet inputs = read_inputs(spec, DrawnSource(c));
    for (const auto& [name, tensor] : inputs) elements += tensor.size();
  }
  state.SetItemsProcessed(elements);
}
BENCHMARK(DrawInputs)->ArgName("seq")->Arg(64)->UseRealTime()->Unit(benchmark::kMillisecond);

// Expected rows and their rounded replica.
void OracleRows(benchmark::State& state) {
  const Case c = small_block(state.range(0));
  const InputSet inputs = read_inputs(spec_of(c), DrawnSource(c));
  const std::vector<std::int64_t> rows = choose_rows(c, {});
  for (auto unused : state) {
    (void)unused;
    benchmark::DoNotOptimize(compute_expected(c, inputs, rows));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(rows.size()));
}
BENCHMARK(OracleRows)->ArgName("seq")->Arg(64)->Arg(256)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

}  // namespace fusebench
