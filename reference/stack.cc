#include "reference/stack.h"

#include <utility>

#include "reference/parallel.h"

namespace fusebench::reference {

Stack::Stack(std::vector<Rounding> lane_roundings, Index rows, Index cols)
    : roundings(std::move(lane_roundings)), values(static_cast<Index>(roundings.size()) * rows, cols) {}

Stack spread(const Matrix& input, const std::vector<Rounding>& roundings) {
  Stack out(roundings, input.rows(), input.cols());
  for (Index l = 0; l < out.lanes(); ++l) out.lane(l) = input;
  return out;
}

Matrix gather(const Source& source, const std::vector<Index>& rows) {
  Matrix out(static_cast<Index>(rows.size()), source.cols);
  for_each_index(out.rows(), [&](Index i) {
    source.read(rows[static_cast<std::size_t>(i)], 1, 0, source.cols, out.data() + i * source.cols);
  });
  return out;
}

}  // namespace fusebench::reference
