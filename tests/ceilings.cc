// The best a device does: what probes find on a scripted device, what rows raise, and what floors are made of it.
#include "harness/ceilings.h"

#include <array>
#include <random>

#include "tests/catch.h"
#include "tests/fake_device.h"

using namespace fusebench;
using testing::FakeDevice;

namespace {

constexpr std::int64_t kMegabyte = 1'000'000;

Case product_case(DType dtype = DType::bf16) {
  return canonical({.op = Op::attn_out, .dtype = dtype, .dim = 64, .heads = 4, .kv_heads = 4, .seq = 8});
}

// 10 MB, of which 4 are written, and 2 GFLOP, in 10 us: 1000 GB/s and 200 TFLOP/s.
Row passed() {
  Row row;
  row.c = product_case();
  row.variant = "fused";
  row.verdict = Verdict::pass;
  row.samples_us = {10, 10, 10};
  row.bytes_compulsory = 10 * kMegabyte;
  row.bytes_compulsory_written = 4 * kMegabyte;
  row.flops = 2e9;
  return row;
}

StepRow step(const std::string& name, double flops, const Known<double>& time_us) {
  StepRow made;
  made.name = name;
  made.flops = flops;
  made.time_us = time_us;
  return made;
}

// The fake device's memory moves 1 MiB, or 2 for a copy, at the rates given here.
struct Probed {
  FakeDevice device;
  Registry variants;

  explicit Probed(double copy_us = 20, double read_us = 10, double write_us = 10) {
    device.free = 8 << 20;  // an eighth of it becomes a probe's
    device.transfer_us = [=](Transfer kind, std::int64_t) {
      return kind == Transfer::copy ? copy_us : kind == Transfer::read ? read_us : write_us;
    };
    device.traffic = [](std::size_t) { return Traffic{}; };
  }
  Ceilings probe(std::vector<DType> dtypes = {}) {
    return probe_ceilings(device, variants, LoadMode::burst, dtypes, [](const std::string&) {});
  }
};

constexpr double kProbeGbps = (1 << 20) / 10.0 / 1e3;

}  // namespace

TEST_CASE("a cold row that passed raises both ceilings, and is named", "[ceilings]") {
  Ceilings ceilings;
  ceilings.raise(passed());
  REQUIRE(ceilings.bandwidth_gbps);
  CHECK(ceilings.bandwidth_gbps->value == Approx(1000));
  CHECK(ceilings.bandwidth_gbps->by == "fused of " + case_id(product_case()));
  CHECK(ceilings.rate_tflops.at(DType::bf16).value == Approx(200));
  CHECK(ceilings.rate_tflops.count(DType::fp16) == 0);

  Row faster = passed();
  faster.variant = "faster";
  faster.samples_us = {5, 5, 90};  // by the median
  ceilings.raise(faster);
  CHECK(ceilings.bandwidth_gbps->value == Approx(2000));
  CHECK_THAT(ceilings.bandwidth_gbps->by, ContainsSubstring("faster"));
  ceilings.raise(passed());
  CHECK(ceilings.bandwidth_gbps->value == Approx(2000));
  CHECK(ceilings.rate_tflops.at(DType::bf16).value == Approx(400));
}

TEST_CASE("under a tool nothing is probed, and no row makes a ceiling", "[ceilings]") {
  Probed probed;
  probed.device.described.watched_by = "compute-sanitizer";
  Ceilings ceilings = probed.probe({DType::bf16});
  CHECK(probed.device.now_us == 0);
  CHECK(probed.device.loaded_us == 0);
  ceilings.raise(passed());
  Row row = passed();
  ceilings.apply_to(row);
  const std::string why = "not probed: compute-sanitizer is attached";
  CHECK(floor_us(row).reason == why);
  CHECK(row.event_pair_us.reason == why);
  const auto json = ceilings.to_json();
  CHECK(json["bandwidth_gbps"].is_null());
  CHECK(json["rate_tflops"].empty());
  CHECK(json["event_pair_us_reason"] == why);
  CHECK(json["probes"]["copy_gbps_reason"] == why);
  CHECK(json["probes"]["gemm_bf16_tflops_reason"] == why);
}

TEST_CASE("what a row may have left in the cache is no bandwidth", "[ceilings]") {
  Ceilings ceilings;
  Row row = passed();
  row.l2_retained_bytes = 3 * kMegabyte;
  ceilings.raise(row);
  CHECK(ceilings.bandwidth_gbps->value == Approx(700));
  row.l2_retained_bytes = 50 * kMegabyte;  // all that it writes, but nothing that it reads
  Ceilings others;
  others.raise(row);
  CHECK(others.bandwidth_gbps->value == Approx(600));
}

TEST_CASE("a row that did not pass raises nothing, nor do its steps", "[ceilings]") {
  for (const Verdict verdict :
       {Verdict::fail, Verdict::no_power, Verdict::unsupported, Verdict::error, Verdict::crashed, Verdict::timeout}) {
    Ceilings ceilings;
    Row row = passed();
    row.verdict = verdict;
    row.steps = {step("product", 2e9, 1.0)};
    ceilings.raise(row);
    CHECK_FALSE(ceilings.bandwidth_gbps.has_value());
    CHECK(ceilings.rate_tflops.empty());
  }
  Ceilings ceilings;
  Row untimed = passed();
  untimed.samples_us.clear();
  ceilings.raise(untimed);
  CHECK_FALSE(ceilings.bandwidth_gbps.has_value());
  CHECK(ceilings.rate_tflops.empty());
}

TEST_CASE("a hot row raises rates of products, but no bandwidth", "[ceilings]") {
  Ceilings ceilings;
  Row hot = passed();
  hot.cache = CacheMode::hot;
  ceilings.raise(hot);
  CHECK_FALSE(ceilings.bandwidth_gbps.has_value());
  CHECK(ceilings.rate_tflops.at(DType::bf16).value == Approx(200));
}

TEST_CASE("a step raises its dtype's rate where it is a product and was timed", "[ceilings]") {
  Ceilings ceilings;
  Row row = passed();
  row.steps = {step("product", 1e9, 2.0), step("norm", 0, 0.001), step("untimed", 9e9, Known<double>::unknown("why"))};
  ceilings.raise(row);
  CHECK(ceilings.rate_tflops.at(DType::bf16).value == Approx(500));
  CHECK(ceilings.rate_tflops.at(DType::bf16).by == "product in fused of " + case_id(product_case()));
  CHECK(ceilings.bandwidth_gbps->value == Approx(1000));
}

TEST_CASE("a row without a product raises no rate, not even to 0", "[ceilings]") {
  Ceilings ceilings;
  Row row = passed();
  row.flops = 0;
  row.steps = {step("norm", 0, 2.0)};
  ceilings.raise(row);
  CHECK(ceilings.rate_tflops.empty());
  CHECK(ceilings.bandwidth_gbps->value == Approx(1000));
}

TEST_CASE("a time of nothing raises nothing", "[ceilings]") {
  Ceilings ceilings;
  Row row = passed();
  row.samples_us = {0, 0, 0};
  row.steps = {step("product", 1e9, 0.0)};
  ceilings.raise(row);
  CHECK_FALSE(ceilings.bandwidth_gbps.has_value());
  CHECK(ceilings.rate_tflops.empty());
}

TEST_CASE("a row takes its dtype's ceilings, or why there are none", "[ceilings]") {
  Ceilings ceilings{.l2_retained_bytes = 77, .event_pair_us = 1.5};
  ceilings.copy_gbps = Known<double>::unknown("no memory for a probe");
  Row row = passed();
  ceilings.apply_to(row);
  CHECK(row.l2_retained_bytes == 77);
  CHECK(row.event_pair_us.value == 1.5);
  CHECK_FALSE(row.bandwidth_ceiling_gbps.value.has_value());
  CHECK(row.bandwidth_ceiling_gbps.reason == "no memory for a probe");
  CHECK_FALSE(row.flops_ceiling_tflops.value.has_value());
  CHECK_FALSE(row.flops_ceiling_tflops.reason.empty());

  ceilings.bandwidth_gbps = Ceiling{3000, "copy probe"};
  ceilings.rate_tflops[DType::fp16] = {900, "product probe"};
  ceilings.rate_tflops[DType::bf16] = {800, "product probe"};
  ceilings.apply_to(row);
  CHECK(row.bandwidth_ceiling_gbps.value == 3000);
  CHECK(row.flops_ceiling_tflops.value == 800);
}

TEST_CASE("no row that passed beats its floor once all have raised the ceilings", "[ceilings]") {
  std::mt19937_64 draw(1);
  const auto between = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(draw); };
  const auto one_in = [&](int n) { return draw() % static_cast<std::uint64_t>(n) == 0; };
  constexpr std::array kDtypes = {DType::fp16, DType::bf16, DType::fp32};
  for (int run = 0; run < 50; ++run) {
    Ceilings ceilings{.l2_retained_bytes = one_in(3) ? 0 : static_cast<std::int64_t>(between(0, 5e7))};
    if (one_in(2)) ceilings.bandwidth_gbps = Ceiling{between(1, 5000), "copy probe"};
    std::vector<Row> rows(20);
    for (Row& row : rows) {
      row = passed();
      row.c = product_case(kDtypes.at(draw() % kDtypes.size()));
      row.cache = one_in(3) ? CacheMode::hot : CacheMode::cold;
      row.bytes_compulsory = static_cast<std::int64_t>(between(1e3, 1e9));
      row.bytes_compulsory_written =
          static_cast<std::int64_t>(between(0, 1) * static_cast<double>(row.bytes_compulsory));
      row.flops = one_in(3) ? 0 : between(1e6, 1e12);
      row.samples_us.resize(1 + draw() % 30);
      row.samples_mhz.clear();
      for (double& us : row.samples_us) us = between(0.1, 1000);
      if (row.flops > 0) row.steps = {step("product", row.flops, between(0.1, 1000))};
      ceilings.apply_to(row);  // as a case's run does
      ceilings.raise(row);
    }
    int floors = 0;
    for (Row& row : rows) {
      ceilings.apply_to(row);
      const auto json = to_json(row);
      if (row.cache == CacheMode::hot) {
        CHECK(json["floor_share"].is_null());
        continue;
      }
      REQUIRE(json["floor_share"].is_number());
      CHECK(json["floor_share"].get<double>() <= 1 + 1e-12);
      ++floors;
    }
    CHECK(floors > 0);
  }
}

TEST_CASE("probes find each transfer's rate, and the best is the ceiling", "[ceilings]") {
  Probed probed(16, 10, 20);
  const Ceilings ceilings = probed.probe();
  CHECK(*ceilings.copy_gbps.value == Approx(2 * kProbeGbps * 10 / 16));
  CHECK(*ceilings.read_gbps.value == Approx(kProbeGbps));
  CHECK(*ceilings.write_gbps.value == Approx(kProbeGbps / 2));
  CHECK(ceilings.bandwidth_gbps->value == Approx(2 * kProbeGbps * 10 / 16));
  CHECK(ceilings.bandwidth_gbps->by == "copy probe");
  CHECK(ceilings.event_pair_us.value == 10.0);
  CHECK(ceilings.empty_launch_us.value == 20.0);
  CHECK(ceilings.l2_retained_source == "counted after copies and writes");
  CHECK_FALSE(probed.device.timed_beside_counters);

  CHECK(Probed(100, 10, 20).probe().bandwidth_gbps->by == "read probe");
  CHECK(Probed(100, 20, 10).probe().bandwidth_gbps->by == "write probe");
}

TEST_CASE("what the probes' writes leave in the cache is counted, and no part of their rates", "[ceilings]") {
  Probed probed;
  // The transfer, then the drain behind it, which takes out what the transfer left; its reads are the harness's own.
  int pieces = 0;
  probed.device.traffic = [&](std::size_t i) {
    ++pieces;
    if (i == 0) return Traffic{.dram_read_bytes = 1 << 20, .dram_write_bytes = 1 << 19};
    return Traffic{.dram_read_bytes = 1 << 21, .dram_write_bytes = pieces == 2 ? 1 << 18 : 1 << 17};
  };
  const Ceilings ceilings = probed.probe();
  CHECK(pieces == 4);
  CHECK(ceilings.l2_retained_bytes == 1 << 18);  // the most that either left
  CHECK(*ceilings.copy_gbps.value == Approx(kProbeGbps * (2 - 0.25) / 2));
  CHECK(*ceilings.read_gbps.value == Approx(kProbeGbps));
  CHECK(*ceilings.write_gbps.value == Approx(kProbeGbps * 0.75));
}

TEST_CASE("where nothing is counted, the cache may keep its own size of what is written", "[ceilings]") {
  Probed probed;
  probed.device.described.l2_bytes = 1 << 18;
  probed.device.open_failure = "counters are for administrators alone";
  const Ceilings ceilings = probed.probe();
  CHECK(ceilings.l2_retained_bytes == 1 << 18);
  CHECK_THAT(ceilings.l2_retained_source, ContainsSubstring("administrators"));
  CHECK(*ceilings.write_gbps.value == Approx(kProbeGbps * 0.75));

  probed.device.described.l2_bytes = 1 << 30;
  const Ceilings small = probed.probe();
  CHECK_FALSE(small.write_gbps.value.has_value());
  CHECK_THAT(small.write_gbps.reason, ContainsSubstring("may keep all"));
  CHECK(*small.read_gbps.value == Approx(kProbeGbps));
  CHECK(small.bandwidth_gbps->by == "read probe");
}

TEST_CASE("the product probe is the library's best step", "[ceilings]") {
  Probed probed;
  probed.device.described.backend = Backend::cpu;  // the smaller product
  probed.variants.add({.name = "eigen",
                       .op = Op::attn_out,
                       .backend = Backend::cpu,
                       .dtypes = {DType::fp32},
                       .plan = [&](const Case& c, const Target&) {
                         if (c.dtype != DType::fp32) throw Unsupported("takes fp32");
                         Plan plan(spec_of(c));
                         const auto takes = [&](double us) {
                           return [&, us](const Exec&, const Bindings&) { probed.device.busy(us); };
                         };
                         plan.add({.name = "slow", .kernel = "k", .flops = 1e6, .launch = takes(10)});
                         plan.add({.name = "fast", .kernel = "k", .flops = 8e6, .launch = takes(20)});
                         plan.add({.name = "no product", .kernel = "k", .launch = takes(0.001)});
                         return plan;
                       }});
  const Ceilings ceilings = probed.probe({DType::fp32, DType::fp16});
  CHECK(*ceilings.gemm_tflops.at(DType::fp32).value == Approx(0.4));
  CHECK(ceilings.rate_tflops.at(DType::fp32).value == Approx(0.4));
  CHECK(ceilings.rate_tflops.at(DType::fp32).by == "product probe");
  CHECK(ceilings.gemm_tflops.at(DType::fp16).reason == "takes fp32");
  CHECK(ceilings.rate_tflops.count(DType::fp16) == 0);
}

TEST_CASE("JSON says why a probe has no figure", "[ceilings]") {
  Probed probed;
  probed.device.described.name = "NVIDIA H200";
  probed.device.described.l2_bytes = 1 << 18;  // which a copy that fails leaves as the bound
  probed.device.transfer_us = [](Transfer kind, std::int64_t) {
    if (kind == Transfer::copy) throw std::runtime_error("cudaMemcpyAsync: misaligned");
    return 10.0;
  };
  const auto json = probed.probe({DType::bf16}).to_json();
  CHECK(json["load"] == "burst");
  CHECK(json["probes"]["copy_gbps"].is_null());
  CHECK(json["probes"]["copy_gbps_reason"] == "cudaMemcpyAsync: misaligned");
  CHECK(json["probes"]["read_gbps"].is_number());
  CHECK_FALSE(json["probes"].contains("read_gbps_reason"));
  CHECK(json["probes"]["gemm_bf16_tflops"].is_null());
  CHECK_THAT(json["probes"]["gemm_bf16_tflops_reason"].get<std::string>(), ContainsSubstring("no library product"));
  CHECK(json["rate_tflops"].empty());
  CHECK(json["bandwidth_gbps"]["by"] == "read probe");
  CHECK_THAT(json["datasheet"].get<std::string>(), ContainsSubstring("4800"));

  probed.device.described.name = "unheard of";
  probed.device.transfer_us = [](Transfer, std::int64_t) -> double { throw std::runtime_error("no transfer"); };
  const auto none = probed.probe().to_json();
  CHECK(none["bandwidth_gbps"].is_null());
  CHECK(none["datasheet"].is_null());
  for (const char* probe : {"copy_gbps", "read_gbps", "write_gbps"}) {
    CHECK(none["probes"][std::string(probe) + "_reason"] == "no transfer");
  }
}

TEST_CASE("without memory for a probe every transfer says so", "[ceilings]") {
  Probed probed;
  probed.device.free = 0;
  const Ceilings ceilings = probed.probe();
  for (const Known<double>* probe : {&ceilings.copy_gbps, &ceilings.read_gbps, &ceilings.write_gbps}) {
    CHECK_FALSE(probe->value.has_value());
    CHECK_FALSE(probe->reason.empty());
  }
  CHECK_FALSE(ceilings.bandwidth_gbps.has_value());
}
