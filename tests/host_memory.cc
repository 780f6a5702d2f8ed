// Memory that a case needs on the host is known before it is taken.
#include "harness/host_memory.h"

#include <limits>

#include "tests/catch.h"
#include "tests/faults.h"

using namespace fusebench;
using faults::Bench;

namespace {

Case rmsnorm(std::int64_t dim, std::int64_t seq) {
  return canonical({.op = Op::rmsnorm, .dtype = DType::fp32, .dim = dim, .seq = seq});
}

std::int64_t needed(const Case& c, const VerifyRows& verify = {}) { return host_bytes_needed(c, spec_of(c), verify); }

}  // namespace

TEST_CASE("host memory covers inputs, the outputs of two variants and the expected rows", "[host_memory]") {
  const std::int64_t gib = std::int64_t{1} << 30;
  const Case c = rmsnorm(4096, 500000);
  const std::int64_t tensor = spec_of(c).tensor("x").bytes();
  CHECK(needed(c) > 3 * tensor);
  CHECK(needed(c) < 3 * tensor + gib / 4);
  CHECK(needed(c, {.full = true}) > 3 * tensor + 2 * 8 * 4096 * std::int64_t{500000});
  // As large as a case may be: no overflow.
  CHECK(needed(rmsnorm(1, std::int64_t{1} << 54), {.full = true}) > std::int64_t{1} << 59);
  CHECK(saturating_sum(std::numeric_limits<std::int64_t>::max(), 1) == std::numeric_limits<std::int64_t>::max());
  CHECK(available_host_bytes() > 0);
}

TEST_CASE("a case that the device takes and the host does not is unsupported before anything is drawn",
          "[host_memory]") {
  Bench bench(Backend::cpu);
  bench.context.source = [](const Case&) -> std::unique_ptr<TensorSource> { throw std::logic_error("drawn"); };
  // One tensor alone is twice what there is; then the expected rows alone are too much.
  const std::int64_t half = available_host_bytes() / 2;
  CHECK(bench.run_one(rmsnorm(4096, half / 4096), "fused").verdict == Verdict::unsupported);
  bench.measure.verify.full = true;
  const Row row = bench.run_one(rmsnorm(1, half / 8), "fused");
  CHECK(row.verdict == Verdict::unsupported);
  CHECK_THAT(row.reason, ContainsSubstring("bytes of host memory"));
}
