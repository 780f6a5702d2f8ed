#include "variants/naive_product.h"

namespace fusebench {

void naive_product(const Planning& p, const NaiveProduct& product) {
  p.add({.name = product.name,
         .kernel = "naive_product",
         .reads = {p.part(product.a, product.m, product.k), p.part(product.b, product.n, product.k)},
         .writes = {p.part(product.c, product.m, product.n)},
         .flops = product_flops(product.m, product.n, product.k),
         .launch = [product, run = primitives(p.target.backend).product, dtype = p.c.dtype](const Exec& exec,
                                                                                            const Bindings& bound) {
           run(exec, dtype, bound.at(product.a), bound.at(product.b), bound.at(product.c), product.m, product.n,
               product.k, product.c_rows);
         }});
}

}  // namespace fusebench
