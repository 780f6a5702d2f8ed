#include "harness/op.h"

#include <set>

#include "tests/catch.h"

namespace fusebench {
namespace {

Case seed_shape(Op op, std::int64_t kv_heads = 32) {
  Case c;
  c.op = op;
  c.dim = 4096;
  c.hidden = 14336;
  c.heads = 32;
  c.kv_heads = kv_heads;
  c.batch = 2;
  c.seq = 2048;
  return canonical(c);
}

double gflop(const Case& c) { return spec_of(c).flops / 1e9; }
double megabytes(const Case& c) { return static_cast<double>(spec_of(c).compulsory_bytes) / 1e6; }

TEST_CASE("op names are distinct") {
  std::set<std::string_view> names;
  for (const Op op : kOps) names.insert(name_of(op));
  CHECK(names.size() == kOps.size());
  CHECK(name_of(Op::add_rmsnorm) == "add_rmsnorm");
}

// The floors that the project works with, at 4096 tokens. Those of qkv and block leave out the cos/sin table, that of
// rope counts it at 2 bytes an element; ours is fp32.
TEST_CASE("floors at 4096 tokens") {
  const double table_mb = 2 * 2048 * 64 * 4 / 1e6;
  const auto flops_are = [](const Case& c, double expected) { return gflop(c) == Approx(expected).margin(0.05); };
  const auto bytes_are = [](const Case& c, double expected) { return megabytes(c) == Approx(expected).margin(0.05); };

  CHECK(gflop(seed_shape(Op::rmsnorm)) == 0);
  CHECK(bytes_are(seed_shape(Op::rmsnorm), 67.1));
  CHECK(gflop(seed_shape(Op::add_rmsnorm)) == 0);
  CHECK(bytes_are(seed_shape(Op::add_rmsnorm), 134.2));
  CHECK(gflop(seed_shape(Op::rope)) == 0);
  CHECK(bytes_are(seed_shape(Op::rope), 134.7 + table_mb / 2));
  CHECK(bytes_are(seed_shape(Op::rope, 8), 84.4 + table_mb / 2));
  CHECK(flops_are(seed_shape(Op::qkv), 412.3));
  CHECK(flops_are(seed_shape(Op::qkv, 8), 206.2));
  CHECK(bytes_are(seed_shape(Op::qkv), 234.9 + table_mb));
  CHECK(bytes_are(seed_shape(Op::qkv, 8), 134.2 + table_mb));
  CHECK(flops_are(seed_shape(Op::attention), 137.4));
  CHECK(flops_are(seed_shape(Op::attention, 8), 137.4));
  CHECK(bytes_are(seed_shape(Op::attention), 134.2));
  CHECK(bytes_are(seed_shape(Op::attention, 8), 83.9));
  CHECK(flops_are(seed_shape(Op::attn_out), 137.4));
  CHECK(bytes_are(seed_shape(Op::attn_out), 134.2));
  CHECK(gflop(seed_shape(Op::swiglu)) == 0);
  CHECK(spec_of(seed_shape(Op::swiglu)).compulsory_bytes == 3 * 4096 * 14336 * 2);
  CHECK(flops_are(seed_shape(Op::mlp), 962.1 + 481.0));
  CHECK(spec_of(seed_shape(Op::mlp)).compulsory_bytes == (2 * 4096 * 4096 + 4096 + 3 * 4096 * 14336) * 2);
  CHECK(flops_are(seed_shape(Op::block), 2130.3));
  CHECK(flops_are(seed_shape(Op::block, 8), 1924.1));
  CHECK(megabytes(seed_shape(Op::block)) == Approx(553.6 + table_mb).margin(0.1));
  CHECK(bytes_are(seed_shape(Op::block, 8), 503.3 + table_mb));
}

Case small(Op op, std::int64_t past = 0) {
  Case c;
  c.op = op;
  c.dim = 48;
  c.hidden = 40;
  c.heads = 6;
  c.kv_heads = 3;
  c.batch = 2;
  c.seq = 5;
  c.past = past;
  return canonical(c);
}

std::vector<std::string> names_of(const OpSpec& spec, Role role) {
  std::vector<std::string> names;
  for (const TensorSpec& tensor : spec.tensors) {
    if (tensor.role == role) names.push_back(tensor.name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("signatures, in order") {
  const auto inputs = [](Op op) { return names_of(spec_of(small(op)), Role::input); };
  const auto outputs = [](Op op) { return names_of(spec_of(small(op)), Role::output); };
  CHECK(inputs(Op::rmsnorm) == Names{"x", "weight"});
  CHECK(outputs(Op::rmsnorm) == Names{"y"});
  CHECK(inputs(Op::add_rmsnorm) == Names{"x", "r", "weight"});
  CHECK(outputs(Op::add_rmsnorm) == Names{"h", "y"});
  CHECK(inputs(Op::rope) == Names{"q", "k", "cos", "sin"});
  CHECK(outputs(Op::rope) == Names{"q_out", "k_out"});
  CHECK(inputs(Op::attention) == Names{"q", "k", "v"});
  CHECK(outputs(Op::attention) == Names{"out"});
  CHECK(inputs(Op::qkv) == Names{"x", "norm_weight", "wq", "wk", "wv", "cos", "sin"});
  CHECK(outputs(Op::qkv) == Names{"q", "k", "v"});
  CHECK(inputs(Op::attn_out) == Names{"a", "wo", "x"});
  CHECK(outputs(Op::attn_out) == Names{"out"});
  CHECK(inputs(Op::swiglu) == Names{"g", "u"});
  CHECK(outputs(Op::swiglu) == Names{"y"});
  CHECK(inputs(Op::mlp) == Names{"h", "norm_weight", "w_gate", "w_up", "w_down"});
  CHECK(outputs(Op::mlp) == Names{"out"});
  CHECK(inputs(Op::block) ==
        Names{"x", "norm1_weight", "wq", "wk", "wv", "cos", "sin", "wo", "norm2_weight", "w_gate", "w_up", "w_down"});
  CHECK(outputs(Op::block) == Names{"out"});
  for (const Op op : kOps) CHECK(names_of(spec_of(small(op)), Role::cache).empty());
}

TEST_CASE("shapes of the block's tensors") {
  const OpSpec spec = spec_of(small(Op::block, 7));
  const auto shape = [&](std::string_view name) {
    const TensorSpec& tensor = spec.tensor(name);
    return std::vector<std::int64_t>{tensor.rows, tensor.cols};
  };
  using Shape = std::vector<std::int64_t>;
  CHECK(shape("x") == Shape{10, 48});
  CHECK(spec.tensor("x").dims == Shape{2, 5, 48});
  CHECK(shape("norm1_weight") == Shape{1, 48});
  CHECK(shape("wq") == Shape{48, 48});
  CHECK(shape("wk") == Shape{24, 48});
  CHECK(shape("wv") == Shape{24, 48});
  CHECK(shape("cos") == Shape{5, 4});
  CHECK(shape("wo") == Shape{48, 48});
  CHECK(shape("w_gate") == Shape{40, 48});
  CHECK(shape("w_down") == Shape{48, 40});
  CHECK(shape("k") == Shape{24, 24});
  CHECK(spec.tensor("k").dims == Shape{2, 12, 3, 8});
  CHECK(spec.tensor("cos").dtype == DType::fp32);
  CHECK(spec.tensor("wq").dtype == DType::fp16);
  CHECK_THROWS_AS(spec.tensor("w_q"), std::out_of_range);
}

TEST_CASE("compulsory bytes with a cache") {
  const std::int64_t row = 3 * 8 * 2;  // one token's keys, all heads

  SECTION("qkv writes the new rows and reads no past ones") {
    const OpSpec spec = spec_of(small(Op::qkv, 7));
    for (const char* name : {"k", "v"}) {
      CHECK(spec.tensor(name).role == Role::cache);
      CHECK(spec.tensor(name).bytes() == 2 * 12 * row);
      CHECK(spec.tensor(name).read_bytes == 0);
      CHECK(spec.tensor(name).write_bytes == 2 * 5 * row);
    }
    CHECK(spec.compulsory_bytes == spec_of(small(Op::qkv)).compulsory_bytes);
  }
  SECTION("block reads the past rows and writes the new ones") {
    const OpSpec spec = spec_of(small(Op::block, 7));
    for (const char* name : {"k", "v"}) {
      CHECK(spec.tensor(name).read_bytes == 2 * 7 * row);
      CHECK(spec.tensor(name).write_bytes == 2 * 5 * row);
    }
    CHECK(spec.compulsory_bytes == spec_of(small(Op::block)).compulsory_bytes + 2 * 2 * 12 * row);
  }
  SECTION("attention reads all keys and values") {
    const OpSpec spec = spec_of(small(Op::attention, 7));
    CHECK(spec.tensor("k").role == Role::input);
    CHECK(spec.tensor("k").read_bytes == 2 * 12 * row);
    CHECK(spec.compulsory_bytes == 2 * 2 * 12 * row + 2 * (2 * 5 * 48 * 2));
  }
  SECTION("rope's past moves positions alone") {
    CHECK(spec_of(small(Op::rope, 7)).compulsory_bytes == spec_of(small(Op::rope)).compulsory_bytes);
  }
}

TEST_CASE("every byte of every input and output is compulsory once") {
  for (const Op op : kOps) {
    std::int64_t bytes = 0;
    const OpSpec spec = spec_of(small(op));
    for (const TensorSpec& tensor : spec.tensors) {
      bytes += tensor.bytes();
      CHECK(tensor.read_bytes == (tensor.role == Role::input ? tensor.bytes() : 0));
      CHECK(tensor.write_bytes == (tensor.role == Role::output ? tensor.bytes() : 0));
    }
    CHECK(spec.compulsory_bytes == bytes);
  }
}

TEST_CASE("output rows: the identity, but for caches") {
  for (const Op op : kOps) {
    for (const std::int64_t past : {0, 7}) {
      const OpSpec spec = spec_of(small(op, past));
      for (const TensorSpec& tensor : spec.tensors) {
        if (tensor.role == Role::input) continue;
        CAPTURE(name_of(op), tensor.name, past);
        CHECK(tensor.output_rows(0) == (tensor.role == Role::cache ? 7 : 0));
        CHECK(tensor.output_rows(4) == (tensor.role == Role::cache ? 11 : 4));
        CHECK(tensor.output_rows(5) == (tensor.role == Role::cache ? 19 : 5));
        CHECK(tensor.output_rows(9) == tensor.rows - 1);
      }
    }
  }
}

TEST_CASE("causal attention counts visible pairs exactly") {
  Case c = small(Op::attention, 3);
  const double flops_per_pair = 4 * 2 * 6 * 8;
  CHECK(spec_of(c).flops == flops_per_pair * 5 * 8);
  c.causal = true;
  std::int64_t pairs = 0;
  for (std::int64_t query = 0; query < c.seq; ++query) {
    for (std::int64_t key = 0; key < c.keys(); ++key) pairs += key <= c.past + query ? 1 : 0;
  }
  CHECK(spec_of(c).flops == flops_per_pair * static_cast<double>(pairs));

  c.seq = 1;  // the last query sees every key
  CHECK(spec_of(c).flops == flops_per_pair * 4);
}

TEST_CASE("a canonical case has defaults where its op does not look") {
  Case full = small(Op::block, 7);
  full.causal = true;
  full.rope = Pairing::half;
  full.rope_theta = 10000;
  full.eps = 1e-6;
  CHECK(canonical(full) == full);

  const auto as = [&](Op op) {
    Case c = full;
    c.op = op;
    return canonical(c);
  };
  for (const Op op : kOps) {
    const Case c = as(op);
    const OpUses uses = uses_of(op);
    CAPTURE(name_of(op));
    CHECK(c.dim == (uses.dim ? 48 : 0));
    CHECK(c.hidden == (uses.hidden ? 40 : 0));
    CHECK(c.heads == (uses.heads ? 6 : 0));
    CHECK(c.kv_heads == (uses.heads ? 3 : 0));
    CHECK(c.past == (uses.past ? 7 : 0));
    CHECK(c.causal == uses.causal);
    CHECK(c.rope == (uses.rope ? Pairing::half : Pairing::interleaved));
    CHECK(c.rope_theta == (uses.rope ? 10000 : 500000));
    CHECK(c.eps == (uses.eps ? 1e-6 : 1e-5));
    CHECK(canonical(c) == c);
  }
}

TEST_CASE("canonical: key heads default to heads, and drawn angles have no theta") {
  Case c = small(Op::rope);
  c.kv_heads = 0;
  CHECK(canonical(c).kv_heads == 6);
  c.rope_theta = 10000;
  CHECK(canonical(c).rope_theta == 10000);
  c.inputs = Inputs::seed;
  CHECK(canonical(c).rope_theta == 500000);
}

TEST_CASE("case ids") {
  Case c = seed_shape(Op::block, 8);
  c.causal = true;
  c.rope = Pairing::half;
  CHECK(case_id(c) == "block/fp16/d4096-f14336-h32-kv8/b2-s2048-p0/causal-half/balanced-42");
  c.causal = false;
  c.dtype = DType::bf16;
  c.inputs = Inputs::seed;
  c.seed = 18446744073709551615U;
  CHECK(case_id(c) == "block/bf16/d4096-f14336-h32-kv8/b2-s2048-p0/full-half/seed-18446744073709551615");

  CHECK(case_id(small(Op::rmsnorm)) == "rmsnorm/fp16/d48/b2-s5/balanced-42");
  CHECK(case_id(small(Op::rope, 7)) == "rope/fp16/d48-h6-kv3/b2-s5-p7/interleaved/balanced-42");
  CHECK(case_id(small(Op::attention)) == "attention/fp16/d48-h6-kv3/b2-s5-p0/full/balanced-42");
  CHECK(case_id(small(Op::swiglu)) == "swiglu/fp16/f40/b2-s5/balanced-42");
  CHECK(case_id(small(Op::attn_out)) == "attn_out/fp16/d48/b2-s5/balanced-42");
  CHECK(case_id(small(Op::mlp)) == "mlp/fp16/d48-f40/b2-s5/balanced-42");

  Case qkv = small(Op::qkv);
  qkv.rope_theta = 10000;
  qkv.eps = 1e-6;
  CHECK(case_id(qkv) == "qkv/fp16/d48-h6-kv3/b2-s5-p0/interleaved-theta10000-eps1e-06/balanced-42");
  Case norm = small(Op::rmsnorm);
  norm.eps = 0.25;
  CHECK(case_id(norm) == "rmsnorm/fp16/d48/b2-s5/eps0.25/balanced-42");
}

TEST_CASE("different cases have different ids") {
  std::set<std::string> ids;
  std::size_t cases = 0;
  const auto add = [&](const Case& c) {
    ids.insert(case_id(canonical(c)));
    ++cases;
  };
  for (const Op op : kOps) {
    const Case base = small(op, uses_of(op).past ? 2 : 0);
    const OpUses uses = uses_of(op);
    const auto vary = [&](bool used, auto change) {
      if (!used) return;
      Case c = base;
      change(c);
      add(c);
    };
    add(base);
    vary(true, [](Case& c) { c.dtype = DType::fp32; });
    vary(true, [](Case& c) { c.batch = 3; });
    vary(true, [](Case& c) { c.seq = 9; });
    vary(true, [](Case& c) { c.seed = 1; });
    vary(true, [](Case& c) { c.inputs = Inputs::seed; });
    vary(uses.dim, [](Case& c) { c.dim = 96; });
    vary(uses.hidden, [](Case& c) { c.hidden = 96; });
    vary(uses.heads, [](Case& c) { c.heads = 12; });
    vary(uses.heads, [](Case& c) { c.kv_heads = 1; });
    vary(uses.past, [](Case& c) { c.past = 3; });
    vary(uses.causal, [](Case& c) { c.causal = true; });
    vary(uses.rope, [](Case& c) { c.rope = Pairing::half; });
    vary(uses.rope, [](Case& c) { c.rope_theta = 10000.5; });
    vary(uses.eps, [](Case& c) { c.eps = 1.0000000000000002e-5; });
  }
  CHECK(ids.size() == cases);
}

TEST_CASE("sizes are 64-bit, and bytes over 2^63 are refused") {
  Case c = seed_shape(Op::rmsnorm);
  c.batch = 500000;  // past 2^31 elements
  c.seq = 1;
  CHECK(spec_of(c).tensor("x").bytes() == 500000LL * 4096 * 2);

  const auto refuses = [](Case huge) { CHECK_THROWS_AS(spec_of(canonical(huge)), std::overflow_error); };
  constexpr std::int64_t kMost = INT64_MAX;
  c.batch = std::int64_t{1} << 51;
  refuses(c);
  c = seed_shape(Op::attention);  // the scores, although q, k and v would fit
  c.seq = std::int64_t{1} << 30;
  refuses(c);
  for (const Op op : kOps) {
    for (auto member : {&Case::dim, &Case::hidden, &Case::batch, &Case::seq, &Case::past}) {
      Case huge = seed_shape(op);
      huge.*member = kMost;
      const Case used = canonical(huge);
      if (used.*member == kMost) refuses(used);
    }
  }
  c = seed_shape(Op::attention);
  c.past = kMost / 64;
  c.batch = 64;
  refuses(c);
}

}  // namespace
}  // namespace fusebench
