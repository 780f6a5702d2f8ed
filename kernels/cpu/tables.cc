#include "kernels/cpu/ops.h"

namespace fusebench::kernels {

const Elementwise& cpu_elementwise() {
  static constexpr Elementwise table{
      .add = cpu::add,
      .rmsnorm = cpu::rmsnorm,
      .rope = cpu::rope,
      .copy_rows = cpu::copy_rows,
      .masked_softmax = cpu::masked_softmax,
      .swiglu = cpu::swiglu,
  };
  return table;
}

const Fused& cpu_fused() {
  static constexpr Fused table{
      .rmsnorm = cpu::rmsnorm,
      .add_rmsnorm = cpu::add_rmsnorm,
      .rope = cpu::rope,
      .swiglu = cpu::swiglu,
      .attention = cpu::attention,
      .product_residual = cpu::product_residual,
      .product_rope = cpu::product_rope,
      .product_swiglu = cpu::product_swiglu,
      .prepare_qkv = cpu::prepare_qkv,
      .prepare_gate_up = cpu::prepare_gate_up,
  };
  return table;
}

}  // namespace fusebench::kernels
