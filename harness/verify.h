// Whether a variant's output is right, judged by an error budget instead of a tolerance.
//
// The budget is the error that rounding alone makes: the oracle's replica rounds to the case's dtype wherever `naive`
// stores, and a variant may err kErrorFactor times as much, plus what accumulating K terms in fp32 costs
// (kAccumulationFactor · sqrt(K) · 2^-24), but never less than half an ulp of the output. Three measures are held
// against it: the relative L2 error of a whole output, the same of every row, and the largest absolute error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/oracle.h"
#include "harness/row.h"
#include "harness/tensor.h"

namespace fusebench {

/// One output tensor as [tokens, cols], by name.
struct Output {
  std::string name;
  HostTensor tensor;
};

/// What an output tensor may err.
struct Budget {
  double rel_l2 = 0;      ///< of the whole tensor
  double row_rel_l2 = 0;  ///< of any row
  double max_abs = 0;     ///< of any element
};

struct Judgement {
  Verification figures;
  std::vector<Budget> budgets;  ///< one an output
  std::string failure;          ///< empty when the outputs pass; else what is worst, with index, got and expected
};

/// Compares the expected rows of every output. NaN never passes; an infinity passes only against the same infinity
/// (the oracle is rounded to the dtype first); an output that is all zero passes only where the oracle is.
Judgement judge(const Case& c, const std::vector<Output>& outputs, const Expected& expected);

/// Token rows in which two variants' outputs disagree by more than the budgets allow to both together, in a row's
/// relative L2 distance or in one element: the worst, at most `limit`, in order. Non-finite values that are not the
/// same in both disagree.
std::vector<std::int64_t> disagreements(const std::vector<Output>& a, const std::vector<Output>& b,
                                        const std::vector<Budget>& budgets, std::size_t limit);

/// The longest sum that an output element depends on: dim, hidden or keys.
std::int64_t accumulation_length(const Case& c);

}  // namespace fusebench
