// Chooses the tile of a padded head_dim and launches it.
#pragma once

#include <climits>
#include <cmath>
#include <numbers>

#include "kernels/attention.cuh"
#include "kernels/attention.h"

namespace fusebench::kernels::cuda {

/// Rows of a kv head: query heads of its group times positions.
inline std::int64_t attention_rows(const AttentionShape& shape) { return shape.seq * (shape.heads / shape.kv_heads); }

template <typename Tile>
std::int64_t attention_blocks(const AttentionShape& shape) {
  return ceil_div<std::int64_t>(attention_rows(shape), Tile::rows) * shape.batch * shape.kv_heads;
}

/// As many kv heads as have their k and v in half of L2; the other half is for q and out.
inline std::int64_t attention_heads_at_once(const AttentionShape& shape, std::int64_t element_bytes) {
  const std::int64_t head_bytes = 2 * shape.keys * shape.head_dim * element_bytes;
  return std::clamp<std::int64_t>(device_attribute<cudaDevAttrL2CacheSize>() / 2 / head_bytes, 1,
                                  shape.batch * shape.kv_heads);
}

template <typename T, typename Tile, bool Aligned>
void launch_attention_tile(const AttentionCall& call) {
  const std::int64_t blocks = attention_blocks<Tile>(call.shape);
  if (blocks > INT_MAX) throw std::invalid_argument("attention: too many rows for one launch");
  const double scale = std::numbers::log2e / std::sqrt(static_cast<double>(call.shape.head_dim));
  const AttentionArguments<T> args{.q = static_cast<const T*>(call.q),
                                   .k = static_cast<const T*>(call.k),
                                   .v = static_cast<const T*>(call.v),
                                   .out = static_cast<T*>(call.out),
                                   .shape = call.shape,
                                   .key_stride = call.shape.key_stride(),
                                   .value_stride = call.shape.resolved_value_stride(),
                                   .scale_log2 = static_cast<float>(scale),
                                   .heads_at_once = attention_heads_at_once(call.shape, sizeof(T))};
  const auto kernel = flash_attention<T, Tile, Aligned>;
  FUSEBENCH_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Tile::shared_bytes));
  FUSEBENCH_CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
  kernel<<<static_cast<unsigned>(blocks), Tile::threads, Tile::shared_bytes, stream_of(call.exec)>>>(args);
  FUSEBENCH_LAUNCH_CHECK(flash_attention);
}

template <typename T, int HeadDim>
void launch_attention_type(const AttentionCall& call) {
  // Keys and stages: what 99 KB and 255 registers can hold.
  using Small = AttentionTile<HeadDim, 1, HeadDim == 256 ? 32 : 64, HeadDim == 192 ? 1 : 2>;
  if (!call.aligned) {
    if constexpr (HeadDim != 96 && HeadDim != 192) return launch_attention_tile<T, Small, false>(call);
    throw std::invalid_argument("attention: no kernel with element loads for this padded head_dim");
  }
  if constexpr (HeadDim <= 128) {
    using Large = AttentionTile<HeadDim, 2, HeadDim == 128 ? 48 : 64, 2>;
    const bool fills_device = attention_blocks<Large>(call.shape) >= multiprocessors();
    if (fills_device && attention_rows(call.shape) > Small::rows) {
      return launch_attention_tile<T, Large, true>(call);
    }
  }
  launch_attention_tile<T, Small, true>(call);
}

template <int HeadDim>
void launch_attention(const AttentionCall& call) {
  dispatch_half(call.dtype, [&]<typename T>() { launch_attention_type<T, HeadDim>(call); });
}

}  // namespace fusebench::kernels::cuda
