// Records as a run writes them, made up but consistent: sums are sums, medians are medians.

const RATES = { bandwidth_gbps: 4000, tflops: 700 };

export function header(changes = {}) {
  return {
    schema: 1, run_id: "0123456789abcdef", name: "made_up", config: "configs/made_up.yaml",
    config_sha256: "0".repeat(64),
    command: "fusebench run configs/made_up.yaml", started: "2026-01-02T03:04:05Z", backend: "cuda",
    device: { name: "NVIDIA H200", uuid: "GPU-1", compute_capability: 90, multiprocessors: 132, l2_bytes: 62914560,
      memory_bytes: 150109880320 },
    driver: "13.0", libraries: { cublas: "13.1.0", cuda_runtime: "13.0" },
    build: { version: "0.1.0", compiler: "GNU 13.3.0" },
    ceilings: { load: "sustained", bandwidth_gbps: { value: RATES.bandwidth_gbps, by: "read probe" },
      rate_tflops: { fp16: { value: RATES.tflops, by: "product probe" } },
      probes: { copy_gbps: 3900, read_gbps: 4000, write_gbps: 3800, gemm_fp16_tflops: 700 },
      l2_retained_bytes: 29000000, l2_retained_source: "counted after copies and writes", event_pair_us: 1.25,
      empty_launch_us: 2.5, datasheet: "4800 GB/s" },
    noise: { restarts: 5, classes: [{ from_us: 0, to_us: 10000, relative: 0.01, pairs: 100 }] },
    warnings: [], controls: [{ median_us: 100, ratio: 1.001 }], stages_s: { all: 10, samples: 6 }, measured_s: 1,
    ...changes,
  };
}

// Latencies around a median, the same every time: n of them, spread by a part of it.
export function samplesAround(median, n = 51, spread = 0.01) {
  return Array.from({ length: n }, (_, i) => median * (1 + spread * (((i * 27) % n) - (n - 1) / 2) / n));
}

function quantile(samples, p) {
  const sorted = [...samples].sort((a, b) => a - b);
  const at = p * (sorted.length - 1);
  const below = Math.floor(at);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - below);
}

const sum = (touches) => Object.values(touches).reduce((total, bytes) => total + bytes, 0);

export function tensor(name, storage, dims, { reads = 0, writes = 0, dtype = "fp16" } = {}) {
  return { name, storage, dtype, dims, compulsory_read_bytes: reads, compulsory_write_bytes: writes };
}

// A step whose measured bytes are those that are modelled.
export function step(name, kernel, reads, writes, { flops = 0, time_us = 10 } = {}) {
  return { name, kernel, bytes_read: sum(reads), bytes_written: sum(writes), flops, time_us, alone_us: time_us * 1.05,
    time_reason: null,
    dram_read_bytes: sum(reads), dram_write_bytes: sum(writes), alone_dram_read_bytes: sum(reads),
    alone_dram_write_bytes: sum(writes),
    traffic_reason: null, reads, writes };
}

export function row(changes = {}) {
  const { shape = {}, samples_us = samplesAround(changes.us ?? 100), steps = [], us, ...given } = changes;
  const at = { op: "mlp", dtype: "fp16", dim: 4096, hidden: 14336, heads: null, kv_heads: null, head_dim: null,
    batch: 2, seq: 2048, past: null, causal: null, rope: null, ...shape };
  const median_us = samples_us.length ? quantile(samples_us, 0.5) : null;
  const read = steps.reduce((total, one) => total + one.bytes_read, 0);
  const written = steps.reduce((total, one) => total + one.bytes_written, 0);
  const flops = steps.reduce((total, one) => total + one.flops, 0);
  const floor_us = Math.max(100e6 / RATES.bandwidth_gbps / 1e3, flops / RATES.tflops / 1e6);
  return {
    case_id: `${at.op}/${at.dtype}/d${at.dim}-f${at.hidden}/b${at.batch}-s${at.seq}/balanced-42`, ...at,
    variant: "fused", backend: "cuda",
    shape_reason: null, inputs: "balanced", seed: 42, cache: "cold", graph: false, load: "sustained", verdict: "pass",
    reason: null,
    kernel: steps.map((one) => one.kernel).join(" + "), rel_l2: 2e-4, max_abs: 2e-3, budget_rel_l2: 6e-4,
    budget_max_abs: 1.5e-2, nonfinite: 0,
    seed_allclose: true, rows_checked: 512, rows_total: 4096, check_reason: null, mutants_tried: 2, mutants_rejected: 2,
    mutants_equivalent: 0,
    mutants_reason: null, deterministic: true, deterministic_reason: null, median_us, mean_us: median_us,
    min_us: samples_us.length ? Math.min(...samples_us) : null,
    p05_us: samples_us.length ? quantile(samples_us, 0.05) : null, p95_us: samples_us.length
      ? quantile(samples_us, 0.95) : null, ci95_rel: 0.004, samples: samples_us.length, throttled_samples: 0,
    unheld_samples: 0, median_unthrottled_us: median_us, timing_reason: null, speedup_vs_naive: null,
    speedup_vs_naive_lo: null, speedup_vs_naive_hi: null,
    speedup_vs_naive_reason: "naive is not in the run", speedup_vs_cublas: null, speedup_vs_cublas_lo: null,
    speedup_vs_cublas_hi: null,
    speedup_vs_cublas_reason: "cublas is not in the run", flops, bytes_compulsory: 100e6, bytes_modelled: read
      + written, bytes_modelled_reason: null,
    dram_read_bytes: read, dram_write_bytes: written, dram_late_write_bytes: 0, l2_bytes: 3 * (read + written),
    traffic_reason: null, traffic_source: "cupti 130001 range profiler",
    l2_resident: false, l2_resident_reason: null, gbps: median_us ? 100e6 / median_us / 1e3 : null, tflops: median_us
      && flops ? flops / median_us / 1e6 : null, rate_reason: flops ? null : "tflops: the op has no matrix product",
    floor_us, floor_share: median_us ? floor_us / median_us : null, floor_reason: null,
    steps_us: steps.reduce((total, one) => total + one.time_us - 1.25, 0), gaps_us: 0, l2_reuse_us: 0,
    l2_reuse_bytes: 0,
    attribution_reason: null, workspace_bytes: 1000000, prepare_us: 0, prepared_bytes: 0, launches: steps.length,
    plan_reason: null, sm_mhz: 1500, power_w: 650,
    temperature_c: 50, clock_limits: "none", device_reason: null,
    repro: "fusebench run configs/made_up.yaml --filter this", samples_us,
    samples_mhz: samples_us.map(() => 1500), steps, tensors: [], mutants: [{ name: "zeros", outcome: "rejected" },
      { name: "row left zero", outcome: "rejected" }], ...given,
  };
}

const MB = 1e6;
// The op mlp in three variants: naive stores everything, cublas gate and up, fused their product alone.
export function mlpRows(changes = {}) {
  const x = tensor("h", "op", [2, 2048, 4096], { reads: 30 * MB });
  const w = tensor("w", "op", [4096, 4096], { reads: 40 * MB });
  const out = tensor("out", "op", [2, 2048, 4096], { writes: 30 * MB });
  const stored = (name, dtype) => tensor(name, "workspace", [4096, 14336], { dtype });
  const naive = row({ variant: "naive", us: 1000, tensors: [x, w, out, stored("normed h"), stored("gate"),
    stored("activation", "fp32")], steps: [
    step("rmsnorm", "naive_norm", { h: 30 * MB }, { "normed h": 30 * MB }, { time_us: 100 }),
    step("product gate", "naive_product", { "normed h": 30 * MB, w: 40 * MB }, { gate: 110 * MB },
      { flops: 2e11, time_us: 600 }),
    step("swiglu", "naive_swiglu", { gate: 110 * MB }, { activation: 220 * MB }, { time_us: 150 }),
    step("product down", "naive_product", { activation: 220 * MB, w: 40 * MB }, { out: 30 * MB },
      { flops: 1e11, time_us: 150 })], ...changes });
  const cublas = row({ variant: "cublas", us: 600, tensors: [x, w, out, stored("normed h"), stored("gate"),
    stored("activation")], steps: [
    step("rmsnorm", "vector_rmsnorm", { h: 30 * MB }, { "normed h": 30 * MB }, { time_us: 50 }),
    step("product gate", "cublas_algo1", { "normed h": 30 * MB, w: 40 * MB }, { gate: 110 * MB },
      { flops: 2e11, time_us: 300 }),
    step("swiglu", "vector_swiglu", { gate: 110 * MB }, { activation: 110 * MB }, { time_us: 100 }),
    step("product down", "cublas_algo2", { activation: 110 * MB, w: 40 * MB }, { out: 30 * MB },
      { flops: 1e11, time_us: 150 })],
    speedup_vs_naive: 1000 / 600, speedup_vs_naive_lo: 1.65, speedup_vs_naive_hi: 1.68, speedup_vs_naive_reason: null,
    speedup_vs_cublas: 1, speedup_vs_cublas_lo: 1, speedup_vs_cublas_hi: 1, speedup_vs_cublas_reason: null,
    ...changes });
  const fused = row({ variant: "fused", us: 500, tensors: [x, w, out, stored("normed h"), stored("activation")],
    steps: [
    step("rmsnorm", "fused_rmsnorm", { h: 30 * MB }, { "normed h": 30 * MB }, { time_us: 50 }),
    step("product gate, swiglu", "gemm_swiglu", { "normed h": 30 * MB, w: 40 * MB }, { activation: 110 * MB },
      { flops: 2e11, time_us: 300 }),
    step("product down", "gemm_residual", { activation: 110 * MB, w: 40 * MB }, { out: 30 * MB },
      { flops: 1e11, time_us: 150 })],
    speedup_vs_naive: 2, speedup_vs_naive_lo: 1.98, speedup_vs_naive_hi: 2.02, speedup_vs_naive_reason: null,
    speedup_vs_cublas: 1.2, speedup_vs_cublas_lo: 1.19, speedup_vs_cublas_hi: 1.21, speedup_vs_cublas_reason: null,
    ...changes });
  return [naive, cublas, fused];
}
