#include "variants/standard.h"

namespace fusebench {
namespace {

Planner planner(Append append, KernelChoice choice = KernelChoice::best) {
  return [=](const Case& c, const Target& target) {
    Plan plan(spec_of(c));
    append({.plan = plan, .c = c, .target = target, .choice = choice});
    return plan;
  };
}

}  // namespace

std::vector<Variant> standard_variants(const StandardOp& op) {
  const std::vector<DType> half = {DType::fp16, DType::bf16};
  const std::vector<DType> every = {DType::fp16, DType::bf16, DType::fp32};
  std::vector<Variant> variants;
  for (const Backend backend : {Backend::cpu, Backend::cuda}) {
    const bool cuda = backend == Backend::cuda;
    const auto enter = [&](std::string_view name, std::vector<DType> dtypes, Planner plan) {
      variants.push_back({.name = std::string(name),
                          .op = op.op,
                          .backend = backend,
                          .dtypes = cuda ? std::move(dtypes) : std::vector<DType>{DType::fp32},
                          .plan = std::move(plan)});
    };
    enter("naive", every, planner(op.naive));
    enter(library_name(backend), every, planner(op.library));
    if (op.library_flash != nullptr) {
      enter(std::string(library_name(backend)) + "_flash", half, planner(op.library_flash));
    }
    enter("fused", op.has_product ? half : every, planner(op.fused));
    if (cuda && op.has_product) enter("fused.portable", half, planner(op.fused, KernelChoice::portable));
  }
  return variants;
}

}  // namespace fusebench
