// The part "Traffic": its bars, tables and sentence hold the records' bytes, and say what is missing.
import assert from "node:assert/strict";
import { cellsOf, chartOf, openRun, pageTest, screenshot } from "./browser.mjs";
import { header, mlpRows, row, step, tensor } from "./records.mjs";

const MB = 1e6;
const sum = (numbers) => numbers.reduce((total, one) => total + one, 0);
const show = async (page) => {
  await page.waitForSelector("#traffic .chart");
  await page.$$eval("#traffic details", (all) => all.forEach((one) => { one.open = true; }));
};

// The pieces of each bar, by line of the chart: three for a variant, then a gap.
async function barsOf(page) {
  const { series, yAxis } = await chartOf(page, "#traffic");
  return yAxis[0].data.map((name, i) => ({ name, label: series.at(-1).data[i]?.label?.formatter ?? null,
    pieces: series.slice(0, -1).map((one) => one.data[i]).filter(Boolean) }));
}
const bytesOf = (bar) => sum(bar.pieces.map((piece) => piece.value));

// Measured bytes as a GPU gives them: some writes come late, and the plan and its steps differ.
function measured(rows) {
  return rows.map((one, i) => ({ ...one, dram_late_write_bytes: 5 * MB, dram_write_bytes: one.dram_write_bytes + 5 * MB,
    dram_read_bytes: one.dram_read_bytes + (i === 2 ? -2 : 3) * MB }));
}

pageTest("bars add up to what is compulsory, modelled and measured", async () => {
  const rows = measured(mlpRows());
  const page = await openRun([header(), ...rows], { hash: "#traffic" });
  await show(page);
  const bars = await barsOf(page);
  assert.deepEqual(bars.map((bar) => bar.name), ["naive  compulsory", "modelled", "measured", "", "cublas  compulsory",
    "modelled", "measured", "", "fused  compulsory", "modelled", "measured"]);
  rows.forEach((one, i) => {
    const [compulsory, modelled, measured] = bars.slice(4 * i, 4 * i + 3);
    assert.equal(bytesOf(compulsory), one.bytes_compulsory);
    assert.deepEqual(compulsory.pieces.map((piece) => [piece.name, piece.verb, piece.value]),
      [["h", "read", 30 * MB], ["w", "read", 40 * MB], ["out", "written", 30 * MB]]);
    assert.equal(bytesOf(modelled), one.bytes_modelled);
    assert.deepEqual(modelled.pieces.map((piece) => [piece.name, piece.verb, piece.value]),
      one.steps.flatMap((each) => [[each.name, "read", each.bytes_read], [each.name, "written", each.bytes_written]]));
    // fused's steps count 2 MB more than the plan: less than nothing cannot be drawn.
    assert.equal(bytesOf(measured), one.dram_read_bytes + one.dram_write_bytes + (i === 2 ? 2 * MB : 0));
    assert.equal(measured.pieces.find((piece) => piece.name === "late writes").value, 5 * MB);
    assert.equal(measured.pieces.find((piece) => piece.name === "in no step")?.value, i === 2 ? undefined : 3 * MB);
  });
  assert.deepEqual([bars[0].label, bars[9].label, bars[10].label], ["100.0 MB", "420.0 MB", "423.0 MB"]);
  assert.equal(await page.textContent("#traffic .headline"),
    "fused moves 423.0 MB: 65% of cublas's 648.0 MB and 4.23 times the compulsory 100.0 MB.");
  await screenshot(page, "traffic", "#traffic");
  assert.deepEqual(page.complaints, []);
});

pageTest("tables have every step, late writes, and what plan and steps differ by", async () => {
  const rows = measured(mlpRows());
  const page = await openRun([header(), ...rows], { hash: "#traffic" });
  await show(page);
  const lines = (await cellsOf(page, "#traffic .by-step")).filter((line) => line[0] === "fused");
  assert.deepEqual(lines.map((line) => line[1]), ["rmsnorm", "product gate, swiglu", "product down", "late writes",
    "plan less its steps", "the plan"]);
  assert.deepEqual(lines[1].slice(2), ["gemm_swiglu", "70.00", "110.0", "70.00", "110.0", "1.00x"]);
  assert.deepEqual(lines[3].slice(5), ["", "5.000", ""]);
  assert.deepEqual(lines[4].slice(5), ["\u22122.000", "0", ""]);
  assert.deepEqual(lines[5].slice(3), ["250.0", "170.0", "248.0", "175.0", "1.01x"]);
  const tensors = await cellsOf(page, "#traffic .by-tensor");
  assert.deepEqual(tensors.find((line) => line[0] === "naive" && line[1] === "activation"),
    ["naive", "activation", "workspace", "fp32", "4096 x 14336", "0", "0", "220.0", "220.0", "swiglu", "product down"]);
  assert.deepEqual(page.complaints, []);
});

pageTest("modelled bytes by tensor: who wrote it and who reads it", async () => {
  const rows = mlpRows();
  const page = await openRun([header(), ...rows], { hash: "#traffic_by=tensor" });
  await page.evaluate(() => document.querySelector("#traffic").scrollIntoView());
  await show(page);
  const naive = (await barsOf(page))[1];
  const expected = new Map();
  for (const one of rows[0].steps) {
    for (const [kind, touches] of [["read", one.reads], ["written", one.writes]]) {
      for (const [name, bytes] of Object.entries(touches)) {
        expected.set(`${name} ${kind}`, (expected.get(`${name} ${kind}`) ?? 0) + bytes);
      }
    }
  }
  assert.deepEqual(new Map(naive.pieces.map((piece) => [`${piece.name} ${piece.verb}`, piece.value]).sort()),
    new Map([...expected].sort()));
  const { hover } = naive.pieces.find((piece) => piece.name === "activation");
  assert.match(hover, /workspace, fp32, \[4096, 14336\]/);
  assert.match(hover, /written by swiglu, 220\.0 MB/);
  assert.match(hover, /read by product down, 220\.0 MB/);
  // The switch goes back, and a variant can be left out.
  await page.click("#traffic .switches button:text-is('step')");
  await page.click("#traffic .switches button:text-is('naive')");
  const bars = await barsOf(page);
  assert.equal(bars[0].name, "cublas  compulsory");
  assert.equal(bars[1].pieces[0].name, "rmsnorm");
  assert.deepEqual(page.complaints, []);
});

pageTest("many small steps are one piece, and all in the table", async () => {
  const names = Array.from({ length: 44 }, (_, i) => `mlp.step ${i}`);
  const steps = names.map((name, i) => step(name, "kernel", { x: i < 3 ? 50 * MB : MB / 10 }, { [name]: MB / 10 }));
  const page = await openRun([header(),
    row({ shape: { op: "block" }, variant: "naive", steps, tensors: [tensor("x", "op", [1], { reads: 90 * MB })] })],
    { hash: "#traffic" });
  await show(page);
  const [compulsory, modelled] = await barsOf(page);
  assert.equal(compulsory.pieces.at(-1).name, "other inputs and outputs"); // 10 MB that no tensor names
  assert.equal(bytesOf(compulsory), 100 * MB);
  const other = modelled.pieces.filter((piece) => piece.name === "other mlp (41)");
  assert.equal(Math.round(sum(other.map((piece) => piece.value))), Math.round(41 * 2 * MB / 10));
  assert.equal(Math.round(bytesOf(modelled)), Math.round(sum(steps.map((one) => one.bytes_read + one.bytes_written))));
  assert.equal((await cellsOf(page, "#traffic .by-step")).filter((line) => line[1].startsWith("mlp.step")).length, 44);
  assert.deepEqual(page.complaints, []);
});

pageTest("what is missing is said: no counters, older records, a crash", async () => {
  const nothing = { dram_read_bytes: null, dram_write_bytes: null, dram_late_write_bytes: null,
    traffic_reason: "the counters are for the administrator" };
  const bare = ({ reads, writes, ...one }) => ({ ...one, dram_read_bytes: null, dram_write_bytes: null,
    traffic_reason: "the counters are for the administrator" });
  const [naive, cublas] = mlpRows(nothing).map((one) => ({ ...one, tensors: undefined, steps: one.steps.map(bare) }));
  const crashed = row({ variant: "fused", verdict: "crashed", reason: "signal 11", samples_us: [], bytes_modelled: null,
    bytes_modelled_reason: "no plan was made", ...nothing });
  const page = await openRun([header(), naive, cublas, crashed], { hash: "#traffic" });
  await show(page);
  const text = await page.textContent("#traffic");
  assert.match(text, /cublas moves 640\.0 MB: 74% of naive's 860\.0 MB and 6\.40 times the compulsory 100\.0 MB\./);
  assert.match(text, /These bytes are modelled, not measured\./);
  assert.match(text, /Not measured \(naive, cublas, fused\): the counters are for the administrator/);
  assert.match(text, /Not modelled \(fused\): no plan was made/);
  assert.match(text, /Not known by tensor \(naive, cublas\): the record is of an older version/);
  const bars = await barsOf(page);
  assert.equal(bytesOf(bars[1]), naive.bytes_modelled);
  assert.equal(bars[2].label, "not measured");
  assert.deepEqual([bars[2].pieces, bars[9].pieces], [[], []]);
  assert.equal(await page.locator("#traffic .switches button:text-is('tensor')").isDisabled(), true);
  assert.deepEqual(page.complaints, []);
});

pageTest("all cases over their compulsory bytes", async () => {
  const small = mlpRows().map((one) => ({ ...one, case_id: one.case_id.replace("s2048", "s1"),
    bytes_compulsory: 200 * MB }));
  const page = await openRun([header(), ...mlpRows(), ...small], { hash: "#traffic" });
  await show(page);
  const { series } = await chartOf(page, "#traffic", 1);
  const points = series.flatMap((one) => one.data.map((point) => [one.name, point.value]));
  assert.deepEqual(points, [["naive", [8.6, 0]], ["naive", [4.3, 1]], ["cublas", [6.4, 0]], ["cublas", [3.2, 1]],
    ["fused", [4.2, 0]], ["fused", [2.1, 1]]]);
  assert.deepEqual(await cellsOf(page, "#traffic .by-op"),
    [["mlp", "6", "6", "6.45x [4.30, 8.60]", "4.80x [3.20, 6.40]", "3.15x [2.10, 4.20]"]]);
  assert.deepEqual((await cellsOf(page, "#traffic .by-case")).map((line) => line.at(-1)),
    ["8.60x", "6.40x", "4.20x", "4.30x", "3.20x", "2.10x"]);
  assert.deepEqual(page.complaints, []);
});

pageTest("ten thousand rows are drawn in part, and summed up whole", async () => {
  const [one] = mlpRows();
  const bare = { ...one, samples_us: [100], samples_mhz: [1500] };
  const page = await openRun([header(),
    ...Array.from({ length: 10000 }, (_, i) => ({ ...bare, case_id: `mlp/fp16/d${i}/b1/balanced-42` }))],
    { hash: "#traffic" });
  await show(page);
  assert.match(await page.textContent("#traffic"), /Drawn are the first 60 of 10000 cases/);
  assert.equal((await cellsOf(page, "#traffic .by-case")).length, 60);
  assert.equal((await cellsOf(page, "#traffic .by-op"))[0][1], "10000");
  assert.deepEqual(page.complaints, []);
});

pageTest("hostile names are text", async () => {
  const evil = `{a|</script><img src=x onerror="window.ran = 1">}`;
  const page = await openRun([header(),
    row({ variant: evil, steps: [step(evil, evil, { [evil]: 10 * MB }, { [evil]: 10 * MB })],
      tensors: [tensor(evil, evil, [evil], { reads: MB })] })], { hash: "#traffic" });
  await show(page);
  assert.equal((await cellsOf(page, "#traffic .by-tensor"))[0][1], evil);
  assert.equal(await page.$$eval("img", (all) => all.length), 0);
  assert.equal(await page.evaluate(() => window.ran), undefined);
  assert.deepEqual(page.complaints, []);
});
