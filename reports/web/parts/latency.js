// Latency of one case: how samples spread, how they went over time, and what the run's modes change.
PARTS.push({ id: "latency", order: 50, title: "Latency",
  about: "Every sample of one case: how far the medians lie apart, how much samples spread, and whether the clock "
    + "held.",
  render: renderLatency });

const LATENCY_POINTS = 1500;  // samples drawn of a row
const LATENCY_ROWS = 12;      // whose samples are drawn
const LATENCY_LINES = 200;
const SLOW_CLOCK = 0.95;      // of the row's median clock: under it a sample is throttled

function renderLatency(root, view) {
  const timed = view.selected.rows.filter(isTimed);
  const left = view.selected.rows.filter((row) => !isTimed(row));
  root.append(caseChooser(view));
  if (left.length > 0) {
    root.append(h("ul", { class: "note verdicts" },
      left.slice(0, LATENCY_LINES).map((row) => h("li", {}, h("strong", {}, rowLink(view, row, row.variant)), ": ",
        verdictText(row.verdict), ", not drawn. ", row.timing_reason ?? row.reason ?? ""))));
  }
  if (timed.length === 0) return;
  append(root, [latencySummary(view, timed), latencyTable(view, timed), eventsNote(view.report, timed)]);
  const sampled = timed.filter((row) => row.samples_us.some((us) => us > 0));
  const drawn = sampled.slice(0, LATENCY_ROWS).map(sampleSeries);
  if (drawn.length > 0) {
    const byTime = isByTime(view, drawn);
    const choices = [
      ["spread", "distance from the own median",
        "each variant's samples in percent of its own median: how steady they are"],
      ["time", "times", "samples in \u00b5s, side by side: how far variants lie apart"]];
    root.append(h("div", { class: "switches" },
      choiceButtons(view, "latency", "samples as", choices, byTime ? "time" : "spread")));
    const pair = h("div", { class: "pair" }, h("div", {}, h("h3", {}, "How samples spread")),
      h("div", {}, h("h3", {}, "In the order they were taken")));
    root.append(pair);
    spreadChart(pair.children[0], view, drawn, byTime);
    orderChart(pair.children[1], view, drawn, byTime);
    append(root, [samplesNote(drawn), andMore(sampled, drawn, " have samples: filters show others")]);
  } else {
    root.append(h("p", { class: "note" }, "The records have no samples of these rows."));
  }
  modesOfCase(root, view, timed);
}

// --- samples ---

// A row's samples with what is drawn of them: { i, us, mhz, isSlow }.
function sampleSeries(row) {
  const clocks = row.samples_mhz ?? [];
  const clock = isKnown(row.sm_mhz) ? row.sm_mhz : medianOf(clocks);
  const isSlow = (mhz) => isKnown(mhz) && isKnown(clock) && mhz < SLOW_CLOCK * clock;
  const all = (row.samples_us ?? [])
    .map((us, i) => ({ i: i + 1, us, mhz: clocks[i] ?? null, isSlow: isSlow(clocks[i]) }));
  const known = all.filter((sample) => isKnown(sample.us) && sample.us > 0);
  return { row, total: known.length, points: thinned(known, LATENCY_POINTS),
    slow: known.filter((sample) => sample.isSlow).length, hasClock: known.some((sample) => isKnown(sample.mhz)) };
}

// Times side by side say nothing of the spread where variants lie far apart.
function isByTime(view, drawn) {
  const chosen = view.state.get("latency");
  if (chosen === "time" || chosen === "spread") return chosen === "time";
  const medians = drawn.map((one) => one.row.median_us);
  return largest(medians) / smallest(medians) < 1.6;
}

// --- in words ---

// "1.20x [1.19, 1.21] over cublas", or null where it is not known or of the row itself.
function speedupText(row, over, name = over) {
  return row.variant === name || !isKnown(row[`speedup_vs_${over}`]) ? null : `${speedupOf(row, over)} over ${name}`;
}

const halfWidth = (part) => (isKnown(part) ? `${(part * 100).toFixed(2)}%` : NONE);

function verdictOfSpeedup(report, row, name) {
  if (row.variant === name) return null;
  const said = {
    faster: `faster than ${name}`, slower: `slower than ${name}`,
    same: `neither faster nor slower than ${name}: 1x lies in the interval`,
    noise: `no difference from ${name} beyond the noise: one variant timed twice differs as much in this run`,
  };
  return said[judgeSpeedup(report, row, "cublas").kind] ?? null;
}

function latencySummary(view, timed) {
  const base = view.report.baseline;
  const words = h("p", { class: "soft small" },
    `1.20x over ${base}: ${base} takes 1.20 times as long as this variant, by the median over pairs of samples, with `
      + "its 95% interval. Over 1x this variant is faster.");
  return [h("ul", { class: "verdicts" }, timed.slice(0, LATENCY_LINES).map((row) => {
    const over = [speedupText(row, "cublas", base), speedupText(row, "naive")].filter(Boolean);
    const verdict = verdictOfSpeedup(view.report, row, base);
    return h("li", {}, h("strong", {}, rowLink(view, row, row.variant)), `: ${formatTime(row.median_us)}`,
      over.length > 0 ? `, ${over.join(", ")}` : "", verdict ? ` \u2013 ${verdict}` : "");
  })), words];
}

function latencyTable(view, timed) {
  const report = view.report;
  const base = report.baseline;
  const head = ([name, text]) => n(text, columnHelp(report, name));
  const heads = ["variant", ...[["median_us", "median \u00b5s"], ["ci95_rel", "95% interval \u00b1"],
    ["speedup_vs_cublas", `speed-up over ${base}`], ["speedup_vs_naive", "speed-up over naive"],
    ["p05_us", "p05 \u00b5s"], ["p95_us", "p95 \u00b5s"], ["min_us", "min \u00b5s"], ["samples", "samples"],
    ["throttled_samples", "throttled"], ["median_unthrottled_us", "median of the others \u00b5s"],
    ["unheld_samples", "not held"]].map(head),
    n("two events", "what two events alone take, as part of the median"),
    ...[["sm_mhz", "SM MHz"], ["power_w", "W"]].map(head),
    { text: "clock held by", title: columnHelp(report, "clock_limits") }];
  const events = report.header?.ceilings?.event_pair_us;
  const count = (value, title = null) => n(String(value ?? NONE), title);
  const lines = timed.slice(0, LATENCY_LINES).map((row) => [rowLink(view, row, row.variant),
    columnCell(report, row, "median_us"),
    columnCell(report, row, "ci95_rel", halfWidth), speedupCell(row, "cublas"), speedupCell(row, "naive"),
    ...["p05_us", "p95_us", "min_us"].map((name) => columnCell(report, row, name)),
    count(row.samples, row.timing_reason), count(row.throttled_samples),
    columnCell(report, row, "median_unthrottled_us"), count(row.unheld_samples),
    isKnown(events) ? n(formatPercent(events / row.median_us)) : n(NONE, "the header has no event_pair_us"),
    columnCell(report, row, "sm_mhz"), columnCell(report, row, "power_w"),
    row.clock_limits ?? { text: NONE, title: row.device_reason }]);
  return h("div", { id: "latency-figures" }, table("latency of the case", heads, lines), andMore(timed, lines));
}

// The two events around a launch take time themselves, which matters where the launch is short.
function eventsNote(report, timed) {
  const events = report.header?.ceilings?.event_pair_us;
  const told = timed.slice(0, LATENCY_ROWS);
  const short = isKnown(events) ? told.filter((row) => events / row.median_us >= 0.02) : [];
  const notes = told.filter((row) => row.timing_reason).map((row) => `${row.variant}: ${row.timing_reason}.`);
  if (short.length > 0) {
    const parts = short.map((row) => `${formatPercent(events / row.median_us)} of ${row.variant}'s median`).join(", ");
    notes.unshift(
      `A latency runs from event to event, and two events alone take ${formatTime(events)}: ${parts}.`);
  }
  return notes.length > 0 ? h("p", { class: "note small" }, notes.join(" ")) : null;
}

function samplesNote(drawn) {
  const thin = drawn.filter((one) => one.points.length < one.total);
  const slow = sumOf(drawn.map((one) => one.slow));
  return h("p", { class: "soft small" },
    "Above each name: its samples. Below it: a line from p05 to p95, a box for the median's 95% interval, a mark at "
      + "the median. ",
    slow > 0 ? `${plural(slow, "sample")} ringed: the SM clock was over 5% under the row's median; they are kept. `
      : "",
    drawn.some((one) => !one.hasClock)
      ? `No clock is known${drawn[0].row.device_reason ? `: ${drawn[0].row.device_reason}` : ""}. ` : "",
    thin.length > 0
      ? `${LATENCY_POINTS} samples of ${thin.map((one) => `${one.row.variant}'s ${one.total}`).join(", ")} are drawn, `
        + "evenly spread. " : "",
    "Sample n of one variant and sample n of another are of the same round.");
}

// --- charts ---

// What is drawn of a latency, and the axis that suits it.
const latencyValue = (row, us, byTime) => (byTime ? us : (us / row.median_us - 1) * 100);

function latencyAxis(drawn, byTime) {
  const values = drawn.flatMap((one) => one.points.map((point) => latencyValue(one.row, point.us, byTime)));
  if (byTime && largest(values) / smallest(values) > 4) return logAxis("", values, { format: axisTime });
  const signed = (value) => `${value === 0 ? "0" : formatSigned(value, axisNumber)}%`;
  return { type: "value", scale: true, axisLabel: { formatter: byTime ? axisTime : signed, hideOverlap: true } };
}

// Series are in the variants' order, once or twice over.
const sampleTip = (drawn) => (of) => {
  const { row, points } = drawn[of.seriesIndex % drawn.length];
  const { i, us, mhz, isSlow } = points[of.dataIndex];
  const away = formatSigned((us / row.median_us) * 100 - 100, (value) => `${value.toFixed(2)}%`);
  const clock = isKnown(mhz) ? `SM clock ${mhz} MHz${isSlow ? ", throttled" : ""}` : "SM clock not known";
  return `${row.variant}: sample ${i}\n${formatTime(us)}, ${away} from its median\n${clock}`;
};

function samplePoint(one, point, color, at) {
  return { value: at, itemStyle: { color, opacity: point.isSlow ? 1 : 0.55,
    borderColor: point.isSlow ? cssColor("--ink") : color, borderWidth: point.isSlow ? 1.5 : 0 } };
}

// Samples of one bin of latency stand above each other, so that the heap has the distribution's shape.
function heaped(one, byTime, isLog) {
  const place = (point) => (isLog ? Math.log(point.us) : latencyValue(one.row, point.us, byTime));
  const places = one.points.map(place);
  const low = smallest(places);
  const size = (largest(places) - low) / 50 || 1;
  const bins = new Map();
  const heights = places.map((value) => {
    const bin = Math.floor((value - low) / size);
    bins.set(bin, (bins.get(bin) ?? -1) + 1);
    return bins.get(bin);
  });
  const step = Math.min(0.05, 0.62 / (largest(heights) + 1));
  return one.points.map((point, i) => [latencyValue(one.row, point.us, byTime), heights[i] * step]);
}

function spreadChart(root, view, drawn, byTime) {
  const axis = latencyAxis(drawn, byTime);
  const names = drawn.map((one) => one.row.variant);
  const styles = drawn.map((one) => variantStyle(view.report, one.row.variant));
  const samples = drawn.map((one, n) => {
    const places = heaped(one, byTime, axis.type === "log");
    return { type: "scatter", name: names[n], symbol: styles[n].symbol, symbolSize: 6,
      itemStyle: { color: styles[n].color },
      data: one.points.map((point, i) => samplePoint(one, point, styles[n].color, [places[i][0], n - places[i][1]])) };
  });
  const marks = drawn.map(({ row }, n) => {
    const half = isKnown(row.ci95_rel) ? row.ci95_rel * row.median_us : 0;
    const { median_us: median, p05_us: p05, p95_us: p95 } = row;
    const places = [p05 ?? median, median - half, median, median + half, p95 ?? median];
    return [n, ...places.map((us) => (isKnown(us) ? latencyValue(row, us, byTime) : null))];
  });
  const summary = { type: "custom", name: "median", silent: true, z: 5, data: marks,
    encode: { x: [1, 2, 3, 4, 5], y: 0 }, renderItem: (_, api) => intervalMark(api, styles) };
  const unit = byTime ? "in \u00b5s" : "in percent of their medians";
  drawChart(root, `Samples of ${names.join(", ")}, ${unit}, with median, 95% interval, p05 and p95`, {
    grid: { left: 8 + 7 * largest(names.map((name) => Math.min(name.length, 18))), right: 24, top: 34, bottom: 34 },
    xAxis: { ...axis, name: "", axisLine: { onZero: false, lineStyle: { color: cssColor("--line") } } },
    yAxis: { type: "value", inverse: true, min: -0.75, max: names.length - 0.6, axisLine: { show: false },
      axisTick: { show: false }, splitLine: { show: false },
      axisLabel: { customValues: names.map((_, n) => n), formatter: (n) => clipped(names[n] ?? "", 18) } },
    series: [...samples, summary],
  }, { height: 90 + 110 * names.length, tip: sampleTip(drawn) });
}

// p05 to p95 as a line, the 95% interval as a box, the median as a mark, under the samples.
function intervalMark(api, styles) {
  const n = api.value(0);
  const at = (i) => api.coord([api.value(i), n + 0.14]);
  const [p05, lo, median, hi, p95] = [1, 2, 3, 4, 5].map(at);
  const ink = cssColor("--ink");
  const y = median[1];
  const { color } = styles[n];
  const bar = (x1, x2, half, style) =>
    ({ type: "rect", shape: { x: x1, y: y - half, width: Math.max(x2 - x1, 1), height: 2 * half }, style });
  return { type: "group", children: [bar(p05[0], p95[0], 1, { fill: ink, opacity: 0.7 }),
    bar(p05[0], p05[0], 4, { fill: ink, opacity: 0.7 }), bar(p95[0], p95[0], 4, { fill: ink, opacity: 0.7 }),
    bar(lo[0], hi[0], 6, { fill: color, opacity: 0.6 }), bar(median[0] - 1, median[0] + 1, 9, { fill: ink })] };
}

// Latencies above, the SM clock below, over the same samples.
function orderChart(root, view, drawn, byTime) {
  const axis = latencyAxis(drawn, byTime);
  const hasClock = drawn.some((one) => one.hasClock);
  const last = largest(drawn.flatMap((one) => one.points.map((point) => point.i)));
  const styles = drawn.map((one) => variantStyle(view.report, one.row.variant));
  const samples = drawn.map((one, n) => ({ type: "line", name: one.row.variant, symbol: styles[n].symbol, symbolSize: 5,
    showAllSymbol: true, lineStyle: { width: 1, opacity: 0.5, color: styles[n].color },
    itemStyle: { color: styles[n].color },
    data: one.points.map((point) => ({ ...samplePoint(one, point, styles[n].color,
      [point.i, latencyValue(one.row, point.us, byTime)]), symbolSize: point.isSlow ? 9 : 5 })) }));
  const clocks = hasClock ? drawn.map((one, n) => ({ type: "line", name: one.row.variant, xAxisIndex: 1, yAxisIndex: 1,
    symbol: "none", lineStyle: { width: 1.5, color: styles[n].color }, itemStyle: { color: styles[n].color },
    data: one.points.map((point) => [point.i, point.mhz]) })) : [];
  const order = { type: "value", min: 1, max: Math.max(last, 2), minInterval: 1, splitLine: { show: false },
    axisLine: { onZero: false, lineStyle: { color: cssColor("--line") } } };
  const mhz = drawn.flatMap((one) => one.points.map((point) => point.mhz)).filter(isKnown);
  const clockRange = { min: Math.floor(smallest(mhz) / 50 - 1) * 50, max: Math.ceil(largest(mhz) / 50 + 1) * 50 };
  const names = drawn.map((one) => one.row.variant);
  const sides = { left: 64, right: 20 };
  const named = { ...order, name: "sample", nameLocation: "middle", nameGap: 20 };
  const label = `Samples of ${names.join(", ")} in the order they were taken`;
  drawChart(root, `${label}${hasClock ? ", with the SM clock" : ""}`, {
    grid: hasClock ? [{ ...sides, top: 34, height: "48%" }, { ...sides, bottom: 34, height: "22%" }]
      : [{ ...sides, top: 34, bottom: 34 }],
    legend: { data: names },
    axisPointer: { link: [{ xAxisIndex: "all" }] },
    xAxis: hasClock ? [{ ...order, gridIndex: 0, axisLabel: { show: false } }, { ...named, gridIndex: 1 }] : [named],
    yAxis: [{ ...axis, name: "" },
      ...(hasClock ? [{ type: "value", gridIndex: 1, ...clockRange, name: "SM MHz", splitNumber: 2, minInterval: 1,
        axisLabel: { hideOverlap: true, formatter: axisNumber } }] : [])],
    series: [...samples, ...clocks],
  }, { height: 90 + 110 * Math.max(drawn.length, 2), tip: sampleTip(drawn) });
}

// --- the run's modes ---

// The same case cold and hot, as a stream and as a graph: only where the run has several.
function modesOfCase(root, view, timed) {
  const all = view.report.rows.filter((row) => row.case_id === view.selected.case_id && isTimed(row));
  const modes = distinct([view.selected, ...all], (one) => one.mode);
  if (modes.length < 2) return;
  const variants = distinct(all, (row) => row.variant);
  const find = (mode, variant) => all.find((row) => row.mode === mode && row.variant === variant) ?? null;
  const over = (mode, variant) => {
    const [one, base] = [find(mode, variant), find(view.selected.mode, variant)];
    return one && base ? one.median_us / base.median_us : null;
  };
  append(root, [h("h3", {}, "The same case in the run's other modes"),
    h("ul", { class: "verdicts" }, modes.slice(1).map((mode) => h("li", {}, h("strong", {}, modeWords(mode)), ": ",
      variants.filter((variant) => isKnown(over(mode, variant)))
        .map((variant) => `${variant} takes ${formatTimes(over(mode, variant))}`).join(", ") || "no variant in both",
      ` the time that it takes in ${modeWords(view.selected.mode)}`))),
    h("p", { class: "soft small" },
      "Modes are timed one after the other, so these are ratios of medians, not of pairs.")]);
  modesChart(root, view, modes, variants, find);
  const heads = ["mode", "variant", n("median \u00b5s", columnHelp(view.report, "median_us")),
    n("95% interval \u00b1", columnHelp(view.report, "ci95_rel")),
    n(`time over that in ${modeWords(view.selected.mode)}`), n("SM MHz", columnHelp(view.report, "sm_mhz"))];
  const lines = modes.flatMap((mode) => variants.map((variant) => [mode, variant, find(mode, variant)]))
    .filter(([, , row]) => row)
    .map(([mode, variant, row]) => [modeWords(mode), rowLink(view, row, row.variant),
      columnCell(view.report, row, "median_us"), columnCell(view.report, row, "ci95_rel", halfWidth),
      n(formatTimes(over(mode, variant))), columnCell(view.report, row, "sm_mhz")]);
  root.append(h("div", { id: "mode-figures" }, table("the case's modes", heads, lines)));
}

const modeWords = (mode) => (mode.includes("graph") ? mode : mode.replace(/^(cold|hot)/, "$1, stream"));

function modesChart(root, view, modes, variants, find) {
  const place = (m, v) => m + ((v - (variants.length - 1) / 2) * 0.6) / variants.length;
  const rows = modes.flatMap((mode, m) =>
    variants.map((variant, v) => ({ row: find(mode, variant), at: place(m, v), variant }))).filter((one) => one.row);
  const medians = rows.map((one) => one.row.median_us);
  const axis = largest(medians) / smallest(medians) > 8 ? logAxis("", medians, { format: axisTime })
    : { type: "value", min: 0, axisLabel: { formatter: axisTime } };
  const series = variants.map((variant) => {
    const { color, symbol } = variantStyle(view.report, variant);
    return { type: "scatter", name: variant, symbol, symbolSize: 12, itemStyle: { color },
      data: rows.filter((one) => one.variant === variant)
        .map((one) => ({ value: [one.row.median_us, one.at], row: one.row.index })) };
  });
  const tip = (of) => {
    const row = view.report.rows[of.data.row];
    const half = isKnown(row.ci95_rel) ? ` \u00b1 ${halfWidth(row.ci95_rel)}` : "";
    return `${row.variant}, ${modeWords(row.mode)}\n${formatTime(row.median_us)}${half}\nclick: its line in the table`;
  };
  drawChart(root, `Median latency of ${variants.join(", ")} in ${modes.map(modeWords).join("; ")}`, {
    grid: { left: 14 + 6.5 * largest(modes.map((mode) => modeWords(mode).length)), right: 40, top: 40, bottom: 30 },
    legend: { data: variants },
    xAxis: { ...axis, axisLine: { onZero: false, lineStyle: { color: cssColor("--line") } } },
    yAxis: { type: "value", inverse: true, min: -0.5, max: modes.length - 0.5, splitLine: { show: false },
      axisTick: { show: false },
      axisLabel: { customValues: modes.map((_, m) => m), formatter: (m) => modeWords(modes[m] ?? "") } },
    series,
  }, { height: 90 + 62 * modes.length, tip, onclick: opensRow(view) });
}
