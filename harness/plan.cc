#include "harness/plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace fusebench {
namespace {

// No memory holds an intermediate as large as that, and sums of fewer than a hundred such stay under 2^63.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 56;

void check_size(const std::string& name, DType dtype, std::int64_t rows, std::int64_t cols) {
  std::int64_t bytes = 0;
  if (!__builtin_mul_overflow(rows, cols, &bytes) && !__builtin_mul_overflow(bytes, bytes_of(dtype), &bytes) &&
      bytes <= kMostBytes) {
    return;
  }
  throw Unsupported("the intermediate " + name + " [" + std::to_string(rows) + ", " + std::to_string(cols) +
                    "] passes 2^56 bytes");
}

std::int64_t sum(const std::vector<Access>& accesses) {
  return std::accumulate(accesses.begin(), accesses.end(), std::int64_t{0},
                         [](std::int64_t bytes, const Access& access) { return bytes + access.bytes; });
}

// From the first step that touches a tensor to the last.
struct Life {
  std::size_t first = std::numeric_limits<std::size_t>::max();
  std::size_t last = 0;

  bool is_empty() const { return first > last; }
  bool overlaps(const Life& other) const { return first <= other.last && other.first <= last; }
};

std::vector<Life> lives_of(const Plan& plan) {
  std::vector<Life> lives(plan.tensors().size());
  for (std::size_t i = 0; i < plan.steps().size(); ++i) {
    for (const auto* accesses : {&plan.steps()[i].reads, &plan.steps()[i].writes}) {
      for (const Access& access : *accesses) {
        Life& life = lives.at(static_cast<std::size_t>(access.tensor));
        life.first = std::min(life.first, i);
        life.last = std::max(life.last, i);
      }
    }
  }
  return lives;
}

}  // namespace

std::int64_t Step::bytes_read() const { return sum(reads); }
std::int64_t Step::bytes_written() const { return sum(writes); }

std::string_view name_of(Storage storage) {
  switch (storage) {
    case Storage::op:
      return "op";
    case Storage::prepared:
      return "prepared";
    case Storage::workspace:
      return "workspace";
  }
  return "?";
}

Plan::Plan(const OpSpec& spec) {
  for (const TensorSpec& tensor : spec.tensors) {
    tensors_.push_back({tensor.name, Storage::op, tensor.dtype, tensor.rows, tensor.cols});
  }
}

TensorId Plan::op_tensor(std::string_view name) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].storage == Storage::op && tensors_[i].name == name) return static_cast<TensorId>(i);
  }
  throw std::out_of_range("the op has no tensor '" + std::string(name) + "'");
}

TensorId Plan::workspace(std::string name, DType dtype, std::int64_t rows, std::int64_t cols) {
  check_size(name, dtype, rows, cols);
  tensors_.push_back({std::move(name), Storage::workspace, dtype, rows, cols});
  return static_cast<TensorId>(tensors_.size() - 1);
}

TensorId Plan::prepared(std::string name, DType dtype, std::int64_t rows, std::int64_t cols) {
  check_size(name, dtype, rows, cols);
  tensors_.push_back({std::move(name), Storage::prepared, dtype, rows, cols});
  return static_cast<TensorId>(tensors_.size() - 1);
}

Step& Plan::add(Step step) { return steps_.emplace_back(std::move(step)); }
Step& Plan::add_prepare(Step step) { return preparation_.emplace_back(std::move(step)); }

std::int64_t Plan::modelled_bytes() const {
  return std::accumulate(steps_.begin(), steps_.end(), std::int64_t{0}, [](std::int64_t bytes, const Step& step) {
    return bytes + step.bytes_read() + step.bytes_written();
  });
}

std::int64_t Plan::prepared_bytes() const {
  return std::accumulate(tensors_.begin(), tensors_.end(), std::int64_t{0},
                         [](std::int64_t bytes, const PlanTensor& tensor) {
                           return bytes + (tensor.storage == Storage::prepared ? tensor.bytes() : 0);
                         });
}

double Plan::flops() const {
  return std::accumulate(steps_.begin(), steps_.end(), 0.0,
                         [](double flops, const Step& step) { return flops + step.flops; });
}

int Plan::launches() const {
  return std::accumulate(steps_.begin(), steps_.end(), 0,
                         [](int sum, const Step& step) { return sum + step.launches; });
}

std::string Plan::kernel() const {
  std::vector<std::string> seen;
  std::string text;
  for (const Step& step : steps_) {
    if (std::find(seen.begin(), seen.end(), step.kernel) != seen.end()) continue;
    seen.push_back(step.kernel);
    text += (text.empty() ? "" : " + ") + step.kernel;
  }
  return text;
}

Layout lay_out_workspace(const Plan& plan, std::int64_t alignment_bytes) {
  const auto aligned = [&](std::int64_t bytes) {
    return (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
  };
  const std::vector<Life> lives = lives_of(plan);
  Layout layout{.offsets = std::vector<std::int64_t>(plan.tensors().size(), -1)};
  for (std::size_t i = 0; i < plan.tensors().size(); ++i) {
    if (plan.tensors()[i].storage != Storage::workspace || lives[i].is_empty()) continue;
    // Tensors that are placed already and live at the same time, by offset; the first gap that is wide enough is ours.
    std::vector<std::size_t> others;
    for (std::size_t j = 0; j < i; ++j) {
      if (layout.offsets[j] >= 0 && lives[i].overlaps(lives[j])) others.push_back(j);
    }
    std::sort(others.begin(), others.end(),
              [&](std::size_t l, std::size_t r) { return layout.offsets[l] < layout.offsets[r]; });
    const std::int64_t bytes = aligned(plan.tensors()[i].bytes());
    std::int64_t offset = 0;
    for (const std::size_t j : others) {
      if (offset + bytes <= layout.offsets[j]) break;
      offset = std::max(offset, layout.offsets[j] + aligned(plan.tensors()[j].bytes()));
    }
    layout.offsets[i] = offset;
    layout.bytes = std::max(layout.bytes, offset + bytes);
  }
  return layout;
}

}  // namespace fusebench
