#include "variants/registry.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "variants/choose.h"

namespace fusebench {
namespace {

// Where a variant stands in reports; names that are not listed come last.
std::size_t rank(std::string_view name) {
  constexpr std::array<std::string_view, 6> kOrder = {
      "naive", "cublas", "eigen", "cublas_flash", "eigen_flash", "fused",
  };
  return static_cast<std::size_t>(std::find(kOrder.begin(), kOrder.end(), name) - kOrder.begin());
}

bool comes_before(std::string_view left, std::string_view right) {
  return rank(left) != rank(right) ? rank(left) < rank(right) : left < right;
}

}  // namespace

void Registry::add(Variant variant) {
  if (find(variant.op, variant.backend, variant.name) != nullptr) {
    throw std::invalid_argument(std::string(name_of(variant.op)) + " already has a variant '" + variant.name + "' on " +
                                std::string(name_of(variant.backend)));
  }
  variants_.push_back(std::move(variant));
}

const Variant* Registry::find(Op op, Backend backend, std::string_view name) const {
  const auto found = std::find_if(variants_.begin(), variants_.end(), [&](const Variant& v) {
    return v.op == op && v.backend == backend && v.name == name;
  });
  return found == variants_.end() ? nullptr : &*found;
}

std::vector<const Variant*> Registry::all(Op op, Backend backend) const {
  std::vector<const Variant*> found;
  for (const Variant& v : variants_) {
    if (v.op == op && v.backend == backend) found.push_back(&v);
  }
  std::sort(found.begin(), found.end(),
            [](const Variant* l, const Variant* r) { return comes_before(l->name, r->name); });
  return found;
}

std::vector<std::string> Registry::names(Backend backend) const {
  std::vector<std::string> names;
  for (const Variant& v : variants_) {
    if (v.backend == backend && std::find(names.begin(), names.end(), v.name) == names.end()) names.push_back(v.name);
  }
  std::sort(names.begin(), names.end(), comes_before);
  return names;
}

Registry& registry() {
  static Registry instance;
  return instance;
}

Registration::Registration(const std::vector<Variant>& variants) {
  for (const Variant& variant : variants) {
    if (is_built(variant.backend)) registry().add(variant);
  }
}

}  // namespace fusebench
