// The columns of a record, in order: what results.jsonl, results.csv, steps.csv and docs/records.md share.
#pragma once

#include <span>
#include <string_view>

namespace fusebench::reports {

struct Column {
  std::string_view name;  ///< snake_case, unit last
  std::string_view unit;  ///< "" for none
  std::string_view description;
  std::string_view reason;  ///< the column that says why this one is null; "" when it never is
};

std::span<const Column> columns();       ///< a row's scalars
std::span<const Column> step_columns();  ///< the keys of each of its `steps`

/// What names a row, in this order: steps.csv starts with them.
std::span<const std::string_view> key_columns();

}  // namespace fusebench::reports
