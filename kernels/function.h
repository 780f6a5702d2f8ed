// How the functions behind the tables of kernels/primitives.h, elementwise.h and fused.h are declared: by the tables'
// own signatures, which are said once.
#pragma once

#include <type_traits>

namespace fusebench::kernels {

/// `Function<decltype(Table::member)> name;` declares a function that `member` can point to.
template <class Member>
using Function = std::remove_pointer_t<Member>;

}  // namespace fusebench::kernels
