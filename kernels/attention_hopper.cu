// Chooses the head's size and launches kernels/attention_hopper.cuh.
#include "kernels/attention_hopper.cuh"

#include <array>

#include "kernels/attention_launch.cuh"
#include "kernels/hopper_launch.cuh"

namespace fusebench::kernels::cuda {
namespace {

template <typename T, typename Tile>
void launch_tiles(const AttentionCall& call) {
  const AttentionShape& s = call.shape;
  const std::int64_t tiles = ceil_div<std::int64_t>(s.seq, Tile::rows) * s.batch * s.heads;
  if (std::max({tiles, s.keys, s.seq}) > INT32_MAX / 2)
    throw std::invalid_argument("attention: over 2^30 tiles or keys");
  const auto map = [&](const void* base, std::int64_t heads, std::int64_t rows, std::int64_t stride, int box_rows) {
    return tensor_map(call.dtype, base,
                      std::array{TensorDimension{s.head_dim, 1, 64}, TensorDimension{heads, s.head_dim, 1},
                                 TensorDimension{rows, stride, box_rows}, TensorDimension{s.batch, rows * stride, 1}});
  };
  // The fewest heads that keep every multiprocessor at work leave the most of L2 to their k and v.
  const std::int64_t group = s.heads / s.kv_heads, clusters = multiprocessors() / Tile::cluster;
  const std::int64_t units = AttentionSchedule<Tile>::units(static_cast<int>(s.seq), s.causal);
  const std::int64_t busy_heads = ceil_div(clusters, units) * Tile::twin_heads;
  const std::int64_t heads_at_once =
      std::min(attention_heads_at_once(s, sizeof(T)) * group, ceil_div(busy_heads, group) * group);
  const HopperAttentionShape shape{
      .batch = static_cast<int>(s.batch),
      .seq = static_cast<int>(s.seq),
      .keys = static_cast<int>(s.keys),
      .heads = static_cast<int>(s.heads),
      .kv_heads = static_cast<int>(s.kv_heads),
      .causal = s.causal,
      .heads_at_once = static_cast<int>(heads_at_once),
      .scale_log2 = static_cast<float>(std::numbers::log2e / std::sqrt(static_cast<double>(s.head_dim)))};
  launch_hopper_kernel(call.exec, attention_hopper<T, Tile>,
                       std::min(units * s.batch * s.heads / Tile::twin_heads, clusters) * Tile::cluster, Tile::threads,
                       Tile::shared_bytes, Tile::cluster, map(call.q, s.heads, s.seq, s.heads * s.head_dim, Tile::rows),
                       map(call.k, s.kv_heads, s.keys, s.key_stride(), Tile::part_keys),
                       map(call.v, s.kv_heads, s.keys, s.resolved_value_stride(), Tile::part_keys),
                       static_cast<T*>(call.out), shape);
}

template <typename T, int HeadDim, int Stages>
void launch(const AttentionCall& call) {
  const AttentionShape& s = call.shape;
  if (s.heads / s.kv_heads % 2 == 0) return launch_tiles<T, HopperAttentionTile<HeadDim, Stages, Twins::heads>>(call);
  const std::int64_t row_tiles = ceil_div<std::int64_t>(s.seq, HopperAttentionTile<HeadDim, Stages, Twins::none>::rows);
  if (row_tiles % 2 == 0) return launch_tiles<T, HopperAttentionTile<HeadDim, Stages, Twins::rows>>(call);
  launch_tiles<T, HopperAttentionTile<HeadDim, Stages, Twins::none>>(call);
}

}  // namespace

void launch_attention_hopper(const AttentionCall& call) {
  dispatch_half(call.dtype, [&]<typename T>() {
    if (call.shape.head_dim == 64) return launch<T, 64, 4>(call);
    launch<T, 128, 3>(call);
  });
}

}  // namespace fusebench::kernels::cuda
