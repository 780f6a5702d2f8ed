// One tensor under several roundings at once.
#pragma once

#include <vector>

#include "reference/matrix.h"
#include "reference/rounding.h"

namespace fusebench::reference {

/// Lanes, one below the other, of the same rows: each computed by the same formula, and rounded in its own way
/// wherever a value is stored. Stacked, they are the rows of one matrix, and a product reads its weight once for all.
struct Stack {
  std::vector<Rounding> roundings;  ///< one a lane
  Matrix values;                    ///< [lanes · rows(), cols]

  Stack() = default;
  Stack(std::vector<Rounding> lane_roundings, Index rows, Index cols);

  Index lanes() const { return static_cast<Index>(roundings.size()); }
  Index rows() const { return values.rows() / lanes(); }
  Index cols() const { return values.cols(); }
  Rounding rounding(Index stacked_row) const { return roundings[static_cast<std::size_t>(stacked_row / rows())]; }
  auto lane(Index l) { return values.middleRows(l * rows(), rows()); }
  auto lane(Index l) const { return values.middleRows(l * rows(), rows()); }
};

/// An input: the same in every lane, since it is in the case's format from the start.
Stack spread(const Matrix& input, const std::vector<Rounding>& roundings);

/// Rows of a source, in the order given.
Matrix gather(const Source& source, const std::vector<Index>& rows);

}  // namespace fusebench::reference
