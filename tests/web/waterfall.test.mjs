// The part "What fusing saved": steps are matched soundly, sums close, and what is missing is said.
import assert from "node:assert/strict";
import { cellsOf, chartOf, openRun, pageTest, screenshot } from "./browser.mjs";
import { header, mlpRows, row, step, tensor } from "./records.mjs";

const MB = 1e6;
const EVENTS = 1.25; // header's event_pair_us
const show = (page) => page.waitForSelector("#waterfall h2 >> visible=true").then(() =>
  page.waitForSelector("#waterfall .body > *"));
const openAt = async (lines, hash = "#waterfall") => {
  const page = await openRun(lines, { hash });
  await page.evaluate(() => document.querySelector("#waterfall").scrollIntoView());
  await show(page);
  return page;
};

// [kind, label's change or total] of each bar; checks that each starts where the last ended.
async function barsOf(page, where) {
  const { series } = await chartOf(page, `#waterfall .${where}`);
  let at = null;
  return series[0].data.map((bar) => {
    const [from, to] = bar.value;
    if (bar.kind === "total") {
      assert.equal(from, 0);
      if (at !== null) assert.ok(Math.abs(at - to) <= 1e-9 * to, `${bar.name}: ${at} is not ${to}`);
    } else assert.equal(from, at);
    at = to;
    return [bar.kind, bar.name, Math.round((to - from) * 1000) / 1000];
  });
}

const tableOf = async (page, n) => page.$$eval("#waterfall table.saved",
  (all, at) => [...all[at].querySelectorAll("tbody tr")]
    .map((line) => [...line.children].map((cell) => cell.textContent.trim())), n);

pageTest("from naive to cublas to fused: bars close, in bytes and in time", async () => {
  const rows = mlpRows().map((one, i) => ({ ...one, median_us: [1000, 600, 500][i] }));
  const page = await openAt([header(), ...rows]);
  assert.deepEqual(await barsOf(page, "bytes"), [
    ["total", "naive", rows[0].bytes_modelled], ["change", "rmsnorm", 0], ["change", "product gate", 0],
    ["change", "swiglu", -110 * MB], ["change", "product down", -110 * MB],
    ["total", "cublas", rows[1].bytes_modelled], ["change", "rmsnorm", 0], ["change", "product gate, swiglu",
      -220 * MB], ["change", "product down", 0],
    ["total", "fused", rows[2].bytes_modelled]]);
  const time = await barsOf(page, "time");
  assert.deepEqual(time.filter(([kind]) => kind === "total"), [["total", "naive", 1000], ["total", "cublas", 600],
    ["total", "fused", 500]]);
  assert.deepEqual(time.filter(([, name]) => name === "product gate, swiglu"),
    [["change", "product gate, swiglu", -100 + EVENTS]]);
  assert.equal(await page.textContent("#waterfall .headline"),
    "fused takes 500.0 \u00b5s, 100.0 \u00b5s (17%) less than cublas's 600.0 \u00b5s, it moves 220.0 MB less.");
  const [, gate] = await tableOf(page, 1);
  // 220 MB at 4000 GB/s are 55 us.
  assert.deepEqual(gate, ["product gate, swiglu", "product gate; swiglu", "no longer stored: gate", "\u2212220.0",
    "\u2212220.0", "\u221255.00", "\u221298.75"]);
  const { series } = await chartOf(page, "#waterfall .time");
  assert.deepEqual(series[1].data.at(-1).value[1], time.findIndex(([, name]) => name === "product gate, swiglu"));
  assert.match(await page.textContent("#waterfall"),
    /Steps with matrix products take 90% of the time of fused's steps\. FLOPs decide there/);
  await screenshot(page, "waterfall", "#waterfall");
  assert.deepEqual(page.complaints, []);
});

// A block's qkv and attention: cublas merges what naive keeps apart, and its attention reads v from the merged tensor.
function blockRows() {
  const at = { shape: { op: "block" } };
  const naive = row({ ...at, variant: "naive", us: 1000, median_us: 1000, tensors: [tensor("x", "op", [1])], steps: [
    step("qkv.product q", "p", { x: 10 * MB, wq: 20 * MB }, { "qkv.q before rope": 10 * MB },
      { flops: 1e9, time_us: 100 }),
    step("qkv.product v", "p", { x: 10 * MB, wv: 20 * MB }, { v: 10 * MB }, { flops: 1e9, time_us: 100 }),
    step("qkv.q.split", "s", { "qkv.q before rope": 10 * MB }, { "qkv.q.halves": 10 * MB }, { time_us: 50 }),
    step("qkv.q.merge", "s", { "qkv.q.halves": 10 * MB }, { q: 10 * MB }, { time_us: 50 }),
    step("attention.scores", "p", { q: 10 * MB }, { "attention.scores": 100 * MB }, { flops: 2e9, time_us: 200 }),
    step("attention.exp", "e", { "attention.scores": 100 * MB }, { "attention.exponentials": 50 * MB },
      { time_us: 100 }),
    step("attention.divide", "e", { "attention.exponentials": 50 * MB }, { "attention.probabilities": 50 * MB },
      { time_us: 100 }),
    step("attention.weighted values", "p", { "attention.probabilities": 50 * MB, v: 10 * MB }, { a: 10 * MB },
      { flops: 2e9, time_us: 200 })] });
  const cublas = row({ ...at, variant: "cublas", us: 600, median_us: 600, tensors: [tensor("x", "op", [1])], steps: [
    step("qkv.product qv", "p", { x: 10 * MB, "qkv.wq, wv": 40 * MB }, { "qkv.q, v": 20 * MB },
      { flops: 2e9, time_us: 100 }),
    step("qkv.rope q", "r", { "qkv.q, v": 10 * MB }, { q: 10 * MB }, { time_us: 30 }),
    step("attention.scores", "p", { q: 10 * MB }, { "attention.scores": 100 * MB }, { flops: 2e9, time_us: 150 }),
    step("attention.softmax", "e", { "attention.scores": 100 * MB }, { "attention.probabilities": 50 * MB },
      { time_us: 100 }),
    step("attention.weighted values", "p", { "attention.probabilities": 50 * MB, "qkv.q, v": 10 * MB }, { a: 10 * MB },
      { flops: 2e9, time_us: 150 })] });
  const fused = row({ ...at, variant: "fused", us: 700, median_us: 700, tensors: [tensor("x", "op", [1])], steps: [
    step("qkv.product qv, rope", "p", { x: 10 * MB, "qkv.wq, wv": 40 * MB }, { q: 10 * MB, v: 10 * MB },
      { flops: 2e9, time_us: 400 }),
    step("attention.attention", "a", { q: 10 * MB, v: 10 * MB }, { a: 10 * MB }, { flops: 4e9, time_us: 250 })] });
  return [naive, cublas, fused];
}
const covers = (lines) => lines.slice(0, -2).map((line) => [line[0], line[1]]);

pageTest("a link leads here, and a choice leaves the page where it is", async () => {
  const page = await openRun([header(), ...mlpRows(),
    ...mlpRows().map((one) => ({ ...one, case_id: "mlp/fp16/other" }))], { hash: "#waterfall" });
  await page.waitForTimeout(300);
  const top = () => page.$eval("#waterfall", (section) => section.getBoundingClientRect().top);
  const before = await top();
  assert.ok(before >= 0 && before < 400, `the part is at ${before}`);
  await page.selectOption("#waterfall select.case", { index: 1 });
  await page.waitForTimeout(300);
  assert.ok(Math.abs(await top() - before) < 40, `it was at ${before}, and is at ${await top()}`);
  assert.equal(await page.$eval("#waterfall select.case", (select) => select.selectedIndex), 1);
  assert.deepEqual(page.complaints, []);
});

pageTest("a difference that the samples do not show is not called one", async () => {
  const rows = mlpRows();
  Object.assign(rows[2], { speedup_vs_cublas: 1.2, speedup_vs_cublas_lo: 0.8, speedup_vs_cublas_hi: 1.5 });
  const page = await openAt([header(), ...rows]);
  assert.match(await page.textContent("#waterfall .headline"),
    /less than cublas's 599\.9 µs \(no difference that the samples show\), it moves 220\.0 MB less\.$/);
  rows[2].speedup_vs_cublas_lo = rows[2].speedup_vs_cublas_hi = null;
  const few = await openAt([header(), ...rows]);
  assert.match(await few.textContent("#waterfall .headline"), /599\.9 µs \(too few samples to be sure\), it moves/);
  assert.deepEqual([...page.complaints, ...few.complaints], []);
});

pageTest("steps are matched by tensors, within stages, products apart where their FLOPs say so", async () => {
  const page = await openAt([header(), ...blockRows()]);
  assert.deepEqual(covers(await tableOf(page, 0)), [
    ["qkv.product qv", "qkv.product q; qkv.product v"],
    ["qkv.rope q", "qkv.q.split; qkv.q.merge"],
    ["attention.scores", "attention.scores"],
    ["attention.softmax", "attention.exp; attention.divide"],
    ["attention.weighted values", "attention.weighted values"]]);
  assert.deepEqual(covers(await tableOf(page, 1)), [
    ["qkv.product qv, rope", "qkv.product qv; qkv.rope q"],
    ["attention.attention", "attention.scores; attention.softmax; attention.weighted values"]]);
  // Slower is said, and rises.
  assert.equal(await page.textContent("#waterfall .headline.fail"),
    "fused takes 700.0 µs, 100.0 µs (17%) longer than cublas's 600.0 µs, although it moves 320.0 MB less.");
  const { series } = await chartOf(page, "#waterfall .time");
  const colors = Object.fromEntries(series[0].data.map((bar) => [bar.name, bar.itemStyle.color]));
  assert.notEqual(colors["qkv.product qv, rope"], colors["attention.attention"]);
  await barsOf(page, "time");
  assert.deepEqual(page.complaints, []);
});

pageTest("older records are matched by stage and name, and products are not predicted", async () => {
  const bare = (one) => ({ ...one, tensors: undefined, steps: one.steps.map(({ reads, writes, ...rest }) => rest) });
  const page = await openAt([header(), ...blockRows().map(bare)]);
  assert.match(await page.textContent("#waterfall"),
    /no bytes by tensor \(they are of an older version\): steps are matched by stage and by name/);
  const lines = await tableOf(page, 0);
  assert.deepEqual(covers(lines), [
    ["qkv.product qv + qkv.rope q", "qkv.product q; qkv.product v; qkv.q.split; qkv.q.merge"],
    ["attention.scores", "attention.scores"],
    ["attention.softmax", "attention.exp; attention.divide"],
    ["attention.weighted values", "attention.weighted values"]]);
  assert.equal(lines[1][5], "\u2013");
  assert.match(await page.getAttribute("#waterfall table.saved tbody tr:nth-child(2) td:nth-child(6)", "title"),
    /products only/);
  await barsOf(page, "bytes");
  await barsOf(page, "time");
  assert.deepEqual(page.complaints, []);
});

pageTest("what fits nowhere is not attributed, and what steps do not say is outside of them", async () => {
  const [naive, cublas] = blockRows();
  const extra = step("norm.only here", "k", { x: 10 * MB }, { "norm.y": 30 * MB }, { time_us: 40 });
  const odd = { ...cublas, steps: [...cublas.steps, extra], bytes_modelled: cublas.bytes_modelled + 47 * MB,
    dram_read_bytes: cublas.dram_read_bytes + 10 * MB, dram_write_bytes: cublas.dram_write_bytes + 30 * MB };
  const page = await openAt([header(), naive, odd], "#waterfall_kind=modelled");
  const bytes = await barsOf(page, "bytes");
  assert.deepEqual(bytes.slice(-3, -1), [["none", "not attributed", 40 * MB], ["rest", "in no step", 7 * MB]]);
  const lines = await tableOf(page, 0);
  assert.deepEqual(lines.at(-3).slice(0, 2), ["not attributed", "\u2013 (now: norm.only here)"]);
  assert.equal(lines.at(-2)[3], "+7.000");
  assert.match(await page.textContent("#waterfall"), /fused is not in this case/);
  assert.deepEqual(page.complaints, []);
});

pageTest("the CPU: modelled bytes, eigen in cublas's place", async () => {
  const nothing = { dram_read_bytes: null, dram_write_bytes: null,
    traffic_reason: "traffic on the CPU is modelled, not counted" };
  const rows = mlpRows().map((one) => ({ ...one, ...nothing, backend: "cpu",
    variant: one.variant === "cublas" ? "eigen" : one.variant, dram_late_write_bytes: null,
    steps: one.steps.map((each) => ({ ...each, ...nothing })) }));
  const page = await openAt([header({ backend: "cpu", ceilings: { bandwidth_gbps: null } }), ...rows]);
  const bars = await barsOf(page, "bytes");
  assert.deepEqual(bars.filter(([kind]) => kind === "total").map(([, name, total]) => [name, total]),
    rows.map((one) => [one.variant, one.bytes_modelled]));
  const lines = await tableOf(page, 1);
  assert.deepEqual(lines[1].slice(4, 6), ["\u2013", "\u2013"]); // nothing measured, no ceiling
  assert.match(await page.textContent("#waterfall"), /Not measured: traffic on the CPU is modelled, not counted/);
  assert.match(await page.textContent("#waterfall .headline"), /it moves 220\.0 MB less \(modelled\)/);
  assert.deepEqual(page.complaints, []);
});

pageTest("a start that would dwarf the rest is left out, unless asked for", async () => {
  const rows = mlpRows();
  rows[0] = { ...rows[0], median_us: 100000 };
  const page = await openAt([header(), ...rows]);
  assert.equal((await barsOf(page, "time"))[0][1], "cublas");
  await page.click("#waterfall .time button:text-is('naive')");
  assert.deepEqual((await barsOf(page, "time"))[0], ["total", "naive", 100000]);
  assert.deepEqual(page.complaints, []);
});

pageTest("variants that failed or are filtered away are named", async () => {
  const [naive, cublas] = mlpRows();
  const crashed = row({ variant: "fused", verdict: "crashed", reason: "signal 11", samples_us: [], bytes_modelled: null,
    bytes_modelled_reason: "no plan was made" });
  const untimed = { ...cublas, verdict: "fail", reason: "rel_l2 over its budget", median_us: null,
    timing_reason: "the check failed",
    steps: cublas.steps.map((one) => ({ ...one, time_us: null, time_reason: "the check failed" })) };
  const page = await openAt([header(), naive, untimed, crashed]);
  const text = await page.textContent("#waterfall");
  assert.match(text, /fused has no steps: signal 11/);
  assert.match(text, /cublas did not pass: fail, rel_l2 over its budget/);
  assert.match(text, /Not drawn: cublas has no latency: the check failed/);
  assert.deepEqual((await tableOf(page, 0)).at(-1)[6], "\u2013");
  await barsOf(page, "bytes");
  await page.click("[data-facet=variant] button:has-text('naive')");
  await page.waitForFunction(() =>
    /cublas is left out by the filters above/.test(document.querySelector("#waterfall").textContent));
  assert.match(await page.textContent("#waterfall"), /Two variants of a case are needed/);
  assert.deepEqual(page.complaints, []);
});
