// Runs cases on a scripted device: the CPU's variants, entered as if they were the GPU's.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "tests/fake_device.h"
#include "tests/faults.h"

namespace fusebench::testing {

/// Plans as the CPU would, for the scripted device.
inline Variant entered_on_cuda(Variant variant) {
  variant.backend = Backend::cuda;
  variant.plan = [plan = std::move(variant.plan)](const Case& c, Target target) {
    target.backend = Backend::cpu;
    return plan(c, target);
  };
  return variant;
}

struct FakeBench : faults::Bench {
  FakeDevice& fake;

  FakeBench() : faults::Bench(std::make_unique<FakeDevice>()), fake(static_cast<FakeDevice&>(*device)) {
    fake.free = std::int64_t{1} << 30;
    fake.work_us = 30e3;  // one launch settles the clock: kernels really run
    for (const Op op : kOps) {
      for (const Variant* variant : registry().all(op, Backend::cpu)) variants.add(entered_on_cuda(*variant));
    }
  }
};

}  // namespace fusebench::testing
