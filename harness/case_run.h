// Turns one case into rows: plans every variant, verifies each alone, times them interleaved and checks each timed
// launch.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/ceilings.h"
#include "harness/config.h"
#include "harness/device.h"
#include "harness/oracle.h"
#include "harness/row.h"
#include "variants/registry.h"

namespace fusebench {

/// The device no longer answers (a sticky CUDA error): nothing that follows in this process can be trusted.
struct DeviceLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Of max_seconds: the steps are timed beside the samples.
inline constexpr double kStepTimesShare = 0.2;

/// What a case needs besides itself.
struct CaseContext {
  Device& device;
  const Registry& variants;
  const Measure& measure;
  const OracleCache& oracle_cache;
  std::function<std::unique_ptr<TensorSource>(const Case&)> source;   ///< where inputs come from
  std::function<void(const std::string&)> note;                       ///< what is being done, for progress
  std::filesystem::path dump;                                         ///< empty: nothing is dumped
  std::function<std::string(const Case&, const std::string&)> repro;  ///< the command that repeats a row
  const Ceilings* ceilings = nullptr;                                 ///< none: the rows have no floor
  bool control = false;                   ///< time one variant twice, as if it were two (A/A)
  bool prove = false;                     ///< try the check on mutants: harness/mutants.h
  std::string lost;                       ///< the device was lost in an earlier case, and how: every row is an error
  std::int64_t base_offset_elements = 0;  ///< shifts every tensor's base: for tests
};

/// The names that `variants: all` means: those without a dot ("fused.portable" is taken only by name).
std::vector<std::string> default_variants(const Registry& variants, Op op, Backend backend);

/// Throws Unsupported, naming what exists, where the backend lacks the variant or the variant the dtype.
Plan plan_variant(const Registry& variants, const Case& c, const std::string& name, const Target& target);

/// The same plan sampled as two subjects: by how much medians differ where nothing does.
struct Control {
  double median_us = 0;
  double ratio = 1;  ///< of the medians
};

/// One row for each of the variants and modes, in their order, whatever happens to one of them; when the device is
/// lost, what was not finished has the verdict `error`, and `lost` tells why.
struct CaseResult {
  std::vector<Row> rows;
  std::vector<Control> controls;                ///< one a mode, where the context asks for them
  std::map<std::string, double> stage_seconds;  ///< where the time went
  std::string lost;
};
CaseResult run_case(const Case& c, const std::vector<std::string>& variants, CaseContext& context);

/// The expected rows of a case: from the cache, or computed and put there. An unwritable cache is no error.
Expected expected_rows(const Case& c, const InputSet& inputs, const VerifyRows& verify, const OracleCache& cache);

}  // namespace fusebench
