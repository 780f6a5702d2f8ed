// Errors against budgets, and proof that the check can fail, as the records hold them.
import assert from "node:assert/strict";
import { cellsOf, chartOf, openRun, pageTest, screenshot } from "./browser.mjs";
import { header, row } from "./records.mjs";

const AT = "#at=correctness";
const ready = (page) => page.waitForSelector("#correctness .body > *");
const openPart = async (lines, hash = AT) => {
  const page = await openRun(lines, { hash });
  await ready(page);
  return page;
};
const tile = (page, id) => page.$eval(`#correct-tiles [data-tile=${id}]`,
  (element) => ({ figure: element.querySelector("strong").textContent, said: element.querySelector("p").textContent }));
// All points of the n-th chart, as [variant, share, kind].
const points = async (page, n) => (await chartOf(page, "#correctness", n)).series.flatMap((one) =>
  one.data.map(({ value }) => [one.name, value[0], value[1]]));

pageTest("dots and tables show each error over its budget", async () => {
  const rows = [row({ variant: "naive", rel_l2: 3e-4, max_abs: 3e-3 }),
    row({ variant: "fused", rel_l2: 1.5e-4, max_abs: 12e-3 }),
    row({ shape: { op: "rope", dtype: "bf16" }, variant: "fused", rel_l2: 6e-5, max_abs: 1.5e-3, rows_checked: 100,
      seed_allclose: false, deterministic: false })];
  const page = await openPart([header(), ...rows]);
  const near = (actual, expected) => {
    assert.deepEqual(actual.map(([variant, , kind]) => [variant, kind]),
      expected.map(([variant, , kind]) => [variant, kind]));
    actual.forEach(([, share], i) => assert.ok(Math.abs(share / expected[i][1] - 1) < 1e-9, `${share}`));
  };
  near(await points(page, 0), [["naive", 0.5, 0], ["fused", 0.25, 0], ["fused", 0.1, 1]]);
  near(await points(page, 1), [["naive", 0.2, 0], ["fused", 0.8, 0], ["fused", 0.1, 1]]);
  const chart = await chartOf(page, "#correctness");
  assert.deepEqual(chart.yAxis[0].data, ["mlp fp16", "rope bf16"]);
  assert.equal(chart.xAxis[0].type, "log");
  assert.equal(chart.series[0].markLine.data[0].xAxis, 1);
  assert.deepEqual((await cellsOf(page, "#correct-kinds")).map((line) => line.slice(0, 11)), [
    ["mlp", "fp16", "naive", "1", "1", "50%", "20%", "512 of 4096", "1 of 1", "1 of 1", "0"],
    ["mlp", "fp16", "fused", "1", "1", "25%", "80%", "512 of 4096", "1 of 1", "1 of 1", "0"],
    ["rope", "bf16", "fused", "1", "1", "10%", "10%", "100 of 4096", "0 of 1", "0 of 1", "0"]]);
  assert.deepEqual((await cellsOf(page, "#correct-worst")).map((line) => line.slice(2)), [
    ["1.50e-4", "6.00e-4", "25%", "0.0120", "0.0150", "80%", "512 of 4096"],
    ["3.00e-4", "6.00e-4", "50%", "3.00e-3", "0.0150", "20%", "512 of 4096"],
    ["6.00e-5", "6.00e-4", "10%", "1.50e-3", "0.0150", "10%", "100 of 4096"]]);
  assert.equal((await tile(page, "worst")).figure, "80%");
  assert.equal((await tile(page, "checked")).figure, `${Math.floor(100 * 1124 / 12288)}%`);
  assert.match((await tile(page, "checked")).said, /1124 of 12288 in 3 rows/);
  assert.equal((await tile(page, "deterministic")).figure, "2 of 3");
  assert.equal((await tile(page, "seed_allclose")).figure, "2 of 3");
  assert.match(await page.textContent("#correct-changing"), /1 row not deterministic.*rope\/bf16/s);
  const boxes = await page.$$eval("#correctness canvas",
    (all) => all.map((one) => one.getBoundingClientRect().toJSON()));
  assert.ok(boxes[0].right <= boxes[1].left, "charts do not lie over each other");
  await screenshot(page, "correctness", "#correctness");
  await page.click("#correct-tiles [data-tile=worst] a");
  assert.match(page.url(), /row=1/);
  assert.deepEqual(page.complaints, []);
});

pageTest("rows over their budget, NaN and budgets of nothing look like it", async () => {
  const evil = `out[3, 4]: got <b>nan</b>, expected 1.5`;
  const page = await openPart([header(), row({ variant: "fused", verdict: "fail", reason: evil, rel_l2: 6.01e-4,
    max_abs: 0, nonfinite: 7 }),
    row({ variant: "cublas", rel_l2: 0, max_abs: 0 }),
    row({ variant: "naive", verdict: "fail", reason: "all wrong", rel_l2: 1, budget_rel_l2: 0 })]);
  assert.equal((await tile(page, "worst")).figure, "no budget");
  assert.match((await tile(page, "worst")).said, /^2 rows over the budget/);
  assert.equal((await tile(page, "nonfinite")).figure, "7");
  const failures = await cellsOf(page, "#correct-failures");
  assert.deepEqual(failures.map((line) => [line[0], line[2]]), [["fail", evil], ["fail", "all wrong"]]);
  assert.equal((await cellsOf(page, "#correct-kinds"))[0][5], "101%");
  // On a log axis: exact at its least, without a budget at its most.
  const chart = await chartOf(page, "#correctness");
  const at = Object.fromEntries((await points(page, 0)).map(([variant, share]) => [variant, share]));
  assert.equal(at.naive, chart.xAxis[0].max);
  assert.ok(at.cublas >= chart.xAxis[0].min && at.cublas <= 0.1);
  assert.deepEqual(page.complaints, []);
});

pageTest("mutants count once a case, and those let through are named", async () => {
  const at = (outcomes) => Object.entries(outcomes).map(([name, outcome]) => ({ name, outcome }));
  const first = at({ zeros: "rejected", "no <i>scale</i>": "rejected", "rope pairs swapped": "equivalent" });
  const second = at({ zeros: "rejected", "no <i>scale</i>": "let through" });
  const page = await openPart([header(), row({ variant: "naive", mutants: first }),
    row({ variant: "fused", mutants: first }),
    row({ shape: { seq: 1 }, verdict: "no_power", reason: "the check lets mutants through: no scale",
      mutants: second })]);
  assert.equal((await tile(page, "mutants")).figure, "3 of 4");
  assert.equal((await tile(page, "mutants")).said, "1 let through: no <i>scale</i>.");
  assert.deepEqual((await cellsOf(page, "#correct-mutants")).map((line) => line.slice(0, 5)), [
    ["no <i>scale</i>", "2", "1", "0", "1"], ["zeros", "2", "2", "0", "0"], ["rope pairs swapped", "0", "0", "1",
      "0"]]);
  assert.equal(await page.$eval("#correct-mutants", (element) => element.open), true);
  assert.deepEqual((await cellsOf(page, "#correct-failures")).map((line) => line[0]), ["no_power"]);
  assert.deepEqual(page.complaints, []);
});

pageTest("where nothing was checked it says why", async () => {
  const unchecked = { verdict: "crashed", reason: "signal 11", rel_l2: null, max_abs: null, budget_rel_l2: null,
    budget_max_abs: null, nonfinite: null, seed_allclose: null, rows_checked: null, rows_total: null,
    check_reason: "the row crashed", mutants_tried: null, mutants_rejected: null, mutants_equivalent: null,
    mutants_reason: "run without --prove", deterministic: null, deterministic_reason: "not launched again",
    samples_us: [], mutants: [] };
  const page = await openPart([header(), row(unchecked)]);
  assert.deepEqual(await tile(page, "worst"), { figure: "–", said: "Nothing was checked: the row crashed." });
  assert.deepEqual(await tile(page, "deterministic"), { figure: "–", said: "Not known: not launched again." });
  assert.deepEqual(await tile(page, "mutants"),
    { figure: "–", said: "The check was not tried on wrong outputs: this was a run without --prove." });
  assert.match(await page.textContent("#correctness .note"), /No error is known: the row crashed\./);
  assert.equal(await page.$$eval("#correctness .chart", (all) => all.length), 0);
  assert.deepEqual((await cellsOf(page, "#correct-kinds"))[0].slice(4, 11), ["0", "–", "–", "–", "–", "–", "–"]);
  assert.deepEqual(page.complaints, []);
});

pageTest("ten thousand rows: some thousand dots, the worst among them, and sums over all", async () => {
  const ops = ["rmsnorm", "rope", "mlp", "attention", "swiglu"];
  const rows = Array.from({ length: 10000 },
    (_, i) => row({ shape: { op: ops[i % 5], seq: i + 1 }, variant: i % 2 ? "fused" : "naive",
      rel_l2: 6e-4 * (i === 7777 ? 0.99 : 0.1 + 0.5 * ((i * 7919) % 10000) / 10000), max_abs: 0.0015,
      samples_us: [100, 100, 100], mutants: [] }));
  const page = await openPart([header(), ...rows]);
  const drawn = await points(page, 0);
  assert.ok(drawn.length > 2000 && drawn.length <= 3000, `${drawn.length}`);
  assert.ok(Math.abs(Math.max(...drawn.map(([, share]) => share)) - 0.99) < 1e-9);
  assert.match(await page.textContent("#correctness"), new RegExp(`${drawn.length} of 10000 rows are drawn`));
  const kinds = await cellsOf(page, "#correct-kinds");
  assert.equal(kinds.length, 10);
  assert.equal(kinds.reduce((sum, line) => sum + Number(line[3]), 0), 10000);
  assert.equal((await cellsOf(page, "#correct-worst")).length, 50);
  assert.equal((await tile(page, "worst")).figure, "99%");
  assert.deepEqual(page.complaints, []);
});
