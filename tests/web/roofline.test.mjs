// The roofline: points and roofs are where the records put them, and what cannot be on it is told.
import assert from "node:assert/strict";
import { cellsOf, chartOf, openRun, pageTest, screenshot } from "./browser.mjs";
import { header, mlpRows, row, step } from "./records.mjs";

const MB = 1e6;
const digits = (value) => value.toPrecision(4);
const near = (a, b) => assert.ok(Math.abs(a - b) <= 1e-9 * Math.abs(b), `${a} is not ${b}`);
const scatters = (chart) => chart.series.filter((one) => one.type === "scatter");
const pointsOf = (chart, variant) => scatters(chart).find((one) => one.name === variant).data;
const roofOf = (chart, name) => chart.series.find((one) => one.name === name);
const go = (page) => page.evaluate(() => document.getElementById("roofline").scrollIntoView());
const openFigures = (page) => page.$$eval("#roofline details", (all) => all.forEach((one) => { one.open = true; }));

pageTest("rows stand at FLOPs over the bytes that crossed while the clock ran", async () => {
  const rows = mlpRows();
  rows[2].dram_late_write_bytes = 20 * MB;
  const page = await openRun([header(), ...rows], { hash: "#roofline" });
  const chart = await chartOf(page, "#roofline");
  for (const one of rows) {
    const [point, ...others] = pointsOf(chart, one.variant);
    assert.equal(others.length, 0);
    near(point.value[0], one.flops / (one.dram_read_bytes + one.dram_write_bytes - one.dram_late_write_bytes));
    near(point.value[1], one.flops / one.median_us / 1e6);
    assert.notEqual(point.itemStyle.color, "transparent");
  }
  // the roofs: 4000 GB/s up to the ridge at 700 TFLOP/s
  const slope = roofOf(chart, "bandwidth roof");
  for (const [x, y] of slope.data) near(y, x * 4000 / 1e3);
  near(slope.data[1][1], 700);
  assert.equal(slope.endLabel.formatter, "4000 GB/s, read probe");
  const rate = roofOf(chart, "rate roof, fp16");
  assert.deepEqual(rate.data.map(([, y]) => y), [700, 700]);
  assert.equal(rate.endLabel.formatter, "fp16: 700.0 TFLOP/s, product probe");

  await openFigures(page);
  const lines = await cellsOf(page, "#roofline-figures");
  const fused = lines.find((cells) => cells[2] === "fused");
  const bytes = rows[2].dram_read_bytes + rows[2].dram_write_bytes - 20 * MB;
  assert.equal(fused[6], "measured");
  assert.equal(Number(fused[7]).toPrecision(3), (3e11 / bytes).toPrecision(3));
  assert.equal(fused[8], digits(3e11 / rows[2].median_us / 1e6));
  assert.equal(fused[10], "rate");
  assert.equal(fused[11], "86%"); // 600 of 700
  assert.match(await page.textContent("#roofline .verdicts"),
    /fused: 600\.\d TFLOP\/s at 750\.0 FLOP per measured byte, 86% of the fp16 rate roof/);
  assert.deepEqual(await cellsOf(page, "#roofs"), [["bandwidth", "4000 GB/s", "read probe"],
    ["rate, fp16", "700.0 TFLOP/s", "product probe"]]);
  await screenshot(page, "roofline", "#roofline");
  assert.deepEqual(page.complaints, []);
});

pageTest("a chart that is printed fits the paper, and is drawn by then", async () => {
  const page = await openRun([header(), ...mlpRows()], { hash: "#roofline" });
  await chartOf(page, "#roofline");
  const printed = await page.evaluate(async () => {
    window.dispatchEvent(new Event("beforeprint"));
    const canvas = document.querySelector("#roofline canvas");
    const atOnce = canvas.toDataURL();
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    return { width: canvas.clientWidth, isLater: canvas.toDataURL() !== atOnce };
  });
  assert.deepEqual(printed, { width: 680, isLater: false });
  const wide = await page.evaluate(() => {
    window.dispatchEvent(new Event("afterprint"));
    return document.querySelector("#roofline canvas").clientWidth;
  });
  assert.ok(wide > 680);
  assert.deepEqual(page.complaints, []);
});

pageTest("a part that was never seen is printed as narrow, and a dark page as a light one", async () => {
  const page = await openRun([header(), ...mlpRows()], { colorScheme: "dark" });
  await page.waitForSelector("#headline-tiles");
  const inkOf = () => page.evaluate(() => {
    const chart = echarts.getInstanceByDom(document.querySelector("#headline .chart, #traffic .chart"));
    return chart.getOption().textStyle.color;
  });
  const dark = await inkOf();
  await page.evaluate(() => {
    document.querySelector("#headline details").open = true;
    window.dispatchEvent(new Event("beforeprint"));
  });
  const widths = await page.$$eval(".chart canvas", (all) => all.map((canvas) => canvas.clientWidth));
  assert.ok(widths.length > 4);
  assert.deepEqual(widths.filter((width) => width !== 680), []);
  assert.equal(await inkOf(), "#1b1f24");
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(255, 255, 255)");
  assert.equal(await page.$eval("#headline details", (one) => one.open), true);
  await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
  assert.equal(await inkOf(), dark);
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(13, 17, 23)");
  assert.deepEqual(page.complaints, []);
});

pageTest("a low intensity is judged by the bandwidth roof", async () => {
  const one = row({ us: 1000, steps: [step("product", "k", { x: 1000 * MB }, { y: 1000 * MB }, { flops: 2e10 })] });
  const page = await openRun([header(), one], { hash: "#roofline" });
  // 10 FLOP per byte: 40 TFLOP/s are allowed, 20 reached
  assert.match(await page.textContent("#roofline .verdicts"),
    /20\.0\d TFLOP\/s at 10\.00 FLOP per measured byte, 50% of the bandwidth roof/);
  assert.deepEqual(page.complaints, []);
});

pageTest("the switch shows the steps of the selected case, larger where they take longer", async () => {
  const rows = mlpRows();
  const page = await openRun([header(), ...rows], { hash: "#roofline" });
  await page.click("#roofline [data-choice=roofline] button:has-text('a step')");
  assert.match(page.url(), /roofline=steps/);
  const chart = await chartOf(page, "#roofline");
  for (const one of rows) {
    const products = one.steps.filter((each) => each.flops > 0);
    const points = pointsOf(chart, one.variant);
    assert.equal(points.length, products.length);
    products.forEach((each, i) => {
      near(points[i].value[0], each.flops / (each.dram_read_bytes + each.dram_write_bytes));
      near(points[i].value[1], each.flops / each.time_us / 1e6);
    });
    assert.ok(points[0].symbolSize > points[1].symbolSize);
  }
  // those without FLOPs: modelled and measured bytes over the time
  const bars = await chartOf(page, "#roofline", 1);
  const norm = rows[0].steps[0];
  assert.equal(bars.yAxis[0].data[0], "naive: rmsnorm");
  near(bars.series.find((one) => one.name === "naive").data[0].value,
    (norm.bytes_read + norm.bytes_written) / norm.time_us / 1e3);
  near(bars.series.find((one) => one.name === "measured").data[0].value[0],
    (norm.dram_read_bytes + norm.dram_write_bytes) / norm.time_us / 1e3);
  await screenshot(page, "roofline-steps", "#roofline");
  assert.deepEqual(page.complaints, []);
});

pageTest("ops without FLOPs are shown by bandwidth", async () => {
  const norm = (variant, us, moved) => row({ variant, us, shape: { op: "rmsnorm", hidden: null },
    steps: [step("norm", "k", { x: moved }, { y: 50 * MB })] });
  const rows = [norm("naive", 200, 350 * MB), norm("fused", 30, 50 * MB)];
  const page = await openRun([header(), ...rows], { hash: "#roofline" });
  assert.match(await page.textContent("#roofline"), /2 rows without FLOPs cannot be on a roofline/);
  const chart = await chartOf(page, "#roofline");
  rows.forEach((one, i) => {
    near(chart.series.find((each) => each.name === one.variant).data[i].value, one.gbps);
    near(chart.series.find((each) => each.name === "measured").data[i].value[0],
      (one.dram_read_bytes + one.dram_write_bytes) / one.median_us / 1e3);
  });
  assert.equal(chart.series[0].markLine.data[0].xAxis, 4000);
  await openFigures(page);
  const figures = (one) => [one.median_us, one.gbps, (one.dram_read_bytes + one.dram_write_bytes) / one.median_us / 1e3]
    .map(digits);
  const lines = await cellsOf(page, "#bandwidth-figures");
  assert.deepEqual(lines.map((cells) => cells.slice(2, 6)),
    [["naive", ...figures(rows[0])], ["fused", ...figures(rows[1])]]);
  assert.deepEqual(page.complaints, []);
});

pageTest("hot rows have no bandwidth roof", async () => {
  const hot = row({ cache: "hot", us: 1000, floor_us: null, floor_share: null,
    floor_reason: "a hot row may be served by L2", gbps: null,
    steps: [step("product", "k", { x: 1000 * MB }, { y: 1000 * MB }, { flops: 2e10 })] });
  const page = await openRun([header(), hot], { hash: "#roofline" });
  assert.match(await page.textContent("#roofline .verdicts"),
    /3% of the fp16 rate roof \(700\.0 TFLOP\/s\)\. Hot: L2 may serve it/);
  assert.match(await page.textContent("#roofline"), /1 row ran hot/);
  const share = await page.$eval("#roofline-figures tbody td:last-child", (cell) => [cell.textContent, cell.title]);
  assert.deepEqual(share, ["\u2013", "a hot row may be served by L2"]);
  assert.deepEqual(page.complaints, []);
});

pageTest("without counters, ceilings or medians the rest is drawn, and told", async () => {
  const [naive, cublas, fused] = mlpRows({ dram_read_bytes: null, dram_write_bytes: null, dram_late_write_bytes: null,
    traffic_reason: "no permission" });
  const failed = { ...cublas, verdict: "fail", reason: "wrong" };
  const crashed = row({ variant: "other", verdict: "crashed", reason: "signal 11", samples_us: [], steps: [] });
  const page = await openRun([header({ ceilings: null }), naive, failed, fused, crashed], { hash: "#roofline" });
  const chart = await chartOf(page, "#roofline");
  assert.deepEqual(scatters(chart).map((one) => one.name), ["naive", "fused"]);
  const [point] = pointsOf(chart, "fused");
  assert.equal(point.itemStyle.color, "transparent");
  near(point.value[0], fused.flops / fused.bytes_modelled);
  assert.equal(chart.series.some((one) => /roof/.test(one.name)), false);
  assert.match(await page.textContent("#roofline"), /2 rows did not pass or have no median/);
  await openFigures(page);
  assert.deepEqual((await cellsOf(page, "#roofs")).map((cells) => cells[1]), ["\u2013", "\u2013"]);
  assert.equal((await cellsOf(page, "#roofline-figures"))[0][6], "modelled");
  assert.equal(await page.getAttribute("#roofline-figures tbody td:nth-child(7)", "title"), "no permission");
  assert.deepEqual(page.complaints, []);
});

pageTest("a click on a point, or on a variant's name, opens its row", async () => {
  const page = await openRun([header(), ...mlpRows()], { hash: "#roofline" });
  await go(page);
  const place = await page.evaluate(() => {
    const element = document.querySelector("#roofline .chart");
    const chart = echarts.getInstanceByDom(element);
    const series = chart.getOption().series.findIndex((one) => one.type === "scatter" && one.name === ":fused");
    const [x, y] = chart.convertToPixel({ seriesIndex: series }, chart.getOption().series[series].data[0].value);
    const box = element.getBoundingClientRect();
    return [box.x + x, box.y + y];
  });
  await page.mouse.click(...place);
  assert.match(page.url(), /row=2&/);
  await page.click("#roofline .verdicts a:has-text('cublas')");
  assert.match(page.url(), /row=1&/);
  assert.deepEqual(page.complaints, []);
});

pageTest("ten thousand rows are thinned, and names are text", async () => {
  const evil = "<img src=x onerror=alert(1)>";
  const rows = Array.from({ length: 10000 },
    (_, i) => row({ us: 100 + i, variant: ["naive", evil][i % 2], samples_us: [100 + i],
      shape: { seq: 1 + Math.floor(i / 2) }, steps: [step(evil, evil, { x: MB }, { y: MB }, { flops: 1e9 })] }));
  const page = await openRun([header(), ...rows], { hash: "#roofline" });
  const chart = await chartOf(page, "#roofline");
  assert.equal(scatters(chart).reduce((sum, one) => sum + one.data.length, 0), 3000);
  assert.match(await page.textContent("#roofline"), /3000 are drawn/);
  assert.ok((await cellsOf(page, "#roofline-figures")).length <= 150);
  assert.equal(await page.$$eval("img", (all) => all.length), 0);
  assert.deepEqual(page.complaints, []);
});
