#include "reports/columns.h"

#include <array>

namespace fusebench::reports {

namespace {

// A group of columns shares one reason column, which follows its last member.
constexpr auto kColumns = std::to_array<Column>({
    {"case_id", "",
     "op, dtype, shape, conventions, inputs and seed in one name; the same case has the same id in every run", ""},
    {"op", "", "what is computed", ""},
    {"variant", "", "how it is computed: naive, cublas (eigen on the CPU), fused, ...", ""},
    {"backend", "", "cuda or cpu", ""},
    {"dtype", "", "element type of inputs and outputs: fp16, bf16 or fp32", ""},
    {"dim", "", "model dimension D", "shape_reason"},
    {"hidden", "", "hidden dimension F of the MLP", "shape_reason"},
    {"heads", "", "query heads H", "shape_reason"},
    {"kv_heads", "", "heads of K and V", "shape_reason"},
    {"head_dim", "", "D / H", "shape_reason"},
    {"batch", "", "sequences B", ""},
    {"seq", "", "new tokens S of each sequence", ""},
    {"past", "", "tokens P that the KV cache already holds", "shape_reason"},
    {"causal", "", "whether a query sees no later key", "shape_reason"},
    {"rope", "", "which elements rotate together: interleaved (2i, 2i+1) or half (i, i + d/2)", "shape_reason"},
    {"shape_reason", "", "why a shape column is null: the op does not use it", ""},
    {"inputs", "", "how inputs are drawn: balanced or seed", ""},
    {"seed", "", "what the inputs are drawn from", ""},
    {"cache", "", "cold: L2 flushed before each sample; hot: not", ""},
    {"graph", "", "whether the launches were replayed as one CUDA graph", ""},
    {"load", "", "sustained: samples back to back; burst: with pauses", ""},
    {"verdict", "", "pass, fail, no_power, unsupported, error, crashed or timeout", ""},
    {"reason", "", "why the verdict is not pass; null when it is", ""},
    {"kernel", "", "distinct kernels of the plan, in order of launch", "reason"},
    {"rel_l2", "", "norm of (output - oracle) / norm of the oracle, over the checked rows", "check_reason"},
    {"max_abs", "", "largest absolute difference from the oracle over the checked rows", "check_reason"},
    {"budget_rel_l2", "", "largest rel_l2 that passes", "check_reason"},
    {"budget_max_abs", "", "largest max_abs that passes", "check_reason"},
    {"nonfinite", "", "output elements that are NaN or infinite where the oracle is not", "check_reason"},
    {"seed_allclose", "", "whether the seed's own criterion holds: allclose to the oracle with atol = rtol = 2e-3",
     "check_reason"},
    {"rows_checked", "", "token rows compared with the oracle", "check_reason"},
    {"rows_total", "", "token rows of the output", "check_reason"},
    {"check_reason", "", "why a column of the check is null", ""},
    {"mutants_tried", "", "outputs that are wrong on purpose and that the check was tried on (--prove)",
     "mutants_reason"},
    {"mutants_rejected", "", "of these, how many the check rejects", "mutants_reason"},
    {"mutants_equivalent", "", "mutants not tried: they leave this case's exact result as it is", "mutants_reason"},
    {"mutants_reason", "", "why the mutants are null", ""},
    {"deterministic", "", "whether repeated launches gave the same bits", "deterministic_reason"},
    {"deterministic_reason", "", "why deterministic is null", ""},
    {"median_us", "us", "median latency of one launch of the plan", "timing_reason"},
    {"mean_us", "us", "mean latency", "timing_reason"},
    {"min_us", "us", "smallest latency", "timing_reason"},
    {"p05_us", "us", "5th percentile of latency, linear between order statistics", "timing_reason"},
    {"p95_us", "us", "95th percentile of latency", "timing_reason"},
    {"ci95_rel", "", "half the width of the median's 95% interval (order statistics) / median", "timing_reason"},
    {"samples", "", "latency samples kept", ""},
    {"throttled_samples", "", "samples taken while the clock was throttled; they are kept", ""},
    {"timing_reason", "", "why a timing column is null, or why there are fewer samples than asked", ""},
    {"speedup_vs_naive", "", "median of naive's latency / this row's, paired by round", "speedup_vs_naive_reason"},
    {"speedup_vs_naive_lo", "", "lower end of its 95% interval", "speedup_vs_naive_reason"},
    {"speedup_vs_naive_hi", "", "upper end of its 95% interval", "speedup_vs_naive_reason"},
    {"speedup_vs_naive_reason", "", "why the speed-up over naive is null", ""},
    {"speedup_vs_cublas", "", "the same over cublas; on the CPU over eigen", "speedup_vs_cublas_reason"},
    {"speedup_vs_cublas_lo", "", "lower end of its 95% interval", "speedup_vs_cublas_reason"},
    {"speedup_vs_cublas_hi", "", "upper end of its 95% interval", "speedup_vs_cublas_reason"},
    {"speedup_vs_cublas_reason", "", "why the speed-up over cublas is null", ""},
    {"flops", "FLOP", "floating-point operations of the op's matrix products; causal attention counts visible pairs",
     ""},
    {"bytes_compulsory", "bytes", "each input of the op read once and each output written once", ""},
    {"bytes_modelled", "bytes", "what the plan's steps declare that they read and write", "bytes_modelled_reason"},
    {"bytes_modelled_reason", "", "why bytes_modelled is null", ""},
    {"dram_read_bytes", "bytes", "read from HBM, by the GPU's counters", "traffic_reason"},
    {"dram_write_bytes", "bytes", "written to HBM, by the GPU's counters", "traffic_reason"},
    {"l2_bytes", "bytes", "moved through L2, by the GPU's counters", "traffic_reason"},
    {"traffic_reason", "", "why measured traffic is null", ""},
    {"traffic_source", "", "where traffic figures come from: model (declared by the plan) or the counters used", ""},
    {"l2_resident", "", "whether measured traffic is under the compulsory bytes: part of it was served by L2",
     "l2_resident_reason"},
    {"l2_resident_reason", "", "why l2_resident is null", ""},
    {"gbps", "GB/s", "compulsory bytes / median latency: what the op needs, not what the variant moves", "rate_reason"},
    {"tflops", "TFLOP/s", "flops / median latency", "rate_reason"},
    {"rate_reason", "", "why a rate is null", ""},
    {"floor_us", "us", "max(compulsory bytes / bandwidth ceiling, flops / rate ceiling), ceilings measured in this run",
     "floor_reason"},
    {"floor_share", "", "floor / median latency: 1 is as fast as the device allows", "floor_reason"},
    {"floor_reason", "", "why the floor or its share is null", ""},
    {"workspace_bytes", "bytes", "peak memory of the plan's intermediates", "plan_reason"},
    {"prepare_us", "us", "time of the preparation that is done once, before any launch", "plan_reason"},
    {"prepared_bytes", "bytes", "memory that the preparation fills", "plan_reason"},
    {"launches", "", "launches of the plan", "plan_reason"},
    {"plan_reason", "", "why a column of the plan is null", ""},
    {"sm_mhz", "MHz", "clock of the multiprocessors while sampling", "device_reason"},
    {"power_w", "W", "power of the device while sampling", "device_reason"},
    {"temperature_c", "C", "temperature of the device while sampling", "device_reason"},
    {"device_reason", "", "why the device's state is null", ""},
    {"repro", "", "the command that repeats this row alone", ""},
});

constexpr auto kStepColumns = std::to_array<Column>({
    {"name", "", "what the step computes, in the op's words", ""},
    {"kernel", "", "which kernel does it", ""},
    {"bytes_read", "bytes", "what the step declares that it reads, each byte once", ""},
    {"bytes_written", "bytes", "what the step declares that it writes", ""},
    {"flops", "FLOP", "floating-point operations of its matrix products", ""},
    {"time_us", "us", "latency of the step on its own", "time_reason"},
    {"time_reason", "", "why time_us is null", ""},
    {"dram_read_bytes", "bytes", "read from HBM, by the GPU's counters", "traffic_reason"},
    {"dram_write_bytes", "bytes", "written to HBM, by the GPU's counters", "traffic_reason"},
    {"traffic_reason", "", "why measured traffic is null", ""},
});

constexpr std::array<std::string_view, 6> kKeyColumns = {"case_id", "variant", "backend", "cache", "graph", "load"};

}  // namespace

std::span<const Column> columns() { return kColumns; }
std::span<const Column> step_columns() { return kStepColumns; }
std::span<const std::string_view> key_columns() { return kKeyColumns; }

}  // namespace fusebench::reports
