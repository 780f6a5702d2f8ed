// a · weightᵀ in tiles that stay in a core's cache until their epilogue (residual, RoPE or SwiGLU) has used them up.
// Eigen computes a tile. Tiles depend on the shape alone, so results do not depend on the number of threads.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "kernels/cpu/eigen.h"
#include "kernels/cpu/fp32.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/row_math.h"

namespace fusebench::kernels::cpu {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMap = Eigen::Map<const Matrix>;

constexpr std::int64_t tile_rows = 128;
constexpr std::int64_t tile_cols = 256;  // even, so that no pair of columns is torn apart

// A piece of one row of the product: columns col .. col + cols - 1.
struct RowPiece {
  std::int64_t row = 0;
  std::int64_t col = 0;
  std::int64_t cols = 0;
  const float* values = nullptr;
};

// Calls epilogue(RowPiece) for pieces that cover a[m, k] · weight[n, k]ᵀ.
template <class Epilogue>
void product_tiles(const float* a, const float* weight, std::int64_t m, std::int64_t n, std::int64_t k,
                   Epilogue epilogue) {
  const std::int64_t tiles_down = ceil_div(m, tile_rows);
  const std::int64_t tiles_across = ceil_div(n, tile_cols);
  parallel_for(tiles_down * tiles_across, 1, [=](std::int64_t begin, std::int64_t end) {
    thread_local Matrix tile;
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t row0 = t % tiles_down * tile_rows;  // down first: a panel of weights serves all rows
      const std::int64_t col0 = t / tiles_down * tile_cols;
      const std::int64_t rows = std::min(tile_rows, m - row0);
      const std::int64_t cols = std::min(tile_cols, n - col0);
      tile.resize(rows, cols);
      tile.noalias() = ConstMap(a + row0 * k, rows, k) * ConstMap(weight + col0 * k, cols, k).transpose();
      for (std::int64_t i = 0; i < rows; ++i) epilogue(RowPiece{row0 + i, col0, cols, tile.data() + i * cols});
    }
  });
}

void require(GemmKernel kernel, DType dtype, const float* squares) {
  require_fp32(dtype);
  if (kernel != GemmKernel::cpu) throw std::invalid_argument("a CPU product was asked for a GPU's kernel");
  if (squares != nullptr) throw std::invalid_argument("the Hopper product alone has to do with sums of squares");
}

// Where the product's columns of one token go.
struct QkvRow {
  float* q = nullptr;
  float* k = nullptr;
  float* v = nullptr;
  const float* cos = nullptr;
  const float* sin = nullptr;
};

// Columns place .. place + count - 1 of a prepared head are pairs place / 2 and following.
void rotate_pairs(Pairing pairing, const float* values, std::int64_t place, std::int64_t count, const QkvRow& row,
                  float* head, std::int64_t half_dim) {
  const std::int64_t step = pairing == Pairing::interleaved ? 2 : 1;
  const std::int64_t apart = pairing == Pairing::interleaved ? 1 : half_dim;
  for (std::int64_t j = 0; j < count; j += 2) {
    const std::int64_t i = (place + j) / 2;
    head[i * step] = values[j] * row.cos[i] - values[j + 1] * row.sin[i];
    head[i * step + apart] = values[j] * row.sin[i] + values[j + 1] * row.cos[i];
  }
}

void store_qkv(const QkvShape& shape, const RowPiece& piece, const QkvRow& row) {
  const std::int64_t d = shape.head_dim;
  const std::int64_t end = piece.col + piece.cols;
  for (std::int64_t col = piece.col; col < end;) {
    const std::int64_t head = col / d;
    const std::int64_t place = col % d;
    const std::int64_t count = std::min(d - place, end - col);
    const float* values = piece.values + (col - piece.col);
    if (head < shape.heads) {
      rotate_pairs(shape.pairing, values, place, count, row, row.q + head * d, d / 2);
    } else if (head < shape.heads + shape.kv_heads) {
      rotate_pairs(shape.pairing, values, place, count, row, row.k + (head - shape.heads) * d, d / 2);
    } else {
      std::copy_n(values, count, row.v + (head - shape.heads - shape.kv_heads) * d + place);
    }
    col += count;
  }
}

}  // namespace

void product_residual(const Exec& /*exec*/, ProductKernel product, DType dtype, const void* a, const void* weight,
                      const void* residual, void* out, std::int64_t m, std::int64_t n, std::int64_t k, float* squares) {
  require(product.kernel, dtype, squares);
  product_tiles(fp32(a), fp32(weight), m, n, k, [=](const RowPiece& piece) {
    const float* old = fp32(residual) + piece.row * n + piece.col;
    float* sum = fp32(out) + piece.row * n + piece.col;
    for (std::int64_t j = 0; j < piece.cols; ++j) sum[j] = old[j] + piece.values[j];
  });
}

void product_rope(const Exec& /*exec*/, ProductKernel product, DType dtype, const void* a, const void* prepared_weight,
                  const float* cos, const float* sin, void* q, void* k, void* v, QkvShape shape, DeferredNorm norm) {
  require(product.kernel, dtype, norm.squares);
  if (shape.head_dim % 2 != 0) {
    throw std::invalid_argument("RoPE needs an even head_dim, not " + std::to_string(shape.head_dim));
  }
  product_tiles(fp32(a), fp32(prepared_weight), shape.rows, shape.columns(), shape.dim, [=](const RowPiece& piece) {
    const std::int64_t kv_offset = shape.kv_rows(piece.row) * shape.kv_heads * shape.head_dim;
    const std::int64_t phase = piece.row % shape.seq * (shape.head_dim / 2);
    store_qkv(shape, piece,
              {.q = fp32(q) + piece.row * shape.heads * shape.head_dim,
               .k = fp32(k) + kv_offset,
               .v = fp32(v) + kv_offset,
               .cos = cos + phase,
               .sin = sin + phase});
  });
}

void product_swiglu(const Exec& /*exec*/, ProductKernel product, DType dtype, const void* a,
                    const void* prepared_weight, void* y, std::int64_t m, std::int64_t hidden, std::int64_t k,
                    DeferredNorm norm) {
  require(product.kernel, dtype, norm.squares);
  product_tiles(fp32(a), fp32(prepared_weight), m, 2 * hidden, k, [=](const RowPiece& piece) {
    float* out = fp32(y) + piece.row * hidden + piece.col / 2;
    for (std::int64_t i = 0; i < piece.cols / 2; ++i) {
      out[i] = silu_fp32(piece.values[2 * i]) * piece.values[2 * i + 1];
    }
  });
}

}  // namespace fusebench::kernels::cpu
