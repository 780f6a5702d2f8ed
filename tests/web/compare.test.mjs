// The page of `fusebench compare --html`: its figures are the records', and what cannot be compared is said.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { binary, cellsOf, chartOf, makeRun, open, pageTest, screenshot, temporaryFolder } from "./browser.mjs";
import { header, row, samplesAround } from "./records.mjs";

function compare(base, current, { more = [] } = {}) {
  const file = join(temporaryFolder(), "compare.html");
  const done = spawnSync(binary, ["compare", makeRun(base), makeRun(current), "--html", file, ...more],
    { encoding: "utf8", maxBuffer: 1e9 });
  return { file, code: done.status, out: done.stdout, err: done.stderr };
}

const shape = (seq) => ({ shape: { seq } });
// Medians are 100 us in base; in the new run as the names say.
const base = [1, 2, 3, 4, 5].map((seq) => row({ ...shape(seq), us: 100, kernel: "gemm", workspace_bytes: 2e6 }));
const current = [
  row({ ...shape(1), us: 100.05, kernel: "gemm", workspace_bytes: 2e6 }),
  row({ ...shape(2), us: 80, kernel: "gemm_wgmma", workspace_bytes: 1e6 }),
  row({ ...shape(3), us: 125, kernel: "gemm", workspace_bytes: 2e6 }),
  row({ ...shape(4), us: 100, kernel: "gemm", workspace_bytes: 2e6, verdict: "fail",
    reason: "rel_l2 over its budget" }),
  row({ ...shape(6), us: 50 }),
];

const median = (samples) => [...samples].sort((a, b) => a - b)[(samples.length - 1) / 2];
const expected = (at) => median(current[at].samples_us) / median(base[at].samples_us);

pageTest("compare: counts, regressions first, and every figure is the records'", async () => {
  const { file, code, out } = compare([header(), ...base], [header({ driver: "13.1" }), ...current]);
  assert.equal(code, 4);
  assert.match(out, new RegExp(`page: ${file}\n$`));
  const page = await open(file);
  assert.equal(await page.textContent("#counts"), "6 rows: 1 slower, 1 faster, 1 gone, 1 unsure, 1 new, 1 same");
  assert.match(await page.textContent("#verdict"),
    /^2 regressions: 1 slower than base by more than 3%, 1 whose verdict was pass/);
  assert.deepEqual(await page.$$eval("#kinds .tile", (all) => all.map((one) => one.textContent)),
    ["1slower", "1faster", "1same", "1unsure", "1new", "1gone"]);

  const cells = await cellsOf(page, "#rows");
  assert.deepEqual(cells.slice(0, 4).map((line) => line[0]), ["regression, slower", "regression, unsure", "faster",
    "gone"]);
  assert.deepEqual(cells.slice(4).map((line) => line[0]), ["new", "same"]);
  const line = (seq) => cells.find((one) => one[1].includes(`-s${seq}/`));
  for (const at of [0, 1, 2]) {
    const [value, lo, hi] = line(at + 1)[2].match(/[\d.]+/g).map(Number);
    assert.equal(value, Number(expected(at).toFixed(3)));
    assert.ok(lo <= value && value <= hi && hi - lo < 0.05, line(at + 1)[2]);
    assert.equal(line(at + 1)[4], "1.0%");
    assert.equal(line(at + 1)[5], median(base[at].samples_us).toPrecision(4));
  }
  assert.equal(line(2)[6], median(current[1].samples_us).toPrecision(4));
  assert.match(line(2)[7], /kernel gemm \u2192 gemm_wgmma/);
  assert.match(line(2)[7], /workspace_bytes 2.000 MB \u2192 1.000 MB \(\u221250%\)/);
  assert.match(line(3)[7], /slower than base by more than 3%/);
  assert.match(line(4)[7], /verdict went from pass to fail: rel_l2 over its budget/);
  assert.match(line(4)[7], /latency not judged: fail in new/);
  assert.equal(line(5)[6], "\u2013");
  assert.match(line(6)[7], /not in base; verdict pass/);
  assert.match(await page.textContent("#runs"), /driver13.013.1/);
  const overall = await cellsOf(page, "#overall");
  const mean = Math.cbrt(expected(0) * expected(1) * expected(2)); // rows that failed are not judged
  assert.deepEqual(overall, [["mlp", `${mean.toFixed(3)}, 3 of 6 rows, 1 slower, 1 faster`]]);
  assert.deepEqual(page.complaints, []);
  await screenshot(page, "compare");
});

pageTest("compare: the chart has the table's figures, and leads to its rows", async () => {
  const page = await open(compare([header(), ...base], [header(), ...current]).file);
  const { series, yAxis } = await chartOf(page, "#chart");
  const points = series.filter((one) => one.type === "scatter")
    .flatMap((one) => one.data.map(([x, at]) => [one.name, yAxis[0].data[at], Math.exp(x)]));
  assert.equal(points.length, 4);
  for (const [kind, at] of [["same", 0], ["faster", 1], ["slower", 2]]) {
    const [, name, ratio] = points.find(([one]) => one === kind);
    assert.match(name, new RegExp(`-s${at + 1}/`));
    assert.ok(Math.abs(ratio - expected(at)) < 1e-6);
  }
  const band = series.find((one) => one.name === "noise").data[0];
  assert.ok(Math.abs(Math.exp(band[2]) - 1.01) < 1e-6 && Math.abs(Math.exp(band[1]) - 1 / 1.01) < 1e-6);
  await page.evaluate(() => {
    const chart = echarts.getInstanceByDom(document.querySelector("#chart .chart"));
    chart.trigger("click", { seriesType: "scatter", value: [0, 0] });
  });
  assert.match(await page.textContent("#rows tr.chosen"), /regression, slower/);
  assert.match(page.url(), /row=2/);
  assert.deepEqual(page.complaints, []);
});

pageTest("compare: text, kinds and order are kept in the address", async () => {
  const page = await open(compare([header(), ...base], [header(), ...current]).file);
  await page.click("[data-facet=latency] button:text-is('slower')");
  await page.click("[data-facet=latency] button:text-is('faster')");
  assert.equal(await page.textContent("[role=status]"), "2 of 6 rows");
  await page.selectOption("#order", "fastest");
  assert.deepEqual((await cellsOf(page, "#rows")).map((line) => line[0]), ["faster", "regression, slower"]);
  assert.match(page.url(), /latency=slower&latency=faster/);
  await page.reload();
  assert.deepEqual((await cellsOf(page, "#rows")).map((line) => line[0]), ["faster", "regression, slower"]);
  await page.fill("#search", "kernel");
  assert.equal((await cellsOf(page, "#rows")).length, 1);
  await page.fill("#search", "nothing like it");
  assert.match(await page.textContent("#rows"), /No row is left by the filters/);
  await page.click("#reset");
  assert.equal(await page.textContent("[role=status]"), "6 rows");
  await page.click("nav a:text-is('The two runs')");
  assert.match(page.url(), /at=runs/);
  assert.deepEqual(page.complaints, []);
});

pageTest("compare: hostile text is shown as text", async () => {
  const evil = `</script><script>window.ran = 1</script><img src=x onerror="window.ran = 2">"',\n=1+1`;
  const lines = (kernel) => [header({ name: evil, driver: kernel, warnings: [evil] }),
    row({ variant: evil, case_id: evil, kernel, verdict: kernel, reason: evil })];
  const page = await open(compare(lines(evil), lines(`${evil}!`)).file);
  assert.equal(await page.evaluate(() => window.ran), undefined);
  assert.equal(await page.$$eval("img", (all) => all.length), 0);
  assert.ok((await page.textContent("#rows td:nth-child(2)")).includes("</script>"));
  assert.ok((await page.textContent("header")).includes("Warning of new: </script>"));
  assert.deepEqual(page.complaints, []);
});

pageTest("compare: rows without latency, without noise, without an interval, and old records", async () => {
  const failed = row({ ...shape(1), samples_us: [], verdict: "error", reason: "out of memory" });
  const few = (us) => row({ ...shape(2), samples_us: samplesAround(us, 3) });
  const page = await open(compare([header({ noise: null, noise_reason: "not learned" }), failed, few(100)],
    [header({ noise: null }), failed, few(150)]).file);
  const cells = await cellsOf(page, "#rows");
  const line = (seq) => cells.find((one) => one[1].includes(`-s${seq}/`));
  assert.deepEqual(line(1).slice(0, 7).map((text, i) => (i === 1 ? "" : text)), ["unsure", "", "\u2013", "", "\u2013",
    "\u2013", "\u2013"]);
  assert.match(line(1)[7], /latency not judged: error in both/);
  assert.equal(line(2)[2], "1.500");
  assert.equal(line(2)[4], "2.0%*");
  assert.match(line(2)[7], /fewer than 6 samples/);
  assert.match(await page.textContent("header"), /Note: a noise of at least 2% \(\*\) is assumed for 1 row/);
  assert.match(await page.textContent("#chart"), /1 row without a latency in both runs/);
  assert.deepEqual(page.complaints, []);
});

pageTest("compare: other devices are refused, or said to be forced; nothing in common is said", async () => {
  const other = header({ device: { ...header().device, uuid: "GPU-2" } });
  const refused = compare([header(), base[0]], [other, base[0]]);
  assert.equal(refused.code, 2);
  assert.match(refused.err, /--force/);
  assert.equal(existsSync(refused.file), false);
  const forced = await open(compare([header(), base[0]], [other, base[0]], { more: ["--force"] }).file);
  assert.match(await forced.textContent("header"),
    /Comparing was forced: base ran on NVIDIA H200 GPU-1, new on NVIDIA H200 GPU-2/);
  const apart = compare([header(), base[0]], [header(), base[1]]);
  assert.equal(apart.code, 3);
  const page = await open(apart.file);
  assert.match(await page.textContent("header"), /no row in common/);
  assert.match(await page.textContent("#chart"), /None of these rows has a latency in both runs/);
  const none = await open(compare([header()], [header()]).file);
  assert.match(await none.textContent("#rows"), /The runs have no rows/);
  assert.deepEqual([...forced.complaints, ...page.complaints, ...none.complaints], []);
});

pageTest("compare: ten thousand rows stay quick, narrow and dark", async () => {
  const rows = (us) => Array.from({ length: 10000 },
    (_, seq) => row({ ...shape(seq + 1), samples_us: samplesAround(us * (1 + (seq % 7) / 100), 7) }));
  const { file } = compare([header(), ...rows(100)], [header(), ...rows(101)]);
  const page = await open(file, { viewport: { width: 700, height: 1000 }, colorScheme: "dark" });
  assert.equal((await cellsOf(page, "#rows")).length, 300);
  await page.click("#more-rows");
  assert.equal((await cellsOf(page, "#rows")).length, 600);
  await page.click("#more-chart");
  assert.equal((await chartOf(page, "#chart")).yAxis[0].data.length, 300);
  assert.deepEqual(page.complaints, []);
  await screenshot(page, "compare_narrow", "header");
});

pageTest("compare: without scripts the page has the table", async () => {
  const page = await open(compare([header(), ...base], [header(), ...current]).file, { javaScriptEnabled: false });
  assert.match(await page.textContent("noscript"), /regression: slower than base by more than 3%/);
});
