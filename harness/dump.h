// `run --dump DIR`: a case's tensors as NPY files, to look at a failure in Python. fp16 and bf16 are widened to fp32.
//   DIR/CASE/input.NAME.npy               [rows, cols]
//   DIR/CASE/rows.npy                     token rows that were checked, int64
//   DIR/CASE/expected.NAME.npy            float64 [checked rows, cols]
//   DIR/CASE/VARIANT/output.NAME.npy      [tokens, cols]
//   DIR/CASE/case.json                    shape and conventions
// CASE is the case id with '/' replaced by '_'.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/oracle.h"
#include "harness/verify.h"

namespace fusebench {

void dump_case(const std::filesystem::path& root, const Case& c, const OpSpec& spec, const InputSet& inputs,
               const Expected& expected);
void dump_outputs(const std::filesystem::path& root, const Case& c, const std::string& variant,
                  const std::vector<Output>& outputs);

}  // namespace fusebench
