// Latency: every sample is where the records put it, and the figures beside it are theirs.
import assert from "node:assert/strict";
import { cellsOf, chartOf, openRun, pageTest, screenshot } from "./browser.mjs";
import { header, mlpRows, row, samplesAround, step } from "./records.mjs";

// The page has samples to a tenth of a nanosecond.
const near = (a, b) => assert.ok(Math.abs(a - b) <= 1e-5 * Math.max(1, Math.abs(b)), `${a} is not ${b}`);
const digits = (value) => value.toPrecision(4);
const scattersOf = (chart, name) => chart.series.filter((one) => one.type === "scatter")
  .find((one) => one.name === name);
const summaryOf = (chart) => chart.series.find((one) => one.type === "custom").data;

pageTest("samples stand at their distance from the own median, with its interval, p05 and p95", async () => {
  const rows = mlpRows();
  const page = await openRun([header(), ...rows], { hash: "#latency" });
  const chart = await chartOf(page, "#latency", 0);
  rows.forEach((one, n) => {
    const { data } = scattersOf(chart, one.variant);
    assert.equal(data.length, one.samples_us.length);
    data.forEach((point, i) => near(point.value[0], (one.samples_us[i] / one.median_us - 1) * 100));
    // each heap grows from its variant's line
    assert.ok(data.every((point) => point.value[1] <= n && point.value[1] > n - 0.75));
    const [at, p05, lo, median, hi, p95] = summaryOf(chart)[n];
    assert.equal(at, n);
    near(median, 0);
    near(hi, one.ci95_rel * 100);
    near(lo, -one.ci95_rel * 100);
    near(p05, (one.p05_us / one.median_us - 1) * 100);
    near(p95, (one.p95_us / one.median_us - 1) * 100);
  });
  await screenshot(page, "latency", "#latency");
  assert.deepEqual(page.complaints, []);
});

pageTest("the switch shows times", async () => {
  const rows = mlpRows();
  const page = await openRun([header(), ...rows], { hash: "#latency" });
  await page.click("#latency [data-choice=latency] button:has-text('times')");
  assert.match(page.url(), /latency=time/);
  const chart = await chartOf(page, "#latency", 0);
  for (const one of rows) {
    scattersOf(chart, one.variant).data.forEach((point, i) => near(point.value[0], one.samples_us[i]));
  }
  assert.deepEqual(page.complaints, []);
});

pageTest("speed-ups say over what, and the table has the figures", async () => {
  const rows = mlpRows();
  const page = await openRun([header(), ...rows], { hash: "#latency" });
  const said = await page.$$eval("#latency .verdicts li", (all) => all.map((one) => one.textContent));
  assert.equal(said[2],
    `fused: ${digits(rows[2].median_us)} \u00b5s, 1.20x [1.19, 1.21] over cublas, 2.00x [1.98, 2.02] over naive `
      + "\u2013 faster than cublas");
  assert.equal(said[1], `cublas: ${digits(rows[1].median_us)} \u00b5s, 1.67x [1.65, 1.68] over naive`);
  const [naive, , fused] = await cellsOf(page, "#latency-figures");
  assert.deepEqual(fused.slice(0, 3), ["fused", digits(rows[2].median_us), "0.40%"]);
  assert.deepEqual(fused.slice(3, 5), ["1.20x [1.19, 1.21]", "2.00x [1.98, 2.02]"]);
  assert.equal(naive[3], "\u2013");
  assert.equal(await page.getAttribute("#latency-figures tbody tr:first-child td:nth-child(4)", "title"),
    "cublas is not in the run");
  assert.deepEqual(page.complaints, []);
});

pageTest("slower, and neither faster nor slower, are said so", async () => {
  const [, cublas, fused] = mlpRows();
  const slow = { ...fused, speedup_vs_cublas: 0.8, speedup_vs_cublas_lo: 0.79, speedup_vs_cublas_hi: 0.81 };
  const same = { ...fused, variant: "fused.portable", speedup_vs_cublas: 1.0, speedup_vs_cublas_lo: 0.99,
    speedup_vs_cublas_hi: 1.02 };
  const page = await openRun([header(), cublas, slow, same], { hash: "#latency" });
  const said = await page.$$eval("#latency .verdicts li", (all) => all.map((one) => one.textContent));
  assert.match(said[1], /0\.80x \[0\.79, 0\.81\] over cublas.* slower than cublas$/);
  assert.match(said[2], /neither faster nor slower than cublas/);
  assert.deepEqual(page.complaints, []);
});

pageTest("samples under a low clock are ringed, in their order, over the clock", async () => {
  const samples_us = samplesAround(100, 20);
  const samples_mhz = samples_us.map((_, i) => (i < 3 ? 1400 : i === 3 ? 1430 : 1500)); // 5% under 1500 is 1425
  const one = row({ samples_us, samples_mhz, sm_mhz: 1500, throttled_samples: 3 });
  const page = await openRun([header(), one], { hash: "#latency" });
  const chart = await chartOf(page, "#latency", 1);
  const [times, clocks] = chart.series;
  assert.deepEqual(times.data.map((point) => point.value[0]), samples_us.map((_, i) => i + 1));
  times.data.forEach((point, i) => near(point.value[1], samples_us[i]));
  assert.deepEqual(times.data.map((point) => point.itemStyle.borderWidth > 0), samples_us.map((_, i) => i < 3));
  assert.equal(clocks.yAxisIndex, 1);
  assert.deepEqual(clocks.data.map(([, mhz]) => mhz), samples_mhz);
  assert.match(await page.textContent("#latency"), /3 samples ringed/);
  assert.deepEqual(page.complaints, []);
});

pageTest("the events' share is told where a row is short", async () => {
  const page = await openRun([header(), row({ us: 12.5 }), row({ us: 1000, variant: "naive" })], { hash: "#latency" });
  assert.match(await page.textContent("#latency .note"),
    /two events alone take 1\.250 \u00b5s: 10% of fused's median\./);
  assert.deepEqual(page.complaints, []);
});

pageTest("modes of one case stand side by side", async () => {
  const cold = mlpRows();
  const hot = mlpRows({ cache: "hot", floor_us: null, floor_share: null, floor_reason: "hot" })
    .map((one) => ({ ...one, median_us: one.median_us * 0.8, samples_us: one.samples_us.map((us) => us * 0.8) }));
  const graph = mlpRows({ graph: true }).slice(2);
  const page = await openRun([header(), ...cold, ...hot, ...graph], { hash: "#latency" });
  const text = await page.textContent("#latency");
  assert.match(text, /hot, stream, sustained: naive takes 0\.80x, cublas takes 0\.80x, fused takes 0\.80x the time/);
  assert.match(text, /the time that it takes in cold, stream, sustained/);
  assert.match(text, /cold, graph, sustained: fused takes 1\.00x the time/);
  const lines = await cellsOf(page, "#mode-figures");
  assert.equal(lines.length, 7);
  assert.deepEqual(lines.find((cells) => cells[0] === "hot, stream, sustained" && cells[1] === "fused").slice(2, 5),
    [digits(hot[2].median_us), "0.40%", "0.80x"]);
  const chart = await chartOf(page, "#latency", 2);
  assert.deepEqual(chart.series.find((one) => one.name === "fused").data.map((point) => Math.round(point.value[0])),
    [500, 400, 500]);
  await screenshot(page, "latency-modes", "#latency");
  assert.deepEqual(page.complaints, []);
});

pageTest("rows without samples, clocks or medians are told", async () => {
  const evil = "<img src=x onerror=alert(1)>";
  const silent = row({ samples_mhz: [], sm_mhz: null, device_reason: "the CPU tells no clock" });
  const crashed = row({ variant: evil, verdict: "crashed", reason: evil, samples_us: [], ci95_rel: null,
    timing_reason: evil });
  const page = await openRun([header({ ceilings: null }), silent, crashed], { hash: "#latency" });
  assert.match(await page.textContent("#latency .note.verdicts"), /crashed, not drawn\. <img/);
  assert.match(await page.textContent("#latency"), /No clock is known: the CPU tells no clock/);
  assert.equal((await chartOf(page, "#latency", 1)).yAxis.length, 1);
  assert.equal((await cellsOf(page, "#latency-figures"))[0][12], "\u2013");
  assert.equal(await page.$$eval("img", (all) => all.length), 0);
  assert.deepEqual(page.complaints, []);
});

pageTest("many samples are thinned, and told", async () => {
  const page = await openRun([header(), row({ samples_us: samplesAround(100, 5000) })], { hash: "#latency" });
  assert.equal(scattersOf(await chartOf(page, "#latency", 0), "fused").data.length, 1500);
  assert.match(await page.textContent("#latency"), /1500 samples of fused's 5000 are drawn/);
  assert.deepEqual(page.complaints, []);
});

pageTest("of a case with very many rows a dozen are drawn, and told", async () => {
  const rows = Array.from({ length: 300 }, (_, i) => row({ variant: `variant ${i}`, us: 100 + i }));
  const page = await openRun([header(), ...rows], { hash: "#latency" });
  const { series } = await chartOf(page, "#latency");
  assert.deepEqual(series.filter((one) => one.type === "scatter").map((one) => one.name),
    rows.slice(0, 12).map((one) => one.variant));
  assert.match(await page.textContent("#latency"), /And 288 more have samples: filters show others/);
  assert.match(await page.textContent("#latency-figures"), /And 100 more/);
  assert.match(await page.textContent("#traffic"), /And 290 more: leave out others above to see them/);
  assert.deepEqual(page.complaints, []);
});

pageTest("a case where nothing passed says why", async () => {
  const page = await openRun([header(),
    row({ verdict: "error", reason: "out of memory", samples_us: [], timing_reason: null })], { hash: "#latency" });
  assert.match(await page.textContent("#latency"), /fused: error, not drawn\. out of memory/);
  assert.equal(await page.$$eval("#latency .chart", (all) => all.length), 0);
  assert.deepEqual(page.complaints, []);
});
