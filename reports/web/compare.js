// The page of `fusebench compare`: what a run does differently from another. All ratios are new over base.

const COMPARE_FACETS = ["latency", "op", "variant", "backend", "mode", "changed"];
const LATENCY_HELP = {
  slower: "the whole interval of new/base lies above 1 + noise",
  faster: "the whole interval of new/base lies below 1 / (1 + noise)",
  same: "the whole interval of new/base lies within the noise",
  unsure: "more samples would tell, or the latency cannot be judged: the row says why",
  gone: "only base has the row",
  new: "only the new run has the row",
};
const LATENCY_SYMBOLS = { slower: "triangle", faster: "diamond", same: "circle", unsure: "circle" };
const LATENCY_CSS = { slower: "fail", gone: "fail", faster: "pass", unsure: "note", new: "soft" };
const latencyCss = (latency) => LATENCY_CSS[latency] ?? null;

// --- data ---

function decodeComparison(data) {
  const order = Object.keys(data.counts);
  const rows = data.rows.map((row, index) => {
    const made = { ...row, index, op: String(row.case_id ?? "").split("/")[0], mode: modeOf(row),
      changed: row.changes.length > 0 ? "yes" : "no" };
    made.label = `${row.case_id}/${row.variant}`;
    made.rank = (row.regression ? 0 : order.length) + order.indexOf(row.latency);
    made.search = [made.label, made.mode, row.latency, row.regression, row.latency_reason,
      ...row.changes.map((change) => change.column)].filter(Boolean).join(" ").toLowerCase();
    return made;
  });
  return { ...data, rows, percent: Math.round(data.confidence * 100) };
}

const hasRatio = (row) => isKnown(row.new_over_base) && row.new_over_base > 0;
const farFromOne = (row) => (hasRatio(row) ? Math.abs(Math.log(row.new_over_base)) : -1);

// Rows that an order finds alike stand as they ran.
const COMPARE_ORDERS = {
  importance: { text: "by importance", compare: (a, b) => a.rank - b.rank || farFromOne(b) - farFromOne(a) },
  slowest: { text: "slowest first", compare: (a, b) => (b.new_over_base ?? -1) - (a.new_over_base ?? -1) },
  fastest: { text: "fastest first", compare: (a, b) => (a.new_over_base ?? Infinity) - (b.new_over_base ?? Infinity) },
  run: { text: "as they ran", compare: () => 0 },
};
const orderOf = (state) => (Object.hasOwn(COMPARE_ORDERS, state.get("sort")) ? state.get("sort") : "importance");

// Figures as `fusebench compare` prints them.
function formatRatio(ratio) {
  return isKnown(ratio) ? ratio.toFixed(ratio < 10 ? 3 : ratio < 100 ? 1 : 0) : NONE;
}

const hasInterval = (row) => isKnown(row.new_over_base_lo) && isKnown(row.new_over_base_hi);

function formatRatioInterval(row) {
  const [ratio, lo, hi] = [row.new_over_base, row.new_over_base_lo, row.new_over_base_hi].map(formatRatio);
  return hasInterval(row) ? `${ratio} [${lo}, ${hi}]` : ratio;
}

function formatNoise(row) {
  if (!isKnown(row.noise)) return NONE;
  const percent = row.noise * 100;
  return `${percent.toFixed(percent < 10 ? 1 : 0)}%${isKnown(row.noise_assumed) ? "*" : ""}`;
}

function formatValue(name, value) {
  if (value === null || value === undefined) return "none";
  if (typeof value === "number") {
    if (name.endsWith("_bytes") || name.startsWith("bytes_")) return formatBytes(value);
    return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4)));
  }
  return typeof value === "string" ? value : JSON.stringify(value);
}

function formatRelative(base, current) {
  if (!(typeof base === "number" && typeof current === "number" && base > 0)) return "";
  const part = current / base - 1;
  return Math.abs(part) < 10
    ? ` (${formatSigned(part * 100, (percent) => `${percent.toFixed(percent < 9.95 ? 1 : 0)}%`)})`
    : ` (${formatTimes(current / base)})`;
}

// Long names of kernels are cut; hovering shows them whole.
const shorter = (text) => (text.length > 60 ? `${text.slice(0, 57)}...` : text);
function changeText({ column, base, new: current }) {
  const values = [formatValue(column, base), formatValue(column, current)];
  const differ = shorter(values[0]) !== shorter(values[1]);
  const shown = values.map((text) => (differ && text.length > 60 ? h("span", { title: text }, shorter(text)) : text));
  return h("div", {}, h("b", {}, column), " ", shown[0], " \u2192 ", shown[1], formatRelative(base, current));
}

// --- where ratios stand ---

// A logarithmic axis with 1 in its middle, wide enough for all ratios, and for their intervals where these are not
// much wider.
function ratioScale(rows) {
  const logs = (ratios) => ratios.filter((one) => isKnown(one) && one > 0).map((one) => Math.abs(Math.log(one)));
  const most = (ratios, limit) => Math.min(largest([0, ...logs(ratios)]), limit);
  const points = most(rows.map((row) => row.new_over_base), Math.log(64));
  const noise = most(rows.map((row) => (isKnown(row.noise) ? 1 + row.noise : null)), Math.log(2));
  const middle = Math.max(points, noise, Math.log(1.01));
  const ends = most(rows.flatMap((row) => [row.new_over_base_lo, row.new_over_base_hi]), 1.6 * middle);
  const half = 1.1 * Math.max(middle, ends);
  return { half, ticks: ratioTicks(half), at: (ratio) => Math.min(Math.max(Math.log(ratio), -half), half),
    isOutside: (ratio) => Math.abs(Math.log(ratio)) > half };
}

function ratioTicks(half) {
  const inside = (ratios) => ratios.filter((ratio) => ratio > 0 && Math.abs(Math.log(ratio)) <= half);
  const highest = Math.exp(half);
  if (highest < 1.7) {
    const step = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2].find((one) => (highest - 1) / one <= 5) ?? 0.2;
    return inside(Array.from({ length: 11 }, (_, i) => Number((1 + (i - 5) * step).toFixed(4))));
  }
  if (highest < 5) return inside([0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4]);
  return inside(Array.from({ length: 15 }, (_, i) => 2 ** (i - 7)));
}

const formatTick = (ratio) => String(Number(ratio.toPrecision(3)));

function svgElement(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  append(element, children);
  return element;
}

// A row's interval over its band of noise, as a small picture. Its figures stand beside it.
function ratioBar(row, scale) {
  const width = 140;
  const x = (ratio) => (scale.at(ratio) + scale.half) / (2 * scale.half) * width;
  const one = width / 2;
  const band = isKnown(row.noise) ? [x(1 / (1 + row.noise)), x(1 + row.noise)] : [one, one];
  const frame = { class: `ratio ${row.latency}`, viewBox: `0 0 ${width} 16`, width, height: 16, "aria-hidden": "true" };
  const picture = svgElement("svg", frame,
    svgElement("rect", { class: "noise", x: band[0], y: 0, width: band[1] - band[0], height: 16 }),
    svgElement("line", { class: "one", x1: one, x2: one, y1: 0, y2: 16 }));
  if (!hasRatio(row)) return picture;
  if (hasInterval(row)) {
    const line = (x1, x2, y1, y2) => svgElement("line", { class: "interval", x1, x2, y1, y2 });
    // An end that lies outside is an arrow.
    const end = (ratio, at, inwards) => (scale.isOutside(ratio)
      ? svgElement("path", { class: "end", d: `M${at + inwards} 4 L${at} 8 L${at + inwards} 12 Z` })
      : line(x(ratio), x(ratio), 5, 11));
    append(picture, [line(x(row.new_over_base_lo), x(row.new_over_base_hi), 8, 8),
      end(row.new_over_base_lo, 0, 5), end(row.new_over_base_hi, width, -5)]);
  }
  append(picture, [svgElement("circle", { class: "point", cx: x(row.new_over_base), cy: 8, r: 3.2 })]);
  return picture;
}

// --- the page ---

// How many rows the chart and the table show, until the reader asks for more.
const compareLimits = { chart: 60, rows: 300 };
const COMPARE_MOST_DRAWN = 300;

const compareParts = (percent) => [
  { id: "overall", title: "By op and variant", render: drawOverall,
    about: "The geometric mean of new/base over the rows whose latency could be judged, and how many those are. "
      + "It has no interval: it shows where to look." },
  { id: "chart", title: "New over base", render: drawForest,
    about: `Each row's ratio of medians with its ${percent}% interval. Right of 1 is slower. The grey band is the `
      + "noise: an interval outside it is slower or faster, one inside it is the same, one across its edge is "
      + "unsure." },
  { id: "rows", title: "Rows", render: drawRows,
    about: "Regressions first, then slower, faster, gone, unsure and new rows; then those that are the same. "
      + "Latencies are medians of the samples that were not throttled." },
  { id: "runs", title: "The two runs", render: drawRuns, withoutRows: true,
    about: "What was compared, and what the runs' headers say differently." },
].map((part) => ({ ...part, isAlways: true }));

class ComparePage extends Page {
  constructor(comparison) {
    super(comparison, { facets: COMPARE_FACETS, parts: compareParts(comparison.percent), table: "rows",
      search: "search cases, variants, what changed   /", none: "The runs have no rows." });
  }

  said() {
    return compareSaid(this.report);
  }

  look(rows) {
    rows.sort(COMPARE_ORDERS[orderOf(this.state)].compare);
    return { scale: ratioScale(rows) };
  }

  // The chosen row, where the part has one.
  show(section) {
    const chosen = section.querySelector("tr.chosen");
    if (chosen) chosen.scrollIntoView({ block: "center" });
    else super.show(section);
  }
}

function drawForest(root, view) {
  const { rows } = view;
  const told = rows.filter(hasRatio);
  if (told.length === 0) {
    root.append(h("p", { class: "note" }, "None of these rows has a latency in both runs."));
    return;
  }
  const shown = told.slice(0, compareLimits.chart);
  forestChart(root, view, shown);
  const most = Math.min(told.length, COMPARE_MOST_DRAWN);
  const untold = rows.length - told.length;
  append(root, [h("p", { class: "soft" },
    untold > 0 ? `${plural(untold, "row")} without a latency in both runs: only in the table. ` : null,
    shown.length < told.length ? `${shown.length} of ${told.length} are drawn. ` : null,
    shown.length < most ? moreButton(view, "chart", `draw ${most}`, most) : null)]);
}

function moreButton(view, what, text, limit) {
  const more = () => {
    compareLimits[what] = limit;
    view.state.tell([]);
  };
  return h("button", { type: "button", id: `more-${what}`, onclick: more }, text);
}

function drawRows(root, view) {
  const { report, state, rows } = view;
  const chosen = rows.findIndex((row) => String(row.index) === state.get("row"));
  const shown = rows.slice(0, Math.max(compareLimits.rows, chosen + 1));
  const sort = (event) => state.set({ sort: event.target.value === "importance" ? "" : event.target.value });
  const option = ([id, { text }]) => h("option", { value: id, selected: id === orderOf(state) }, text);
  const order = h("select", { "aria-label": "order", id: "order", onchange: sort },
    Object.entries(COMPARE_ORDERS).map(option));
  const drawn = compareTable(shown, view.scale, report);
  drawn.querySelectorAll("tbody tr")[chosen]?.classList.add("chosen");
  append(root, [h("p", {}, order), drawn]);
  if (shown.length === rows.length) return;
  root.append(h("p", {}, `${shown.length} of ${plural(rows.length, "row")} are shown. `,
    moreButton(view, "rows", "show more", compareLimits.rows + 300)));
}

// What is said first: how many rows of each kind, whether anything regressed, what makes it doubtful.
function compareSaid({ base, new: current, counts, said, rows, regressions, forced, notes }) {
  const common = rows.filter((row) => row.latency !== "gone" && row.latency !== "new").length;
  const kinds = ["slower", "faster", "same", "unsure", "new", "gone"];
  const warning = (text) => h("p", { class: "warning" }, text);
  return [
    h("p", { id: "counts" }, said.counts),
    h("p", { id: "verdict", class: regressions > 0 ? "fail" : common === 0 || counts.unsure > 0 ? "note" : "pass" },
      capital(`${said.regressions}.`)),
    forced ? warning(`Comparing was forced: ${forced}.`) : null,
    rows.length > 0 && common === 0
      ? warning("The runs have no row in common: no latency was compared. Compare runs of the same sweep, backend and "
        + "mode.") : null,
    [["base", base], ["new", current]]
      .flatMap(([run, side]) => side.warnings.map((text) => warning(`Warning of ${run}: ${text}`))),
    notes.filter((text) => !text.startsWith("forced: ")).map((text) => h("p", { class: "note" }, `Note: ${text}`)),
    h("div", { class: "tiles", id: "kinds" }, kinds.map((kind) =>
      h("div", { class: "tile small", title: LATENCY_HELP[kind] },
        h("strong", { class: counts[kind] > 0 ? latencyCss(kind) : "soft" }, String(counts[kind] ?? 0)), kind))),
  ];
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// A line an op, a column a variant: the mean ratio, and how many rows moved.
function drawOverall(root, { rows }) {
  const asRun = [...rows].sort((a, b) => a.index - b.index);
  const variants = distinct(asRun, (row) => row.variant);
  const ops = distinct(asRun, (row) => row.op);
  const moved = (some, latency) => {
    const count = some.filter((row) => row.latency === latency).length;
    return count > 0 ? [", ", h("span", { class: latencyCss(latency) }, `${count} ${latency}`)] : null;
  };
  const cell = (some) => ({ class: "mean", text: some.length === 0 ? NONE : [formatRatio(meanRatio(some)),
    h("span", { class: "soft" }, `, ${judgedOf(some)}`), moved(some, "slower"), moved(some, "faster")] });
  const line = (name, some) =>
    [name, ...variants.map((variant) => cell(some.filter((row) => row.variant === variant)))];
  const lines = ops.map((op) => line(op, rows.filter((row) => row.op === op)));
  if (ops.length > 1) lines.push(line("all", rows));
  root.append(table("mean of new over base by op and variant", ["op", ...variants], lines));
}

const isJudged = (row) => hasRatio(row) && !row.latency_reason;

function judgedOf(rows) {
  const judged = rows.filter(isJudged).length;
  return judged === rows.length ? plural(judged, "row") : `${judged} of ${plural(rows.length, "row")}`;
}

// Of the rows whose latency was judged.
function meanRatio(rows) {
  const logs = rows.filter(isJudged).map((row) => Math.log(row.new_over_base));
  return logs.length > 0 ? Math.exp(sumOf(logs) / logs.length) : null;
}

function forestChart(root, { scale, report, open }, rows) {
  const modes = new Set(rows.map((row) => row.mode));
  const name = (row) => `${row.label}${modes.size > 1 ? ` (${row.mode})` : ""}`;
  const colors = { slower: cssColor("--bad"), faster: cssColor("--good"), same: cssColor("--soft"),
    unsure: cssColor("--warn") };
  const { room, axis } = nameAxis(rows.map(name), Math.min(430, (root.clientWidth || 900) * 0.4));
  const line = (x1, y1, x2, y2, stroke) =>
    ({ type: "line", shape: { x1, y1, x2, y2 }, style: { stroke, lineWidth: 1.5 } });
  const band = (params, api) => {
    const [x1, y] = api.coord([api.value(1), api.value(0)]);
    const [x2] = api.coord([api.value(2), api.value(0)]);
    const height = api.size([0, 1])[1];
    return { type: "rect", shape: { x: x1, y: y - height / 2, width: x2 - x1, height },
      style: { fill: cssColor("--line"), opacity: 0.6 } };
  };
  const interval = (params, api) => {
    const row = rows[api.value(0)];
    const [x1, y] = api.coord([api.value(1), api.value(0)]);
    const [x2] = api.coord([api.value(2), api.value(0)]);
    const color = colors[row.latency];
    const arrow = (x, inwards) => ({ type: "polygon", style: { fill: color },
      shape: { points: [[x + inwards, y - 4], [x, y], [x + inwards, y + 4]] } });
    const end = (x, ratio, inwards) => (scale.isOutside(ratio) ? arrow(x, inwards) : line(x, y - 4, x, y + 4, color));
    return { type: "group",
      children: [line(x1, y, x2, y, color), end(x1, row.new_over_base_lo, 5), end(x2, row.new_over_base_hi, -5)] };
  };
  const placed = (isDrawn) => rows.map((row, at) => [row, at]).filter(([row]) => isDrawn(row));
  const rowOfItem = (item) => rows[item.value?.[item.seriesType === "custom" ? 0 : 1]];
  const tip = (row) => [`${row.label} (${row.mode})`,
    `${row.latency}: new/base ${formatRatioInterval(row)}, noise ${formatNoise(row)}`,
    `base ${formatTime(row.base?.median_us)}, new ${formatTime(row.new?.median_us)}`,
    row.regression ? `regression: ${row.regression}` : null].filter(Boolean).join("\n");
  const style = (latency) => (latency === "unsure"
    ? { color: cssColor("--paper"), borderColor: colors[latency], borderWidth: 2 } : { color: colors[latency] });
  const label = `new over base with its ${report.percent}% interval for ${plural(rows.length, "row")}`;
  drawChart(root, `${label}; the table below has the same figures`, {
    grid: { left: room, right: 30, top: 64, bottom: 16 },
    legend: { data: Object.keys(colors).filter((latency) => rows.some((row) => row.latency === latency)) },
    xAxis: { type: "value", position: "top", name: "new / base", nameLocation: "middle", nameGap: 24,
      min: -scale.half, max: scale.half,
      axisTick: { customValues: scale.ticks.map(Math.log) }, splitLine: { show: false },
      axisLabel: { customValues: scale.ticks.map(Math.log), formatter: (value) => formatTick(Math.exp(value)),
        hideOverlap: true } },
    yAxis: axis,
    series: [
      { name: "noise", type: "custom", renderItem: band, encode: { x: [1, 2], y: 0 }, silent: true, z: 1,
        tooltip: { show: false },
        data: rows.map((row, at) => [at, scale.at(1 / (1 + (row.noise ?? 0))), scale.at(1 + (row.noise ?? 0))]),
        markLine: lineAt({ xAxis: 0 }, "--soft", { type: "dashed" }) },
      { name: "interval", type: "custom", renderItem: interval, encode: { x: [1, 2], y: 0 }, z: 2,
        data: placed(hasInterval)
          .map(([row, at]) => [at, scale.at(row.new_over_base_lo), scale.at(row.new_over_base_hi)]) },
      ...Object.keys(colors).map((latency) => ({ name: latency, type: "scatter", symbol: LATENCY_SYMBOLS[latency],
        symbolSize: 9, z: 3, itemStyle: style(latency),
        data: placed((row) => row.latency === latency).map(([row, at]) => [scale.at(row.new_over_base), at]) })),
    ],
  }, { height: 90 + rows.length * 19, tip: (item) => tip(rowOfItem(item)), onclick: (item) => {
    if (rowOfItem(item)) open(rowOfItem(item));
  } });
}

function compareTable(rows, scale, comparison) {
  const median = (timing) => (timing ? fourDigits(timing.median_us) : NONE);
  const why = (timing) => {
    if (!timing) return "the run does not have the row";
    return `${plural(timing.samples, "sample")}, ${timing.verdict}${timing.reason ? `: ${timing.reason}` : ""}`;
  };
  const [low, high] = [-scale.half, scale.half].map((log) => formatTick(Math.exp(log)));
  const interval = h("span", {}, "new/base [", word("interval", `${comparison.percent}%`), "]");
  const heads = ["latency", word("row"), n(interval),
    { text: `${low} \u2026 1 \u2026 ${high}`, class: "scale", title: "the same axis in every row, logarithmic" },
    n(word("noise")), n("base \u00b5s"), n("new \u00b5s"), "why, and what changed besides"];
  return table("rows of both runs, compared", heads, rows.map((row) => [
    { class: latencyCss(row.latency), title: LATENCY_HELP[row.latency] ?? null,
      text: [row.regression ? h("strong", { class: "fail" }, "regression, ") : null, row.latency] },
    { class: "name",
      text: [breakable(row.label), ` (${row.mode})`, row.occurrence > 1 ? `, occurrence ${row.occurrence}` : null] },
    n(formatRatioInterval(row), row.latency_reason),
    ratioBar(row, scale),
    isKnown(row.noise) ? n(formatNoise(row), [row.noise_source, row.noise_assumed_reason].filter(Boolean).join("; "))
      : n(NONE, "there is no ratio"),
    n(median(row.base), why(row.base)),
    n(median(row.new), why(row.new)),
    { class: "changes", text: remarksOn(row) },
  ]), { css: "compare" });
}

// Why it regressed or is not judged, then each column that changed with both its values.
function remarksOn(row) {
  const remark = (text, css) => h("div", { class: css }, text);
  const only = row.latency === "gone" ? `not in new; verdict was ${row.base?.verdict}`
    : row.latency === "new" ? `not in base; verdict ${row.new?.verdict}` : null;
  return [row.regression ? remark(row.regression, "fail") : null,
    row.latency_reason ? remark(`latency not judged: ${row.latency_reason}`, "note") : null,
    only ? remark(only, "soft") : null,
    row.changes.map(changeText)];
}

function drawRuns(root, { report }) {
  const sides = [report.base, report.new];
  const facts = [["records", "path"], ["sweep", "name"], ["run", "run_id"], ["started", "started"],
    ["fusebench", "version"], ["rows", "rows"]];
  const shown = (value) => (value === "" || value === null || value === undefined ? NONE : String(value));
  root.append(table("the two runs", ["", "base", "new"],
    facts.map(([name, key]) => [name, ...sides.map((side) => shown(side[key]))])));
  root.append(h("h3", {}, "Differences of the headers"));
  if (report.differences.length === 0) {
    root.append(h("p", {}, "None: device, driver, libraries, build and sweep are the same."));
    return;
  }
  root.append(table("differences of the headers", ["fact", "base", "new"], report.differences.map((one) =>
    [one.fact, ...[one.base, one.new].map((value) => shown(formatValue(one.fact, value)))])));
}
