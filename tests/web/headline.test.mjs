// The first part: whether fusing paid, and what failed, in figures that the records hold.
import assert from "node:assert/strict";
import { cellsOf, chartOf, openRun, pageTest, screenshot } from "./browser.mjs";
import { header, mlpRows, row, samplesAround } from "./records.mjs";

// With medians to the digit.
const mlp = (changes) => mlpRows(changes).map((one, i) => ({ ...one, median_us: [1000, 600, 500][i] }));

const tile = (page, id, selector) => page.$eval(`#headline-tiles [data-tile=${id}] ${selector}`,
  (element) => element.textContent.trim());
const figures = (page, id) => cellsOf(page, `#headline-tiles [data-tile=${id}] .bars`);
const linesOf = (page) => cellsOf(page, "#headline-cases");

pageTest("tiles of a case have the records' figures and say in words who is faster", async () => {
  const page = await openRun([header(), ...mlp()]);
  assert.equal(await tile(page, "time", "strong"), "500.0 µs");
  assert.deepEqual(await figures(page, "time"), [["fused", "", "500.0 µs", ""], ["cublas", "", "600.0 µs", "1.20x"],
    ["naive", "", "1.000 ms", "2.00x"]]);
  assert.match(await tile(page, "time", "p:last-child"),
    /^fused takes 500\.0 µs against cublas's 600\.0 µs: it is faster, 1\.20 times as fast\.$/);
  assert.match(await page.textContent("#headline-tiles [data-tile=time]"),
    /1\.20x \[1\.19, 1\.21\] over cublas; 2\.00x \[1\.98, 2\.02\] over naive/);
  // fused: 30+30, 70+110, 150+30; cublas: 60, 180, 220, 180; naive: 60, 180, 330, 290 MB
  assert.deepEqual((await figures(page, "bytes")).map((line) => line[2]), ["420.0 MB", "640.0 MB", "860.0 MB"]);
  assert.match(await tile(page, "bytes", "p:last-child"),
    /fused moves 420\.0 MB, 66% of cublas's 640\.0 MB: it saves 220\.0 MB\./);
  assert.deepEqual((await figures(page, "launches")).map((line) => line[2]), ["3", "4", "4"]);
  assert.match(await tile(page, "launches", "p"), /^fused needs 3 launches, 1 fewer than cublas\.$/);
  // 3e11 FLOPs at 700 TFLOP/s are 428.6 us.
  assert.equal(await tile(page, "floor", "strong"), `${Math.round(100 * 3e11 / 700e6 / 500)}%`);
  assert.equal(await page.textContent("#headline-lead"),
    "fused is faster than cublas in 1 of 1 case. It moves fewer bytes in 1 of 1.");
  await screenshot(page, "headline", "#headline");
  assert.deepEqual(page.complaints, []);
});

pageTest("it is honest about slower, about intervals around 1, about noise and about few samples", async () => {
  const kinds = [
    ["slower", { speedup_vs_cublas: 0.787, speedup_vs_cublas_lo: 0.78, speedup_vs_cublas_hi: 0.81 },
      /fused takes 5\.250 ms, 1\.27 times cublas's 4\.130 ms: it is slower here\./],
    ["no difference shown", { speedup_vs_cublas: 1.02, speedup_vs_cublas_lo: 0.98, speedup_vs_cublas_hi: 1.05 },
      /no difference that the samples show\./],
    ["within noise", { speedup_vs_cublas: 0.995, speedup_vs_cublas_lo: 0.99, speedup_vs_cublas_hi: 0.998 },
      /no more of a difference than one variant shows when it is timed twice \(0\.9%\)\./],
    ["too few samples", { speedup_vs_cublas: 1.2, speedup_vs_cublas_lo: null, speedup_vs_cublas_hi: null },
      /too few samples/],
    ["not known", { speedup_vs_cublas: null, speedup_vs_cublas_lo: null, speedup_vs_cublas_hi: null,
      speedup_vs_cublas_reason: "no pairs" }, /the speed-up is not known\./]];
  // The last two lie too far away in latency to count.
  const head = header({ controls: [{ median_us: 5000, ratio: 1 / 1.009 }, { median_us: 5000, ratio: 1.001 },
    { median_us: 100, ratio: 1.5 }, { median_us: 50000, ratio: 1.5 }] });
  for (const [said, changes, sentence] of kinds) {
    const page = await openRun([head, row({ variant: "cublas", median_us: 4130, speedup_vs_cublas: 1 }),
      row({ variant: "fused", median_us: 5250, speedup_vs_cublas_reason: null, ...changes })]);
    assert.match(await tile(page, "time", "p:last-child"), sentence, said);
    assert.equal((await linesOf(page))[0][2], said);
    assert.deepEqual(page.complaints, []);
  }
});

pageTest("the chart shows time, bytes and workspace over the library's", async () => {
  const page = await openRun([header(), ...mlp(), ...mlp({ shape: { seq: 1024 } })]);
  const chart = await chartOf(page, "#headline");
  const series = (name) => chart.series.find((one) => one.name === name).data;
  assert.deepEqual(series("time"), [[1 / 1.2, 0], [1 / 1.2, 1]]);
  assert.deepEqual(series("interval"), [[1 / 1.21, 1 / 1.19, 0], [1 / 1.21, 1 / 1.19, 1]]);
  assert.deepEqual(series("bytes, measured"), [[420 / 640, 0], [420 / 640, 1]]);
  assert.deepEqual(series("workspace"), [[1, 0], [1, 1]]);
  assert.deepEqual(chart.yAxis[0].data, ["mlp fp16 b2-s2048", "mlp fp16 b2-s1024"]);
  assert.deepEqual(page.complaints, []);
});

pageTest("a filter that leaves one variant keeps those it is compared with", async () => {
  const page = await openRun([header(), ...mlp()], { hash: "#variant=fused" });
  const [line] = await linesOf(page);
  assert.deepEqual(line.slice(1, 12), ["fused", "faster", "500.0 µs", "600.0 µs", "1.20x [1.19, 1.21]",
    "2.00x [1.98, 2.02]", "420.0", "66%", "86%", "3", "1.000 MB"]);
  await page.click("#headline-cases tbody a");
  assert.match(page.url(), /row=2/);
  assert.deepEqual(page.complaints, []);
});

pageTest("bytes that were not measured are modelled, and it says so and why", async () => {
  const unmeasured = { dram_read_bytes: null, dram_write_bytes: null,
    traffic_reason: "traffic on the CPU is modelled, not counted", traffic_source: "model", backend: "cpu",
    floor_us: null, floor_share: null, floor_reason: "no ceiling" };
  const [naive, cublas, fused] = mlp(unmeasured);
  const page = await openRun([header({ backend: "cpu" }), naive, { ...cublas, variant: "eigen" }, fused]);
  assert.match(await tile(page, "bytes", "div"), /bytes, modelled/);
  assert.match(await tile(page, "bytes", "p:last-child"),
    /fused moves 420\.0 MB, 66% of eigen's 640\.0 MB.*not measured: traffic on the CPU is modelled, not counted\./);
  assert.equal(await tile(page, "floor", "strong"), "–");
  assert.match(await tile(page, "floor", "p"), /The share is not known: no ceiling\./);
  assert.match(await page.textContent("#headline-lead"),
    /faster than eigen in 1 of 1 case.*fewer bytes \(modelled\) in 1 of 1/);
  // One row without counters: the case is compared by what is modelled.
  const mixed = await openRun([header(), naive, mlp()[1], mlp()[2]]);
  assert.match(await tile(mixed, "bytes", "div"), /modelled/);
  assert.deepEqual([...page.complaints, ...mixed.complaints], []);
});

pageTest("failures come first, twenty at most, with what repeats them; unsupported ones are folded", async () => {
  const evil = `<img src=x onerror="window.ran = 1">`;
  const dead = { samples_us: [], timing_reason: "it did not run", floor_us: null, floor_share: null, launches: null,
    workspace_bytes: null };
  const failed = Array.from({ length: 25 },
    (_, i) => row({ shape: { seq: i + 1 }, verdict: i === 0 ? "crashed" : "fail", reason: `out[${i}] is ${evil}`,
      repro: `fusebench run it --filter ${i}`, ...dead }));
  const page = await openRun([header(), ...mlp(), ...failed,
    row({ shape: { seq: 900 }, verdict: "unsupported", reason: "no fp32 here", ...dead }),
    row({ shape: { seq: 901 }, verdict: "unsupported", reason: "no fp32 here", ...dead })]);
  const lines = await cellsOf(page, "#headline-failures");
  assert.equal(lines.length, 20);
  assert.deepEqual([lines[0][0], lines[0][2]], ["crashed", `out[0] is ${evil}`]);
  assert.match(lines[19][3], /fusebench run it --filter 19/);
  assert.match(await page.textContent("#headline-failures"), /25 rows did not pass.*And 5 more/s);
  assert.equal(await page.evaluate(() => document.querySelector("#headline .body").firstElementChild.id),
    "headline-failures");
  assert.equal(await page.$eval("#headline-unsupported", (element) => element.open), false);
  assert.deepEqual((await cellsOf(page, "#headline-unsupported"))[0].slice(0, 2), ["no fp32 here", "2"]);
  await page.click("#headline-failures >> text=show only these rows");
  assert.equal(await page.textContent("[role=status]"), "25 of 30 rows");
  assert.match(await page.textContent("#headline-lead"), /None of the 25 rows passed/);
  assert.match(await tile(page, "time", "p:last-child"), /fused has no time: crashed: out\[0\]/);
  assert.equal(await page.evaluate(() => window.ran), undefined);
  assert.deepEqual(page.complaints, []);
});

pageTest("a run that was cut off, a lone variant and a variant of one's own are told as they are", async () => {
  const cut = await openRun([header(), mlp()[2], '{"case_id": "mlp/fp16/d40']);
  assert.match(await cut.textContent(".warning"), /cut off/);
  assert.match(await cut.textContent("#headline-lead"),
    /No row here can be held against cublas: the only variant is fused\./);
  assert.match(await tile(cut, "time", "p:last-child"),
    /fused takes 500\.0 µs; neither cublas nor naive is in the run\./);
  const naive = await openRun([header(), mlp()[0]]);
  assert.match(await tile(naive, "time", "p:last-child"),
    /naive takes 1\.000 ms; no other variant of this case is in the run\./);
  const own = await openRun([header(), ...mlp(), { ...mlp()[2], variant: "mine" }]);
  assert.deepEqual((await linesOf(own)).map((line) => line[1]), ["fused", "mine"]);
  assert.match(await own.textContent("#headline-lead"), /fused is faster than cublas.*mine is faster than cublas/);
  const odd = await openRun([mlp()[2]]);
  assert.equal(await tile(odd, "time", "strong"), "500.0 µs");
  assert.deepEqual([...cut.complaints, ...naive.complaints, ...own.complaints, ...odd.complaints], []);
});

pageTest("ten thousand rows are told in two hundred lines and a dozen dots", async () => {
  const ops = ["rmsnorm", "rope", "mlp", "attention", "swiglu"];
  const rows = Array.from({ length: 3334 }, (_, i) => ["naive", "cublas", "fused"]
    .map((variant, k) => row({ shape: { op: ops[i % 5], seq: i + 1 }, variant,
      samples_us: samplesAround(300 - 100 * k + i / 100, 3),
    speedup_vs_cublas: [0.66, 1, 2][k], speedup_vs_cublas_lo: [0.65, 1, 1.9][k],
    speedup_vs_cublas_hi: [0.67, 1, 2.1][k] }))).flat();
  const page = await openRun([header(), ...rows]);
  assert.equal((await linesOf(page)).length, 200);
  assert.match(await page.textContent("#headline-cases"), /And 3134 more/);
  assert.match(await page.textContent("#headline-lead"), /faster than cublas in 3334 of 3334 cases/);
  const chart = await chartOf(page, "#headline");
  assert.equal(chart.yAxis[0].data.length, 12);
  assert.deepEqual(new Set(chart.yAxis[0].data.map((name) => name.split(" ")[0])), new Set(ops));
  await page.click("text=Show all cases");
  assert.equal(await page.$eval("#headline-cases", (element) => element.open), true);
  assert.deepEqual(page.complaints, []);
});
