// What each tensor of a case is drawn from: DESIGN.md's "Inputs".
#include "harness/draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "harness/parallel.h"
#include "harness/phases.h"
#include "harness/tensor.h"

namespace fusebench {
namespace {

constexpr std::int64_t kChunk = 1024;
constexpr std::int64_t kGrain = 1 << 15;  // fewer elements than this are not worth a thread

/// Elements [first, last) of `out` become dtype's nearest to value(element).
template <class Value>
void fill_range(HostTensor& out, std::int64_t first, std::int64_t last, const Value& value) {
  std::array<double, kChunk> chunk;
  for (std::int64_t begin = first; begin < last; begin += kChunk) {
    const std::int64_t count = std::min(kChunk, last - begin);
    for (std::int64_t i = 0; i < count; ++i) {
      chunk[static_cast<std::size_t>(i)] = value(static_cast<std::uint64_t>(begin + i));
    }
    store(out.dtype, {chunk.data(), static_cast<std::size_t>(count)}, out.data.data() + begin * bytes_of(out.dtype));
  }
}

template <class Value>
HostTensor filled(const TensorSpec& spec, const Value& value) {
  HostTensor out(spec.dtype, spec.rows, spec.cols);
  parallel_ranges(out.size(), kGrain, [&](std::int64_t first, std::int64_t last) {  //
    fill_range(out, first, last, value);
  });
  return out;
}

/// A cache: its past rows drawn, its new rows zero. Elements are numbered over the whole tensor.
template <class Value>
HostTensor filled_past(const TensorSpec& spec, const Value& value) {
  HostTensor out(spec.dtype, spec.rows, spec.cols);
  const std::int64_t capacity = spec.output_rows.capacity;
  const std::int64_t past_elements = spec.output_rows.past * spec.cols;
  for (std::int64_t row = 0; row < spec.rows; row += capacity) {
    const std::int64_t start = row * spec.cols;
    parallel_ranges(past_elements, kGrain, [&](std::int64_t first, std::int64_t last) {
      fill_range(out, start + first, start + last, value);
    });
  }
  return out;
}

bool is_norm_weight(const std::string& name) { return name.ends_with("weight"); }
bool is_matrix(const std::string& name) { return name.starts_with("w") && !is_norm_weight(name); }

/// Attention averages values, so that its output is smaller than they are: by E[sum of p²] of a softmax over n keys
/// whose logits are normal with standard deviation 2. For many keys that is e^(2²)/n; among few the largest one weighs
/// more than this says, and the root's factor is fitted to simulations of 16 to 32768 keys (within 20%).
double attention_output_variance(const Case& c) {
  constexpr double kExpMinus4 = 0.018315638888734179;
  const auto new_keys = static_cast<double>(c.seq);
  const double visible = static_cast<double>(c.past) + (c.causal ? (new_keys + 1) / 2 : new_keys);
  return 1 / std::max(1.0, 0.66 * std::sqrt(visible) + kExpMinus4 * visible);
}

/// The standard deviation of a weight's elements, so that logits have one of about 2 and each branch's output one of
/// about 1. Rows entering wq ... w_up are normalised: their elements have variance 1.
double balanced_sigma(const Case& c, const std::string& name) {
  constexpr double kSwigluVariance = 0.35577551981733463;  // E[silu(g)²] of a standard normal g; u's variance is 1
  const auto dim = static_cast<double>(c.dim);
  // q·k / sqrt(d) has variance var(q) · var(k): 2 · 2
  if (name == "wq" || name == "wk") return std::sqrt(2 / dim);
  if (name == "wo") return std::sqrt(1 / (dim * (c.op == Op::block ? attention_output_variance(c) : 1)));
  if (name == "w_down") return std::sqrt(1 / (static_cast<double>(c.hidden) * kSwigluVariance));
  return std::sqrt(1 / dim);
}

HostTensor draw_matrix(const Case& c, const TensorSpec& spec, const WordStream& words) {
  if (c.inputs == Inputs::seed) {
    return filled(spec, UniformDraw(words, 1 / std::sqrt(static_cast<double>(spec.cols))));
  }
  return filled(spec, NormalDraw(words, balanced_sigma(c, spec.name)));
}

HostTensor draw_norm_weight(const Case& c, const TensorSpec& spec, const WordStream& words) {
  if (c.inputs == Inputs::seed) return filled(spec, [](std::uint64_t) { return 1.0; });
  return filled(spec, [draw = NormalDraw(words, 0.1)](std::uint64_t element) { return 1 + draw(element); });
}

HostTensor draw_phases(const Case& c, const TensorSpec& spec, const WordStream& words) {
  if (c.inputs == Inputs::seed) {
    return filled(spec, [draw = NormalDraw(words, 1), dtype = c.dtype](std::uint64_t element) {
      return round_to(dtype, draw(element));
    });
  }
  std::vector<double> frequencies;
  for (std::int64_t pair = 0; pair < spec.cols; ++pair) {
    frequencies.push_back(rope_frequency(c.rope_theta, pair, c.head_dim()));
  }
  return filled(spec, [&, cosine = spec.name == "cos", cols = static_cast<std::uint64_t>(spec.cols)](std::uint64_t i) {
    const auto position = static_cast<double>(c.past + static_cast<std::int64_t>(i / cols));
    const CosSin phase = cos_sin(position * frequencies[i % cols]);
    return cosine ? phase.cos : phase.sin;
  });
}

HostTensor draw_cache(const Case& c, const TensorSpec& spec, const WordStream& words) {
  // balanced: as the keys that wk makes
  const double variance = spec.name == "k" && c.inputs == Inputs::balanced ? 2 : 1;
  return filled_past(spec, NormalDraw(words, std::sqrt(variance)));
}

std::uint64_t hash_of(std::string_view text) {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

}  // namespace

WordStream::WordStream(std::uint64_t seed, std::string_view tensor)
    : key_(mix(mix(seed + kMixStride) ^ hash_of(tensor))) {}

HostTensor DrawnSource::read(const TensorSpec& spec) const {
  if (spec.role == Role::output) throw std::logic_error("an output is not drawn: " + spec.name);
  const WordStream words(case_.seed, spec.name);
  if (spec.role == Role::cache) return draw_cache(case_, spec, words);
  if (spec.name == "cos" || spec.name == "sin") return draw_phases(case_, spec, words);
  if (is_norm_weight(spec.name)) return draw_norm_weight(case_, spec, words);
  if (is_matrix(spec.name)) return draw_matrix(case_, spec, words);
  return filled(spec, NormalDraw(words, 1));
}

}  // namespace fusebench
