// The vocabulary that kernels share with everything above them: element types, conventions and where work runs.
#pragma once

#include <cstdint>
#include <string_view>

struct CUstream_st;  // what cudaStream_t points to: this header needs no CUDA

namespace fusebench {

enum class DType : std::uint8_t { fp16, bf16, fp32 };

constexpr std::int64_t bytes_of(DType dtype) { return dtype == DType::fp32 ? 4 : 2; }
constexpr std::string_view name_of(DType dtype) {
  return dtype == DType::fp16 ? "fp16" : dtype == DType::bf16 ? "bf16" : "fp32";
}

/// Which elements of a head rotate together: (2i, 2i+1), the seed's, or (i, i + d/2), Hugging Face's layout.
enum class Pairing : std::uint8_t { interleaved, half };

constexpr std::string_view name_of(Pairing pairing) { return pairing == Pairing::half ? "half" : "interleaved"; }

enum class Backend : std::uint8_t { cpu, cuda };

constexpr std::string_view name_of(Backend backend) { return backend == Backend::cpu ? "cpu" : "cuda"; }

using Stream = CUstream_st*;

/// Where a launch goes. On the CPU `stream` is null and the launch has finished when it returns.
struct Exec {
  Backend backend = Backend::cpu;
  Stream stream = nullptr;
};

/// Token row t = b * seq + s of a dense [batch, seq] tensor lies at row b * capacity + past + s of a KV cache.
/// With past = 0 and capacity = seq the map is the identity.
struct RowMap {
  std::int64_t seq = 1;
  std::int64_t capacity = 1;
  std::int64_t past = 0;

#ifdef __CUDACC__
  __host__ __device__
#endif
      constexpr std::int64_t
      operator()(std::int64_t row) const {
    return row / seq * capacity + past + row % seq;
  }
};

/// q [batch, seq, heads, head_dim]; k and v [batch, keys, kv_heads, head_dim], keys = past + seq. Query s sees the
/// first keys - seq + s + 1 keys when causal, all of them otherwise; query head h reads kv head h / (heads / kv_heads).
/// v may be columns of a wider tensor, such as a product makes of q, k and v at once.
struct AttentionShape {
  std::int64_t batch = 1;
  std::int64_t seq = 1;
  std::int64_t keys = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
  bool causal = false;
  std::int64_t value_stride = 0;  ///< elements from a key's values to the next key's; 0: dense, as keys are

  constexpr std::int64_t key_stride() const { return kv_heads * head_dim; }
  constexpr std::int64_t resolved_value_stride() const { return value_stride == 0 ? key_stride() : value_stride; }
};

}  // namespace fusebench

namespace fusebench::kernels {

template <class T>
constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

}  // namespace fusebench::kernels
