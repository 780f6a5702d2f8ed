// Variants against each other on the CPU, who is registered, and how kernels are chosen.
#include <set>

#include "tests/catch.h"
#include "tests/conventions.h"
#include "tests/host_run.h"
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
  return choose_gemm(target, KernelChoice::best, dtype, 64, 64, k);
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
            CHECK(other.at(tensor.name) == before.at(tensor.name));
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

TEST_CASE("every op has naive, the library and fused, first and in that order", "[variants]") {
  const std::set<Op> without_product = {Op::rmsnorm, Op::add_rmsnorm, Op::rope, Op::swiglu};
  for (const Backend backend : {Backend::cpu, Backend::cuda}) {
    for (const Op op : kOps) {
      INFO(name_of(op) << " on " << name_of(backend));
      const std::vector<const Variant*> variants = registry().all(op, backend);
      if (!is_built(backend)) {
        CHECK(variants.empty());
        continue;
      }
      REQUIRE(variants.size() >= 3);
      CHECK(variants[0]->name == "naive");
      CHECK(variants[1]->name == library_name(backend));
      CHECK(variants[2]->name == "fused");
      const bool has_product = without_product.count(op) == 0;
      const bool cuda = backend == Backend::cuda;
      CHECK((registry().find(op, backend, "fused.portable") != nullptr) == (cuda && has_product));
      for (std::size_t i = 0; i < 3; ++i) {
        CHECK(variants[i]->dtypes.size() == (!cuda ? 1 : i == 2 && has_product ? 2 : 3));
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
  }
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
  Case c = testing::small(Op::attention, 1, 1);
  c.dim = 257;
  CHECK_THROWS_AS(plan_of(c, "fused"), Unsupported);
  CHECK_NOTHROW(plan_of(c, "eigen"));
}
