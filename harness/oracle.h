// The expected output of a case, in double, for the rows that are checked; and the error that plain rounding makes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/op.h"
#include "harness/tensor.h"
#include "reference/deviation.h"

namespace fusebench {

struct VerifyRows {
  bool full = false;
  std::int64_t rows_per_case = 0;  ///< 0: the default for the op's size
};

/// Which token rows are checked: first and last, every batch, both sides of tile boundaries, the rest at random from
/// the case's seed. Sorted, without repeats. (A row holds every head, so every head is checked in every row.)
std::vector<std::int64_t> choose_rows(const Case& c, const VerifyRows& verify);

/// No fewer than choose_rows returns, without making them: all of a case may be more than memory holds.
std::int64_t most_rows(const Case& c, const VerifyRows& verify);

/// One output tensor's expected rows. `expected` and `replica` are [rows.size(), cols], row-major.
struct ExpectedTensor {
  std::string name;
  std::int64_t cols = 0;
  std::vector<double> expected;  ///< exact up to double rounding
  std::vector<double> replica;   ///< the same formula, rounded to the case's dtype wherever `naive` stores; or empty
};

struct Expected {
  std::vector<std::int64_t> rows;  ///< token rows; the same for every output tensor
  std::vector<ExpectedTensor> tensors;
};

/// Computes with all cores. Inputs are those of read_inputs.
Expected compute_expected(const Case& c, const InputSet& inputs, const std::vector<std::int64_t>& rows);

/// A mistake that an implementation could make in an op's mathematics: the formula with one thing changed.
struct Mistake {
  std::string name;
  reference::Deviation deviation = reference::Deviation::none;
  bool other_pairing = false;  ///< of rope
  std::string input;           ///< the input that holds `value` everywhere instead of its own values; empty: none
  double value = 0;
};

/// What each of the mistakes makes of the rows: exact values alone, no replica. Shares what the mistakes have in
/// common.
std::vector<Expected> compute_mistaken(const Case& c, const InputSet& inputs, const std::vector<std::int64_t>& rows,
                                       const std::vector<Mistake>& mistakes);

/// Expected rows on disk, keyed by case, rows and reference version, and what is wrong with them by the name of the
/// mistake: such rows have no replica. A damaged or foreign file counts as missing.
class OracleCache {
 public:
  explicit OracleCache(std::filesystem::path folder) : folder_(std::move(folder)) {}
  bool load(const Case& c, const std::vector<std::int64_t>& rows, Expected& out, const std::string& mistake = {}) const;
  void save(const Case& c, const Expected& expected, const std::string& mistake = {}) const;
  std::filesystem::path path_of(const Case& c, const std::vector<std::int64_t>& rows,
                                const std::string& mistake = {}) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace fusebench
