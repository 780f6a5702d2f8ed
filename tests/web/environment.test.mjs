// On what and how quietly it was measured: the header's figures, all of them.
import assert from "node:assert/strict";
import { cellsOf, chartOf, openRun, pageTest, screenshot } from "./browser.mjs";
import { header, mlpRows, row } from "./records.mjs";

const openPart = async (lines, hash = "#at=environment") => {
  const page = await openRun(lines, { hash });
  await page.waitForSelector("#environment .body > *");
  return page;
};
const factsOf = async (page) => Object.fromEntries(await cellsOf(page, "#environment-facts"));

const CLASSES = [{ from_us: 0, to_us: 100, relative: 0.05, pairs: 9 }, { from_us: 100, to_us: null, relative: null,
  pairs: 0 }];
const noise = { restarts: 5, learned: "2026-01-01T00:00:00Z", driver: "580.1", classes: CLASSES,
  a_a: { classes: [{ from_us: 0, to_us: 100, relative: null, pairs: 0 }, { from_us: 100, to_us: null, relative: 0.0123,
    pairs: 2 }] } };
const controls = [{ median_us: 200, ratio: 1.0123 }, { median_us: 4000, ratio: 0.99 }];

pageTest("device, command, ceilings, noise and stages are those of the header", async () => {
  const page = await openPart([header({ noise, controls, stages_s: { all: 10, samples: 6, oracle: 1.5 },
    measured_s: 2 }), ...mlpRows()]);
  const facts = await factsOf(page);
  assert.equal(facts.device, "NVIDIA H200");
  assert.equal(facts["compute capability"], "9.0");
  assert.equal(facts.L2, "62.91 MB");
  assert.equal(facts.libraries, "cublas 13.1.0, cuda_runtime 13.0");
  assert.match(facts.command, /^fusebench run configs\/made_up\.yaml copy$/);
  assert.match(facts["config's SHA-256"], /^0{64} copy$/);
  assert.equal(facts.modes, "cold, sustained: 3 rows");
  const ceilings = await page.$$eval("#environment-ceilings table",
    (all) => all.map((one) => [...one.querySelectorAll("tbody tr")]
      .map((line) => [...line.children].map((cell) => cell.textContent))));
  assert.deepEqual(ceilings[0], [["bandwidth", "4000", "GB/s", "read probe"], ["rate, fp16", "700.0", "TFLOP/s",
    "product probe"]]);
  assert.deepEqual(ceilings[1], [["copy", "3900", "GB/s", ""], ["read", "4000", "GB/s", ""],
    ["write", "3800", "GB/s", ""], ["gemm fp16", "700.0", "TFLOP/s", ""]]);
  assert.match(await page.textContent("#environment-ceilings"), /Datasheet: 4800 GB\/s\. For readers only/);
  assert.deepEqual(await cellsOf(page, "#environment-noise"), [["0 µs to 100.0 µs", "5.00%", "9", "–", "0"],
    ["from 100.0 µs", "–", "0", "1.23%", "2"]]);
  assert.deepEqual(await cellsOf(page, "#environment-controls"), [["200.0 µs", "1.0123", "+1.23%"],
    ["4.000 ms", "0.9900", "−1.01%"]]);
  assert.match(await page.textContent("#environment-controls-said"), /2 pairs, which differ by 1\.23% at most/);
  assert.deepEqual((await cellsOf(page, "#environment-stages")).map((line) => line.slice(0, 3)),
    [["samples", "6.000", "60%"], ["oracle", "1.500", "15%"], ["what no stage claims", "2.500", "25%"],
      ["all", "10.00", "100%"]]);
  assert.match(await page.textContent("#environment-measured"), /Of 10\.00 s, 2\.000 s \(20%\)/);
  const chart = await chartOf(page, "#environment", 1);
  chart.series[0].data.forEach(([us, percent], i) => {
    assert.equal(us, controls[i].median_us);
    const { ratio } = controls[i]; // the larger over the smaller, as the sentence above has it
    assert.ok(Math.abs(percent - 100 * (ratio > 1 ? ratio - 1 : 1 - 1 / ratio)) < 1e-9);
  });
  await screenshot(page, "environment", "#environment");
  assert.deepEqual(page.complaints, []);
});

pageTest("clocks and power are ranges and dots of the rows that the filters leave", async () => {
  const rows = [[1500, 650, "power cap"], [1900, 400, "none"], [1700, null, "none"]]
    .map(([sm_mhz, power_w, clock_limits], i) => row({ shape: { seq: i + 1, dtype: i === 1 ? "bf16" : "fp16" }, sm_mhz,
      power_w, clock_limits, throttled_samples: i, temperature_c: null,
      device_reason: "temperature_c: no sensor; power_w: not told" }));
  const page = await openPart([header(), ...rows]);
  assert.deepEqual(await cellsOf(page, "#environment-clocks"), [["sm_mhz", "1500", "1700", "1900", "MHz", "3 of 3", ""],
    ["power_w", "400.0", "525.0", "650.0", "W", "2 of 3", ""], ["temperature_c", "–", "–", "–", "°C", "0 of 3",
      "no sensor"]]);
  assert.match(await page.textContent("#environment-limits"),
    /power cap \(1 row\), none \(2 rows\)\. 2 rows with throttled samples, 0 with/);
  const data = (chart, name) => chart.series.find((one) => one.name === name).data.map((point) => point.value);
  const chart = await chartOf(page, "#environment");
  assert.deepEqual(data(chart, "sm_mhz"), [[0, 1500], [1, 1900], [2, 1700]]);
  assert.deepEqual(data(chart, "power_w"), [[0, 650], [1, 400]]);
  await page.click("[data-facet=dtype] button:has-text('fp16')");
  await page.waitForFunction(() =>
    document.querySelector("#environment-clocks td:nth-child(4)").textContent === "1700");
  assert.deepEqual(data(await chartOf(page, "#environment"), "sm_mhz"), [[0, 1500], [2, 1700]]);
  assert.deepEqual(page.complaints, []);
});

pageTest("nothing of the header is hidden, and text stays text", async () => {
  const evil = `<img src=x onerror="window.ran = 1">`;
  const page = await openPart([header({ later: { deep: [1, { name: evil }], gone: null, gone_reason: "never was" },
    empty: {}, driver: null, driver_reason: "none found", command: evil, warnings: [evil] }), ...mlpRows()]);
  const all = Object.fromEntries(await cellsOf(page, "#environment-header"));
  assert.equal(all["later.deep[0]"], "1");
  assert.equal(all["later.deep[1].name"], evil);
  assert.equal(all["later.gone"], "– never was");
  assert.equal(all["later.gone_reason"], "never was");
  assert.equal(all.empty, "{}");
  assert.equal(all["ceilings.probes.copy_gbps"], "3900");
  assert.equal((await factsOf(page)).driver, "– none found");
  assert.equal((await factsOf(page)).command, `${evil} copy`);
  assert.match(await page.textContent("#environment #environment-warnings"), /<img/);
  assert.equal(await page.evaluate(() => window.ran), undefined);
  assert.deepEqual(page.complaints, []);
});

pageTest("a CPU, a run that was cut off, one without rows and one without a header say what is not known", async () => {
  const { controls: _, stages_s: __, measured_s: ___, ...begun } = header({ backend: "cpu", noise: null,
    noise_reason: "no noise table for this device", libraries: {}, ceilings: null,
    device: { name: "a CPU", uuid: null, uuid_reason: "the CPU has none", compute_capability: 0, multiprocessors: 2,
      l2_bytes: 1e6, memory_bytes: 1e9 } });
  const cut = await openPart([begun, row({ sm_mhz: null, power_w: null, temperature_c: null, clock_limits: null,
    device_reason: "sm_mhz: the clock cannot be read; power_w, temperature_c, clock_limits: not read on the CPU" }),
    '{"case_id']);
  assert.match(await cut.textContent("#environment-unfinished"), /did not come to its end/);
  assert.match(await cut.textContent("#environment-no-noise"), /no noise table for this device/);
  assert.match(await cut.textContent("#environment-no-controls"), /not in the records/);
  assert.match(await cut.textContent("#environment #environment-warnings"), /cut off/);
  assert.equal((await factsOf(cut)).uuid, "– the CPU has none");
  assert.equal((await factsOf(cut)).cores, "2");
  assert.equal((await factsOf(cut)).libraries, "none");
  assert.deepEqual((await cellsOf(cut, "#environment-clocks")).map((line) => line[6]),
    ["the clock cannot be read", "not read on the CPU", "not read on the CPU"]);
  assert.equal(await cut.$$eval("#environment .chart", (all) => all.length), 0);
  const bare = await openPart([header()]);
  assert.equal((await factsOf(bare)).device, "NVIDIA H200");
  const headless = await openPart([row()]);
  assert.match(await headless.textContent("#environment-unfinished"), /have no header/);
  assert.deepEqual([...cut.complaints, ...bare.complaints, ...headless.complaints], []);
});

pageTest("of ten thousand rows every fourth is drawn", async () => {
  const page = await openPart([header(),
    ...Array.from({ length: 10000 },
      (_, i) => row({ shape: { seq: i + 1 }, samples_us: [100, 100, 100], mutants: [] }))]);
  const chart = await chartOf(page, "#environment");
  assert.equal(chart.series[0].data.length, 2500);
  assert.match(await page.textContent("#environment"), /Every 4th row is drawn/);
  assert.deepEqual(page.complaints, []);
});
