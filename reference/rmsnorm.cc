// Stored: x² (fp32), its mean (fp32), rstd = 1 / sqrt(mean + eps) (fp32), x · rstd, · weight.
#include <cmath>

#include "reference/ops.h"
#include "reference/parallel.h"

namespace fusebench::reference {
namespace {

void rmsnorm_row(const double* x, const Vector& weight, double eps, Rounding format, double* y) {
  const Index n = weight.size();
  const Eigen::Map<const Eigen::ArrayXd> in(x, n);
  Eigen::Map<Eigen::ArrayXd> out(y, n);
  out = in.square();
  round_all(statistics(format), out);
  const double mean = rounded(statistics(format), out.mean());
  const double rstd = rounded(statistics(format), 1 / std::sqrt(mean + eps));
  out = in * rstd;
  round_all(format, out);
  out *= weight.array();
  round_all(format, out);
}

}  // namespace

Stack rmsnorm(const Stack& x, const Vector& weight, double eps) {
  Stack y(x.roundings, x.rows(), x.cols());
  for_each_index(x.values.rows(), [&](Index i) {
    rmsnorm_row(x.values.data() + i * x.cols(), weight, eps, x.rounding(i), y.values.data() + i * x.cols());
  });
  return y;
}

}  // namespace fusebench::reference
