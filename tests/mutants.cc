// The check is tried on outputs that are wrong on purpose: with balanced inputs it rejects every one that differs.
#include "harness/mutants.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/config.h"
#include "tests/catch.h"
#include "tests/faults.h"
#include "tests/loops.h"

using namespace fusebench;
using faults::Bench;
using fusebench::testing::Loops;
using fusebench::testing::Values;

namespace {

std::unique_ptr<TensorSource> drawn(const Case& c) { return std::make_unique<DrawnSource>(c); }

// The mutants of a case whose outputs come from the oracle, so that dtypes can be tried that the host has no kernel
// for. Where rows are sampled, the others are compared with right ones, as a variant's are with naive's.
std::vector<Mutant> prove(const Case& c, const VerifyRows& verify) {
  const std::vector<std::int64_t> rows = choose_rows(c, verify);
  const InputSet inputs = read_inputs(spec_of(c), DrawnSource(c));
  const Expected expected = compute_expected(c, inputs, rows);
  const bool sampled = static_cast<std::int64_t>(rows.size()) < c.tokens();
  const std::vector<Output> right =
      exact_outputs(c, sampled ? compute_expected(c, inputs, choose_rows(c, {.full = true})) : expected);
  const auto failure = [&](const std::vector<Output>& outputs) {
    const Judgement judgement = judge(c, outputs, expected);
    if (!judgement.failure.empty() || !sampled) return judgement.failure;
    const std::vector<std::int64_t> disputed = disagreements(outputs, right, judgement.budgets, 8);
    return disputed.empty() ? "" : judge(c, outputs, compute_expected(c, inputs, disputed)).failure;
  };
  CHECK(failure(right).empty());
  const WrongRows wrong = compute_wrong_rows(c, inputs, drawn, rows);
  return try_mutants(c, expected, wrong, right, {.failure = failure, .sees_other_rows = sampled});
}

std::vector<std::string> names_of(const std::vector<Mutant>& mutants, Outcome outcome) {
  std::vector<std::string> names;
  for (const Mutant& mutant : mutants) {
    if (mutant.outcome == outcome) names.push_back(mutant.name);
  }
  return names;
}

// A config's cases with other inputs, in both of the GPU's storage formats.
std::vector<Case> cases_of(const std::string& name, Inputs inputs) {
  const Config config = load_config(std::string(FUSEBENCH_SOURCE_DIR) + "/configs/" + name, Backend::cuda);
  std::vector<Case> cases;
  for (const SweepCase& entry : config.cases) {
    for (const DType dtype : {DType::fp16, DType::bf16}) {
      Case c = entry.c;
      c.dtype = dtype;
      c.inputs = inputs;
      c = canonical(c);
      if (std::find(cases.begin(), cases.end(), c) == cases.end()) cases.push_back(c);
    }
  }
  return cases;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("every mutant that changes the result is rejected with balanced inputs, in every op, fp16 and bf16",
          "[mutants]") {
  std::map<Op, int> proven;
  for (const char* config : {"quick.yaml", "seed_check.yaml"}) {
    for (const Case& c : cases_of(config, Inputs::balanced)) {
      const std::vector<Mutant> mutants = prove(c, {.full = true});
      INFO(case_id(c));
      CHECK(let_through(mutants) == "");
      CHECK(names_of(mutants, Outcome::rejected).size() >= 6);
      Names same;  // with one query that sees all keys, and with one key at position 0
      if (c.seq == 1 && c.causal) same = {"one key more"};
      if (c.seq == 1 && c.past == 0) same = {"other pairing", "scores not scaled"};
      CHECK(names_of(mutants, Outcome::equivalent) == same);
      ++proven[c.op];
    }
  }
  CHECK(proven.size() == kOps.size());
}

TEST_CASE("the seed's benchmark, with an eighth of its width and a quarter of its tokens, sampled rows", "[mutants]") {
  for (Case c : cases_of("seed_benchmark.yaml", Inputs::balanced)) {
    c.dim /= 8;
    c.hidden /= 8;
    c.heads /= 8;
    c.kv_heads /= 8;
    c.seq /= 4;
    INFO(case_id(c));
    const std::vector<Mutant> mutants = prove(c, {});
    CHECK(let_through(mutants) == "");
    CHECK(names_of(mutants, Outcome::equivalent).empty());
    const Names rejected = names_of(mutants, Outcome::rejected);
    for (const char* name : {"first norm's weight ignored", "other pairing", "one key less", "scores not scaled",
                             "residual of attention missing", "second norm's weight ignored", "residual of mlp missing",
                             "previous output", "zeros", "row left zero", "row left stale", "tile left zero",
                             "tile left stale", "row left zero (row not sampled)", "row left stale (row not sampled)",
                             "tile left zero (row not sampled)", "tile left stale (row not sampled)"}) {
      INFO(name);
      CHECK(std::count(rejected.begin(), rejected.end(), name) == 1);
    }
  }
}

TEST_CASE("with the seed's inputs some mistakes do not show, and are named", "[mutants]") {
  const Case c = canonical({.op = Op::block,
                            .dtype = DType::bf16,
                            .dim = 256,
                            .hidden = 1024,
                            .heads = 4,
                            .kv_heads = 4,
                            .batch = 2,
                            .seq = 512,
                            .inputs = Inputs::seed});
  const std::vector<Mutant> mutants = prove(c, {});
  CHECK(names_of(mutants, Outcome::let_through) == Names{"one key less"});
  // Its norm weights are 1, so that ignoring them is no mistake.
  CHECK(names_of(mutants, Outcome::equivalent) == Names{"first norm's weight ignored", "second norm's weight ignored"});
}

TEST_CASE("a mistake's rows are those of plain loops that make it", "[mutants]") {
  for (const Op op : kOps) {
    for (const bool causal : {false, true}) {
      const Case c = canonical({.op = op,
                                .dtype = DType::bf16,
                                .dim = 24,
                                .hidden = 37,
                                .heads = 4,
                                .kv_heads = 2,
                                .batch = 2,
                                .seq = 7,
                                .past = causal ? 3 : 0,
                                .causal = causal});
      const InputSet inputs = read_inputs(spec_of(c), DrawnSource(c));
      const WrongRows wrong = compute_wrong_rows(c, inputs, drawn, choose_rows(c, {.full = true}));
      for (std::size_t i = 0; i < wrong.mistakes.size(); ++i) {
        const Mistake& mistake = wrong.mistakes[i];
        INFO(case_id(c) << ": " << mistake.name);
        InputSet changed = inputs;
        Loops loops{.c = c, .inputs = &changed};
        using reference::Deviation;
        if (mistake.deviation == Deviation::one_key_less) loops.mask_shift = -1;
        if (mistake.deviation == Deviation::one_key_more) loops.mask_shift = 1;
        loops.divide_by_root_of_dim = mistake.deviation != Deviation::scores_not_scaled;
        loops.attention_residual = mistake.deviation != Deviation::no_attention_residual;
        loops.mlp_residual = mistake.deviation != Deviation::no_mlp_residual;
        if (mistake.other_pairing) loops.c.rope = Pairing::half;
        if (!mistake.input.empty()) {
          HostTensor& tensor = changed.at(mistake.input);
          store(tensor.dtype, Values(static_cast<std::size_t>(tensor.size()), mistake.value), tensor.data.data());
        }
        const std::map<std::string, Values> want = loops.outputs();
        for (const ExpectedTensor& got : wrong.mistaken[i].tensors) {
          double worst = 0;
          for (std::size_t j = 0; j < got.expected.size(); ++j) {
            worst = std::max(worst, std::abs(got.expected[j] - want.at(got.name)[j]));
          }
          CHECK(worst < 1e-11);
        }
      }
    }
  }
}

TEST_CASE("a run without --prove tries nothing; with it, its rows hold the proof, once for all variants",
          "[mutants][case_run]") {
  Bench bench(Backend::cpu);
  bench.measure.verify.rows_per_case = 16;
  const Case c = faults::attention_case(DType::fp32);
  CHECK(bench.run_one(c, "fused").mutants.reason == "run without --prove");

  bench.context.prove = true;
  const CaseResult result = run_case(c, {"naive", "fused"}, bench.context);
  for (const Row& row : result.rows) {
    INFO(row.reason);
    CHECK(row.verdict == Verdict::pass);
    REQUIRE(row.mutants.value);
    CHECK(let_through(*row.mutants.value) == "");
    CHECK(names_of(*row.mutants.value, Outcome::rejected).size() == 3 + 2 + 4 + 4);
  }
}

TEST_CASE("a row whose check lets a mutant through is timed and has no power; one that fails stays failed",
          "[mutants][case_run]") {
  Bench bench(Backend::cpu);
  bench.context.prove = true;
  bench.variants.add(faults::spoiled(bench, "zeros", [](const faults::Launched& l) { l.fill(0, 140, 128, 0); }));
  // Every key has the same value, so that which ones are seen does not matter; in fp32 their sum still errs.
  struct SameValues final : TensorSource {
    explicit SameValues(const Case& c) : source(c) {}
    HostTensor read(const TensorSpec& spec) const override {
      HostTensor tensor = source.read(spec);
      if (spec.name != "v") return tensor;
      for (std::int64_t row = 0; row < tensor.rows; ++row) {
        Values values(static_cast<std::size_t>(tensor.cols), 1 + 1e-6 * static_cast<double>(row % 2));
        store(tensor.dtype, values, tensor.data.data() + row * tensor.cols * bytes_of(tensor.dtype));
      }
      return tensor;
    }
    DrawnSource source;
  };
  bench.context.source = [](const Case& c) { return std::make_unique<SameValues>(c); };
  const CaseResult result = run_case(faults::attention_case(DType::fp32), {"fused", "zeros"}, bench.context);
  REQUIRE(result.rows.size() == 2);
  const Row& fused = result.rows[0];
  INFO(fused.reason);
  CHECK(fused.verdict == Verdict::no_power);
  CHECK_THAT(fused.reason, ContainsSubstring("previous output"));
  CHECK(fused.samples_us.size() == 3);
  CHECK(result.rows[1].verdict == Verdict::fail);
}

TEST_CASE("mutants come from the cache, where they lie beside the ordinary rows", "[mutants][cache]") {
  const testing::TempFolder folder;
  const OracleCache cache(folder.path());
  const Case c = canonical({.op = Op::block,
                            .dtype = DType::fp16,
                            .dim = 16,
                            .hidden = 24,
                            .heads = 4,
                            .kv_heads = 2,
                            .seq = 300,
                            .past = 2});
  const std::vector<std::int64_t> rows = choose_rows(c, {.rows_per_case = 8});
  const InputSet inputs = read_inputs(spec_of(c), DrawnSource(c));
  CHECK_FALSE(load_wrong_rows(cache, c, rows));
  const WrongRows made = wrong_rows(c, inputs, drawn, rows, cache);
  const WrongRows again = wrong_rows(
      c, {}, [](const Case&) -> std::unique_ptr<TensorSource> { throw std::logic_error("drawn"); }, rows, cache);
  REQUIRE(again.mistaken.size() == made.mistakes.size());
  for (std::size_t i = 0; i < made.mistaken.size(); ++i) {
    CHECK(again.mistaken[i].tensors[0].expected == made.mistaken[i].tensors[0].expected);
    CHECK(again.mistaken[i].tensors[0].replica.empty());
  }
  CHECK(again.previous.rows.size() == rows.size() + 1);
  CHECK(again.previous.tensors[2].expected == made.previous.tensors[2].expected);
  Expected ordinary;
  CHECK_FALSE(cache.load(c, rows, ordinary));
}

TEST_CASE("the row that is not sampled is just that", "[mutants]") {
  const Case c = canonical({.op = Op::swiglu, .hidden = 8, .seq = 6});
  CHECK_FALSE(probe_row(c, {0, 1, 2, 3, 4, 5}));
  CHECK(probe_row(c, {0, 3, 5}) == 4);
  CHECK(probe_row(c, {0, 3, 4, 5}) == 1);
}
