// Outputs that are wrong on purpose, on which the check is tried: one that lets such an output pass has no power, and
// says nothing of the outputs that it passes.
//
// A mutant is what a kernel would leave that makes one mistake and is otherwise perfect: exact values, rounded once.
// One output tensor is wrong at a time, the others are right: the mistake must show wherever it changes anything.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/oracle.h"
#include "harness/row.h"
#include "harness/verify.h"

namespace fusebench {

/// The mistakes in the op's mathematics that are tried, each a mutant of its own.
std::vector<Mistake> mistakes_of(const Case& c);

/// The exact rows of a case's mutants.
struct WrongRows {
  std::vector<Mistake> mistakes;
  std::vector<Expected> mistaken;  ///< one a mistake
  Expected previous;               ///< of the same case with another seed, in the row that probe_row gives too
};

/// Draws the inputs of another seed from `source`.
WrongRows compute_wrong_rows(const Case& c, const InputSet& inputs,
                             const std::function<std::unique_ptr<TensorSource>(const Case&)>& source,
                             const std::vector<std::int64_t>& rows);
std::optional<WrongRows> load_wrong_rows(const OracleCache& cache, const Case& c,
                                         const std::vector<std::int64_t>& rows);
void save_wrong_rows(const OracleCache& cache, const Case& c, const WrongRows& wrong);
/// From the cache, or computed and put there. An unwritable cache is no error.
WrongRows wrong_rows(const Case& c, const InputSet& inputs,
                     const std::function<std::unique_ptr<TensorSource>(const Case&)>& source,
                     const std::vector<std::int64_t>& rows, const OracleCache& cache);

/// A token row that is not among the checked ones, if there is one.
std::optional<std::int64_t> probe_row(const Case& c, const std::vector<std::int64_t>& rows);

/// What a perfect kernel leaves: the expected rows, rounded; zero in rows that are not checked.
std::vector<Output> exact_outputs(const Case& c, const Expected& expected);

struct Check {
  /// Why outputs fail, or nothing: what gives a variant its verdict.
  std::function<std::string(const std::vector<Output>&)> failure;
  bool sees_other_rows = false;  ///< whether rows that the oracle did not sample are compared with anything
};

/// Tries the check on every mutant. `right` are outputs that it passes: where they are not checked they stay as they
/// are, but for what is dropped there.
std::vector<Mutant> try_mutants(const Case& c, const Expected& expected, const WrongRows& wrong,
                                std::vector<Output> right, const Check& check);

/// The names of those let through, separated by commas; empty when the check has power.
std::string let_through(const std::vector<Mutant>& mutants);

}  // namespace fusebench
