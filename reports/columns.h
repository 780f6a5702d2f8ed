// The scalar columns of a record, in order: what writes results.jsonl, results.csv and the data dictionary.
#pragma once

#include <span>
#include <string_view>

namespace fusebench::reports {

struct Column {
  std::string_view name;  ///< snake_case, unit last
  std::string_view unit;  ///< "" for none
  std::string_view description;
};

std::span<const Column> columns();
std::span<const Column> step_columns();

}  // namespace fusebench::reports
