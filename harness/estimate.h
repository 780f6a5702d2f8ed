// What a sweep will take, told before it runs: memory, exactly as a run asks for it, and time, between two bounds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/config.h"
#include "harness/device.h"
#include "harness/plan.h"
#include "harness/row.h"

namespace fusebench {

class Estimate {
 public:
  Estimate(const Measure& measure, Backend backend, bool prove) : measure_(measure), backend_(backend), prove_(prove) {}

  struct Entry {
    const Case& c;
    const std::vector<Plan>& plans;  ///< what a run binds: a witness may be among them
    std::size_t rows = 0;            ///< of each mode
    bool has_control = false;        ///< one of them is timed twice
    Known<double> floor_us;
    bool has_expected_rows = false;  ///< in the oracle cache
  };
  void add(const Entry& entry);
  void add_unsupported() { ++unsupported_; }

  /// Lines for people. The bytes are what is free now.
  std::string text(std::int64_t free_on_device, std::int64_t free_on_host) const;

 private:
  struct CaseNeed {
    std::string case_id;
    std::int64_t device = 0, host = 0;
  };
  void add_time(std::size_t rows, std::size_t controls, double floor_s);
  std::string memory_text(std::int64_t free_on_device, std::int64_t free_on_host) const;
  std::string time_text() const;

  const Measure& measure_;
  Backend backend_;
  bool prove_;
  std::vector<CaseNeed> needs_;
  std::size_t rows_ = 0, unsupported_ = 0, without_expected_ = 0;
  bool has_floors_ = true;
  double least_s_ = 0, most_s_ = 0;  // every launch at the op's floor; max_seconds a row, and what its steps may take
};

}  // namespace fusebench
