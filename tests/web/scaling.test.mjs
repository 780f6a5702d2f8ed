// Scaling: families of cases that differ in one extent, and their figures over it.
import assert from "node:assert/strict";
import { cellsOf, chartOf, openRun, pageTest, screenshot } from "./browser.mjs";
import { header, row, step } from "./records.mjs";

const MB = 1e6;
const base = { naive: 40, cublas: 10, fused: 8 };
// Three variants at each length: time in proportion, fused faster than cublas below 1024 tokens.
function lengths(all = [128, 512, 2048], changes = {}) {
  return all.flatMap((seq) => Object.keys(base).map((variant) => {
    const ratio = seq < 1024 ? 1.25 : 0.8;
    const isFused = variant === "fused";
    const us = isFused ? base.cublas / ratio * seq / 100 : base[variant] * seq / 100;
    return row({ variant, us, bytes_compulsory: seq * 1e4, floor_us: seq / 50, floor_share: seq / 50 / us,
      steps: [step("one", "k", { x: base[variant] * seq * 1e3 }, { y: seq * 1e3 }, { flops: 1e9 })],
      ...(isFused ? { speedup_vs_cublas: ratio, speedup_vs_cublas_lo: ratio - 0.01, speedup_vs_cublas_hi: ratio + 0.01,
        speedup_vs_cublas_reason: null } : {}), ...changes, shape: { seq, ...changes.shape } });
  }));
}
const lineOf = (chart, name) => chart.series.find((one) => one.name === name).data.map((point) => point.value ?? point);

pageTest("time, bytes, floor and speed-up over seq", async () => {
  const rows = lengths();
  const page = await openRun([header(), ...rows], { hash: "#scaling" });
  const of = (variant, figure) => rows.filter((one) => one.variant === variant).map((one) => [one.seq, figure(one)]);
  const time = await chartOf(page, "#scaling", 0);
  for (const variant of Object.keys(base)) assert.deepEqual(lineOf(time, variant), of(variant, (one) => one.median_us));
  assert.deepEqual(lineOf(time, "floor"), of("naive", (one) => one.floor_us));
  assert.equal(time.xAxis[0].type, "log");
  assert.equal(time.yAxis[0].type, "log");
  const bytes = await chartOf(page, "#scaling", 1);
  assert.deepEqual(lineOf(bytes, "fused"), of("fused", (one) => one.dram_read_bytes + one.dram_write_bytes));
  assert.deepEqual(lineOf(bytes, "compulsory"), of("naive", (one) => one.bytes_compulsory));
  const ratio = await chartOf(page, "#scaling", 2);
  assert.deepEqual(lineOf(ratio, "fused"), [[128, 1.25], [512, 1.25], [2048, 0.8]]);
  const said = await page.$$eval("#scaling .verdicts li", (all) => all.map((one) => one.textContent));
  assert.equal(said[2],
    `fused: 3 places, time grows as seq to the power ${(Math.log(256 / (128 / 100 * 8)) / Math.log(16)).toFixed(2)}; `
      + "faster than cublas at seq 128, 512; slower than cublas at seq 2048");
  assert.match(said[0], /^naive: 3 places, time grows as seq to the power 1\.00$/);
  const lines = await cellsOf(page, "#scaling-figures");
  assert.equal(lines.length, 9);
  assert.deepEqual(lines[2], ["128", "fused", "10.24", "1.25x [1.24, 1.26]", "25%", "2.560", "1.152", "1.152", "1.280",
    "1.000"]);
  await screenshot(page, "scaling", "#scaling");
  assert.deepEqual(page.complaints, []);
});

pageTest("dimensions and families are offered where they have two points", async () => {
  const wide = lengths([128, 512], { shape: { dim: 8192 } });
  const batches = [1, 4, 8].map((batch) => row({ us: 10 * batch, shape: { dim: 1024, batch, seq: 64 } }));
  const alone = row({ us: 5, shape: { dim: 512 } });
  const page = await openRun([header(), ...lengths(), ...wide, ...batches, alone], { hash: "#scaling" });
  const buttons = await page.$$eval("#scaling [data-choice=scale] button", (all) => all.map((one) => one.textContent));
  assert.deepEqual(buttons, ["seq", "batch"]);
  const options = await page.$$eval("#scaling select option", (all) => all.map((one) => one.textContent));
  assert.deepEqual(options, ["mlp/fp16/d4096-f14336/b2-s*/balanced-42 (cold, sustained): 3 places",
    "mlp/fp16/d8192-f14336/b2-s*/balanced-42 (cold, sustained): 2 places"]);
  await page.selectOption("#scaling select", { index: 1 });
  assert.match(page.url(), /family=mlp/);
  assert.deepEqual(lineOf(await chartOf(page, "#scaling", 0), "cublas").map(([seq]) => seq), [128, 512]);
  await page.click("#scaling [data-choice=scale] button:has-text('batch')");
  assert.deepEqual(lineOf(await chartOf(page, "#scaling", 0), "fused"),
    batches.map((one) => [one.batch, one.median_us]));
  assert.deepEqual(page.complaints, []);
});

pageTest("past has a place at 0, evenly spaced", async () => {
  const rows = [0, 1024, 4096].map((past) => row({ us: 10 + past / 100, shape: { op: "rope", past },
    case_id: `rope/fp16/d4096-h32-kv8/b2-s2048-p${past}/half/balanced-42`, bytes_modelled: 3 * MB,
    dram_read_bytes: null, dram_write_bytes: null, traffic_reason: "not counted" }));
  const page = await openRun([header(), ...rows], { hash: "#scaling" });
  const chart = await chartOf(page, "#scaling", 0);
  assert.equal(chart.xAxis[0].type, "category");
  assert.deepEqual(lineOf(chart, "fused"), rows.map((one) => [String(one.past), one.median_us]));
  assert.match(await page.textContent("#scaling"), /Evenly spaced/);
  const bytes = await chartOf(page, "#scaling", 1);
  assert.deepEqual(lineOf(bytes, "fused").map(([, value]) => value), [3 * MB, 3 * MB, 3 * MB]);
  const paper = await page.evaluate(() =>
    getComputedStyle(document.documentElement).getPropertyValue("--paper").trim());
  assert.equal(bytes.series[0].data[0].itemStyle.color, paper); // hollow: modelled
  assert.deepEqual((await cellsOf(page, "#scaling-figures"))[0].slice(6, 8), ["\u2013", "3.000"]);
  assert.equal(await page.getAttribute("#scaling-figures tbody td:nth-child(7)", "title"), "not counted");
  assert.deepEqual(page.complaints, []);
});

pageTest("rows that did not pass leave a gap, and are in the table", async () => {
  const rows = lengths();
  const lost = rows.findIndex((one) => one.variant === "fused" && one.seq === 512);
  rows[lost] = row({ variant: "fused", shape: { seq: 512 }, verdict: "error", reason: "out of memory", samples_us: [],
    floor_us: null, floor_share: null });
  const page = await openRun([header(), ...rows], { hash: "#scaling" });
  assert.deepEqual(lineOf(await chartOf(page, "#scaling", 0), "fused").map(([seq]) => seq), [128, 2048]);
  assert.match(await page.textContent("#scaling"), /1 row did not pass or have no median/);
  const line = (await cellsOf(page, "#scaling-figures")).find((cells) => cells[0] === "512"
    && cells[1].startsWith("fused"));
  assert.deepEqual(line.slice(1, 3), ["fused error", "\u2013"]);
  assert.equal(await page.$eval("#scaling-figures tr:nth-child(6) td:nth-child(3)", (cell) => cell.title),
    "out of memory");
  assert.deepEqual(page.complaints, []);
});

pageTest("a variant that is at one place alone, twice, does not grow", async () => {
  const rows = lengths().filter((one) => one.variant === "naive" || one.seq === 512);
  const page = await openRun([header(), ...rows, ...rows], { hash: "#scaling" });
  const said = await page.$$eval("#scaling .verdicts li", (all) => all.map((one) => one.textContent));
  assert.match(said[0], /^naive: 6 places, time grows as seq to the power 1\.00$/);
  assert.match(said[1], /^cublas: 2 places$/);
  assert.deepEqual(page.complaints, []);
});

pageTest("without a family the part says what sweep makes one", async () => {
  const evil = "mlp<img src=x onerror=alert(1)>";
  const page = await openRun([header(), row(), row({ shape: { op: evil, seq: 1 } }),
    row({ shape: { seq: 64 }, verdict: "fail", reason: "wrong" })], { hash: "#scaling" });
  assert.equal(await page.$$eval("#scaling .chart", (all) => all.length), 0);
  assert.match(await page.textContent("#scaling pre"),
    /- op: mlp\n {4}dtype: fp16\n {4}dim: 4096\n {4}hidden: 14336\n {4}batch: 2\n {4}seq: \[128, 512, 2048, 8192\]\n/);
  assert.equal(await page.$$eval("img", (all) => all.length), 0);
  assert.deepEqual(page.complaints, []);
});

pageTest("ten thousand rows are grouped in time", async () => {
  const rows = Array.from({ length: 10000 }, (_, i) => row({ us: 100 + i, samples_us: [100 + i], shape: { seq: 1 + i },
    floor_us: 1 + i }));
  const page = await openRun([header(), ...rows], { hash: "#scaling" });
  assert.ok((await cellsOf(page, "#scaling-figures")).length <= 150);
  assert.ok(lineOf(await chartOf(page, "#scaling", 0), "fused").length <= 200);
  assert.match(await page.textContent("#scaling"), /200 of 10000 places are shown/);
  assert.deepEqual(page.complaints, []);
});
