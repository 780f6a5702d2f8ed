// Portable tensor-core attention for sm_80 and later: out = softmax(q·kᵀ / sqrt(d) + mask)·v with the online softmax of
// FlashAttention-2 (Dao, 2023): scores stay in registers, and are the left operand of the second product there.
//
// q and out [batch, seq, heads, d], k and v [batch, keys, kv_heads, d] in fp16 or bf16; scores and sums in fp32. The
// query heads that share a kv head count as rows: row r of a kv head is position r / group, head r % group of its
// group. A block takes Tile::rows of these rows, reads every key that one of them sees, Tile::keys at a time, and
// writes its part of out. A warp owns 16 · Tile::fragments rows. d is padded to Tile::head_dim with zeros in shared
// memory. v's keys may lie further apart than k's.
//
// Shared memory: q's rows, then `stages` tiles of k, then of v, filled by cp.async. Rows are stored in chunks of 16
// bytes; chunk c of row r lies at c XOR (r % 8), so that the eight rows of an 8x8 matrix fall in different banks. At
// the end out's rows lie where q's were.
//
// Keys beyond the last one score -inf, and their v is 0. A row that sees no key becomes 0.
#pragma once

#include <bit>

#include "kernels/device.cuh"
#include "kernels/mma.cuh"
#include "kernels/online_softmax.cuh"

namespace fusebench::kernels::cuda {

template <int HeadDim, int Fragments, int Keys, int Stages>
struct AttentionTile {
  static constexpr int head_dim = HeadDim, fragments = Fragments, keys = Keys, stages = Stages;
  static constexpr int blocks_per_sm = 2;
  static constexpr int warps = 4, threads = 32 * warps;
  static constexpr int warp_rows = 16 * Fragments, rows = warps * warp_rows;
  static constexpr int chunks = HeadDim / 8;  ///< 16-byte chunks of a row that hold elements
  static constexpr int row_bytes = (chunks + 7) / 8 * 128;
  static constexpr int q_bytes = rows * row_bytes, kv_bytes = keys * row_bytes;
  static constexpr int shared_bytes = q_bytes + 2 * Stages * kv_bytes;
  static constexpr bool q_in_registers = Fragments == 1 && HeadDim <= 128;

  static_assert(HeadDim % 16 == 0 && Keys % 16 == 0 && (Stages == 1 || Stages == 2));
  static_assert(shared_bytes <= 99 * 1024, "what sm_86 and sm_89 can give a block");

  static __device__ __forceinline__ int offset(int row, int chunk) {
    return row * row_bytes + (chunk ^ (row & 7)) * 16;
  }
};

template <typename T>
struct AttentionArguments {
  const T* q;
  const T* k;
  const T* v;
  T* out;
  AttentionShape shape;
  std::int64_t key_stride;     ///< elements from key to key in k
  std::int64_t value_stride;   ///< the same in v
  float scale_log2;            ///< log2(e) / sqrt(d): probabilities are powers of two
  std::int64_t heads_at_once;  ///< kv heads, of all batches, whose blocks run side by side: their k and v share L2
};

/// A block's rows. It lies in shared memory: registers are short, and the loop over tiles needs little of it.
template <typename Tile>
struct AttentionBlock {
  std::int64_t first_query;  ///< offset in q and out of the first row's position, first head of the group
  std::int64_t first_key;    ///< offset in k
  std::int64_t first_value;  ///< offset in v
  std::int64_t sees;         ///< keys that the first row's position sees, if causal; <= 0 where it sees none
  int group;
  int first_in_group;
  int rows;  ///< that exist

  /// Blocks of `heads_at_once` heads alternate, those with the most visible keys first.
  __device__ void locate(const AttentionShape& shape, std::int64_t heads_at_once) {
    group = static_cast<int>(shape.heads / shape.kv_heads);
    const std::int64_t total_rows = shape.seq * group;
    const std::int64_t row_tiles = ceil_div<std::int64_t>(total_rows, Tile::rows);
    const std::int64_t section = blockIdx.x / (heads_at_once * row_tiles);
    const std::int64_t within = blockIdx.x - section * heads_at_once * row_tiles;
    const std::int64_t section_heads = min(heads_at_once, shape.batch * shape.kv_heads - section * heads_at_once);
    const std::int64_t head = section * heads_at_once + within % section_heads;
    const std::int64_t batch = head / shape.kv_heads, kv_head = head % shape.kv_heads;
    const std::int64_t first_row = (row_tiles - 1 - within / section_heads) * Tile::rows;
    const std::int64_t position = first_row / group;
    first_query = ((batch * shape.seq + position) * shape.heads + kv_head * group) * shape.head_dim;
    first_key = batch * shape.keys * shape.key_stride() + kv_head * shape.head_dim;
    first_value = batch * shape.keys * shape.resolved_value_stride() + kv_head * shape.head_dim;
    sees = shape.keys - shape.seq + position + 1;
    first_in_group = static_cast<int>(first_row % group);
    rows = static_cast<int>(min(total_rows - first_row, std::int64_t{Tile::rows}));
  }

  /// How many keys, from the first on, row `row` of the block sees; never fewer than the row before it.
  __device__ __forceinline__ std::int64_t visible(const AttentionShape& shape, int row) const {
    if (!shape.causal) return shape.keys;
    return min(max(sees + (first_in_group + row) / group, std::int64_t{0}), shape.keys);
  }

  /// Offset of row `row` of the block in q and out.
  __device__ __forceinline__ std::int64_t query_offset(const AttentionShape& shape, int row) const {
    const int from_first = first_in_group + row;
    return first_query + (from_first / group * shape.heads + from_first % group) * shape.head_dim;
  }
};

/// Eight elements to shared memory, of which `left` exist and the rest become 0; none are read where left <= 0.
template <bool Aligned, typename T>
__device__ __forceinline__ void copy_chunk(unsigned char* shared, const T* global, int left) {
  if constexpr (Aligned) {  // head_dim % 8 == 0: a chunk lies wholly inside or wholly outside
    cp_async16(shared_address(shared), global, left > 0 ? 16 : 0);
  } else {
    const auto* source = reinterpret_cast<const std::uint16_t*>(global);
    std::uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t low = 2 * i < left ? source[2 * i] : 0u;
      const std::uint32_t high = 2 * i + 1 < left ? source[2 * i + 1] : 0u;
      words[i] = low | high << 16;
    }
    *reinterpret_cast<uint4*>(shared) = make_uint4(words[0], words[1], words[2], words[3]);
  }
}

/// A thread's part in filling rows: the same chunk of every `row_step`-th row.
template <typename Tile>
struct CopyLane {
  static constexpr int columns = static_cast<int>(std::bit_ceil(static_cast<unsigned>(Tile::chunks)));
  static constexpr int row_step = Tile::threads / columns;
  static_assert(Tile::keys % row_step == 0);

  int row = static_cast<int>(threadIdx.x) / columns;
  int chunk = static_cast<int>(threadIdx.x) % columns;
};

/// Fills the block's rows of q.
template <typename Tile, bool Aligned, typename T>
__device__ __forceinline__ void copy_queries(unsigned char* shared, const T* q, const AttentionBlock<Tile>& block,
                                             const AttentionShape& shape) {
  const CopyLane<Tile> lane;
  if (lane.chunk >= Tile::chunks) return;
  const int left = static_cast<int>(shape.head_dim) - lane.chunk * 8;
  for (int row = lane.row; row < Tile::rows; row += lane.row_step) {
    copy_chunk<Aligned>(shared + Tile::offset(row, lane.chunk), q + block.query_offset(shape, row) + lane.chunk * 8,
                        row < block.rows ? left : 0);
  }
}

/// Fills a tile of k or v: `rows` rows from `first` on, `stride` elements apart, then zeros.
template <typename Tile, bool Aligned, typename T>
__device__ __forceinline__ void copy_keys(unsigned char* shared, const T* first, std::int64_t stride, int rows,
                                          int head_dim) {
  const CopyLane<Tile> lane;
  if (lane.chunk >= Tile::chunks) return;
  const int left = head_dim - lane.chunk * 8;
  const T* source = first + lane.row * stride + lane.chunk * 8;
#pragma unroll
  for (int i = 0; i < Tile::keys / lane.row_step; ++i) {
    const int row = lane.row + i * lane.row_step;
    copy_chunk<Aligned>(shared + Tile::offset(row, lane.chunk), source, row < rows ? left : 0);
    source += lane.row_step * stride;
  }
}

/// The address for ldmatrix of chunks 2 · pair and 2 · pair + 1, given a lane's address for pair 0.
__device__ __forceinline__ std::uint32_t at_pair(std::uint32_t lane_address, int pair) {
  return (lane_address ^ (pair * 32 & 127)) + (pair * 32 & ~127);
}

/// A warp's rows: accumulators in the fragment layout of mma.cuh, rows lane / 4 and lane / 4 + 8 of each 16.
template <typename T, typename Tile>
class AttentionWarp {
  static constexpr int m16 = Tile::fragments, d16 = Tile::head_dim / 16, key16 = Tile::keys / 16;

 public:
  /// q, k and v point at the tiles in shared memory, k and v at their first stage.
  __device__ AttentionWarp(std::uint32_t q, std::uint32_t k, std::uint32_t v, float scale_log2)
      : scale_(scale_log2), first_row_(static_cast<int>(threadIdx.x) / 32 * Tile::warp_rows) {
    const int low = lane() % 8, middle = lane() / 8 % 2, high = lane() / 16;
    q_ = q + (first_row_ + middle * 8 + low) * Tile::row_bytes + (high ^ low) * 16;
    k_ = k + (high * 8 + low) * Tile::row_bytes + (middle ^ low) * 16;
    v_ = v + (middle * 8 + low) * Tile::row_bytes + (high ^ low) * 16;
#pragma unroll
    for (auto& rows : max_) rows[0] = rows[1] = -INFINITY;
  }

  /// Once q is in shared memory.
  __device__ __forceinline__ void load_queries() {
    if constexpr (Tile::q_in_registers) {
#pragma unroll
      for (int step = 0; step < d16; ++step) ldmatrix_x4(q_fragments_[step], at_pair(q_, step));
    }
  }

  /// scores = q · kᵀ, unscaled
  __device__ __forceinline__ void score(int stage) {
#pragma unroll
    for (int m = 0; m < m16; ++m) {
#pragma unroll
      for (int n = 0; n < 2 * key16; ++n) {
#pragma unroll
        for (float& score : scores_[m][n]) score = 0.0f;
      }
    }
    const std::uint32_t k = k_ + stage * Tile::kv_bytes;
#pragma unroll
    for (int step = 0; step < d16; ++step) {
      std::uint32_t a[m16][4];
#pragma unroll
      for (int m = 0; m < m16; ++m) {
        if constexpr (Tile::q_in_registers) {
#pragma unroll
          for (int i = 0; i < 4; ++i) a[m][i] = q_fragments_[step][i];
        } else {
          ldmatrix_x4(a[m], at_pair(q_ + m * 16 * Tile::row_bytes, step));
        }
      }
#pragma unroll
      for (int n = 0; n < key16; ++n) {
        std::uint32_t b[4];
        ldmatrix_x4(b, at_pair(k + n * 16 * Tile::row_bytes, step));
#pragma unroll
        for (int m = 0; m < m16; ++m) {
          mma_m16n8k16<T>(scores_[m][2 * n], a[m], b[0], b[1]);
          mma_m16n8k16<T>(scores_[m][2 * n + 1], a[m], b[2], b[3]);
        }
      }
    }
  }

  /// Scores of keys that a row does not see become -inf; the tile starts at `first_key`.
  __device__ __forceinline__ void mask(const AttentionBlock<Tile>& block, const AttentionShape& shape,
                                       std::int64_t first_key) {
#pragma unroll
    for (int m = 0; m < m16; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::int64_t visible = block.visible(shape, row(m, half)) - first_key;
        const int limit = static_cast<int>(min(max(visible, std::int64_t{0}), std::int64_t{Tile::keys}));
#pragma unroll
        for (int n = 0; n < 2 * key16; ++n) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            if (n * 8 + lane() % 4 * 2 + e >= limit) scores_[m][n][2 * half + e] = -INFINITY;
          }
        }
      }
    }
  }

  /// Scores become probabilities relative to the new maximum; earlier sums follow it. The maximum is kept as it is
  /// subtracted, scaled and rounded, so that whatever rounding did to it cancels, for logits of any size.
  __device__ __forceinline__ void exponentiate() {
#pragma unroll
    for (int m = 0; m < m16; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float tile_max = -INFINITY;
#pragma unroll
        for (int n = 0; n < 2 * key16; ++n) {
          tile_max = fmaxf(tile_max, fmaxf(scores_[m][n][2 * half], scores_[m][n][2 * half + 1]));
        }
        tile_max = quad_max(tile_max);
        const float max = fmaxf(max_[m][half], tile_max * scale_);
        const float offset = max == -INFINITY ? 0.0f : max;  // nothing visible yet: powers of -inf, not of NaN
        const float correction = power_of_two(max_[m][half] - offset);
        max_[m][half] = max;
        float sum = 0.0f;
#pragma unroll
        for (int n = 0; n < 2 * key16; ++n) {
#pragma unroll
          for (int e = 2 * half; e < 2 * half + 2; ++e) {
            scores_[m][n][e] = power_of_two(fmaf(scores_[m][n][e], scale_, -offset));
            sum += scores_[m][n][e];
          }
        }
        sum_[m][half] = fmaf(sum_[m][half], correction, sum);
#pragma unroll
        for (int n = 0; n < 2 * d16; ++n) {
          out_[m][n][2 * half] *= correction;
          out_[m][n][2 * half + 1] *= correction;
        }
      }
    }
  }

  /// out += probabilities · v
  __device__ __forceinline__ void weigh(int stage) {
    const std::uint32_t v = v_ + stage * Tile::kv_bytes;
#pragma unroll
    for (int step = 0; step < key16; ++step) {
      std::uint32_t a[m16][4];
#pragma unroll
      for (int m = 0; m < m16; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float(&p)[4] = scores_[m][2 * step + i / 2];
          a[m][i] = pack<T>(p[i % 2 * 2], p[i % 2 * 2 + 1]);
        }
      }
#pragma unroll
      for (int n = 0; n < d16; ++n) {
        std::uint32_t b[4];
        ldmatrix_x4_trans(b, at_pair(v + step * 16 * Tile::row_bytes, n));
#pragma unroll
        for (int m = 0; m < m16; ++m) {
          mma_m16n8k16<T>(out_[m][2 * n], a[m], b[0], b[1]);
          mma_m16n8k16<T>(out_[m][2 * n + 1], a[m], b[2], b[3]);
        }
      }
    }
  }

  /// out, divided by the sums, through this warp's rows of `shared` to memory.
  template <bool Aligned>
  __device__ __forceinline__ void store(unsigned char* shared, T* out, const AttentionBlock<Tile>& block,
                                        const AttentionShape& shape) {
    const int head_dim = static_cast<int>(shape.head_dim);
#pragma unroll
    for (int m = 0; m < m16; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float sum = quad_sum(sum_[m][half]);
        const float scale = sum == 0.0f ? 0.0f : 1.0f / sum;  // 0: no key was visible
#pragma unroll
        for (int n = 0; n < 2 * d16; ++n) {
          *reinterpret_cast<std::uint32_t*>(shared + Tile::offset(row(m, half), n) + lane() % 4 * 4) =
              pack<T>(out_[m][n][2 * half] * scale, out_[m][n][2 * half + 1] * scale);
        }
      }
    }
    __syncwarp();
    for (int i = lane(); i < Tile::warp_rows * Tile::chunks; i += 32) {
      const int row = first_row_ + i / Tile::chunks, chunk = i % Tile::chunks;
      if (row < block.rows && chunk * 8 < head_dim) {
        store_chunk<Aligned>(out + block.query_offset(shape, row) + chunk * 8, shared + Tile::offset(row, chunk),
                             head_dim - chunk * 8);
      }
    }
  }

 private:
  /// The block's row that a lane's accumulators 2 · half and 2 · half + 1 belong to.
  __device__ __forceinline__ int row(int m, int half) const { return first_row_ + m * 16 + half * 8 + lane() / 4; }

  template <bool Aligned>
  static __device__ __forceinline__ void store_chunk(T* out, const unsigned char* shared, int left) {
    if constexpr (Aligned) {
      *reinterpret_cast<uint4*>(out) = *reinterpret_cast<const uint4*>(shared);
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (i < left) out[i] = reinterpret_cast<const T*>(shared)[i];
      }
    }
  }

  float scale_;
  int first_row_;
  std::uint32_t q_, k_, v_;  ///< this lane's addresses for ldmatrix
  std::uint32_t q_fragments_[Tile::q_in_registers ? d16 : 1][4];
  float scores_[m16][2 * key16][4];
  float out_[m16][2 * d16][4] = {};
  float max_[m16][2];       ///< scaled
  float sum_[m16][2] = {};  ///< this lane's part
};

template <typename T, typename Tile, bool Aligned>
__global__ void __launch_bounds__(Tile::threads, Tile::blocks_per_sm)
    flash_attention(const __grid_constant__ AttentionArguments<T> args) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ AttentionBlock<Tile> block;
  const AttentionShape& shape = args.shape;
  unsigned char* const k_shared = shared + Tile::q_bytes;
  unsigned char* const v_shared = k_shared + Tile::stages * Tile::kv_bytes;
  if (threadIdx.x == 0) block.locate(shape, args.heads_at_once);
  __syncthreads();
  const int head_dim = static_cast<int>(shape.head_dim);
  const int tiles = static_cast<int>(ceil_div<std::int64_t>(block.visible(shape, block.rows - 1), Tile::keys));
  const int whole_tiles = static_cast<int>(block.visible(shape, 0) / Tile::keys);  // all rows see all of their keys

  // Each call is one group of copies, an empty one past the last tile.
  const auto load = [&](const T* source, std::int64_t stride, unsigned char* target, int tile) {
    if (tile < tiles) {
      const std::int64_t first_key = static_cast<std::int64_t>(tile) * Tile::keys;
      const int rows = static_cast<int>(min(shape.keys - first_key, std::int64_t{Tile::keys}));
      copy_keys<Tile, Aligned>(target + tile % Tile::stages * Tile::kv_bytes, source + first_key * stride, stride, rows,
                               head_dim);
    }
    cp_async_commit();
  };
  const auto load_k = [&](int tile) { load(args.k + block.first_key, args.key_stride, k_shared, tile); };
  const auto load_v = [&](int tile) { load(args.v + block.first_value, args.value_stride, v_shared, tile); };

  AttentionWarp<T, Tile> warp(shared_address(shared), shared_address(k_shared), shared_address(v_shared),
                              args.scale_log2);
  copy_queries<Tile, Aligned>(shared, args.q, block, shape);
  load_k(0);
  if constexpr (Tile::stages == 2) load_v(0);

  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = tile % Tile::stages;
    // With two stages a tile's copies start one tile ahead. With one, v arrives while scores are computed and the next
    // k while v is used. Whatever a copy overwrites was last read before the barrier that precedes it.
    if constexpr (Tile::stages == 2) {
      load_k(tile + 1);
      cp_async_wait<2>();
      __syncthreads();
      load_v(tile + 1);
    } else {
      cp_async_wait<0>();
      __syncthreads();
      load_v(tile);
    }
    if (tile == 0) warp.load_queries();
    warp.score(stage);
    if (tile >= whole_tiles) warp.mask(block, shape, static_cast<std::int64_t>(tile) * Tile::keys);
    warp.exponentiate();
    if constexpr (Tile::stages == 2) {
      cp_async_wait<2>();
      __syncthreads();
    } else {
      cp_async_wait<0>();
      __syncthreads();
      load_k(tile + 1);
    }
    warp.weigh(stage);
  }
  cp_async_wait<0>();
  __syncthreads();  // q's last copies have landed, where there was no tile to wait for
  warp.template store<Aligned>(shared, args.out, block, shape);
}

}  // namespace fusebench::kernels::cuda
