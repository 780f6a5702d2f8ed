#include "harness/row.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/google_benchmark.h"
#include "harness/statistics.h"
#include "reports/columns.h"
#include "tests/catch.h"
#include "tests/files.h"

using namespace fusebench;
using Json = nlohmann::ordered_json;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<double> fifty_samples() {
  std::vector<double> samples;
  samples.reserve(50);
  for (int i = 0; i < 50; ++i) samples.push_back(100 + (i * 27) % 50);  // 100 .. 149, shuffled
  return samples;
}

Case block_case() {
  return canonical({.op = Op::block, .dim = 512, .hidden = 1024, .heads = 8, .kv_heads = 2, .seq = 64, .causal = true});
}

// Every figure known.
Row full_row() {
  Row row;
  row.c = block_case();
  row.variant = "fused";
  row.backend = Backend::cuda;
  row.verdict = Verdict::pass;
  row.kernel = "rmsnorm_row + gemm_portable";
  row.check = Verification{.rel_l2 = 1e-4,
                           .max_abs = 2e-3,
                           .budget_rel_l2 = 4e-4,
                           .budget_max_abs = 4e-3,
                           .nonfinite = 0,
                           .seed_allclose = true,
                           .rows_checked = 16,
                           .rows_total = 64};
  row.mutants = std::vector<Mutant>{
      {"zeros", Outcome::rejected}, {"one key more", Outcome::equivalent}, {"one key less", Outcome::let_through}};
  row.deterministic = true;
  row.samples_us = fifty_samples();
  row.speedup_vs_naive = Ratio{.value = 3, .lo = 2.9, .hi = 3.1};
  row.speedup_vs_cublas = Ratio{.value = 1.5, .lo = 1.4, .hi = 1.6};
  row.flops = 1e9;
  row.bytes_compulsory = 2'000'000;
  row.bytes_modelled = std::int64_t{3'000'000};
  row.dram_read_bytes = std::int64_t{1'500'000};
  row.dram_write_bytes = std::int64_t{600'000};
  row.l2_bytes = std::int64_t{9'000'000};
  row.dram_late_write_bytes = std::int64_t{400'000};
  row.samples_mhz.assign(row.samples_us.size(), 1980);
  row.bandwidth_ceiling_gbps = 4000.0;
  row.flops_ceiling_tflops = 700.0;
  row.workspace_bytes = std::int64_t{1024};
  row.prepare_us = 12.0;
  row.prepared_bytes = std::int64_t{2048};
  row.launches = 8;
  row.event_pair_us = 1.3;
  row.clock_limits = std::string("none");
  row.power_w = 650.0;
  row.temperature_c = 55.0;
  row.repro = "fusebench run x.yaml --filter block";
  StepRow& step = row.steps.emplace_back();
  step.name = "norm";
  step.kernel = "rmsnorm_row";
  step.bytes_read = 10;
  step.bytes_written = 20;
  step.time_us = 91.3;
  step.alone_us = 101.3;
  step.dram_read_bytes = step.alone_dram_read_bytes = std::int64_t{1'500'000};
  step.dram_write_bytes = std::int64_t{200'000};
  step.alone_dram_write_bytes = std::int64_t{900'000};
  return row;
}

std::vector<std::string> keys_of(const Json& json) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return keys;
}

std::vector<std::string> names_of(std::span<const reports::Column> columns) {
  std::vector<std::string> names;
  for (const reports::Column& column : columns) names.emplace_back(column.name);
  return names;
}

// Every null has its reason, in the column that the table names; and every other column is never null.
void check_reasons(const Json& json, std::span<const reports::Column> columns) {
  for (const reports::Column& column : columns) {
    const bool is_reason = column.name == "reason" || column.name.ends_with("_reason");
    if (is_reason || !json.at(std::string(column.name)).is_null()) continue;
    CAPTURE(std::string(column.name));
    REQUIRE_FALSE(column.reason.empty());
    CHECK(json.at(std::string(column.reason)).is_string());
  }
}

}  // namespace

TEST_CASE("a record has the table's columns in the table's order, whatever is known") {
  std::vector<std::string> expected = names_of(reports::columns());
  expected.insert(expected.end(), {"samples_us", "samples_mhz", "steps", "tensors", "mutants"});
  for (const Row& row : {full_row(), Row{}}) {
    CHECK(keys_of(to_json(row)) == expected);
    check_reasons(to_json(row), reports::columns());
  }
  const Json step = to_json(full_row()).at("steps").at(0);
  expected = names_of(reports::step_columns());
  expected.insert(expected.end(), {"reads", "writes"});
  CHECK(keys_of(step) == expected);
  check_reasons(step, reports::step_columns());
}

TEST_CASE("where everything is known no reason is written") {
  const Json json = to_json(full_row());
  for (const reports::Column& column : reports::columns()) {
    CAPTURE(std::string(column.name));
    const bool is_reason = column.name == "reason" || column.name.ends_with("_reason");
    CHECK(json.at(std::string(column.name)).is_null() == is_reason);
  }
}

TEST_CASE("statistics are derived from the samples") {
  const Json json = to_json(full_row());
  CHECK(json["median_us"] == 124.5);
  CHECK(json["mean_us"] == 124.5);
  CHECK(json["min_us"] == 100);
  CHECK(json["p05_us"].get<double>() == Approx(102.45));
  CHECK(json["p95_us"].get<double>() == Approx(146.55));
  CHECK(json["ci95_rel"].get<double>() == Approx((132.0 - 117.0) / 2 / 124.5));  // ranks 18 and 33
  CHECK(json["samples"] == 50);
  CHECK(json["samples_us"].size() == 50);
  CHECK(json["samples_us"][1] == 127);
}

TEST_CASE("the ledger is written by tensor; parts of one are one entry") {
  Row row = full_row();
  row.tensors = {
      {.name = "x", .storage = "op", .dtype = DType::bf16, .dims = {2, 8, 64}, .compulsory_read_bytes = 2048},
      {.name = "mlp.gate", .storage = "workspace", .dtype = DType::fp32, .dims = {16, 256}}};
  row.steps.front().reads = {{"x", 1024}, {"x", 512}, {"mlp.gate", 8}};
  row.steps.front().writes = {};
  const Json json = to_json(row);
  CHECK(json["steps"][0]["reads"] == Json({{"x", 1536}, {"mlp.gate", 8}}));
  CHECK(json["steps"][0]["writes"] == Json::object());
  CHECK(json["tensors"][0] == Json({{"name", "x"},
                                    {"storage", "op"},
                                    {"dtype", "bf16"},
                                    {"dims", {2, 8, 64}},
                                    {"compulsory_read_bytes", 2048},
                                    {"compulsory_write_bytes", 0}}));
  CHECK(json["tensors"][1]["storage"] == "workspace");
}

TEST_CASE("mutants are counted and listed; without them the counts are null") {
  const Json json = to_json(full_row());
  CHECK(json["mutants_tried"] == 2);
  CHECK(json["mutants_rejected"] == 1);
  CHECK(json["mutants_equivalent"] == 1);
  REQUIRE(json["mutants"].size() == 3);
  CHECK(json["mutants"][2] == Json{{"name", "one key less"}, {"outcome", "let through"}});
  const Json without = to_json(Row{});
  CHECK(without["mutants_tried"].is_null());
  CHECK(without["mutants_reason"] == "run without --prove");
  CHECK(without["mutants"].empty());
}

TEST_CASE("rates and the floor") {
  Row row = full_row();
  row.samples_us.assign(10, 100.0);
  Json json = to_json(row);
  CHECK(json["gbps"].get<double>() == Approx(20));                      // 2 MB in 100 us
  CHECK(json["tflops"].get<double>() == Approx(10));                    // 1 GFLOP in 100 us
  CHECK(json["floor_us"].get<double>() == Approx(1e9 / 700e12 * 1e6));  // the product's, over 0.5 us of bytes
  CHECK(json["floor_share"].get<double>() == Approx(1e9 / 700e12 * 1e6 / 100));

  row.flops_ceiling_tflops = 7000.0;
  CHECK(to_json(row)["floor_us"].get<double>() == Approx(0.5));  // the bytes', over 0.14 us of FLOPs
}

TEST_CASE("what L2 may keep of the written bytes does not count inside a sample") {
  Row row = full_row();
  row.samples_us.assign(10, 100.0);
  row.bytes_compulsory_written = 800'000;
  row.l2_retained_bytes = 500'000;
  row.flops = 0;
  CHECK(to_json(row)["floor_us"].get<double>() == Approx(1'500'000 / 4000e3));
  CHECK(to_json(row)["gbps"].get<double>() == Approx(15));
  row.l2_retained_bytes = 60'000'000;
  CHECK(to_json(row)["floor_us"].get<double>() == Approx(1'200'000 / 4000e3));
  row.cache = CacheMode::hot;
  CHECK(to_json(row)["gbps"].is_null());
}

TEST_CASE("a row is L2's where under 99% of its compulsory bytes were moved") {
  Row row = full_row();  // 2'000'000 compulsory
  row.dram_write_bytes = std::int64_t{481'000};
  CHECK(to_json(row)["l2_resident"] == false);
  row.dram_write_bytes = std::int64_t{479'000};
  CHECK(to_json(row)["l2_resident"] == true);
  row.dram_write_bytes = Known<std::int64_t>::unknown("no permission");
  CHECK(to_json(row)["l2_resident"].is_null());
  CHECK_THAT(to_json(row)["l2_resident_reason"].get<std::string>(), ContainsSubstring("no permission"));
}

TEST_CASE("the steps' sums are set against the whole") {
  Row row = full_row();
  row.samples_us.assign(10, 101.3);
  const Json json = to_json(row);
  CHECK(json["steps_us"].get<double>() == Approx(90));
  CHECK(json["gaps_us"].get<double>() == Approx(10));
  CHECK(json["l2_reuse_us"].get<double>() == Approx(10));
  CHECK(json["l2_reuse_bytes"] == 1'500'000 + 900'000 - 1'500'000 - 600'000);
  row.steps.front().alone_us = Known<double>::unknown("no time");
  CHECK(to_json(row)["l2_reuse_us"].is_null());
  CHECK_THAT(to_json(row)["attribution_reason"].get<std::string>(), ContainsSubstring("l2_reuse_us: no time"));
}

TEST_CASE("samples whose clock is under the row's are marked and kept, and both medians stand") {
  Row row = full_row();
  row.samples_us = {100, 100, 100, 130, 100, 100, 100, 130};
  row.samples_mhz = {1980, 1980, 1975, 1500, 1980, 0, 1980, 1500};
  const Json json = to_json(row);
  CHECK(json["throttled_samples"] == 2);
  CHECK(json["samples"] == 8);
  CHECK(json["median_unthrottled_us"] == 100);
  CHECK(json["sm_mhz"] == 1980);
  CHECK(json["samples_mhz"][5].is_null());
  row.samples_mhz.assign(8, 1400);  // a steady clock is no throttling, however low
  CHECK(to_json(row)["throttled_samples"] == 0);
}

TEST_CASE("an op without a product has no FLOP rate, and a floor by its bytes alone") {
  Row row = full_row();
  row.flops = 0;
  row.flops_ceiling_tflops = Known<double>::unknown("no product ran");
  const Json json = to_json(row);
  CHECK(json["flops"] == 0);
  CHECK(json["tflops"].is_null());
  CHECK(json["rate_reason"] == "tflops: the op has no matrix product");
  CHECK(json["floor_us"].get<double>() == Approx(0.5));
}

TEST_CASE("a floor that one ceiling is missing for is null with that reason") {
  Row row = full_row();
  row.flops_ceiling_tflops = Known<double>::unknown("no GEMM probe");
  CHECK(to_json(row)["floor_us"].is_null());
  CHECK(to_json(row)["floor_reason"] == "no GEMM probe");
  row = full_row();
  row.cache = CacheMode::hot;
  CHECK(to_json(row)["floor_us"].is_null());
  CHECK(to_json(row)["floor_share"].is_null());
  CHECK_THAT(to_json(row)["floor_reason"].get<std::string>(), ContainsSubstring("hot"));
}

TEST_CASE("a row that never ran is null, not zero, and says why") {
  Row row;
  row.c = canonical({.op = Op::rmsnorm, .dim = 64});
  row.variant = "fused";
  row.verdict = Verdict::unsupported;
  row.reason = "head_dim over 256";
  row.timing_reason = "unsupported";
  row.check = Known<Verification>::unknown("unsupported");
  const Json json = to_json(row);
  CHECK(json["verdict"] == "unsupported");
  CHECK(json["reason"] == "head_dim over 256");
  for (const char* name : {"median_us", "ci95_rel", "gbps", "rel_l2", "nonfinite", "seed_allclose", "kernel",
                           "speedup_vs_naive", "bytes_modelled", "launches", "sm_mhz"}) {
    CAPTURE(name);
    CHECK(json[name].is_null());
  }
  CHECK(json["timing_reason"] == "unsupported");
  CHECK(json["check_reason"] == "unsupported");
  CHECK(json["samples"] == 0);
  CHECK(json["samples_us"].empty());
}

TEST_CASE("shape columns that the op does not use are null, and named") {
  Row row;
  row.c = canonical({.op = Op::rmsnorm, .dim = 64});
  const Json json = to_json(row);
  CHECK(json["dim"] == 64);
  CHECK(json["hidden"].is_null());
  CHECK(json["rope"].is_null());
  CHECK(json["shape_reason"] == "hidden, heads, kv_heads, head_dim, past, causal, rope: the op does not use it");
  CHECK(to_json(full_row())["past"] == 0);
  CHECK(to_json(full_row())["causal"] == true);
}

TEST_CASE("different reasons in one group are told apart") {
  Row row = full_row();
  row.dram_read_bytes = Known<std::int64_t>::unknown("counters forbidden");
  row.dram_write_bytes = Known<std::int64_t>::unknown("left in L2");
  CHECK(to_json(row)["traffic_reason"] == "dram_read_bytes: counters forbidden; dram_write_bytes: left in L2");
}

TEST_CASE("NaN and infinities are never written") {
  Row row = full_row();
  row.check.value->rel_l2 = kNaN;
  row.check.value->max_abs = std::numeric_limits<double>::infinity();
  row.power_w = kNaN;
  row.speedup_vs_naive = Ratio{.value = std::numeric_limits<double>::infinity(), .lo = kNaN, .hi = kNaN};
  Json json = to_json(row);
  CHECK(json["rel_l2"].is_null());
  CHECK(json["max_abs"].is_null());
  CHECK(json["check_reason"] == "rel_l2, max_abs: not a finite number");
  CHECK(json["nonfinite"] == 0);
  CHECK(json["device_reason"] == "power_w: not a finite number");
  CHECK(json["speedup_vs_naive"].is_null());

  row.samples_us[3] = kNaN;
  json = to_json(row);
  CHECK(json["samples_us"][3].is_null());
  CHECK(json["median_us"].is_null());
  CHECK(json["timing_reason"] == "sample 3 is not a finite number");
  CHECK_THAT(json["rate_reason"].get<std::string>(), ContainsSubstring("sample 3"));
  for (const auto& [key, value] : json.items()) {
    if (value.is_number_float()) CHECK(std::isfinite(value.get<double>()));
  }
}

TEST_CASE("fewer than six samples have a median but no 95% interval") {
  Row row = full_row();
  row.samples_us = {10, 11, 12};
  row.timing_reason = "3 of 50 samples: max_seconds (5) reached";
  row.speedup_vs_naive = paired_speedup(std::vector<double>{20, 22, 36}, row.samples_us);
  const Json json = to_json(row);
  CHECK(json["median_us"] == 11);
  CHECK(json["ci95_rel"].is_null());
  CHECK(json["timing_reason"] ==
        "3 of 50 samples: max_seconds (5) reached; ci95_rel: fewer than 6 samples hold no 95% interval");
  CHECK(json["speedup_vs_naive"] == 2);
  CHECK(json["speedup_vs_naive_lo"].is_null());
  CHECK_THAT(json["speedup_vs_naive_reason"].get<std::string>(), ContainsSubstring("no 95% interval"));
}

TEST_CASE("paired speed-up") {
  const std::vector<double> subject = fifty_samples();
  std::vector<double> base;
  base.reserve(subject.size());
  for (double us : subject) base.push_back(us * 2);
  const Known<Ratio> speedup = paired_speedup(base, subject);
  REQUIRE(speedup.value);
  CHECK(speedup.value->value == 2);
  CHECK(speedup.value->lo == 2);
  CHECK(speedup.value->hi == 2);
  CHECK_FALSE(paired_speedup({}, subject).value);
}

TEST_CASE("sizes over 32 bits and seeds over 63 are written whole") {
  Row row = full_row();
  row.bytes_compulsory = std::int64_t{1} << 40;
  row.c.seed = std::numeric_limits<std::uint64_t>::max();
  const Json json = Json::parse(to_json(row).dump());
  CHECK(json["bytes_compulsory"] == std::int64_t{1} << 40);
  CHECK(json["seed"] == std::numeric_limits<std::uint64_t>::max());
}

namespace {

Json through_google_benchmark(const std::vector<Row>& rows, const std::string& filter = ".") {
  const testing::TempFolder folder;
  const std::filesystem::path out = folder / "report.json";
  REQUIRE(report_through_google_benchmark(rows, {"--benchmark_out=" + out.string(), "--benchmark_out_format=json",
                                                 "--benchmark_filter=" + filter}) == 0);
  return Json::parse(testing::read_file(out));
}

}  // namespace

TEST_CASE("Google Benchmark's JSON holds the samples and their aggregates") {
  const Row row = full_row();
  const Json json = through_google_benchmark({row});
  std::vector<double> times;
  std::map<std::string, double> aggregates;
  for (const Json& benchmark : json.at("benchmarks")) {
    CHECK_THAT(benchmark.at("name").get<std::string>(), ContainsSubstring(benchmark_name(row)));
    CHECK(benchmark.at("time_unit") == "us");
    if (benchmark.at("run_type") == "iteration") {
      times.push_back(benchmark.at("real_time"));
      CHECK(benchmark.at("iterations") == 1);
      CHECK(benchmark.at("bytes_per_second").get<double>() == Approx(2e6 / (times.back() * 1e-6)));
      CHECK(benchmark.at("modelled_bytes").get<double>() == 3e6);
      CHECK(benchmark.at("flops").get<double>() == 1e9);
    } else if (benchmark.at("aggregate_name") != "cv") {
      aggregates[benchmark.at("aggregate_name")] = benchmark.at("real_time");
    }
  }
  REQUIRE(times.size() == row.samples_us.size());
  for (std::size_t i = 0; i < times.size(); ++i) CHECK(times[i] == Approx(row.samples_us[i]));
  CHECK(aggregates.at("median") == Approx(median(row.samples_us)));
  CHECK(aggregates.at("mean") == Approx(mean(row.samples_us)));
  CHECK(aggregates.count("stddev") == 1);
}

TEST_CASE("Google Benchmark shows rows that did not pass as errors, and filters by name") {
  Row failed = full_row();
  failed.variant = "naive";
  failed.verdict = Verdict::fail;
  failed.reason = "rel_l2 over its budget";
  Row single = full_row();
  single.variant = "single";
  single.samples_us = {42};
  const Json json = through_google_benchmark({failed, full_row(), single}, "/(naive|single)/");
  REQUIRE(json.at("benchmarks").size() == 2);
  const Json& error = json["benchmarks"][0];
  CHECK(error.at("error_occurred") == true);
  CHECK_THAT(error.at("error_message").get<std::string>(), ContainsSubstring("fail: rel_l2 over its budget"));
  CHECK(json["benchmarks"][1].at("real_time").get<double>() == Approx(42));
}

TEST_CASE("Google Benchmark: an unknown flag is told") {
  CHECK(report_through_google_benchmark({}, {"--benchmark_fliter=x"}) == 2);
}
