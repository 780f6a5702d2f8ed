// q, k, v = split(a · weightᵀ) with q and k rotated and k and v stored at the KV cache's rows, in one product. The
// prepared weight keeps the two elements of a RoPE pair in neighbouring rows, so in neighbouring columns of the
// product: for Pairing::interleaved they are so already, for Pairing::half prepare_qkv reorders each head of q and k.
// For GemmKernel::hopper it also puts the first 64 rows of all these heads before their second 64, see RopeTile.
#include "kernels/deferred_norm.cuh"
#include "kernels/fused_cuda.h"
#include "kernels/product.cuh"

namespace fusebench::kernels::cuda {
namespace {

/// cos and sin of four pairs.
struct Phases {
  float4 cos, sin;
};

/// Four pairs (a, b) to (a · cos - b · sin, a · sin + b · cos), each value times `factor`.
__device__ __forceinline__ void rotate(const Phases& phases, const float (&values)[8], float factor, float (&first)[4],
                                       float (&second)[4]) {
  const float c[4] = {phases.cos.x, phases.cos.y, phases.cos.z, phases.cos.w};
  const float s[4] = {phases.sin.x, phases.sin.y, phases.sin.z, phases.sin.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float a = values[2 * i] * factor, b = values[2 * i + 1] * factor;
    first[i] = a * c[i] - b * s[i];
    second[i] = a * s[i] + b * c[i];
  }
}

/// `vectors`: bases are aligned and head_dim % 8 == 0.
template <typename T>
struct RopeEpilogue {
  /// Where eight columns begin: all eight in one head when `vectors`, otherwise each pair is located by itself.
  struct Column {
    T* head;        ///< the head in the tensor's row 0
    int row_pitch;  ///< elements
    int element;    ///< even, of the head, in the prepared order
    int col;
    bool rotated, cached;
  };
  struct Row {
    std::int64_t row, cached_row;
    std::int64_t phase;  ///< of its position, in cos and sin
  };
  using Operands = Phases;

  const float* cos;
  const float* sin;
  T* q;
  T* k;
  T* v;
  QkvShape shape;
  bool vectors;

  __device__ __forceinline__ Column column(std::int64_t col) const {
    // 32 bits, since a division of 64 takes a hundred instructions.
    const int d = static_cast<int>(shape.head_dim), q_cols = static_cast<int>(shape.heads) * d;
    const int kv_cols = static_cast<int>(shape.kv_heads) * d, first = static_cast<int>(col);
    const bool is_q = first < q_cols, is_k = !is_q && first < q_cols + kv_cols;
    const int of_tensor = is_q ? first : is_k ? first - q_cols : first - q_cols - kv_cols;
    const int element = static_cast<int>(static_cast<unsigned>(of_tensor) % static_cast<unsigned>(d));
    T* tensor = is_q ? q : is_k ? k : v;
    return {tensor + (of_tensor - element), is_q ? q_cols : kv_cols, element, first, is_q || is_k, !is_q};
  }

  __device__ __forceinline__ Row row(std::int64_t row) const {
    return {row, shape.kv_rows(row), row % shape.seq * (shape.head_dim / 2)};
  }

  __device__ __forceinline__ Operands fetch(const Row& row, const Column& place) const {
    if (!vectors || !place.rotated) return {};
    const std::int64_t phase = row.phase + place.element / 2;
    return {*reinterpret_cast<const float4*>(cos + phase), *reinterpret_cast<const float4*>(sin + phase)};
  }

  __device__ __forceinline__ void store(const Row& row, const Column& place, const Operands& operands,
                                        const float (&values)[8]) const {
    if (vectors) {
      store_head_part(row, place, operands, values);
    } else {
      store_pairs(row, place, values);
    }
  }

 private:
  __device__ __forceinline__ static T* head_at(const Row& row, const Column& place) {
    return place.head + (place.cached ? row.cached_row : row.row) * place.row_pitch;
  }

  __device__ __forceinline__ void store_head_part(const Row& row, const Column& place, const Operands& operands,
                                                  const float (&values)[8]) const {
    T* head = head_at(row, place);
    if (!place.rotated) return store_elements(head + place.element, values, true, 8);
    float first[4], second[4];
    rotate(operands, values, 1.0f, first, second);
    if (shape.pairing == Pairing::half) {
      store_elements(head + place.element / 2, first, true, 4);
      store_elements(head + shape.head_dim / 2 + place.element / 2, second, true, 4);
    } else {
      const float pairs[8] = {first[0], second[0], first[1], second[1], first[2], second[2], first[3], second[3]};
      store_elements(head + place.element, pairs, true, 8);
    }
  }

  /// The same without a claim on alignment, and where the columns run over into other heads or end early.
  __device__ __forceinline__ void store_pairs(const Row& row, Column place, const float (&values)[8]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (place.col >= shape.columns()) return;
      store_pair(head_at(row, place), row.phase, place, values[2 * i], values[2 * i + 1]);
      advance(place);
    }
  }

  /// To the next pair, without another division.
  __device__ __forceinline__ void advance(Column& place) const {
    const int d = static_cast<int>(shape.head_dim), q_cols = static_cast<int>(shape.heads) * d;
    const int kv_cols = static_cast<int>(shape.kv_heads) * d;
    place.col += 2;
    place.element += 2;
    if (place.element < d) return;
    place.element = 0;
    if (place.col == q_cols) {
      place = {k, kv_cols, 0, place.col, true, true};
    } else if (place.col == q_cols + kv_cols) {
      place = {v, kv_cols, 0, place.col, false, true};
    } else {
      place.head += d;
    }
  }

  __device__ __forceinline__ void store_pair(T* head, std::int64_t phase, const Column& place, float a, float b) const {
    if (!place.rotated) {
      head[place.element] = from_float<T>(a);
      head[place.element + 1] = from_float<T>(b);
      return;
    }
    const int half = static_cast<int>(shape.head_dim) / 2, pair = place.element / 2;
    const float c = cos[phase + pair], s = sin[phase + pair];
    const bool halves = shape.pairing == Pairing::half;
    head[halves ? pair : place.element] = from_float<T>(a * c - b * s);
    head[halves ? pair + half : place.element + 1] = from_float<T>(a * s + b * c);
  }
};

/// The Hopper product's: head_dim is 64 or 128, so that 64 columns lie in one head, and a band's rows are neighbours in
/// a cache. The first 64 columns of all rotated heads come before the others, so that a tile's columns read cos and sin
/// of the same 32 pairs, the first from L2 and the others from L1.
template <typename T>
struct RopeTile {
  using Column = int;  ///< the first pair's phase beside the row's; below zero where nothing is rotated
  struct Row {
    int phase;  ///< of its position, in cos and sin
    float factor;
  };
  using Operands = Phases;
  enum { kFetchedChunks = 1, kFetchesEarly = false, kOutputs = 8 };

  CUtensorMap q, k, v;
  const float* cos;
  const float* sin;
  DeferredNorm norm;
  // QkvShape's, in 32 bits
  int dim, seq, capacity, past;
  int head_dim, q_columns, kv_columns;
  int first_part_columns;  ///< columns of the rotated heads' first parts
  bool pairs_halves;

  __device__ __forceinline__ Column column(int col) const {
    if (col >= q_columns + kv_columns) return -1;
    return (col & 63) / 2 + (col < first_part_columns ? 0 : 32);
  }
  __device__ __forceinline__ Row row(int row) const { return {phase_of(row), row_factor(norm, row, dim)}; }
  __device__ __forceinline__ void touch(int row, int first_col, int) const {
    touch_row_factor(norm, row);
    const int first = column(first_col);  // of 32 pairs that the tile's heads share
    if (first < 0) return;
    hopper::touch_by_quad(cos + phase_of(row) + first, 32);
    hopper::touch_by_quad(sin + phase_of(row) + first, 32);
  }
  __device__ __forceinline__ Operands fetch(const Row& row, Column column) const {
    if (column < 0) return {};
    const int phase = row.phase + column;
    return {__ldg(reinterpret_cast<const float4*>(cos + phase)), __ldg(reinterpret_cast<const float4*>(sin + phase))};
  }

  template <typename Place>
  __device__ __forceinline__ void put(const Row& row, Column column, const Operands& operands, const float (&values)[8],
                                      int own, const Place& place) const {
    if (column < 0) {
      float scaled[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) scaled[i] = values[i] * row.factor;
      return place(own, scaled);
    }
    float first[4], second[4];
    rotate(operands, values, row.factor, first, second);
    if (pairs_halves) {
      // Of 64 columns 32 results belong to the first half of the head, and 32 to the second, each a box.
      const int pair = own % 64 / 2, boxes = own - own % 64;
      place(boxes + pair, first);
      place(boxes + kBoxColumns + pair, second);
    } else {
      const float pairs[8] = {first[0], second[0], first[1], second[1], first[2], second[2], first[3], second[3]};
      place(own, pairs);
    }
  }

  __device__ __forceinline__ BoxTarget target(int row, int col) const {
    const bool is_rotated = col < q_columns + kv_columns;
    const int place = is_rotated ? rotated_to(col) : col;
    if (place < q_columns) return {q, row, place};
    const int cached = row + row / seq * (capacity - seq) + past;  // QkvShape::kv_rows(row)
    if (is_rotated) return {k, cached, place - q_columns};
    return {v, cached, place - q_columns - kv_columns};
  }

 private:
  __device__ __forceinline__ int phase_of(int row) const {
    return static_cast<int>(static_cast<unsigned>(row) % static_cast<unsigned>(seq)) * head_dim / 2;
  }

  /// The column among q's and k's where a box of rotated results goes.
  __device__ __forceinline__ int rotated_to(int col) const {
    const int part = col < first_part_columns ? 0 : 1, head = (col - part * first_part_columns) / 64;
    const int box = (col & 63) / kBoxColumns;  // of the part; where halves are paired, the half
    return head * head_dim + (pairs_halves ? box * head_dim / 2 + part * kBoxColumns : part * 64 + box * kBoxColumns);
  }
};

/// prepared [columns, dim], see prepare_qkv; `first_parts_first`: in the order of GemmKernel::hopper.
template <typename T>
__global__ void gather_rows(const T* wq, const T* wk, const T* wv, T* prepared, QkvShape shape,
                            bool first_parts_first) {
  const std::int64_t d = shape.head_dim, q_rows = shape.heads * d, kv_rows = shape.kv_heads * d;
  for (std::int64_t i = grid_thread(); i < shape.columns() * shape.dim; i += grid_threads()) {
    std::int64_t row = i / shape.dim;
    if (first_parts_first && d == 128 && row < q_rows + kv_rows) {
      const std::int64_t rotated_heads = shape.heads + shape.kv_heads, part = row / 64;
      row = part % rotated_heads * d + part / rotated_heads * 64 + row % 64;
    }
    const std::int64_t col = i % shape.dim;
    const T* weight = wq;
    bool rotated = true;
    if (row >= q_rows + kv_rows) {
      weight = wv;
      row -= q_rows + kv_rows;
      rotated = false;
    } else if (row >= q_rows) {
      weight = wk;
      row -= q_rows;
    }
    if (rotated && shape.pairing == Pairing::half) {
      const std::int64_t element = row % d;
      row += element / 2 + element % 2 * (d / 2) - element;
    }
    prepared[i] = weight[row * shape.dim + col];
  }
}

}  // namespace

void product_rope(const Exec& exec, ProductKernel product, DType dtype, const void* a, const void* prepared_weight,
                  const float* cos, const float* sin, void* q, void* k, void* v, QkvShape shape, DeferredNorm norm) {
  if (shape.head_dim % 2 != 0) throw std::invalid_argument("rope needs an even head_dim");
  if (shape.columns() > INT32_MAX) throw std::invalid_argument("q, k and v have over 2^31 columns");
  dispatch_half(dtype, [&]<typename T>() {
    const T* rows = static_cast<const T*>(a);
    const T* weights = static_cast<const T*>(prepared_weight);
    const bool vectors = shape.head_dim % 8 == 0 && is_aligned_16(cos) && is_aligned_16(sin) && is_aligned_16(q) &&
                         is_aligned_16(k) && is_aligned_16(v);
    if (product.kernel == GemmKernel::hopper) {
      if (!vectors || !hopper_takes(shape)) throw std::invalid_argument("the Hopper product cannot store such heads");
      const std::int64_t cached = shape.kv_rows(shape.rows - 1) + 1;
      const std::int64_t q_columns = shape.heads * shape.head_dim, kv_columns = shape.kv_heads * shape.head_dim;
      const auto tile = [&](int box_rows) {
        return RopeTile<T>{.q = output_map(dtype, q, shape.rows, q_columns, box_rows),
                           .k = output_map(dtype, k, cached, kv_columns, box_rows),
                           .v = output_map(dtype, v, cached, kv_columns, box_rows),
                           .cos = cos,
                           .sin = sin,
                           .norm = norm,
                           .dim = static_cast<int>(shape.dim),
                           .seq = static_cast<int>(shape.seq),
                           .capacity = static_cast<int>(shape.kv_rows.capacity),
                           .past = static_cast<int>(shape.kv_rows.past),
                           .head_dim = static_cast<int>(shape.head_dim),
                           .q_columns = static_cast<int>(q_columns),
                           .kv_columns = static_cast<int>(kv_columns),
                           .first_part_columns = static_cast<int>(shape.heads + shape.kv_heads) * 64,
                           .pairs_halves = shape.pairing == Pairing::half};
      };
      return launch_hopper(exec, rows, weights, shape.rows, shape.columns(), shape.dim, tile, product.part_sums);
    }
    require_no(norm);
    launch_product(
        exec, product.kernel, rows, weights, shape.rows, shape.columns(), shape.dim,
        RopeEpilogue<T>{cos, sin, static_cast<T*>(q), static_cast<T*>(k), static_cast<T*>(v), shape, vectors});
  });
}

void prepare_qkv(const Exec& exec, GemmKernel kernel, DType dtype, const void* wq, const void* wk, const void* wv,
                 void* prepared, QkvShape shape) {
  dispatch_half(dtype, [&]<typename T>() {
    gather_rows<<<grid_for(shape.columns() * shape.dim, 256), 256, 0, stream_of(exec)>>>(
        static_cast<const T*>(wq), static_cast<const T*>(wk), static_cast<const T*>(wv), static_cast<T*>(prepared),
        shape, kernel == GemmKernel::hopper);
    FUSEBENCH_LAUNCH_CHECK(gather_rows);
  });
}

}  // namespace fusebench::kernels::cuda
