// out = softmax(q·kᵀ / sqrt(head_dim) + mask)·v: checks what a kernel asks for, and pads head_dim to the next one
// built.
#include "kernels/attention.h"

#include "kernels/device.cuh"
#include "kernels/fused_cuda.h"

namespace fusebench::kernels::cuda {
namespace {

void check(const AttentionCall& call, AttentionKernel kernel) {
  const AttentionShape& shape = call.shape;
  if (kernel == AttentionKernel::cpu) throw std::invalid_argument("attention: not a CUDA kernel");
  if (shape.head_dim < 1 || shape.head_dim > 256) throw std::invalid_argument("attention: head_dim is not in 1..256");
  if (shape.kv_heads < 1 || shape.heads % shape.kv_heads != 0) {
    throw std::invalid_argument("attention: kv_heads does not divide heads");
  }
  const bool aligned = shape.head_dim % 8 == 0 && shape.value_stride % 8 == 0 && is_aligned_16(call.q) &&
                       is_aligned_16(call.k) && is_aligned_16(call.v) && is_aligned_16(call.out);
  if (call.aligned && !aligned) {
    throw std::invalid_argument(
        "attention: this kernel needs 16-byte aligned tensors, head_dim % 8 == 0 and value_stride % 8 == 0");
  }
  if (kernel == AttentionKernel::hopper && shape.head_dim != 64 && shape.head_dim != 128) {
    throw std::invalid_argument("attention: the Hopper kernel takes head_dim 64 and 128");
  }
}

}  // namespace

void attention(const Exec& exec, AttentionKernel kernel, DType dtype, const void* q, const void* k, const void* v,
               void* out, AttentionShape shape) {
  const AttentionCall call{exec, dtype, kernel != AttentionKernel::portable_unaligned, q, k, v, out, shape};
  check(call, kernel);
  if (kernel == AttentionKernel::hopper) return launch_attention_hopper(call);
  const bool all_sizes = call.aligned;
  if (shape.head_dim <= 64) return launch_attention<64>(call);
  if (shape.head_dim <= 96 && all_sizes) return launch_attention<96>(call);
  if (shape.head_dim <= 128) return launch_attention<128>(call);
  if (shape.head_dim <= 192 && all_sizes) return launch_attention<192>(call);
  launch_attention<256>(call);
}

}  // namespace fusebench::kernels::cuda
