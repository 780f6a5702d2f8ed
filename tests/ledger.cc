// What plans declare, against sums done by hand and against what their steps really touch.
#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "kernels/fused.h"
#include "tests/catch.h"
#include "tests/conventions.h"
#include "tests/host_run.h"
#include "variants/choose.h"

using namespace fusebench;
using testing::Buffers;
using testing::plan_of;

namespace {

/// Plans for CUDA are built, not launched: that needs no device.
std::vector<Target> targets() {
  std::vector<Target> built = {Target{}};
  if (is_built(Backend::cuda)) {
    built.push_back({.backend = Backend::cuda, .compute_capability = 90, .multiprocessors = 132});
  }
  return built;
}

DType dtype_for(const Target& target) { return target.backend == Backend::cpu ? DType::fp32 : DType::bf16; }

std::string library(const Target& target) { return std::string(library_name(target.backend)); }

/// The fused variant whose norms are steps of their own.
std::string without_deferring(const Target& target) {
  return target.backend == Backend::cpu ? "fused" : "fused.portable";
}

Case seed_block(DType dtype) {
  return canonical(
      {.op = Op::block, .dtype = dtype, .dim = 4096, .hidden = 14336, .heads = 32, .batch = 2, .seq = 2048});
}

std::int64_t bytes_of_step(const Step& step) { return step.bytes_read() + step.bytes_written(); }

/// Runs a CPU plan with each step seeing only the tensors that it declares; the others point at NaN that must stay.
/// Says which step changed what it does not declare to write.
std::string run_declared(const Plan& plan, Buffers& buffers) {
  constexpr std::size_t kDecoyFloats = 1 << 16;
  std::vector<std::vector<float>> memory;
  for (const PlanTensor& tensor : plan.tensors()) {
    memory.push_back(tensor.storage == Storage::op ? buffers.at(tensor.name) : testing::nan_filled(tensor.bytes()));
    REQUIRE(memory.back().size() <= kDecoyFloats);
  }
  std::vector<float> decoy = testing::nan_filled(kDecoyFloats * sizeof(float));
  for (const auto* steps : {&plan.preparation(), &plan.steps()}) {
    for (const Step& step : *steps) {
      std::set<TensorId> declared;
      std::set<TensorId> written;
      for (const Access& access : step.reads) declared.insert(access.tensor);
      for (const Access& access : step.writes) written.insert(access.tensor);
      declared.insert(written.begin(), written.end());
      const std::vector<std::vector<float>> before = memory;
      std::vector<void*> addresses;
      for (std::size_t i = 0; i < memory.size(); ++i) {
        addresses.push_back(declared.count(static_cast<TensorId>(i)) != 0 ? memory[i].data() : decoy.data());
      }
      step.launch({}, Bindings(addresses));
      if (!std::all_of(decoy.begin(), decoy.end(), [](float value) { return std::isnan(value); })) {
        return step.name + " wrote a tensor that it does not declare";
      }
      for (std::size_t i = 0; i < memory.size(); ++i) {
        if (written.count(static_cast<TensorId>(i)) != 0) continue;
        if (std::memcmp(memory[i].data(), before[i].data(), memory[i].size() * sizeof(float)) != 0) {
          return step.name + " wrote " + plan.tensors()[i].name + ", which it declares to read";
        }
      }
    }
  }
  for (std::size_t i = 0; i < plan.tensors().size(); ++i) {
    if (plan.tensors()[i].storage == Storage::op) buffers.at(plan.tensors()[i].name) = memory[i];
  }
  return {};
}

}  // namespace

TEST_CASE("a step touches what it declares and nothing else", "[ledger]") {
  for (const Op op : kOps) {
    for (const std::int64_t past : {0, 5}) {
      Case c = testing::small(op);
      c.past = past;
      c = canonical(c);
      for (const auto& [variant, plan] : testing::plans_of(c)) {
        Buffers declared = testing::op_buffers(c);
        INFO(case_id(c) << " " << variant);
        CHECK(run_declared(plan, declared) == "");  // else it says which step did what
        const Buffers all = testing::run_on_host(c, plan);
        for (const TensorSpec& tensor : spec_of(c).tensors) {
          INFO(tensor.name);
          const bool same =
              declared.at(tensor.name) == all.at(tensor.name);  // a failure shows its place, not thousands of values
          CHECK(same);
        }
      }
    }
  }
}

TEST_CASE("an access that is not declared is seen", "[ledger]") {
  const Case c = testing::small(Op::attn_out);

  Plan hides_read = plan_of(c, "naive");
  REQUIRE(hides_read.steps().size() == 2);
  hides_read.steps().back().reads.erase(hides_read.steps().back().reads.begin());
  Buffers buffers = testing::op_buffers(c);
  CHECK(run_declared(hides_read, buffers) == "");
  CHECK(std::isnan(buffers.at("out").front()));

  Plan hides_write = plan_of(c, "naive");
  hides_write.steps().back().writes.clear();
  buffers = testing::op_buffers(c);
  CHECK_THAT(run_declared(hides_write, buffers), ContainsSubstring("add wrote a tensor that it does not declare"));

  Plan changes_input = plan_of(c, "naive");
  changes_input.add(
      {.name = "spoil",
       .kernel = "spoil",
       .reads = {changes_input.all(changes_input.op_tensor("x"))},
       .launch = [x = changes_input.op_tensor("x")](const Exec&, const Bindings& bound) { *bound.at<float>(x) += 1; }});
  buffers = testing::op_buffers(c);
  CHECK_THAT(run_declared(changes_input, buffers), ContainsSubstring("spoil wrote x"));
}

TEST_CASE("every variant declares the op's FLOPs, and no less traffic than is compulsory", "[ledger]") {
  for (const Target& target : targets()) {
    for (const Op op : kOps) {
      for (Case c : testing::conventions(op)) {
        c.dtype = dtype_for(target);
        const OpSpec spec = spec_of(c);
        std::int64_t less_fused = std::numeric_limits<std::int64_t>::max();
        for (const std::string& variant : {std::string("naive"), library(target), std::string("fused")}) {
          const Plan plan = plan_of(c, variant, target);
          INFO(case_id(c) << " " << name_of(target.backend) << " " << variant);
          CHECK(plan.flops() == Approx(spec.flops));
          CHECK(plan.modelled_bytes() >= spec.compulsory_bytes);
          CHECK(plan.modelled_bytes() <= less_fused);
          less_fused = plan.modelled_bytes();
        }
      }
    }
  }
}

TEST_CASE("what a step reads is there: an input, prepared, or written before", "[ledger]") {
  for (const Target& target : targets()) {
    for (const Op op : kOps) {
      for (Case c : testing::conventions(op)) {
        c.dtype = dtype_for(target);
        const OpSpec spec = spec_of(c);
        const std::map<std::string, Plan> plans = testing::plans_of(c, target);
        REQUIRE(plans.size() >= 3);
        for (const auto& [variant, plan] : plans) {
          INFO(case_id(c) << " " << name_of(target.backend) << " " << variant);
          std::set<TensorId> there;
          for (const TensorSpec& tensor : spec.tensors) {
            if (tensor.role != Role::output) there.insert(plan.op_tensor(tensor.name));
          }
          std::map<TensorId, std::int64_t> written;
          for (const auto* steps : {&plan.preparation(), &plan.steps()}) {
            for (const Step& step : *steps) {
              for (const Access& access : step.reads) {
                INFO(step.name << " reads " << plan.tensor(access.tensor).name);
                CHECK(there.count(access.tensor) == 1);
                CHECK(access.bytes > 0);
                CHECK(access.bytes <= plan.tensor(access.tensor).bytes());
              }
              for (const Access& access : step.writes) {
                CHECK(access.bytes <= plan.tensor(access.tensor).bytes());
                there.insert(access.tensor);
                written[access.tensor] += access.bytes;
              }
            }
          }
          for (const TensorSpec& tensor : spec.tensors) {
            INFO(tensor.name);
            CHECK(written[plan.op_tensor(tensor.name)] == tensor.write_bytes);
          }
        }
      }
    }
  }
}

TEST_CASE("launches are those of the table of steps", "[ledger]") {
  struct Row {
    Op op;
    int naive, library, fused;
  };
  for (const Target& target : targets()) {
    for (const Row& row : {Row{Op::rmsnorm, 5, 1, 1}, Row{Op::add_rmsnorm, 6, 2, 1}, Row{Op::rope, 16, 2, 1},
                           Row{Op::attention, 6, 3, 1}, Row{Op::qkv, 24, 5, 2}, Row{Op::attn_out, 2, 1, 1},
                           Row{Op::swiglu, 3, 1, 1}, Row{Op::mlp, 12, 4, 3}, Row{Op::block, 44, 12, 7}}) {
      for (const std::int64_t past : {0, 5}) {
        Case c = testing::small(row.op);
        c.past = past;
        c.dtype = dtype_for(target);
        c = canonical(c);
        INFO(case_id(c));
        const int copies_v = row.op == Op::block && past > 0 ? 1 : 0;  // into the cache
        CHECK(plan_of(c, "naive", target).launches() == row.naive);
        CHECK(plan_of(c, library(target), target).launches() == row.library + copies_v);
        CHECK(plan_of(c, "fused", target).launches() == row.fused);
      }
    }
  }
}

TEST_CASE("the seed's block, byte by byte", "[ledger]") {
  constexpr std::int64_t tokens = 4096, dim = 4096, hidden = 14336, heads = 32, seq = 2048, batch = 2;
  for (const Target& target : targets()) {
    const std::int64_t e = bytes_of(dtype_for(target));
    const std::int64_t x = tokens * dim * e;  // also q, k, v, a, h and out
    const std::int64_t weight = dim * dim * e;
    const std::int64_t up = tokens * hidden * e;
    const std::int64_t up_weight = hidden * dim * e;
    const std::int64_t tables = 2 * seq * (dim / heads / 2) * 4;
    const std::int64_t pairs = batch * heads * seq * seq;

    const std::int64_t rmsnorm = 2 * x + dim * e;
    const std::int64_t qkv = x + 3 * weight + 3 * x;
    const std::int64_t rope = 2 * (2 * x + tables);
    const std::int64_t attention = 4 * x;
    const std::int64_t stored_scores = 2 * pairs * 4 + 2 * pairs * e;
    const std::int64_t attn_out = 3 * x + weight;
    const std::int64_t gate_up = x + 2 * up_weight + 2 * up;
    const std::int64_t swiglu = 3 * up;
    const std::int64_t down = up + up_weight + 2 * x;

    const Case c = seed_block(dtype_for(target));
    const std::int64_t by_library = plan_of(c, library(target), target).modelled_bytes();
    const std::int64_t by_fusion = plan_of(c, without_deferring(target), target).modelled_bytes();
    CHECK(by_library == 2 * rmsnorm + qkv + rope + attention + stored_scores + attn_out + gate_up + swiglu + down);
    CHECK(by_fusion == 2 * rmsnorm + (qkv + tables) + attention + attn_out + (gate_up - up) + down);
    // What fusing saves: RoPE's passes, the scores, and the gate and up that swiglu would read back.
    CHECK(by_library - by_fusion == (rope - tables) + stored_scores + up + swiglu);
    if (target.backend == Backend::cpu) continue;

    // Deferred norms cost a pass over x, sums of squares twice, and two factors.
    const std::int64_t squares = tokens * 4, squares_of_h = tokens * (dim / kernels::kSquaresColumns) * 4, factor = 4;
    const std::int64_t by_deferring = plan_of(c, "fused", target).modelled_bytes();
    CHECK(by_deferring == (x + squares) + (qkv + tables + squares + factor) + attention + (attn_out + squares_of_h) +
                              (gate_up - up + squares_of_h + factor) + down);

    // The published estimate for the opponent, 2031 MB, has equal attention, and adds both residuals in passes of their
    // own: the first one in an add_rmsnorm. Ours adds them by beta = 1.
    const std::int64_t residual_passes = (x + x) + x;
    CHECK(static_cast<double>(by_library - stored_scores + residual_passes) / 1e6 == Approx(2031).margin(2));
    // That for fused kernels, 1191 MB, defers both norms into the products and has the first one's squares at hand. Its
    // sums of squares are of 128 columns, ours of 64.
    CHECK(static_cast<double>(by_deferring - (x + squares)) / 1e6 == Approx(1191).margin(4));
  }
}

TEST_CASE("a block writes nothing that no step reads", "[ledger]") {
  for (const Target& target : targets()) {
    for (const std::int64_t hidden : {14336, 14344}) {  // of the latter gate and up are not Hopper's, and defer no norm
      Case c = seed_block(dtype_for(target));
      c.hidden = hidden;
      const Plan plan = plan_of(canonical(c), "fused", target);
      std::set<TensorId> unread;
      for (const Step& step : plan.steps()) {
        for (const Access& write : step.writes) unread.insert(write.tensor);
      }
      for (const Step& step : plan.steps()) {
        for (const Access& read : step.reads) unread.erase(read.tensor);
      }
      for (const TensorId tensor : unread) {
        INFO(hidden << ": " << plan.tensor(tensor).name);
        CHECK(plan.tensor(tensor).storage == Storage::op);
      }
    }
  }
}

TEST_CASE("decode reads each weight and each key once in the fused block", "[ledger]") {
  for (const Target& target : targets()) {
    Case c = seed_block(dtype_for(target));
    c.kv_heads = 8;
    c.batch = 16;
    c.seq = 1;
    c.past = 2048;
    c = canonical(c);
    const std::int64_t e = bytes_of(c.dtype);
    const std::int64_t d = c.head_dim();
    const std::int64_t weights = e * c.dim * (2 * c.heads * d + 2 * c.kv_heads * d + 3 * c.hidden);
    const std::int64_t cache = 2 * c.batch * c.past * c.kv_heads * d * e;
    const std::int64_t modelled = plan_of(c, "fused", target).modelled_bytes();
    CHECK(modelled > weights + cache);
    CHECK(static_cast<double>(modelled) < 1.02 * static_cast<double>(weights + cache));
  }
}

TEST_CASE("a workspace shares memory, and preparation counts what it keeps", "[ledger]") {
  for (const Target& target : targets()) {
    const Case c = seed_block(dtype_for(target));
    const Plan naive = plan_of(c, "naive", target);
    std::int64_t every_tensor = 0;
    for (const PlanTensor& tensor : naive.tensors()) {
      if (tensor.storage == Storage::workspace) every_tensor += tensor.bytes();
    }
    const std::int64_t arena = lay_out_workspace(naive, 256).bytes;
    CHECK(naive.prepared_bytes() == 0);
    CHECK(arena < every_tensor / 2);

    // qkv's and the gate's and up's weights in the order of the epilogues, and two factors of deferred norms
    const bool defers = target.backend == Backend::cuda;
    CHECK(plan_of(c, "fused", target).prepared_bytes() ==
          (3 * c.dim * c.dim + 2 * c.hidden * c.dim) * bytes_of(c.dtype) + (defers ? 2 * 4 : 0));
    // and what is alive at once: h, the normed h and the activation
    const std::int64_t alive = (2 * c.tokens() * c.dim + c.tokens() * c.hidden) * bytes_of(c.dtype);
    CHECK(lay_out_workspace(plan_of(c, without_deferring(target), target), 256).bytes == alive);
    // or, deferred, the sums of squares for the normed h, whose place a still is in
    if (defers) {
      CHECK(lay_out_workspace(plan_of(c, "fused", target), 256).bytes ==
            alive + c.tokens() * (c.dim / kernels::kSquaresColumns) * 4);
    }
  }
}

TEST_CASE("the steps of a block say which part they belong to", "[ledger]") {
  const Plan plan = plan_of(testing::small(Op::block), "fused");
  std::vector<std::string> names;
  for (const Step& step : plan.steps()) names.push_back(step.name);
  CHECK(names == std::vector<std::string>{"qkv.rmsnorm", "qkv.product qkv, rope", "attention.attention",
                                          "attn_out.product o + residual", "mlp.rmsnorm",
                                          "mlp.product gate, up, swiglu", "mlp.product down + residual"});
  for (const Step& step : plan.steps()) CHECK(bytes_of_step(step) > 0);
}
