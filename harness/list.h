// `fusebench list`.
#pragma once

namespace fusebench {

/// Ops, variants, models and what this build and machine support, on stdout.
void print_list();

}  // namespace fusebench
