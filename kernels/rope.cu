// rope: each pair (a, b) of a head becomes (a·cos - b·sin, a·sin + b·cos), in fp32, with phases of the row's position
// row % seq from fp32 tables [seq, head_dim / 2]. A pair is (2i, 2i + 1) or (i, i + head_dim / 2).
//
// One kernel rotates one tensor, or q and k in one launch: their heads count through. A thread rotates the same pairs
// of several heads of a row, so that it reads the phases once and has several loads in flight. It reads what it
// rotates before it writes it: a tensor may be rotated in place.
#include "kernels/fused_cuda.h"
#include "kernels/pack.cuh"

namespace fusebench::kernels::cuda {
namespace {

constexpr int block_threads = 256;
constexpr int heads_per_thread = 4;

template <typename T>
struct Tensor {
  const T* x;
  std::int64_t x_stride;  ///< elements from row to row
  T* out;                 ///< dense
  std::int64_t heads;
};

template <typename T>
struct Arguments {
  Tensor<T> first;
  Tensor<T> second;  ///< with 0 heads where there is one tensor
  const float* cos;
  const float* sin;
  std::int64_t rows;
  std::int64_t head_dim;
  std::int64_t seq;
  RowMap out_rows;
};

/// How a block shares out the rows that it takes in one pass.
struct Work {
  int slots;           ///< threads that share a head
  int items_per_row;   ///< slots times groups of heads
  int items_per_pass;  ///< of a row
  int rows_per_block;
};

/// Neighbouring pairs of a head: with vectors, what 16-byte accesses carry.
template <typename T, Pairing Pair, bool Vectors>
class Pairs {
  static constexpr bool one_pack = Pair == Pairing::interleaved && Vectors;

 public:
  static constexpr int count = !Vectors ? 1 : one_pack ? full_pack<T> / 2 : full_pack<T>;
  using Phases = Pack<float, count>;

  /// `head` is the head's first element, `pair` the first of the pairs.
  __device__ __forceinline__ void load(const T* head, int pair, int half_dim) {
#pragma unroll
    for (int i = 0; i < packs; ++i) packs_[i] = load_pack_once<width>(head + offset(i, pair, half_dim));
  }

  __device__ __forceinline__ void store_rotated(const Phases& cos, const Phases& sin, T* head, int pair,
                                                int half_dim) const {
    Pack<T, width> rotated[packs];
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float a = one_pack ? packs_[0][2 * i] : packs_[0][i];
      const float b = one_pack ? packs_[0][2 * i + 1] : packs_[packs - 1][i];
      rotated[0].set(one_pack ? 2 * i : i, a * cos[i] - b * sin[i]);
      rotated[packs - 1].set(one_pack ? 2 * i + 1 : i, a * sin[i] + b * cos[i]);
    }
#pragma unroll
    for (int i = 0; i < packs; ++i) store_pack(head + offset(i, pair, half_dim), rotated[i]);
  }

 private:
  static constexpr int packs = one_pack ? 1 : 2;
  static constexpr int width = one_pack ? 2 * count : count;

  static __device__ __forceinline__ int offset(int pack, int pair, int half_dim) {
    return Pair == Pairing::half ? pair + pack * half_dim : 2 * pair + pack;
  }

  Pack<T, width> packs_[packs];
};

/// One slot of up to `heads_per_thread` heads of a row.
template <typename T, Pairing Pair, bool Vectors>
__device__ __forceinline__ void rotate_heads(const Arguments<T>& args, int slots_per_head, std::int64_t row, int item) {
  using Slot = Pairs<T, Pair, Vectors>;
  const int pair = item % slots_per_head * Slot::count;
  const std::int64_t first_head = static_cast<std::int64_t>(item / slots_per_head) * heads_per_thread;
  const int half_dim = static_cast<int>(args.head_dim / 2);
  const std::int64_t phase = row % args.seq * half_dim + pair;
  const auto cos = load_pack<Slot::count>(args.cos + phase);
  const auto sin = load_pack<Slot::count>(args.sin + phase);
  const std::int64_t out_row = args.out_rows(row);
  const std::int64_t heads = args.first.heads + args.second.heads;

  Slot slots[heads_per_thread];
#pragma unroll
  for (int i = 0; i < heads_per_thread; ++i) {
    const std::int64_t head = first_head + i;
    if (head >= heads) break;
    const bool in_first = head < args.first.heads;
    const Tensor<T>& tensor = in_first ? args.first : args.second;
    const std::int64_t local = in_first ? head : head - args.first.heads;
    slots[i].load(tensor.x + row * tensor.x_stride + local * args.head_dim, pair, half_dim);
  }
#pragma unroll
  for (int i = 0; i < heads_per_thread; ++i) {
    const std::int64_t head = first_head + i;
    if (head >= heads) break;
    const bool in_first = head < args.first.heads;
    const Tensor<T>& tensor = in_first ? args.first : args.second;
    const std::int64_t local = in_first ? head : head - args.first.heads;
    slots[i].store_rotated(cos, sin, tensor.out + (out_row * tensor.heads + local) * args.head_dim, pair, half_dim);
  }
}

template <typename T, Pairing Pair, bool Vectors>
__global__ void __launch_bounds__(block_threads) rotate(const Arguments<T> args, const Work work) {
  const int thread = static_cast<int>(threadIdx.x);
  const int local_row = thread / work.items_per_pass, first_item = thread % work.items_per_pass;
  if (local_row >= work.rows_per_block) return;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * work.rows_per_block;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * work.rows_per_block + local_row; row < args.rows;
       row += step) {
    for (int item = first_item; item < work.items_per_row; item += work.items_per_pass) {
      rotate_heads<T, Pair, Vectors>(args, work.slots, row, item);
    }
  }
}

/// Whether a head's pairs, and the heads of every row, can be reached by 16-byte accesses.
template <typename T>
bool takes_vectors(const Arguments<T>& args, Pairing pairing) {
  const std::int64_t elements = pairing == Pairing::half ? 2 * full_pack<T> : full_pack<T>;
  return args.head_dim % elements == 0 && args.first.x_stride % full_pack<T> == 0 &&
         args.second.x_stride % full_pack<T> == 0 &&
         all_aligned_16(args.first.x, args.first.out, args.second.x, args.second.out, args.cos, args.sin);
}

template <Pairing Pair, bool Vectors, typename T>
void launch_rotate(const Exec& exec, const Arguments<T>& args) {
  Work work{};
  work.slots = static_cast<int>(args.head_dim / 2 / Pairs<T, Pair, Vectors>::count);
  work.items_per_row =
      static_cast<int>(work.slots * ceil_div<std::int64_t>(args.first.heads + args.second.heads, heads_per_thread));
  work.items_per_pass = std::min(work.items_per_row, block_threads);
  work.rows_per_block = block_threads / work.items_per_pass;
  rotate<T, Pair, Vectors><<<grid_for(args.rows, work.rows_per_block), block_threads, 0, stream_of(exec)>>>(args, work);
  FUSEBENCH_LAUNCH_CHECK(rotate);
}

template <typename T>
void launch(const Exec& exec, Pairing pairing, const Arguments<T>& args) {
  const bool vectors = takes_vectors(args, pairing);
  if (pairing == Pairing::half) {
    vectors ? launch_rotate<Pairing::half, true>(exec, args) : launch_rotate<Pairing::half, false>(exec, args);
  } else {
    vectors ? launch_rotate<Pairing::interleaved, true>(exec, args)
            : launch_rotate<Pairing::interleaved, false>(exec, args);
  }
}

}  // namespace

void rope(const Exec& exec, DType dtype, Pairing pairing, const void* q, const void* k, const float* cos,
          const float* sin, void* q_out, void* k_out, std::int64_t rows, std::int64_t heads, std::int64_t kv_heads,
          std::int64_t head_dim, std::int64_t seq) {
  dispatch(dtype, [&]<typename T>() {
    launch(exec, pairing,
           Arguments<T>{.first = {static_cast<const T*>(q), heads * head_dim, static_cast<T*>(q_out), heads},
                        .second = {static_cast<const T*>(k), kv_heads * head_dim, static_cast<T*>(k_out), kv_heads},
                        .cos = cos,
                        .sin = sin,
                        .rows = rows,
                        .head_dim = head_dim,
                        .seq = seq,
                        .out_rows = {.seq = seq, .capacity = seq, .past = 0}});
  });
}

void rope(const Exec& exec, DType dtype, Pairing pairing, const void* x, std::int64_t x_stride, const float* cos,
          const float* sin, void* out, std::int64_t rows, std::int64_t heads, std::int64_t head_dim, std::int64_t seq,
          RowMap out_rows) {
  dispatch(dtype, [&]<typename T>() {
    launch(exec, pairing,
           Arguments<T>{.first = {static_cast<const T*>(x), x_stride, static_cast<T*>(out), heads},
                        .second = {},
                        .cos = cos,
                        .sin = sin,
                        .rows = rows,
                        .head_dim = head_dim,
                        .seq = seq,
                        .out_rows = out_rows});
  });
}

}  // namespace fusebench::kernels::cuda
