// Not to be built: 64 values are alive in 32 registers.
namespace fusebench::kernels::cuda {

__global__ void __launch_bounds__(1024, 2) spilling(float* values, int rounds) {
  float v[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) v[i] = values[i * 1024 + threadIdx.x];
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < 64; ++i) v[i] = v[i] * v[(i + 7) % 64] + 1.0f;
  }
#pragma unroll
  for (int i = 0; i < 64; ++i) values[i * 1024 + threadIdx.x] = v[i];
}

}  // namespace fusebench::kernels::cuda
