#include <algorithm>

#include "kernels/cpu/eigen.h"
#include "kernels/cpu/parallel.h"
#include "variants/product.h"

namespace fusebench {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMap = Eigen::Map<const Matrix, Eigen::Unaligned, Eigen::OuterStride<>>;
using Map = Eigen::Map<Matrix, Eigen::Unaligned, Eigen::OuterStride<>>;

// A thread's share of a product. It depends on the shape alone, so that results do not depend on the number of threads.
constexpr std::int64_t kTileRows = 256;
constexpr std::int64_t kTileCols = 256;

struct Tile {
  std::int64_t b, h, row, rows, col, cols;
};

class EigenProduct {
 public:
  explicit EigenProduct(const ProductSpec& spec)
      : spec_(spec),
        tiles_down_(kernels::ceil_div(spec.m, kTileRows)),
        tiles_across_(kernels::ceil_div(spec.n, kTileCols)) {}

  void launch(const Bindings& bound) const {
    const std::int64_t tiles = spec_.batches * spec_.heads * tiles_down_ * tiles_across_;
    kernels::parallel_for(tiles, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) compute(tile(t), bound);
    });
  }

 private:
  Tile tile(std::int64_t t) const {
    const std::int64_t row = t % tiles_down_ * kTileRows;  // down first: a panel of b serves all rows
    const std::int64_t col = t / tiles_down_ % tiles_across_ * kTileCols;
    const std::int64_t matrix = t / tiles_down_ / tiles_across_;
    return {.b = matrix / spec_.heads,
            .h = matrix % spec_.heads,
            .row = row,
            .rows = std::min(kTileRows, spec_.m - row),
            .col = col,
            .cols = std::min(kTileCols, spec_.n - col)};
  }

  static float* matrix(const Operand& operand, const Tile& t, const Bindings& bound) {
    return bound.at<float>(operand.tensor) + operand.offset + t.b * operand.batch_stride +
           t.h / operand.group * operand.head_stride;
  }

  void compute(const Tile& t, const Bindings& bound) const {
    const Eigen::OuterStride<> a_stride(spec_.a.stride), b_stride(spec_.b.stride), c_stride(spec_.c.stride);
    const ConstMap a(matrix(spec_.a, t, bound) + t.row * spec_.a.stride, t.rows, spec_.k, a_stride);
    const float* b = matrix(spec_.b, t, bound);
    const std::int64_t place = t.row * spec_.c.stride + t.col;
    Map c(matrix(spec_.c, t, bound) + place, t.rows, t.cols, c_stride);
    if (spec_.rhs == Rhs::n_by_k) {
      c.noalias() = spec_.alpha * a * ConstMap(b + t.col * spec_.b.stride, t.cols, spec_.k, b_stride).transpose();
    } else {
      c.noalias() = spec_.alpha * a * ConstMap(b + t.col, spec_.k, t.cols, b_stride);
    }
    if (spec_.residual) {
      c += ConstMap(bound.at<float>(*spec_.residual) + spec_.c.offset + place, t.rows, t.cols, c_stride);
    }
  }

  ProductSpec spec_;
  std::int64_t tiles_down_;
  std::int64_t tiles_across_;
};

}  // namespace

void implement_eigen_product(Plan& plan, const ProductSpec& spec, Step& step) {
  for (const Operand* operand : {&spec.a, &spec.b, &spec.c}) {
    if (plan.tensor(operand->tensor).dtype != DType::fp32) throw Unsupported("Eigen's products take fp32");
  }
  step.kernel = "eigen_gemm";
  step.launch = [product = EigenProduct(spec)](const Exec&, const Bindings& bound) { product.launch(bound); };
}

}  // namespace fusebench
