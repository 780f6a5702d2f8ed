// What a case takes of the host's memory, and what there is.
#pragma once

#include <cstdint>

#include "harness/op.h"
#include "harness/oracle.h"

namespace fusebench {

/// What this process may still take: the machine's available memory, or its control group's where that is less.
std::int64_t available_host_bytes();

/// What a case needs on the host beside its device memory: inputs, the expected rows and what computes them, and the
/// outputs of two variants; to prove the check, mutants and another seed's inputs too. An estimate from above; sums
/// that pass 2^63 stay there.
std::int64_t host_bytes_needed(const Case& c, const OpSpec& spec, const VerifyRows& verify, bool prove = false);

/// a + b, both >= 0, or the largest integer where that overflows.
std::int64_t saturating_sum(std::int64_t a, std::int64_t b);

}  // namespace fusebench
