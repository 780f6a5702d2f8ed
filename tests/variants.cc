// Variants against each other on the CPU, who is registered, and how kernels are chosen.
#include <set>

#include "tests/catch.h"
#include "tests/conventions.h"
#include "tests/host_run.h"
#include "tests/skip.h"
#include "variants/choose.h"

using namespace fusebench;
using testing::Buffers;
using testing::plan_of;
using testing::relative_distance;
using testing::run_variant;

namespace {

constexpr double kFp32Tolerance = 2e-6;

const Target kHopper{.backend = Backend::cuda, .compute_capability = 90, .multiprocessors = 132};

Variant dummy(const std::string& name, Backend backend = Backend::cpu) {
  return {.name = name, .op = Op::rope, .backend = backend, .dtypes = {DType::fp32}, .plan = {}};
}

kernels::GemmKernel gemm(const Target& target, std::int64_t k, DType dtype = DType::fp16) {
  return choose_gemm(target, KernelChoice::best, dtype, 32, 64, k);
}

/// A plan's step, or a plan's tensors and steps, without what may differ between backends: kernels, and the bytes of an
/// element.
std::string structure_of(const Plan& plan, const Step& step) {
  std::string text =
      step.name + ", " + std::to_string(step.launches) + " launches, " + std::to_string(step.flops) + " FLOPs";
  const auto write = [&](const char* verb, const std::vector<Access>& accesses) {
    for (const Access& access : accesses) {
      const PlanTensor& tensor = plan.tensor(access.tensor);
      text += std::string(verb) + std::to_string(access.bytes / bytes_of(tensor.dtype)) + " of " + tensor.name;
    }
  };
  write("; reads ", step.reads);
  write("; writes ", step.writes);
  return text + "\n";
}
std::string structure_of(const Plan& plan) {
  std::string text;
  for (const PlanTensor& tensor : plan.tensors()) {
    text += tensor.name + "[" + std::to_string(tensor.rows) + ", " + std::to_string(tensor.cols) + "]\n";
  }
  for (const auto* steps : {&plan.preparation(), &plan.steps()}) {
    for (const Step& step : *steps) text += structure_of(plan, step);
  }
  return text;
}

/// A block's steps and their kernels: those of attention, and those around it.
struct BlockSteps {
  std::vector<std::string> attention, others;

  explicit BlockSteps(const Plan& plan) {
    for (const auto* steps : {&plan.preparation(), &plan.steps()}) {
      for (const Step& step : *steps) {
        const bool attends = step.name.rfind("attention.", 0) == 0;
        (attends ? attention : others).push_back(step.kernel + " for " + structure_of(plan, step));
      }
    }
  }
};

/// Of planning a case; empty where it is taken.
std::string limit_of(const Case& c, const std::string& variant, const Target& target) {
  try {
    plan_of(c, variant, target);
  } catch (const Unsupported& limit) {
    return limit.what();
  }
  return {};
}

}  // namespace

TEST_CASE("the CPU's variants agree in every op and convention", "[variants]") {
  for (const Op op : kOps) {
    for (const Case& c : testing::conventions(op)) {
      const Buffers before = testing::op_buffers(c);
      const Buffers naive = run_variant(c, "naive");
      const std::map<std::string, Plan> plans = testing::plans_of(c);
      REQUIRE(plans.size() >= 3);
      for (const auto& [variant, plan] : plans) {
        const Buffers other = testing::run_on_host(c, plan);
        for (const TensorSpec& tensor : spec_of(c).tensors) {
          INFO(case_id(c) << " " << variant << " " << tensor.name);
          if (tensor.role == Role::input) {
            const bool unchanged = other.at(tensor.name) == before.at(tensor.name);
            CHECK(unchanged);
          } else {
            CHECK(relative_distance(other.at(tensor.name), naive.at(tensor.name)) < kFp32Tolerance);
          }
        }
      }
    }
  }
}

TEST_CASE("variants notice each other's conventions: the comparison has power", "[variants]") {
  Case c = testing::small(Op::block);
  c.causal = true;
  const std::vector<float> out = run_variant(c, "naive").at("out");
  Case other = c;
  other.rope = Pairing::half;
  CHECK(relative_distance(run_variant(other, "fused").at("out"), out) > 100 * kFp32Tolerance);
  other = c;
  other.causal = false;
  CHECK(relative_distance(run_variant(other, "eigen").at("out"), out) > 100 * kFp32Tolerance);
}

TEST_CASE("a cache keeps its past, and gets its new rows", "[variants]") {
  Case c = testing::small(Op::block);
  c.past = 5;
  const std::vector<float> before = testing::op_buffers(c).at("k");
  const std::int64_t cols = c.kv_heads * c.head_dim();
  for (const std::string variant : {"naive", "eigen", "fused"}) {
    const std::vector<float> after = run_variant(c, variant).at("k");
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(before.size()); ++i) {
      const auto at = static_cast<std::size_t>(i);
      INFO(variant << " row " << i / cols);
      if (i / cols % c.keys() < c.past) {
        CHECK(after[at] == before[at]);
      } else {
        CHECK(std::isfinite(after[at]));
      }
    }
  }
}

TEST_CASE("every op has naive, the library, in a block flash too, and fused, first and in that order", "[variants]") {
  const std::set<Op> without_product = {Op::rmsnorm, Op::add_rmsnorm, Op::rope, Op::swiglu};
  for (const Backend backend : {Backend::cpu, Backend::cuda}) {
    for (const Op op : kOps) {
      INFO(name_of(op) << " on " << name_of(backend));
      const std::vector<const Variant*> variants = registry().all(op, backend);
      if (!is_built(backend)) {
        CHECK(variants.empty());
        continue;
      }
      std::vector<std::string> first = {"naive", std::string(library_name(backend)), "fused"};
      if (op == Op::block) first.insert(first.begin() + 2, first[1] + "_flash");
      REQUIRE(variants.size() >= first.size());
      const bool has_product = without_product.count(op) == 0;
      const bool cuda = backend == Backend::cuda;
      CHECK((registry().find(op, backend, "fused.portable") != nullptr) == (cuda && has_product));
      for (std::size_t i = 0; i < first.size(); ++i) {
        CHECK(variants[i]->name == first[i]);
        CHECK(variants[i]->dtypes.size() == (!cuda ? 1 : i >= 2 && has_product ? 2 : 3));
      }
    }
  }
}

TEST_CASE("a registry refuses a name twice, and lists the known first", "[variants]") {
  Registry registry;
  for (const char* name : {"zeta", "fused", "alpha", "eigen", "naive"}) registry.add(dummy(name));
  registry.add(dummy("fused", Backend::cuda));
  CHECK_THROWS_AS(registry.add(dummy("fused")), std::invalid_argument);
  CHECK(registry.names(Backend::cpu) == std::vector<std::string>{"naive", "eigen", "fused", "alpha", "zeta"});
  CHECK(registry.names(Backend::cuda) == std::vector<std::string>{"fused"});
  REQUIRE(registry.all(Op::rope, Backend::cpu).size() == 5);
  CHECK(registry.all(Op::rope, Backend::cpu)[3]->name == "alpha");
  CHECK(registry.all(Op::mlp, Backend::cpu).empty());
  CHECK(registry.find(Op::rope, Backend::cpu, "zeta") != nullptr);
  CHECK(registry.find(Op::rope, Backend::cuda, "zeta") == nullptr);
}

TEST_CASE("a backend that the build lacks says so", "[variants]") {
  if (is_built(Backend::cuda)) {
    CHECK(library_product(Backend::cuda) != nullptr);
  } else {
    CHECK_THROWS_AS(primitives(Backend::cuda), Unsupported);
    CHECK_THROWS_AS(elementwise(Backend::cuda), Unsupported);
    CHECK_THROWS_AS(fused(Backend::cuda), Unsupported);
    CHECK_THROWS_AS(library_product(Backend::cuda), Unsupported);
    CHECK_THROWS_AS(deferred_norm(Backend::cuda), Unsupported);
  }
}

TEST_CASE("on Hopper a product of enough rows has a kernel of its own", "[variants]") {
  const auto chosen = [](const Target& target, std::int64_t m, std::int64_t k = 64, std::int64_t n = 64,
                         bool stores = true) {
    return choose_gemm(target, KernelChoice::best, DType::bf16, m, n, k, stores);
  };
  CHECK(chosen(kHopper, 129) == kernels::GemmKernel::hopper);
  CHECK(chosen(kHopper, 32) == kernels::GemmKernel::portable);
  CHECK(chosen(kHopper, 33) == kernels::GemmKernel::hopper);
  CHECK(chosen(kHopper, 129, 60) == kernels::GemmKernel::portable_unaligned);
  CHECK(chosen(kHopper, 129, 64, 72) == kernels::GemmKernel::portable);
  CHECK(chosen(kHopper, 129, 64, 64, false) == kernels::GemmKernel::portable);
  CHECK(chosen(kHopper, std::int64_t{1} << 31) == kernels::GemmKernel::portable);
  CHECK(choose_gemm(kHopper, KernelChoice::portable, DType::bf16, 129, 64, 64) == kernels::GemmKernel::portable);
  Target other = kHopper;
  for (const int capability : {80, 89, 100, 120}) {
    other.compute_capability = capability;
    CHECK(chosen(other, 129) == kernels::GemmKernel::portable);
  }
}

TEST_CASE("on Hopper attention of many positions may have its own kernel", "[variants]") {
  AttentionShape shape{.seq = 64, .keys = 64, .head_dim = 128};
  const auto chosen = [&](KernelChoice choice = KernelChoice::best) {
    return choose_attention(kHopper, choice, DType::bf16, shape);
  };
  CHECK(chosen() == kernels::AttentionKernel::hopper);
  CHECK(chosen(KernelChoice::portable) == kernels::AttentionKernel::portable);
  shape.head_dim = 64;
  CHECK(chosen() == kernels::AttentionKernel::hopper);
  shape.head_dim = 96;
  CHECK(chosen() == kernels::AttentionKernel::portable);
  shape = {.seq = 63, .keys = 64, .head_dim = 128};
  CHECK(chosen() == kernels::AttentionKernel::portable);
  shape = {.seq = 64, .keys = std::int64_t{1} << 31, .head_dim = 128};
  CHECK(chosen() == kernels::AttentionKernel::portable);
}

TEST_CASE("aligned rows take the vector kernels, others the element-wise ones", "[variants]") {
  CHECK(gemm(kHopper, 64) == kernels::GemmKernel::portable);
  CHECK(gemm(kHopper, 60) == kernels::GemmKernel::portable_unaligned);
  CHECK(gemm({}, 60) == kernels::GemmKernel::cpu);
  Target shifted = kHopper;
  for (const std::int64_t alignment : {2, 8}) {
    shifted.alignment_bytes = alignment;
    CHECK(gemm(shifted, 64) == kernels::GemmKernel::portable_unaligned);
  }
  shifted.alignment_bytes = 16;
  CHECK(gemm(shifted, 64) == kernels::GemmKernel::portable);

  AttentionShape shape{.seq = 8, .keys = 8, .head_dim = 128};
  const auto attention = [&](const Target& target) {
    return choose_attention(target, KernelChoice::portable, DType::bf16, shape);
  };
  CHECK(attention(kHopper) == kernels::AttentionKernel::portable);
  shape.head_dim = 100;
  CHECK(attention(kHopper) == kernels::AttentionKernel::portable_unaligned);
  CHECK(attention({}) == kernels::AttentionKernel::cpu);
}

TEST_CASE("values that lie apart take the vector kernels where each key's are aligned", "[variants]") {
  const auto chosen = [](KernelChoice choice, std::int64_t stride, std::int64_t offset) {
    const AttentionShape shape{.seq = 64, .keys = 64, .head_dim = 64, .value_stride = stride};
    return choose_attention(kHopper, choice, DType::bf16, shape, offset);
  };
  for (const auto& [choice, kernel] : {std::pair{KernelChoice::portable, kernels::AttentionKernel::portable},
                                       {KernelChoice::best, kernels::AttentionKernel::hopper}}) {
    CHECK(chosen(choice, 0, 0) == kernel);
    CHECK(chosen(choice, 72, 8) == kernel);
    CHECK(chosen(choice, 68, 8) == kernels::AttentionKernel::portable_unaligned);
    CHECK(chosen(choice, 72, 4) == kernels::AttentionKernel::portable_unaligned);
  }
}

TEST_CASE("a plan takes the element-wise kernel where its rows are not aligned, and there alone", "[variants]") {
  if (!is_built(Backend::cuda) && testing::skip("this build has no CUDA")) return;
  Case c = canonical({.op = Op::block,
                      .dtype = DType::bf16,
                      .dim = 64,
                      .hidden = 128,
                      .heads = 4,
                      .kv_heads = 2,
                      .batch = 2,
                      .seq = 5});
  const auto steps_unaligned = [](const Plan& plan) {
    std::vector<std::string> names;
    for (const Step& step : plan.steps()) {
      if (step.kernel.find("_unaligned") != std::string::npos) names.push_back(step.name);
    }
    return names;
  };
  const std::vector<std::string> every = {"qkv.product qkv, rope", "attention.attention",
                                          "attn_out.product o + residual", "mlp.product gate, up, swiglu",
                                          "mlp.product down + residual"};
  Target shifted = kHopper;
  shifted.alignment_bytes = 2;
  for (const char* variant : {"fused", "fused.portable"}) {
    INFO(variant);
    CHECK(steps_unaligned(plan_of(c, variant, kHopper)).empty());
    CHECK(steps_unaligned(plan_of(c, variant, shifted)) == every);
  }
  CHECK(steps_unaligned(plan_of(c, "cublas_flash", kHopper)).empty());
  CHECK(steps_unaligned(plan_of(c, "cublas_flash", shifted)) == std::vector<std::string>{every[1]});
  c.hidden = 100;  // the sum of one product alone
  CHECK(steps_unaligned(plan_of(c, "fused", kHopper)) == std::vector<std::string>{every[4]});
  c.hidden = 128;
  c.heads = c.kv_heads = 16;  // head_dim 4
  CHECK(steps_unaligned(plan_of(c, "fused", kHopper)) == std::vector<std::string>{every[1]});
}

TEST_CASE("on Hopper fused defers its norms: a block takes six launches", "[variants]") {
  if (!is_built(Backend::cuda) && testing::skip("this build has no CUDA")) return;
  const Case c = canonical({.op = Op::block,
                            .dtype = DType::fp16,
                            .dim = 512,
                            .hidden = 1024,
                            .heads = 4,
                            .kv_heads = 2,
                            .batch = 2,
                            .seq = 100});
  const auto names = [](const std::vector<Step>& steps) {
    std::vector<std::string> result;
    for (const Step& step : steps) result.push_back(step.name);
    return result;
  };
  const Plan deferred = plan_of(c, "fused", kHopper);
  CHECK(names(deferred.steps()) == std::vector<std::string>{"qkv.squares of x", "qkv.product qkv, rope",
                                                            "attention.attention", "attn_out.product o + residual",
                                                            "mlp.product gate, up, swiglu",
                                                            "mlp.product down + residual"});
  CHECK(names(deferred.preparation()) == std::vector<std::string>{"qkv.prepare wq, wk, wv", "qkv.fold the norm",
                                                                  "mlp.prepare w_gate, w_up", "mlp.fold the norm"});
  const Plan plain = plan_of(c, "fused.portable", kHopper);
  CHECK(plain.launches() == 7);
  CHECK(deferred.modelled_bytes() < plain.modelled_bytes());
  // An MLP by itself has no product before it to sum its squares.
  Case mlp = c;
  mlp.op = Op::mlp;
  CHECK(plan_of(canonical(mlp), "fused", kHopper).launches() == 3);
}

TEST_CASE("naive and fused take the same steps on both backends", "[variants]") {
  if (!is_built(Backend::cuda) && testing::skip("this build has no CUDA")) return;
  for (const Op op : kOps) {
    for (const Case& c : testing::conventions(op)) {
      for (const char* variant : {"naive", "fused"}) {
        INFO(case_id(c) << " " << variant);
        Case half = c;
        half.dtype = DType::bf16;
        CHECK(structure_of(plan_of(half, variant, kHopper)) == structure_of(plan_of(c, variant)));
      }
    }
  }
}

TEST_CASE("flash takes the library's steps around attention, and fused's for attention", "[variants]") {
  for (const Target& target : {Target{}, kHopper}) {
    if (!is_built(target.backend) && testing::skip("this build has no CUDA")) continue;
    const std::string library(library_name(target.backend));
    for (Case c : testing::conventions(Op::block)) {
      if (target.backend == Backend::cuda) c.dtype = DType::bf16;
      INFO(case_id(c) << " " << library);
      const Plan without = plan_of(c, library, target), plan = plan_of(c, library + "_flash", target);
      const BlockSteps flash(plan);
      CHECK(flash.others == BlockSteps(without).others);
      CHECK(plan.modelled_bytes() < without.modelled_bytes());
      // Without a cache v stays where the merged product left it.
      REQUIRE(flash.attention.size() == 1);
      const std::string in_merged = " of qkv.q, k, v before rope; writes ";
      CHECK((flash.attention[0].find(in_merged) != std::string::npos) == (c.past == 0));
      if (c.past > 0) CHECK(flash.attention == BlockSteps(plan_of(c, "fused", target)).attention);
    }
  }
}

TEST_CASE("a plan's tensors have names of their own, so that a record can name them", "[variants]") {
  for (const Op op : kOps) {
    for (const Case& c : testing::conventions(op)) {
      for (const char* variant : {"naive", "eigen", "fused"}) {
        std::set<std::string> names;
        const Plan plan = plan_of(c, variant);
        for (const PlanTensor& tensor : plan.tensors()) names.insert(tensor.name);
        INFO(case_id(c) << " " << variant);
        CHECK(names.size() == plan.tensors().size());
      }
    }
  }
}

TEST_CASE("limits are named", "[variants]") {
  const AttentionShape wide{.head_dim = 257};
  const AttentionShape widest{.head_dim = 256};
  CHECK(choose_attention(kHopper, KernelChoice::best, DType::fp16, widest) == kernels::AttentionKernel::portable);
  for (const Target& target : {kHopper, Target{}}) {
    try {
      choose_attention(target, KernelChoice::best, DType::fp16, wide);
      FAIL("head_dim 257 was taken");
    } catch (const Unsupported& limit) {
      CHECK_THAT(limit.what(), ContainsSubstring("256") && ContainsSubstring("257"));
    }
  }
  try {
    gemm(kHopper, 64, DType::fp32);
    FAIL("fp32 was taken");
  } catch (const Unsupported& limit) {
    CHECK_THAT(limit.what(), ContainsSubstring("fp32"));
  }
  Target turing = kHopper;
  turing.compute_capability = 75;
  try {
    gemm(turing, 64);
    FAIL("compute capability 7.5 was taken");
  } catch (const Unsupported& limit) {
    CHECK_THAT(limit.what(), ContainsSubstring("8.0") && ContainsSubstring("7.5"));
  }
}

TEST_CASE("a plan of fused names its limit, the other variants' plans have none", "[variants]") {
  const auto wide = [](Op op, std::int64_t head_dim, DType dtype) {
    return canonical({.op = op, .dtype = dtype, .dim = 2 * head_dim, .hidden = 8, .heads = 2, .batch = 2, .seq = 3});
  };
  for (const Op op : {Op::attention, Op::block}) {
    INFO(name_of(op));
    CHECK_THAT(limit_of(wide(op, 264, DType::fp32), "fused", {}),
               ContainsSubstring("head_dim up to 256") && ContainsSubstring("264"));
    CHECK(limit_of(wide(op, 256, DType::fp32), "fused", {}) == "");
    for (const char* variant : {"naive", "eigen"}) CHECK(limit_of(wide(op, 264, DType::fp32), variant, {}) == "");
  }

  if (!is_built(Backend::cuda) && testing::skip("this build has no CUDA")) return;
  Target turing = kHopper;
  turing.compute_capability = 75;
  for (const Op op : {Op::attention, Op::qkv, Op::attn_out, Op::mlp, Op::block}) {
    INFO(name_of(op));
    std::vector<std::string> variants = {"fused", "fused.portable"};
    if (op == Op::block) variants.emplace_back("cublas_flash");
    for (const std::string& variant : variants) {
      CHECK_THAT(limit_of(wide(op, 64, DType::fp32), variant, kHopper), ContainsSubstring("fp32"));
      CHECK_THAT(limit_of(wide(op, 64, DType::fp16), variant, turing),
                 ContainsSubstring("8.0") && ContainsSubstring("7.5"));
      CHECK(limit_of(wide(op, 64, DType::fp16), variant, kHopper) == "");
      const bool limited = op == Op::attention || op == Op::block;
      CHECK((limit_of(wide(op, 264, DType::fp16), variant, kHopper) != "") == limited);
    }
    for (const char* variant : {"naive", "cublas"}) {
      for (const DType dtype : {DType::fp16, DType::bf16, DType::fp32}) {
        CHECK(limit_of(wide(op, 264, dtype), variant, kHopper) == "");
        CHECK(limit_of(wide(op, 64, dtype), variant, turing) == "");
      }
    }
  }
  for (const Op op : {Op::rmsnorm, Op::add_rmsnorm, Op::rope, Op::swiglu}) {
    INFO(name_of(op));
    CHECK(limit_of(wide(op, 264, DType::fp32), "fused", turing) == "");
  }
}
