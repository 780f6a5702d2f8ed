// The page as a whole: it opens from a file, asks for nothing, and its frame works.
import assert from "node:assert/strict";
import { chartOf, openRun, pageTest, screenshot } from "./browser.mjs";
import { header, mlpRows, row, step, tensor } from "./records.mjs";

pageTest("opens without a complaint or a request, and says first what came out", async () => {
  const page = await openRun([header(), ...mlpRows(),
    row({ shape: { seq: 1 }, verdict: "fail", reason: "rel_l2 over its budget" })]);
  assert.equal(await page.textContent("#counts"), "4 rows: 3 pass, 1 fail");
  assert.equal(await page.title(), "fusebench: made_up");
  await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
  await page.waitForTimeout(200);
  assert.deepEqual(page.complaints, []);
  await screenshot(page, "page");
});

pageTest("the policy lets nothing else run", async () => {
  const page = await openRun([header(), ...mlpRows()]);
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.ran = true";
    document.body.append(script);
    const image = document.createElement("img");
    image.src = "https://example.invalid/x.png";
    document.body.append(image);
  });
  await page.waitForTimeout(100);
  assert.equal(await page.evaluate(() => window.ran), undefined);
  assert.equal(page.complaints.length >= 2, true);
});

pageTest("search and facets narrow the rows, and the address brings them back", async () => {
  const page = await openRun([header(), ...mlpRows(), row({ shape: { seq: 1 }, variant: "fused" })]);
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.id), "search");
  await page.keyboard.type("s2048");
  await page.waitForFunction(() => document.querySelector("[role=status]").textContent === "3 of 4 rows");
  await page.click("[data-facet=variant] button:has-text('fused')");
  assert.equal(await page.textContent("[role=status]"), "1 of 4 rows");
  const address = page.url();
  assert.match(address, /q=s2048/);
  assert.match(address, /variant=fused/);
  await page.reload();
  assert.equal(await page.textContent("[role=status]"), "1 of 4 rows");
  assert.equal(await page.inputValue("#search"), "s2048");
  await page.click("#reset");
  assert.equal(await page.textContent("[role=status]"), "4 rows");
  assert.deepEqual(page.complaints, []);
});

pageTest("dark and light follow the system or the reader", async () => {
  const page = await openRun([header(), ...mlpRows()], { colorScheme: "dark" });
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(await paper(), "rgb(13, 17, 23)");
  await page.click("#theme"); // dark, whatever the system has
  await page.click("#theme"); // light
  assert.equal(await paper(), "rgb(255, 255, 255)");
  assert.match(page.url(), /theme=light/);
});

pageTest("hostile text is shown as text", async () => {
  const evil = `</script><script>window.ran = 1</script><img src=x onerror="window.ran = 2">"',\n=1+1`;
  const page = await openRun([header({ name: evil, warnings: [evil] }),
    row({ variant: evil, kernel: evil, reason: evil, verdict: "fail", case_id: evil })]);
  await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight));
  await page.waitForTimeout(100);
  assert.equal(await page.evaluate(() => window.ran), undefined);
  assert.equal(await page.$$eval("img", (all) => all.length), 0);
  assert.equal((await page.textContent(".warning")).includes("</script>"), true);
  assert.deepEqual(page.complaints, []);
});

const partsOf = (page) => page.$$eval("section[id]", (all) => all.map((section) => section.id));

// Draws every part, and leaves each series of each chart out and in again.
async function drawAll(page) {
  for (const part of await partsOf(page)) {
    await page.evaluate((id) => document.getElementById(id).scrollIntoView(), part);
    await page.waitForFunction((id) => document.querySelector(`#${id} .body`).childElementCount > 0, part);
  }
  await page.evaluate(() => {
    for (const element of document.querySelectorAll(".chart")) {
      const chart = echarts.getInstanceByDom(element);
      for (const { name } of chart.getOption().series) {
        for (let i = 0; i < 2; ++i) chart.dispatchAction({ type: "legendToggleSelect", name });
      }
    }
  });
  assert.deepEqual(await page.$$eval("section .warning", (all) => all.map((one) => one.textContent)), []);
  assert.deepEqual(page.complaints, []);
}

pageTest("names that every object has are names like others", async () => {
  const names = ["hasOwnProperty", "constructor", "__proto__", "toString", "isPrototypeOf"];
  const rows = names.flatMap((variant) => [1, 2].map((seq) => row({
    variant, shape: { op: variant, dtype: variant, seq }, case_id: `${variant}/${variant}/d1/b2-s${seq}/${variant}`,
    kernel: variant,
    steps: names.map((name) => step(name, name, { [name]: 10e6 }, { [variant]: 5e6 }, { flops: 1e9 })),
    tensors: names.map((name) => tensor(name, name, [1], { reads: 1e6 })),
    mutants: [{ name: variant, outcome: variant }],
    clock_limits: variant, load: variant })));
  const oneCase = names.map((variant) => ({ ...rows[0], variant, case_id: "constructor", load: "__proto__" }));
  const ceilings = { ...header().ceilings,
    rate_tflops: JSON.parse('{"__proto__": {"value": 700, "by": "__proto__"}}') };
  const page = await openRun([header({ name: "__proto__", ceilings }), ...oneCase, ...rows],
    { hash: "#__proto__=constructor&case=constructor" });
  await drawAll(page);
  const { series } = await chartOf(page, "#latency");
  assert.deepEqual(series.filter((one) => one.type === "scatter").map((one) => one.name), names);
  assert.deepEqual(await page.$$eval("[data-facet=variant] button", (all) => all.map((one) => one.textContent)), names);
});

pageTest("without scripts the page says what it would say first", async () => {
  const page = await openRun([header(), ...mlpRows()], { javaScriptEnabled: false });
  assert.match(await page.textContent("noscript"), /mlp\/fp16/);
});

pageTest("an address that nobody wrote does no harm", async () => {
  for (const hash of ["#%", "#%zz", "#sort=__proto__&group=constructor&columns=nope&row=99999999", "#theme=constructor",
    "#case=<img>&variant=no"]) {
    const page = await openRun([header(), ...mlpRows()], { hash });
    assert.equal(await page.textContent("#counts"), "3 rows: 3 pass");
    assert.deepEqual(page.complaints, []);
  }
});

pageTest("damaged records are drawn as far as they go", async () => {
  const odd = row({ variant: "constructor", tensors: [{ ...mlpRows()[0].tensors[0], dims: 5 }] });
  const runs = [
    [...mlpRows()], // without a header
    [header({ noise: { classes: [null, { from_us: 0 }], a_a: { classes: [null] } }, controls: [null],
      ceilings: { bandwidth_gbps: { value: -5 }, rate_tflops: { fp16: { value: 0 }, bf16: { value: 1e308 } } } }),
      ...mlpRows(), odd],
    [header(), row({ case_id: 5, verdict: { a: 1 }, kernel: [1], reason: "x".repeat(1e6) }),
      row({ case_id: null, power_w: null, device_reason: ["why"] })],
  ];
  for (const lines of runs) {
    const page = await openRun(lines);
    await drawAll(page);
  }
});

pageTest("what damaged records hold in the place of names, extents and bytes is drawn as text, or as not known",
  async () => {
  // Nothing makes text of it, and attributes of an element are none of its business.
  const evil = { toString: 1, valueOf: 2, text: "evil", onclick: "window.ran = 1" };
  const damaged = (changes) => mlpRows({ shape: { op: "block" } }).map((one) => ({ ...one, ...changes(one) }));
  const runs = [
    [header(), ...damaged(({ steps, tensors }) => ({
      steps: steps.map((one, i) => ({ ...one, name: [null, 5, evil, "down"][i] })),
      tensors: tensors.map((one, i) => ({ ...one, name: [null, evil, "out"][i % 3], dims: "wide", storage: evil })),
      mutants: [{ name: evil, outcome: evil }, null] }))],
    [header(), ...damaged(({ steps, tensors }) => ({ op: "mlp",
      steps: steps.map((one) => ({ ...one, reads: { h: evil, w: "5" }, writes: { out: null }, time_us: "5" })),
      tensors: tensors.map((one) => ({ ...one, dims: [evil, null], dtype: evil, compulsory_read_bytes: evil })) }))],
    [header(), ...damaged(({ variant }) => ({ variant: variant === "fused" ? null : variant, op: null, dtype: null,
      bytes_compulsory: "wide", bytes_modelled: evil, gbps: "fast" }))],
    [header({ config: evil, command: evil, run_id: {}, noise: null, noise_reason: evil, device: { uuid: null,
      uuid_reason: evil }, controls: [{ median_us: evil, ratio: evil }], ceilings: { bandwidth_gbps: { value: 4000,
      by: evil }, rate_tflops: { fp16: { value: 700, by: evil } }, probes: { copy_gbps: null, copy_gbps_reason: evil },
      event_pair_us: evil, l2_retained_source: evil, datasheet: evil } }), ...mlpRows()],
    [header({ ceilings: null, ceilings_reason: evil }), row({ flops: 0, gbps: null, dram_read_bytes: null })]];
  for (const lines of runs) {
    const page = await openRun(lines, { hash: "#traffic_by=tensor&roofline=steps&row=0&group=op" });
    await drawAll(page);
    assert.doesNotMatch(await page.innerText("body"), /\[object|undefined/);
    assert.equal(await page.evaluate(() => window.ran), undefined);
  }
});
