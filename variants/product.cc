#include "variants/product.h"

#include <algorithm>
#include <stdexcept>

namespace fusebench {
namespace {

void check(const Planning& p, const ProductSpec& spec) {
  const auto refuse = [&](const std::string& why) { throw std::logic_error("product '" + spec.name + "': " + why); };
  const Plan& plan = p.plan;
  if (plan.tensor(spec.a.tensor).dtype != plan.tensor(spec.b.tensor).dtype) refuse("a and b differ in dtype");
  for (const Operand* operand : {&spec.a, &spec.b, &spec.c}) {
    if (operand->group < 1 || spec.heads % operand->group != 0) refuse("a group does not divide the heads");
  }
  if (spec.a.group != 1 && spec.b.group != 1 && spec.a.group != spec.b.group) refuse("a and b differ in their groups");
  if (spec.c.group != 1) refuse("two heads would write one matrix");
  if (spec.residual && spec.batches * spec.heads != 1) refuse("a residual goes with a single matrix");
  if (spec.residual && plan.tensor(*spec.residual).dtype != plan.tensor(spec.c.tensor).dtype) {
    refuse("the residual differs from c in dtype");
  }
}

/// Each distinct matrix once.
Access traffic(const Planning& p, const ProductSpec& spec, const Operand& operand, std::int64_t rows,
               std::int64_t cols) {
  return p.part(operand.tensor, spec.batches * (spec.heads / operand.group) * rows, cols);
}

}  // namespace

ProductSpec dense_product(std::string name, TensorId a, TensorId b, TensorId c, std::int64_t m, std::int64_t n,
                          std::int64_t k) {
  return {.name = std::move(name),
          .a = {.tensor = a, .stride = k},
          .b = {.tensor = b, .stride = k},
          .c = {.tensor = c, .stride = n},
          .m = m,
          .n = n,
          .k = k};
}

void add_product(const Planning& p, ProductSpec spec) {
  check(p, spec);
  Step step{.name = spec.name,
            .reads = {traffic(p, spec, spec.a, spec.m, spec.k), traffic(p, spec, spec.b, spec.n, spec.k)},
            .writes = {traffic(p, spec, spec.c, spec.m, spec.n)},
            .flops = spec.flops ? *spec.flops
                                : static_cast<double>(spec.batches) * static_cast<double>(spec.heads) *
                                      product_flops(spec.m, spec.n, spec.k)};
  if (spec.residual) step.reads.push_back(p.part(*spec.residual, spec.m, spec.n));
  spec.name = p.scope + spec.name;
  library_product(p.target.backend)(p.plan, spec, step);
  p.add(std::move(step));
}

TensorId stack_weights(const Planning& p, const std::string& name, const std::vector<TensorId>& weights) {
  std::int64_t rows = 0;
  for (const TensorId weight : weights) rows += p.plan.tensor(weight).rows;
  const std::int64_t cols = p.plan.tensor(weights.at(0)).cols;
  const TensorId stack = p.prepared(name, rows, cols);
  Columns place{.tensor = stack, .offset = 0, .stride = cols};
  for (const TensorId weight : weights) {
    const std::int64_t count = p.plan.tensor(weight).rows;
    p.add_prepare({.name = "copy " + p.plan.tensor(weight).name,
                   .kernel = "vector_copy_rows",
                   .reads = {p.all(weight)},
                   .writes = {p.part(stack, count, cols)},
                   .launch = [=, run = elementwise(p.target.backend).copy_rows, dtype = p.c.dtype](
                                 const Exec& exec, const Bindings& bound) {
                     run(exec, dtype, bound.at(weight), cols, place.at(bound, dtype), cols, count, cols,
                         {.seq = count, .capacity = count, .past = 0});
                   }});
    place.offset += count * cols;
  }
  return stack;
}

std::vector<BatchLevel> batch_levels(const ProductSpec& spec) {
  // Heads split into kv heads and the query heads that share one: inside a group a shared operand does not move.
  const std::int64_t group = std::max({spec.a.group, spec.b.group, spec.c.group});
  const auto head_stride = [&](const Operand& operand, bool inside) {
    if (operand.group == group && group > 1) return inside ? 0 : operand.head_stride;
    return inside ? operand.head_stride : group * operand.head_stride;
  };
  std::vector<BatchLevel> levels;
  for (const BatchLevel& level :
       {BatchLevel{spec.batches, spec.a.batch_stride, spec.b.batch_stride, spec.c.batch_stride},
        BatchLevel{spec.heads / group, head_stride(spec.a, false), head_stride(spec.b, false),
                   head_stride(spec.c, false)},
        BatchLevel{group, head_stride(spec.a, true), head_stride(spec.b, true), head_stride(spec.c, true)}}) {
    if (level.extent == 1) continue;
    if (!levels.empty()) {
      BatchLevel& outer = levels.back();
      if (outer.a_stride == level.extent * level.a_stride && outer.b_stride == level.extent * level.b_stride &&
          outer.c_stride == level.extent * level.c_stride) {
        outer = {outer.extent * level.extent, level.a_stride, level.b_stride, level.c_stride};
        continue;
      }
    }
    levels.push_back(level);
  }
  return levels;
}

}  // namespace fusebench
