// Every op by plain loops over flat arrays, in double: what the reference is compared with. Knows neither Eigen nor
// the reference. `stored` and `statistic` say what storing a value makes of it, and the other fields are mistakes
// that an implementation could make.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/tensor.h"

namespace fusebench::testing {

using Values = std::vector<double>;

struct Loops {
  Case c;
  const InputSet* inputs;
  std::function<double(double)> stored = [](double x) { return x; };
  std::function<double(double)> statistic = [](double x) { return x; };

  std::int64_t mask_shift = 0;     ///< queries see as many keys more
  bool kv_head_by_modulo = false;  ///< query head h reads KV head h % kv_heads
  bool attention_residual = true;
  bool mlp_residual = true;
  bool divide_by_root_of_dim = true;  ///< scores are divided by sqrt(head_dim)
  bool norm_weight = true;
  std::int64_t position_shift = 0;  ///< rope turns by the next token's angles
  bool gate_and_up_swapped = false;

  Values input(const std::string& name) const {
    const HostTensor& tensor = inputs->at(name);
    Values out(static_cast<std::size_t>(tensor.size()));
    tensor.read_rows(0, tensor.rows, out.data());
    return out;
  }

  /// By output name, [tokens, cols].
  std::map<std::string, Values> outputs() const {
    switch (c.op) {
      case Op::rmsnorm:
        return {{"y", rmsnorm(input("x"), input("weight"))}};
      case Op::add_rmsnorm: {
        const Values h = add(input("x"), input("r"));
        Values kept = h;  // the norm is defined over the stored sum
        for (double& value : kept) value = round_to(c.dtype, value);
        return {{"h", h}, {"y", rmsnorm(kept, input("weight"))}};
      }
      case Op::rope:
        return {{"q_out", rope(input("q"), c.heads)}, {"k_out", rope(input("k"), c.kv_heads)}};
      case Op::attention:
        return {{"out", attention(input("q"), input("k"), input("v"))}};
      case Op::qkv: {
        const Values n = rmsnorm(input("x"), input("norm_weight"));
        return {{"q", rope(product(n, input("wq"), c.dim), c.heads)},
                {"k", rope(product(n, input("wk"), c.dim), c.kv_heads)},
                {"v", product(n, input("wv"), c.dim)}};
      }
      case Op::attn_out:
        return {{"out", attn_out(input("x"), input("a"))}};
      case Op::swiglu:
        return {{"y", swiglu(input("g"), input("u"))}};
      case Op::mlp:
        return {{"out", mlp(input("h"), input("norm_weight"))}};
      case Op::block:
        return block();
    }
    return {};
  }

 private:
  std::map<std::string, Values> block() const {
    const Values x = input("x");
    const Values n = rmsnorm(x, input("norm1_weight"));
    const Values q = rope(product(n, input("wq"), c.dim), c.heads);
    const Values k = rope(product(n, input("wk"), c.dim), c.kv_heads);
    const Values v = product(n, input("wv"), c.dim);
    const Values a = attention(q, appended("k", k), appended("v", v));
    const Values h = attn_out(x, a);
    std::map<std::string, Values> out = {{"out", mlp(h, input("norm2_weight"))}};
    if (c.past > 0) {
      out["k"] = k;
      out["v"] = v;
    }
    return out;
  }

  Values appended(const std::string& cache, const Values& added) const {
    if (c.past == 0) return added;
    Values all = input(cache);
    const std::int64_t cols = c.kv_heads * c.head_dim();
    for (std::int64_t b = 0; b < c.batch; ++b) {
      for (std::int64_t i = 0; i < c.seq * cols; ++i) {
        all[static_cast<std::size_t>((b * (c.past + c.seq) + c.past) * cols + i)] =
            added[static_cast<std::size_t>(b * c.seq * cols + i)];
      }
    }
    return all;
  }

  Values add(const Values& x, const Values& y) const {
    Values out(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) out[i] = stored(x[i] + y[i]);
    return out;
  }
  Values attn_out(const Values& x, const Values& a) const {
    const Values branch = product(a, input("wo"), c.dim);
    return attention_residual ? add(x, branch) : branch;
  }

  Values rmsnorm(const Values& x, const Values& w) const {
    const std::size_t n = w.size();
    Values y(x.size());
    for (std::size_t row = 0; row < x.size(); row += n) {
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += statistic(x[row + i] * x[row + i]);
      const double mean = statistic(sum / static_cast<double>(n));
      const double rstd = statistic(1 / std::sqrt(mean + c.eps));
      for (std::size_t i = 0; i < n; ++i) {
        const double scaled = stored(x[row + i] * rstd);
        y[row + i] = norm_weight ? stored(scaled * w[i]) : scaled;
      }
    }
    return y;
  }

  Values product(const Values& a, const Values& w, std::int64_t inner) const {
    const auto k = static_cast<std::size_t>(inner);
    const std::size_t rows = a.size() / k;
    const std::size_t cols = w.size() / k;
    Values out(rows * cols);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < cols; ++j) {
        double sum = 0;
        for (std::size_t e = 0; e < k; ++e) sum += a[i * k + e] * w[j * k + e];
        out[i * cols + j] = stored(sum);
      }
    }
    return out;
  }

  Values rope(const Values& x, std::int64_t heads) const {
    const Values cos = input("cos");
    const Values sin = input("sin");
    const std::int64_t d = c.head_dim();
    Values out(x.size());
    for (std::int64_t t = 0; t < c.tokens(); ++t) {
      const std::int64_t s = (t % c.seq + position_shift) % c.seq;
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t i = 0; i < d / 2; ++i) {
          const std::int64_t base = (t * heads + h) * d;
          const auto first = static_cast<std::size_t>(base + (c.rope == Pairing::half ? i : 2 * i));
          const auto second = static_cast<std::size_t>(base + (c.rope == Pairing::half ? i + d / 2 : 2 * i + 1));
          const auto angle = static_cast<std::size_t>(s * (d / 2) + i);
          out[first] = stored(stored(x[first] * cos[angle]) - stored(x[second] * sin[angle]));
          out[second] = stored(stored(x[first] * sin[angle]) + stored(x[second] * cos[angle]));
        }
      }
    }
    return out;
  }

  Values attention(const Values& q, const Values& k, const Values& v) const {
    const std::int64_t d = c.head_dim();
    const std::int64_t keys = c.past + c.seq;
    Values out(q.size());
    Values p(static_cast<std::size_t>(keys));
    for (std::int64_t b = 0; b < c.batch; ++b) {
      for (std::int64_t s = 0; s < c.seq; ++s) {
        const std::int64_t visible = std::clamp<std::int64_t>((c.causal ? c.past + s + 1 : keys) + mask_shift, 0, keys);
        for (std::int64_t h = 0; h < c.heads; ++h) {
          const std::int64_t kv_head = kv_head_by_modulo ? h % c.kv_heads : h / (c.heads / c.kv_heads);
          const auto at = [&](std::int64_t key, std::int64_t i) {
            return static_cast<std::size_t>(((b * keys + key) * c.kv_heads + kv_head) * d + i);
          };
          const auto query = static_cast<std::size_t>(((b * c.seq + s) * c.heads + h) * d);
          double max = -INFINITY;
          for (std::int64_t key = 0; key < visible; ++key) {
            double dot = 0;
            for (std::int64_t i = 0; i < d; ++i) dot += q[query + static_cast<std::size_t>(i)] * k[at(key, i)];
            double& score = p[static_cast<std::size_t>(key)];
            score = statistic(divide_by_root_of_dim ? dot / std::sqrt(static_cast<double>(d)) : dot);
            max = std::max(max, score);
          }
          double sum = 0;
          for (std::int64_t key = 0; key < visible; ++key) {
            double& e = p[static_cast<std::size_t>(key)];
            e = stored(std::exp(e - max));
            sum += e;
          }
          sum = statistic(sum);
          for (std::int64_t i = 0; i < d; ++i) {
            double total = 0;
            for (std::int64_t key = 0; key < visible; ++key) {
              total += stored(p[static_cast<std::size_t>(key)] / sum) * v[at(key, i)];
            }
            out[query + static_cast<std::size_t>(i)] = stored(total);
          }
        }
      }
    }
    return out;
  }

  Values swiglu(const Values& g, const Values& u) const {
    Values y(g.size());
    for (std::size_t i = 0; i < g.size(); ++i) {
      const double sigmoid = stored(1 / (1 + std::exp(-g[i])));
      const double silu = sigmoid == 0 ? 0 : stored(g[i] * sigmoid);
      y[i] = stored(silu * u[i]);
    }
    return y;
  }

  Values mlp(const Values& h, const Values& weight) const {
    const Values n = rmsnorm(h, weight);
    const Values g = product(n, input("w_gate"), c.dim);
    const Values u = product(n, input("w_up"), c.dim);
    const Values activated = gate_and_up_swapped ? swiglu(u, g) : swiglu(g, u);
    const Values branch = product(activated, input("w_down"), c.hidden);
    return mlp_residual ? add(h, branch) : branch;
  }
};

}  // namespace fusebench::testing
