// The reference's own matrices: double, row-major, 64-bit extents.
#pragma once

// GCC 12 takes AVX-512's deliberately undefined registers for mistakes of ours (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <Eigen/Core>
#include <functional>

namespace fusebench::reference {

using Index = Eigen::Index;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

/// A matrix that lies elsewhere in its own format and is widened to double piece by piece, so that weights and caches
/// never stand in memory in double. `read` is called from several threads at once.
struct Source {
  Index rows = 0;
  Index cols = 0;
  /// Writes the block of `rows` rows from first_row and `cols` columns from first_col to `out`, dense and row-major.
  std::function<void(Index first_row, Index rows, Index first_col, Index cols, double* out)> read;

  Matrix block(Index first_row, Index block_rows, Index first_col, Index block_cols) const {
    Matrix out(block_rows, block_cols);
    read(first_row, block_rows, first_col, block_cols, out.data());
    return out;
  }
  Matrix all() const { return block(0, rows, 0, cols); }
};

}  // namespace fusebench::reference
