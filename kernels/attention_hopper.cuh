// Attention for sm_90a: out = softmax(q·kᵀ / sqrt(d) + mask)·v by wgmma fed by TMA, with the online softmax and the
// overlap of FlashAttention-3 (Shah et al., 2024). Shapes and layouts as in kernels/attention.cuh; d is 64 or 128.
//
// One block stays on each multiprocessor and takes tile after tile: 128 positions of one query head. One thread of the
// first warpgroup loads q, and k and v in slices of 128 keys through a ring of stages. The two other warpgroups own 64
// positions each. A slice's scores S = q·kᵀ stay in registers, where they become the left operand P of O += P·v.
//
// Two things hide the softmax, which no tensor core does. Within a warpgroup the next slice's S is multiplied before
// this slice's P·v is waited for. Between the two, named barriers let one multiply while the other exponentiates.
//
// Two blocks form a cluster and take two tiles, twins, that read the same keys: those of two query heads of a group, or
// of neighbouring rows. Each loads one half of a slice and TMA delivers it to both, which halves what k and v cost of
// L2. Where neither goes, a block is alone. Of neighbouring rows, where the mask is causal, the upper twin leaves out a
// slice that the lower one alone sees.
//
// A row's maximum is looked for in its first slice alone. Later ones' powers are relative to it until their sum says
// that they grow too large; then the scores, which have become powers, are made anew.
//
// Slices are taken from the last one that a row of the tile sees down to the first, so that masks concern the first
// ones taken alone. Keys beyond the last score -inf; TMA fills their v with zeros. A row that sees no key becomes 0.
#pragma once

#include "kernels/attention.h"
#include "kernels/device.cuh"
#include "kernels/hopper.cuh"
#include "kernels/mma.cuh"
#include "kernels/online_softmax.cuh"
#include "kernels/pack.cuh"
#include "kernels/ring.cuh"
#include "kernels/tensor_map.h"

namespace fusebench::kernels::cuda {

enum class Twins : std::uint8_t { none, heads, rows };

template <int HeadDim, int Stages, Twins Of>
struct HopperAttentionTile {
  static constexpr int head_dim = HeadDim, stages = Stages;
  static constexpr int cluster = Of == Twins::none ? 1 : 2;
  static constexpr int twin_heads = Of == Twins::heads ? 2 : 1, twin_rows = Of == Twins::rows ? 2 : 1;
  static constexpr int warpgroups = 2, rows = 64 * warpgroups, keys = 128;
  static constexpr int threads = 128 * (1 + warpgroups);
  static constexpr int halves = HeadDim / 64;             ///< parts of 64 columns, as TMA's swizzle wants them
  static constexpr int half_bytes = rows * 128;           ///< of q; of k and v too, which have as many rows
  static constexpr int part_keys = keys / cluster;        ///< that a block loads
  static constexpr int tile_bytes = halves * half_bytes;  ///< q, or a stage of k or of v
  static constexpr int barriers_offset = tile_bytes * (1 + 2 * Stages);
  static constexpr int shared_bytes = hopper::kAlignBytes + barriers_offset + 8 * (2 + 4 * Stages);

  static_assert(rows == keys && shared_bytes <= 227 * 1024);
};

/// What a kernel knows of the whole: sizes in 32 bits, and the order of tiles.
struct HopperAttentionShape {
  int batch, seq, keys, heads, kv_heads;
  bool causal;
  int heads_at_once;  ///< query heads, of all batches, whose tiles run side by side: their k and v share L2
  float scale_log2;   ///< log2(e) / sqrt(d): probabilities are powers of two
};

/// A tile of q, and how many slices of keys it reads.
struct AttentionPlace {
  int batch, head, first_row, slices;
  int skipped;  ///< slices of later keys, taken first, that the other block of the cluster alone reads
};

/// Which tiles a cluster takes: every clusters-th unit of work. Heads come in sections, and in a section the heads'
/// units of the same rows side by side. Where the mask is causal a unit is two tiles for each block, the last and the
/// first of those left, which see as many keys together as any other two; otherwise it is one. A tile and its twin
/// count as one: `all_heads` and `heads` are pairs of heads, or row tiles are pairs.
template <typename Tile>
class AttentionSchedule {
 public:
  __device__ AttentionSchedule(const HopperAttentionShape& shape, int rank)
      : shape_(shape), rank_(rank), unit_(static_cast<int>(blockIdx.x) / Tile::cluster) {}

  /// Units of a head.
  __host__ __device__ static int units(int seq, bool causal) {
    const int row_tiles = ceil_div(seq, Tile::rows * Tile::twin_rows);
    return causal ? ceil_div(row_tiles, 2) : row_tiles;
  }

  __device__ __forceinline__ bool take(AttentionPlace& place) {
    const int units_of_head = units(shape_.seq, shape_.causal),
              all_heads = shape_.batch * shape_.heads / Tile::twin_heads;
    if (unit_ >= units_of_head * all_heads) return false;
    const int heads_at_once = shape_.heads_at_once / Tile::twin_heads;
    const int section = unit_ / (heads_at_once * units_of_head);
    const int within = unit_ - section * heads_at_once * units_of_head;
    const int heads = min(heads_at_once, all_heads - section * heads_at_once);
    const int head = (section * heads_at_once + within % heads) * Tile::twin_heads + rank_ % Tile::twin_heads;
    const int unit = within / heads, last_tile = ceil_div(shape_.seq, Tile::rows * Tile::twin_rows) - 1;
    place.batch = head / shape_.heads;
    place.head = head % shape_.heads;
    const int row_tile = second_ ? unit : last_tile - unit;
    second_ = shape_.causal && !second_ && row_tile != unit;
    if (!second_) unit_ += static_cast<int>(gridDim.x) / Tile::cluster;

    place.first_row = (row_tile * Tile::twin_rows + rank_ % Tile::twin_rows) * Tile::rows;
    place.slices = slices_of(place.first_row);
    place.skipped = 0;
    if constexpr (Tile::twin_rows > 1) {
      const int first_row = row_tile * Tile::twin_rows * Tile::rows;
      place.skipped = max(slices_of(first_row), slices_of(first_row + Tile::rows)) - place.slices;
    }
    return true;
  }

 private:
  __device__ __forceinline__ int slices_of(int first_row) const {
    if (first_row >= shape_.seq) return 0;
    const int last_row = min(first_row + Tile::rows, shape_.seq) - 1;
    const int seen = shape_.causal ? max(shape_.keys - shape_.seq + last_row + 1, 0) : shape_.keys;
    return ceil_div(min(seen, shape_.keys), Tile::keys);
  }

  const HopperAttentionShape& shape_;
  int rank_, unit_;
  bool second_ = false;
};

template <typename Tile>
struct AttentionMemory {
  std::uint32_t base;

  __device__ __forceinline__ std::uint32_t q() const { return base; }
  __device__ __forceinline__ std::uint32_t k(int stage) const { return base + (1 + 2 * stage) * Tile::tile_bytes; }
  __device__ __forceinline__ std::uint32_t v(int stage) const { return k(stage) + Tile::tile_bytes; }
  __device__ __forceinline__ std::uint32_t q_full() const { return barrier(0); }
  __device__ __forceinline__ std::uint32_t q_empty() const { return barrier(1); }
  __device__ __forceinline__ std::uint32_t k_full(int stage) const { return barrier(2 + 4 * stage); }
  __device__ __forceinline__ std::uint32_t k_empty(int stage) const { return barrier(3 + 4 * stage); }
  __device__ __forceinline__ std::uint32_t v_full(int stage) const { return barrier(4 + 4 * stage); }
  __device__ __forceinline__ std::uint32_t v_empty(int stage) const { return barrier(5 + 4 * stage); }

  __device__ void init_barriers() const {
    hopper::barrier_init(q_full(), 1);
    hopper::barrier_init(q_empty(), Tile::warpgroups);
    for (int stage = 0; stage < Tile::stages; ++stage) {
      for (const std::uint32_t full : {k_full(stage), v_full(stage)}) hopper::barrier_init(full, 1);
      for (const std::uint32_t empty : {k_empty(stage), v_empty(stage)}) {
        hopper::barrier_init(empty, Tile::warpgroups * Tile::cluster);
      }
    }
    hopper::fence_barrier_init();
  }

 private:
  __device__ __forceinline__ std::uint32_t barrier(int i) const { return base + Tile::barriers_offset + i * 8; }
};

/// Keys before values, one slice ahead, as the consumers ask for them. Halves of a head's columns lie one after the
/// other.
template <typename Tile>
__device__ __forceinline__ void load_attention(const AttentionMemory<Tile> memory, const HopperAttentionShape& shape,
                                               const CUtensorMap& q, const CUtensorMap& k, const CUtensorMap& v,
                                               int rank) {
  constexpr std::uint16_t all = (1 << Tile::cluster) - 1;
  AttentionSchedule<Tile> schedule(shape, rank);
  RingPlace<Tile::stages> k_place, v_place;
  std::uint32_t q_parity = 0;
  for (AttentionPlace place; schedule.take(place);) {
    const int kv_head = place.head / (shape.heads / shape.kv_heads);
    const auto load_part = [&](std::uint32_t shared, const CUtensorMap& map, int slice, std::uint32_t full) {
      hopper::barrier_arrive_expect(full, Tile::tile_bytes);
#pragma unroll
      for (int half = 0; half < Tile::halves; ++half) {
        hopper::tma_load(shared + half * Tile::half_bytes + rank * Tile::part_keys * 128, map, half * 64, kv_head,
                         slice * Tile::keys + rank * Tile::part_keys, place.batch, full, all);
      }
    };
    const auto load_k = [&](int slice) {
      hopper::barrier_wait(memory.k_empty(k_place.stage), k_place.parity ^ 1);
      load_part(memory.k(k_place.stage), k, slice, memory.k_full(k_place.stage));
      k_place.advance();
    };
    const auto load_v = [&](int slice) {
      hopper::barrier_wait(memory.v_empty(v_place.stage), v_place.parity ^ 1);
      load_part(memory.v(v_place.stage), v, slice, memory.v_full(v_place.stage));
      v_place.advance();
    };
    if (place.slices > 0) {
      hopper::barrier_wait(memory.q_empty(), q_parity ^ 1);
      q_parity ^= 1;
      hopper::barrier_arrive_expect(memory.q_full(), Tile::tile_bytes);
#pragma unroll
      for (int half = 0; half < Tile::halves; ++half) {
        hopper::tma_load(memory.q() + half * Tile::half_bytes, q, half * 64, place.head, place.first_row, place.batch,
                         memory.q_full());
      }
    }
    const int slices = place.slices + place.skipped;
    for (int slice = slices; slices > 0 && slice >= 0; --slice) {
      if (slice > 0) load_k(slice - 1);
      if (slice < slices) load_v(slice);
    }
  }
}

/// A thread's two rows in the online softmax: what of their scores has been seen, in powers of two.
struct SoftmaxRows {
  float max[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0.0f, 0.0f};  ///< over the thread's own columns
  bool any_has_max = false;     ///< of the warp's rows: it has seen a key
};

/// Which of a thread's two rows.
struct RowChoice {
  bool row[2];
};

/// C fragments of scores to A fragments of powers of two, relative to 2^-offset, of the chosen rows; and all sums.
template <typename T, int Keys>
__device__ __forceinline__ void exponentiate(const float (&scores)[Keys / 2], std::uint32_t (&p)[Keys / 4],
                                             float scale_log2, const float (&offset)[2], float (&sums)[2],
                                             RowChoice chosen = {true, true}) {
  float sum[2][2] = {};  // two each, so that none waits for the other
#pragma unroll
  for (int i = 0; i < Keys / 4; ++i) {
    const int half = i % 2;
    const float first = power_of_two(fmaf(scores[2 * i], scale_log2, offset[half]));
    const float second = power_of_two(fmaf(scores[2 * i + 1], scale_log2, offset[half]));
    sum[half][0] += first;
    sum[half][1] += second;
    if (chosen.row[half]) p[i] = pack<T>(first, second);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) sums[half] = sum[half][0] + sum[half][1];
}

/// Relative to the maxima that the rows have, which nearly always will do: to look for greater scores would take a
/// quarter of the time. A row does not fit that has no maximum yet, or a sum over 2^15, fp16's greatest power of two,
/// by which a sum bounds its powers; nothing of it is counted. Returns whether all rows of the warp fit.
template <typename T, int Keys>
__device__ __forceinline__ bool exponentiate_by_old_max(const float (&scores)[Keys / 2], std::uint32_t (&p)[Keys / 4],
                                                        SoftmaxRows& rows, float scale_log2, RowChoice& misfits) {
  constexpr float kLargestSum = 0x1p15f;
  const float offset[2] = {-rows.max[0], -rows.max[1]};  // infinite where there is none: so is the sum, or it is NaN
  float sums[2];
  exponentiate<T, Keys>(scores, p, scale_log2, offset, sums);
  if (__all_sync(0xffffffffu, sums[0] <= kLargestSum && sums[1] <= kLargestSum)) {
    rows.sum[0] += sums[0];
    rows.sum[1] += sums[1];
    return true;
  }
  const unsigned quad = 0xfu << (threadIdx.x % 32 & ~3u);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    misfits.row[half] = (__ballot_sync(0xffffffffu, !(sums[half] <= kLargestSum)) & quad) != 0;
    if (!misfits.row[half]) rows.sum[half] += sums[half];
  }
  return false;
}

/// The rows that did not fit, relative to the maxima of all that has been seen; the others' powers stay. What older
/// results are to be multiplied by goes to `correction`; false where that is 1 for every row of the warp.
template <typename T, int Keys>
__device__ __forceinline__ bool exponentiate_by_new_max(const float (&scores)[Keys / 2], std::uint32_t (&p)[Keys / 4],
                                                        SoftmaxRows& rows, float scale_log2, RowChoice misfits,
                                                        float (&correction)[2]) {
  float slice_max[2][2] = {{-INFINITY, -INFINITY}, {-INFINITY, -INFINITY}};  // two each, as the sums
#pragma unroll
  for (int i = 0; i < Keys / 2; i += 2) {
    float& max = slice_max[i / 2 % 2][i / 4 % 2];
    max = fmaxf(max, fmaxf(scores[i], scores[i + 1]));
  }
  bool has_max = false, grows = false;
  float offset[2], sums[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float max = quad_max(fmaxf(slice_max[half][0], slice_max[half][1])) * scale_log2;
    const bool row_grows = misfits.row[half] && !(max <= rows.max[half]);
    correction[half] = row_grows ? power_of_two(rows.max[half] - max) : 1.0f;
    if (row_grows) rows.max[half] = max;
    grows |= row_grows;
    const bool sees_none = rows.max[half] == -INFINITY;
    has_max |= !sees_none;
    offset[half] = sees_none ? 0.0f : -rows.max[half];  // powers of -inf, not of NaN
  }
  exponentiate<T, Keys>(scores, p, scale_log2, offset, sums, misfits);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (misfits.row[half]) rows.sum[half] = fmaf(rows.sum[half], correction[half], sums[half]);
  }
  rows.any_has_max = __any_sync(0xffffffffu, has_max);
  return __any_sync(0xffffffffu, grows);
}

/// A warpgroup's work on its 64 rows of every tile.
template <typename T, typename Tile>
class AttentionConsumer {
 public:
  __device__ AttentionConsumer(const AttentionMemory<Tile> memory, const HopperAttentionShape& shape, T* out, int rank)
      : memory_(memory), shape_(shape), out_(out), rank_(rank) {}

  __device__ __forceinline__ void run() {
    AttentionSchedule<Tile> schedule(shape_, rank_);
    if (warpgroup_ == 1) pass_turn();  // the first turn is warpgroup 0's
    for (AttentionPlace place; schedule.take(place);) {
      float o[Tile::head_dim / 2] = {};
      SoftmaxRows rows;
      for (int i = 0; i < place.skipped; ++i) skip();
      if (place.slices > 0) attend(place, o, rows);
      store(place, o, rows);
    }
    if (warpgroup_ == 0) wait_turn();  // no arrival is left behind
  }

 private:
  static constexpr int keys = Tile::keys;

  __device__ __forceinline__ void attend(const AttentionPlace& place, float (&o)[Tile::head_dim / 2],
                                         SoftmaxRows& rows) {
    float scores[keys / 2], correction[2];
    std::uint32_t p[2][keys / 4];  // a slice's probabilities, while products still read those of the slice before it
    const int last = place.slices - 1;
    hopper::barrier_wait(memory_.q_full(), q_parity_);
    q_parity_ ^= 1;
    hopper::barrier_wait(memory_.k_full(k_place_.stage), k_place_.parity);
    wait_turn();
    multiply_scores(scores);
    pass_turn();
    hopper::wgmma_wait<0>();
    bool corrects = weigh(place, last, scores, p[0], rows, correction);

    // A step ends behind the softmax, not behind the products that run beside it: ptxas would move a wait for them up,
    // before the softmax, but not over the loop's branches.
    const auto step = [&](int slice, const std::uint32_t(&probabilities)[keys / 4], std::uint32_t(&next)[keys / 4]) {
      await_values(o, slice < last);
      if (corrects) rescale(o, correction);
      k_place_.advance();
      hopper::barrier_wait(memory_.k_full(k_place_.stage), k_place_.parity);
      wait_turn();
      multiply_scores(scores);
      // By all warps: until the turn's barrier one may have needed the keys before these again.
      release(memory_.k_empty(k_place_.stage == 0 ? Tile::stages - 1 : k_place_.stage - 1));
      hopper::barrier_wait(memory_.v_full(v_place_.stage), v_place_.parity);
      multiply_values(probabilities, o);
      pass_turn();
      hopper::wgmma_wait<1>();
      corrects = weigh(place, slice - 1, scores, next, rows, correction);
    };
    const auto finish = [&](const std::uint32_t(&probabilities)[keys / 4]) {
      await_values(o, last > 0);
      if (corrects) rescale(o, correction);
      hopper::barrier_wait(memory_.v_full(v_place_.stage), v_place_.parity);
      wait_turn();
      release(memory_.k_empty(k_place_.stage));
      k_place_.advance();
      if (thread_ == 0) hopper::barrier_arrive(memory_.q_empty(), rank_);
      multiply_values(probabilities, o);
      pass_turn();
      await_values(o, true);
    };
    for (int slice = last;; slice -= 2) {
      if (slice == 0) return finish(p[0]);
      step(slice, p[0], p[1]);
      if (slice == 1) return finish(p[1]);
      step(slice - 1, p[1], p[0]);
    }
  }

  /// Gives a slice back as it came, once all warps have seen it: no product keeps them together here, and a warp that
  /// came when the stage was filled anew would wait for a phase of the same parity.
  __device__ __forceinline__ void skip() {
    const auto give_back = [&](std::uint32_t full, std::uint32_t empty, RingPlace<Tile::stages>& place) {
      hopper::barrier_wait(full, place.parity);
      hopper::named_sync(3 + warpgroup_, 128);  // behind the turns' barriers
      release(empty);
      place.advance();
    };
    give_back(memory_.k_full(k_place_.stage), memory_.k_empty(k_place_.stage), k_place_);
    give_back(memory_.v_full(v_place_.stage), memory_.v_empty(v_place_.stage), v_place_);
  }

  /// Behind the wait for a slice's scores: makes probabilities of them. Returns whether older results are to be
  /// corrected.
  __device__ __forceinline__ bool weigh(const AttentionPlace& place, int slice, float (&scores)[keys / 2],
                                        std::uint32_t (&p)[keys / 4], SoftmaxRows& rows, float (&correction)[2]) {
    hopper::pin(scores);
    mask(place, slice, scores);
    RowChoice misfits{true, true};
    if (rows.any_has_max) {
      if (exponentiate_by_old_max<T, keys>(scores, p, rows, shape_.scale_log2, misfits)) return false;
      remake_scores(scores);
      mask(place, slice, scores);
    }
    return exponentiate_by_new_max<T, keys>(scores, p, rows, shape_.scale_log2, misfits, correction);
  }

  /// Scores that have become powers, as wgmma left them, while it multiplies values: by each warp for itself, from the
  /// q and k that are still there.
  __device__ __forceinline__ void remake_scores(float (&scores)[keys / 2]) const {
#pragma unroll
    for (float& score : scores) score = 0.0f;
    const int swizzle = lane_ % 8;  // of the 16-byte chunks of a row
    const std::uint32_t q = memory_.q() + (warpgroup_ * 64 + warp_ * 16 + lane_ % 16) * 128;
    const std::uint32_t k = memory_.k(k_place_.stage) + (lane_ / 16 * 8 + lane_ % 8) * 128;
#pragma unroll 1
    for (int step = 0; step < Tile::head_dim / 16; ++step) {
      const std::uint32_t half = step / 4 * Tile::half_bytes;
      const int chunk = step % 4 * 2;
      std::uint32_t a[4];
      ldmatrix_x4(a, q + half + ((chunk + lane_ / 16) ^ swizzle) * 16);
      const std::uint32_t b_column = k + half + ((chunk + lane_ / 8 % 2) ^ swizzle) * 16;
#pragma unroll
      for (int i = 0; i < keys / 16; ++i) {
        std::uint32_t b[4];
        ldmatrix_x4(b, b_column + i * 16 * 128);
        mma_m16n8k16<T>(*reinterpret_cast<float(*)[4]>(scores + i * 8), a, b[0], b[1]);
        mma_m16n8k16<T>(*reinterpret_cast<float(*)[4]>(scores + i * 8 + 4), a, b[2], b[3]);
      }
    }
    hopper::fence_for_tma();  // which overwrites what has been read here by another path than wgmma's
  }

  /// Waits for all products, and gives back the values of the slice that was under way, if any was.
  __device__ __forceinline__ void await_values(float (&o)[Tile::head_dim / 2], bool under_way) {
    hopper::wgmma_wait<0>();
    hopper::pin(o);
    if (!under_way) return;
    release(memory_.v_empty(v_place_.stage));
    v_place_.advance();
  }

  __device__ __forceinline__ static void rescale(float (&o)[Tile::head_dim / 2], const float (&correction)[2]) {
#pragma unroll
    for (int i = 0; i < Tile::head_dim / 2; ++i) o[i] *= correction[i / 2 % 2];
  }

  /// scores = q · kᵀ, one wgmma group
  __device__ __forceinline__ void multiply_scores(float (&scores)[keys / 2]) const {
    const std::uint64_t q = hopper::descriptor(memory_.q() + warpgroup_ * 64 * 128);
    const std::uint64_t k = hopper::descriptor(memory_.k(k_place_.stage));
    hopper::wgmma_fence();
#pragma unroll
    for (int step = 0; step < Tile::head_dim / 16; ++step) {
      const std::uint64_t offset = step / 4 * (Tile::half_bytes >> 4) + step % 4 * hopper::kDescriptorStepK;
      hopper::wgmma<T, keys>(scores, q + offset, k + offset, step > 0);
    }
    hopper::wgmma_commit();
  }

  /// o += p · v, one wgmma group
  __device__ __forceinline__ void multiply_values(const std::uint32_t (&p)[keys / 4],
                                                  float (&o)[Tile::head_dim / 2]) const {
    const std::uint64_t v = hopper::transposed_descriptor(memory_.v(v_place_.stage), Tile::half_bytes);
    hopper::wgmma_fence();
#pragma unroll
    for (int step = 0; step < keys / 16; ++step) {
      hopper::wgmma<T, Tile::head_dim>(o, p + step * 4, v + step * hopper::kTransposedStepK, true);
    }
    hopper::wgmma_commit();
  }

  /// -inf to the scores of keys that a row does not see.
  __device__ __forceinline__ void mask(const AttentionPlace& place, int slice, float (&scores)[keys / 2]) const {
    const int first_row = place.first_row + warpgroup_ * 64 + warp_ * 16 + lane_ / 4;
    const int past = shape_.keys - shape_.seq;
    const int first_key = slice * keys;
    const int seen_by_first =
        shape_.causal ? min(past + place.first_row + warpgroup_ * 64 + 1, shape_.keys) : shape_.keys;
    if (first_key + keys <= seen_by_first) return;  // the warpgroup's first row sees all of the slice
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int seen = shape_.causal ? min(past + first_row + half * 8 + 1, shape_.keys) : shape_.keys;
      const int seen_of_thread = seen - first_key - lane_ % 4 * 2;
#pragma unroll
      for (int j = 0; j < keys / 8; ++j) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          if (j * 8 + i >= seen_of_thread) scores[j * 4 + half * 2 + i] = -INFINITY;
        }
      }
    }
  }

  __device__ __forceinline__ void store(const AttentionPlace& place, float (&o)[Tile::head_dim / 2],
                                        const SoftmaxRows& rows) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = quad_sum(rows.sum[half]);
      const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;  // 0: no key was visible
      const int row = place.first_row + warpgroup_ * 64 + warp_ * 16 + lane_ / 4 + half * 8;
      const std::int64_t head = (static_cast<std::int64_t>(place.batch) * shape_.seq + row) * shape_.heads + place.head;
      T* target = out_ + head * Tile::head_dim + lane_ % 4 * 8;
#pragma unroll
      for (int chunk = 0; chunk < Tile::head_dim / 32; ++chunk) {
        float values[8];
        transpose_quad(o + chunk * 16 + half * 2, values);
        if (row >= shape_.seq) continue;
        Pack<T, 8> eight;
#pragma unroll
        for (int i = 0; i < 8; ++i) eight.set(i, values[i] * factor);
        store_pack(target + chunk * 32, eight);
      }
    }
  }

  __device__ __forceinline__ void wait_turn() const { hopper::named_sync(1 + warpgroup_, 256); }
  __device__ __forceinline__ void pass_turn() const { hopper::named_arrive(2 - warpgroup_, 256); }
  /// To the producers of both blocks, since either writes to both.
  __device__ __forceinline__ void release(std::uint32_t barrier) const {
    if (thread_ < Tile::cluster) hopper::barrier_arrive(barrier, thread_);
  }

  const AttentionMemory<Tile> memory_;
  const HopperAttentionShape& shape_;
  T* out_;
  const int rank_;
  const int thread_ = static_cast<int>(threadIdx.x) % 128;
  const int warpgroup_ = hopper::uniform(static_cast<int>(threadIdx.x) / 128 - 1);
  const int warp_ = static_cast<int>(threadIdx.x) % 128 / 32;
  const int lane_ = static_cast<int>(threadIdx.x) % 32;
  RingPlace<Tile::stages> k_place_, v_place_;
  std::uint32_t q_parity_ = 0;
};

template <typename T, typename Tile>
__global__ void __launch_bounds__(Tile::threads, 1)
    attention_hopper([[maybe_unused]] const __grid_constant__ CUtensorMap q,
                     [[maybe_unused]] const __grid_constant__ CUtensorMap k,
                     [[maybe_unused]] const __grid_constant__ CUtensorMap v, [[maybe_unused]] T* out,
                     [[maybe_unused]] const __grid_constant__ HopperAttentionShape shape) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ unsigned char unaligned[];
  const AttentionMemory<Tile> memory{hopper::aligned(shared_address(unaligned))};
  const int rank = static_cast<int>(hopper::cluster_rank());
  if (threadIdx.x == 0) memory.init_barriers();
  hopper::cluster_sync();
  hopper::let_successor_start();
  hopper::wait_for_predecessor();
  if (threadIdx.x < 128) {
    hopper::shrink_registers<hopper::kLoadingRegisters>();
    if (threadIdx.x == 0) load_attention<Tile>(memory, shape, q, k, v, rank);
  } else {
    hopper::grow_registers<hopper::kComputingRegisters>();
    AttentionConsumer<T, Tile>(memory, shape, out, rank).run();
  }
  hopper::cluster_sync();  // no block may end while the other may still arrive at its barriers
#else
  __trap();
#endif
}

}  // namespace fusebench::kernels::cuda
