// Scaling: cases that differ in one extent alone, over that extent.
PARTS.push({ id: "scaling", order: 60, title: "Scaling",
  about: "Cases that differ in one extent alone: where a variant begins to pay, and whether time and bytes grow as "
    + "the floor does.",
  render: renderScaling });

const DASHES = "path://M0 4h7v2h-7zM10 4h7v2h-7zM20 4h7v2h-7z";
const SCALE_PLACES = 200;
const SCALE_BY = [["seq", "seq", "new tokens of each sequence"], ["batch", "batch", "sequences"],
  ["past", "past", "tokens that the KV cache already holds"]];

function renderScaling(root, view) {
  const all = new Map(SCALE_BY.map(([by]) => [by, familiesBy(by, view.rows)]));
  const offered = SCALE_BY.filter(([by]) => all.get(by).length > 0);
  if (offered.length === 0) {
    noFamilies(root, view);
    return;
  }
  const { by, family: whole } = chosenFamily(view, all, offered);
  const family = thinnedFamily(whole, by);
  const families = all.get(by);
  append(root, [h("div", { class: "switches" }, choiceButtons(view, "scale", "over", offered, by)),
    chooser("family", families, whole, { textOf: (one) => `${one.name}: ${plural(one.places.length, "place")}`,
      choose: (one) => view.state.set({ family: one.name }) })]);
  const series = familySeries(family, by);
  root.append(scalingSummary(view, series, family, by));
  const pair = h("div", { class: "pair" }, ...["Time", "Bytes"].map((title) => h("div", {}, h("h3", {}, title))));
  const ratios = h("div", {}, h("h3", {}, `Speed-up over ${view.report.baseline}`));
  root.append(pair);
  timeOverExtent(pair.children[0], view, series, family, by);
  bytesOverExtent(pair.children[1], view, series, family, by);
  if (hasSpeedups(series)) {
    pair.append(ratios);
    speedupOverExtent(ratios, view, series, family, by);
  }
  pair.append(h("div", {}, h("h3", {}, "Figures"), scalingTable(view, series, family, by)));
  const left = family.rows.filter((row) => !isTimed(row)).length;
  append(root, [h("p", { class: "soft small" }, "Dashed: ", word("floor", "the floor"), " and ",
    word("compulsory bytes"),
    ", the same for every variant. Filled: measured bytes; hollow: modelled. Broad bars: the speed-up's 95% interval.",
    left > 0 ? ` ${plural(left, "row")} did not pass or have no median: left out of the charts.` : "",
    family === whole ? "" : ` ${family.places.length} of ${whole.places.length} places are shown, spread evenly.`,
    isSpaced(family, by) ? " Evenly spaced, since 0 has no place on a logarithmic axis." : "")]);
}

// --- families ---

// A case's name with one extent left open, or null where the op does not use it or the id does not say it.
function familyName(row, by) {
  if (!isKnown(row[by])) return null;
  const extents = `/b${row.batch}-s${row.seq}${isKnown(row.past) ? `-p${row.past}` : ""}/`;
  const open = extents.replace(new RegExp(`([/-]${{ batch: "b", seq: "s", past: "p" }[by]})\\d+(?=[/-])`), "$1*");
  return row.case_id.includes(extents) && open !== extents ? `${row.case_id.replace(extents, open)} (${row.mode})`
    : null;
}

// Families with two places at least where something was timed: { name, rows, places }.
function familiesBy(by, rows) {
  const families = groupBy(rows, (row) => familyName(row, by));
  families.delete(null);
  return [...families].map(([name, own]) => ({ name, rows: own, places: placesOf(own, by) }))
    .filter((family) => placesOf(family.rows.filter(isTimed), by).length > 1);
}

function thinnedFamily(family, by) {
  const places = new Set(thinned(family.places, SCALE_PLACES));
  return places.size === family.places.length ? family : { ...family, places: [...places],
    rows: family.rows.filter((row) => places.has(row[by])) };
}

const placesOf = (rows, by) => distinct(rows, (row) => row[by]).sort((a, b) => a - b);

// The reader's choice; else a family of the selected case; else the one with most places.
function chosenFamily(view, all, offered) {
  const wanted = view.state.get("family");
  const extents = offered.map(([by]) => by);
  const chosen = extents.find((by) => by === view.state.get("scale"));
  const within = chosen ? [chosen] : extents;
  const pairs = within.flatMap((by) => all.get(by).map((family) => ({ by, family })));
  const most = (list) => list.reduce((best, one) =>
    (best === null || one.family.places.length > best.family.places.length ? one : best), null);
  return pairs.find((one) => one.family.name === wanted)
    ?? most(pairs.filter((one) => one.family.name === familyName(view.selected.rows[0], one.by))) ?? most(pairs);
}

function noFamilies(root, view) {
  const row = view.selected.rows[0];
  const keys = ["op", "dtype", "dim", "hidden", "heads", "kv_heads", "batch", "seq", "past", "causal", "rope"];
  const lines = keys.filter((key) => row[key] !== null && row[key] !== undefined)
    .map((key, i) => `  ${i === 0 ? "-" : " "} ${key}: ${key === "seq" ? "[128, 512, 2048, 8192]" : row[key]}\n`);
  append(root, [
    h("p", { class: "note" }, "No two cases of these rows differ only in seq, batch or past, and were timed."),
    h("p", {}, "A sweep with a list makes such cases: here over seq, and as well over batch or past:"),
    h("pre", {}, `name: scaling\nsweep:\n${lines.join("")}`)]);
}

// One series a variant: its timed rows by extent.
function familySeries(family, by) {
  return [...groupBy(family.rows, (row) => row.variant)]
    .map(([variant, rows]) => ({ variant, rows: rows.filter(isTimed).sort((a, b) => a[by] - b[by]) }))
    .filter((one) => one.rows.length > 0);
}

const isSpaced = (family, by) => family.places[0] <= 0;
const hasSpeedups = (series) =>
  series.some((one) => one.rows.some((row) => isKnown(row.speedup_vs_cublas) && !isBaseline(row)));
const isBaseline = (row) => row.variant === "cublas" || row.variant === "eigen";

// How time grows with the extent: 1 is in proportion.
function growth(rows, by) {
  const used = rows.filter((row) => row[by] > 0);
  if (used.length < 2) return null;
  const [first, last] = [used[0], used.at(-1)];
  if (first[by] === last[by]) return null;
  return Math.log(last.median_us / first.median_us) / Math.log(last[by] / first[by]);
}

// --- in words ---

// Where a variant is faster than the baseline.
function scalingSummary(view, series, family, by) {
  const base = view.report.baseline;
  return h("ul", { class: "verdicts" }, series.map(({ variant, rows }) => {
    const power = growth(rows, by);
    const grows = plural(rows.length, "place")
      + (power === null ? "" : `, time grows as ${by} to the power ${power.toFixed(2)}`);
    const where = (text, ...kinds) => {
      const isOf = (row) => !isBaseline(row) && kinds.includes(judgeSpeedup(view.report, row, "cublas").kind);
      const places = rows.filter(isOf).map((row) => row[by]);
      return places.length > 0 ? `${text} ${base} at ${by} ${placesText(places)}` : null;
    };
    const verdicts = [where("faster than", "faster"), where("slower than", "slower"),
      where("neither faster nor slower than", "same", "noise")];
    return h("li", {}, h("strong", {}, variant), ": ", [grows, ...verdicts].filter(Boolean).join("; "));
  }));
}

function placesText(places) {
  if (places.length <= 12) return places.join(", ");
  return `${places.slice(0, 5).join(", ")} \u2026 ${places.at(-1)} (${places.length} places)`;
}

function scalingTable(view, series, family, by) {
  const report = view.report;
  const heads = [n(by, columnHelp(report, by)), "variant", n("median \u00b5s", columnHelp(report, "median_us")),
    n(`speed-up over ${report.baseline}`, columnHelp(report, "speedup_vs_cublas")),
    n("share of floor", columnHelp(report, "floor_share")),
    n("floor \u00b5s", columnHelp(report, "floor_us")), n("measured MB", WORDS["measured bytes"]),
    n("modelled MB", columnHelp(report, "bytes_modelled")), n("compulsory MB", columnHelp(report, "bytes_compulsory")),
    n("workspace MB", columnHelp(report, "workspace_bytes"))];
  const rows = family.places.flatMap((place) => family.rows.filter((row) => row[by] === place));
  const lines = rows.map((row) => [n(String(row[by])),
    [rowLink(view, row, row.variant), row.verdict === "pass" ? null : [" ", verdictText(row.verdict)]],
    columnCell(report, row, "median_us"), speedupCell(row, "cublas"),
    columnCell(report, row, "floor_share", formatPercent), columnCell(report, row, "floor_us"),
    n(formatMb(row.measured_bytes), isKnown(row.measured_bytes) ? null : row.traffic_reason),
    columnCell(report, row, "bytes_modelled", formatMb), columnCell(report, row, "bytes_compulsory", formatMb),
    columnCell(report, row, "workspace_bytes", formatMb)]);
  const shown = lines.slice(0, 150);
  return h("div", { id: "scaling-figures" }, table("figures over the extent", heads, shown), andMore(lines, shown));
}

// --- charts ---

// The extent's axis: logarithmic with a mark at each place, evenly spaced where a place is 0.
function extentAxis(family, by) {
  const place = { name: by, nameLocation: "middle", nameGap: 26 };
  if (isSpaced(family, by)) return { type: "category", data: family.places.map(String), boundaryGap: true, ...place };
  return { ...logAxis(by, family.places, { marks: family.places, format: (value) => String(value) }), ...place };
}

const placeValue = (family, by, row) => (isSpaced(family, by) ? String(row[by]) : row[by]);

function overExtent(root, view, series, family, by, label, yAxis, lineOf, dashed, tip, intervals = []) {
  const drawn = series.map(({ variant, rows }) => {
    const { color, symbol } = variantStyle(view.report, variant);
    return { type: "line", name: variant, symbol, symbolSize: 9, showAllSymbol: true, lineStyle: { color, width: 2 },
      itemStyle: { color }, z: 3, data: rows.map((row) => lineOf(row, color)).filter(Boolean) };
  }).filter((one) => one.data.length > 0);
  drawChart(root, `${label} of ${series.map((one) => one.variant).join(", ")} over ${by}, ${family.name}`, {
    grid: { left: 66, right: 24, top: 40, bottom: 46 },
    legend: { data: [...drawn.map((one) => one.name), ...dashed.map((one) => ({ name: one.name, icon: DASHES }))] },
    xAxis: extentAxis(family, by), yAxis, series: [...drawn, ...dashed, ...intervals],
  }, { height: 340, onclick: opensRow(view), tip: (of) => {
    const row = view.report.rows[of.data?.row];
    return row ? `${row.variant}, ${by} ${row[by]}\n${tip(row)}\nclick: its line in the table`
      : `${of.seriesName}, ${by} ${of.value[0]}`;
  } });
}

// What is the same for every variant, from the first row at each place that knows it.
function sharedLine(name, series, family, by, value) {
  const rows = family.places.map((place) => series.flatMap((one) => one.rows)
    .find((row) => row[by] === place && isKnown(value(row)) && value(row) > 0)).filter(Boolean);
  return rows.length === 0 ? [] : [dashedLine(name, rows.map((row) => [placeValue(family, by, row), value(row)]))];
}

function dashedLine(name, data) {
  const ink = cssColor("--ink");
  return { type: "line", name, symbol: "none", lineStyle: { color: ink, type: "dashed", width: 1.5 },
    itemStyle: { color: ink }, z: 2, data };
}

function timeOverExtent(root, view, series, family, by) {
  const rows = series.flatMap((one) => one.rows);
  const tip = (row) => {
    const share = isKnown(row.floor_us) ? `floor ${formatTime(row.floor_us)}: ${formatPercent(row.floor_share)}`
      : "no floor";
    const speedup = isBaseline(row) ? null : speedupText(row, "cublas", view.report.baseline);
    return `${formatTime(row.median_us)}, ${share}${speedup === null ? "" : `\n${speedup}`}`;
  };
  overExtent(root, view, series, family, by, "Median latency and floor",
    logAxis("", [...rows.map((row) => row.median_us), ...rows.map((row) => row.floor_us)], { format: axisTime }),
    (row) => ({ value: [placeValue(family, by, row), row.median_us], row: row.index }),
    sharedLine("floor", series, family, by, (row) => row.floor_us), tip);
}

function bytesOverExtent(root, view, series, family, by) {
  const rows = series.flatMap((one) => one.rows).filter((row) => row.moved_bytes > 0);
  if (rows.length === 0) {
    root.append(h("p", { class: "note" }, "Bytes are neither measured nor modelled here."));
    return;
  }
  overExtent(root, view, series, family, by, "Bytes and compulsory bytes",
    logAxis("", [...rows.map((row) => row.moved_bytes), ...rows.map((row) => row.bytes_compulsory)],
      { format: axisBytes }),
    (row, color) => (row.moved_bytes > 0 ? { value: [placeValue(family, by, row), row.moved_bytes], row: row.index,
      itemStyle: { color: row.isMeasured ? color : cssColor("--paper"), borderColor: color, borderWidth: 2 } } : null),
    sharedLine("compulsory", series, family, by, (row) => row.bytes_compulsory),
    (row) => `${formatBytes(row.moved_bytes)} ${bytesKind(row)}, ${timesCompulsory(row)}`);
}

function speedupOverExtent(root, view, series, family, by) {
  const isTold = (row) => !isBaseline(row) && row.speedup_vs_cublas > 0;
  const others = series.map((one) => ({ ...one, rows: one.rows.filter(isTold) })).filter((one) => one.rows.length > 0);
  const rows = others.flatMap((one) => one.rows);
  const values = rows.flatMap((row) => [row.speedup_vs_cublas, row.speedup_vs_cublas_lo, row.speedup_vs_cublas_hi]);
  const one = dashedLine(`1x: as fast as ${view.report.baseline}`,
    family.places.map((place) => [placeValue(family, by, { [by]: place }), 1]));
  const ends = (row) => [row.speedup_vs_cublas_lo, row.speedup_vs_cublas_hi];
  const intervals = rows.filter((row) => ends(row).every((end) => isKnown(end) && end > 0)).map((row) => ({
    type: "line", name: "95% interval", symbol: "none", silent: true, z: 1,
    lineStyle: { color: variantStyle(view.report, row.variant).color, width: 6, opacity: 0.35, cap: "butt" },
    data: ends(row).map((end) => [placeValue(family, by, row), end]) }));
  overExtent(root, view, others, family, by, `Speed-up over ${view.report.baseline}`,
    logAxis("", [...values, 1], { format: (value) => `${axisNumber(value)}x` }),
    (row) => ({ value: [placeValue(family, by, row), row.speedup_vs_cublas], row: row.index }), [one],
    (row) => speedupText(row, "cublas", view.report.baseline), intervals.slice(0, 200));
}
