// Roofline: FLOP rates over arithmetic intensity, under the ceilings of the run; and what reaches no FLOPs, by
// bandwidth.
PARTS.push({ id: "roofline", order: 40, title: "Roofline",
  about: "How fast rows compute for the bytes that they move, below the best that anything reached on this device in "
    + "this run.",
  render: renderRoofline });

const ROOFLINE_POINTS = 3000;
const ROOFLINE_NAMES = 60;  // more points than this have no names beside them
const ROOFLINE_BARS = 48;
const ROOFLINE_LINES = 150;

function renderRoofline(root, view) {
  const isBySteps = view.state.get("roofline") === "steps";
  const roofs = rooflineRoofs(view.report);
  const { items, left } = isBySteps ? rooflineStepItems(view.selected) : rooflineRowItems(view.rows);
  for (const item of items) judgeByRoofs(item, roofs);
  const onIt = items.filter((item) => isKnown(item.x));
  const withoutFlops = items.filter((item) => item.flops === 0);
  append(root, [
    h("div", { class: "switches" }, choiceButtons(view, "roofline", "a point is", [
      ["", "a row", "a case in one variant: all that the filters leave"],
      ["steps", "a step of one case", "each launch of the selected case's variants"]], isBySteps ? "steps" : "")),
    caseChooser(view), rooflineSummary(view, items, isBySteps)]);
  if (onIt.length > 0) rooflineChart(root, view, onIt, roofs, isBySteps);
  else root.append(h("p", { class: "note" },
    isBySteps ? "None of this case's steps has FLOPs and a time." : "None of these rows has FLOPs, a time and bytes."));
  rooflineNotes(root, view, items, left, isBySteps);
  if (onIt.length > 0) rooflineTable(root, view, onIt, isBySteps);
  if (withoutFlops.length > 0) bandwidthChart(root, view, withoutFlops, roofs, isBySteps);
  rooflineCeilings(root, roofs);
}

// --- what is drawn ---

// The run's ceilings: { gbps: { value, by } or null, rates: Map of dtype to { value, by } }.
function rooflineRoofs(report) {
  const ceilings = report.header?.ceilings ?? {};
  const usable = (one) => (isKnown(one?.value) && one.value > 0 ? { value: one.value, by: anyText(one.by ?? NONE) }
    : null);
  const rates = Object.entries(ceilings.rate_tflops ?? {}).map(([dtype, one]) => [dtype, usable(one)])
    .filter(([, one]) => one !== null);
  const reason = ceilings.bandwidth_gbps_reason ?? ceilings.probes?.copy_gbps_reason ?? "the header has none";
  return { gbps: usable(ceilings.bandwidth_gbps), rates: new Map(rates), reason: anyText(reason) };
}

// A row, or one of its steps. Bytes are those that crossed while the clock ran: not what was written back later. A
// step's are measured in its place in the plan.
function rooflineItem(row, us, step = null) {
  const own = step ?? row;
  const { isMeasured } = own;
  const flops = own.flops ?? 0;
  const late = isMeasured && step === null ? row.dram_late_write_bytes ?? 0 : 0;
  const bytes = isKnown(own.moved_bytes) ? own.moved_bytes - late : null;
  return { row, step, flops, us, bytes, isMeasured, isHot: row.cache === "hot",
    tflops: flops > 0 ? flops / us / 1e6 : null,
    gbps: isKnown(bytes) ? bytes / us / 1e3 : null, x: flops > 0 && bytes > 0 ? flops / bytes : null };
}

function rooflineRowItems(rows) {
  const timed = rows.filter(isTimed);
  return { items: timed.map((row) => rooflineItem(row, row.median_us)), left: rows.length - timed.length };
}

function rooflineStepItems(group) {
  const all = group.rows.filter((row) => row.verdict === "pass")
    .flatMap((row) => row.steps.map((step) => ({ row, step })));
  const timed = all.filter(({ step }) => step.time_us > 0);
  const items = timed.map(({ row, step }) => rooflineItem(row, step.time_us, step));
  return { items, left: all.length - timed.length };
}

// What the roofs allow at the item's intensity. L2 may serve hot rows, so that no bandwidth roof applies to them.
function judgeByRoofs(item, roofs) {
  const rate = roofs.rates.get(item.row.dtype)?.value ?? null;
  const byBytes = isKnown(item.x) && roofs.gbps && !item.isHot ? item.x * roofs.gbps.value / 1e3 : null;
  item.roof = [rate, byBytes].filter(isKnown)
    .reduce((low, value) => (low === null ? value : Math.min(low, value)), null);
  if (rate === null && !item.isHot) item.roof = null;  // the other roof may be the lower one
  item.bound = item.roof === null ? null : item.roof === byBytes ? "bandwidth" : "rate";
  item.roof_share = item.roof === null || item.tflops === null ? null : item.tflops / item.roof;
}

// --- in words ---

function rooflineSummary(view, items, isBySteps) {
  const own = items.filter((item) => view.selected.rows.includes(item.row));
  if (own.length === 0) return h("p", { class: "note" }, "The selected case has no row that passed and was timed.");
  if (isBySteps) {
    const variants = distinct(own, (item) => item.row.variant).join(", ");
    return h("p", {},
      `${plural(own.length, "step")} of ${variants}. The larger a point, the more of its variant's time it takes.`);
  }
  return h("ul", { class: "verdicts" }, own.map((item) =>
    h("li", {}, h("strong", {}, rowLink(view, item.row, item.row.variant)), ": ", roofSentence(item))));
}

const floorText = (row) => (isKnown(row.floor_share) ? `${formatPercent(row.floor_share)} of the floor` : null);

function roofSentence(item) {
  if (item.flops === 0) {
    const share = floorText(item.row);
    return `no matrix product, so no FLOPs: below, by bandwidth${share === null ? "" : `, at ${share}`}`;
  }
  if (!isKnown(item.x)) return `${fourDigits(item.tflops)} TFLOP/s; its bytes are not known`;
  const start = `${fourDigits(item.tflops)} TFLOP/s at ${fourDigits(item.x)} FLOP per ${bytesKind(item)} byte`;
  if (item.roof === null) return `${start}; no roof is known for ${item.row.dtype}`;
  const roof = item.bound === "bandwidth" ? "bandwidth roof at that intensity" : `${item.row.dtype} rate roof`;
  const hot = item.isHot ? ". Hot: L2 may serve it, so no bandwidth roof applies" : "";
  return `${start}, ${formatPercent(item.roof_share)} of the ${roof} (${fourDigits(item.roof)} TFLOP/s)${hot}`;
}

function rooflineNotes(root, view, items, left, isBySteps) {
  const noun = isBySteps ? "step" : "row";
  const say = (count, text) => (count > 0 ? `${plural(count, noun)} ${text}` : null);
  const withFlops = items.filter((item) => item.flops > 0);
  const notes = [
    "Filled: bytes are measured. Hollow: they are modelled; L2 may have served some, so that a hollow point may lie "
      + "left of where it belongs, and above a roof.",
    isBySteps ? "A step's bytes are those that crossed while it ran: part may be what earlier steps left in L2."
      : "Measured bytes are without those that were written back after the clock had stopped.",
    say(left, isBySteps ? "without a time are left out." : "did not pass or have no median: left out."),
    say(items.length - withFlops.length, "without FLOPs cannot be on a roofline: they are below, by bandwidth."),
    say(withFlops.filter((item) => !isKnown(item.x)).length,
      "with FLOPs have neither measured nor modelled bytes: left out."),
    say(withFlops.filter((item) => item.isHot).length,
      "ran hot: L2 may serve them, so the bandwidth roof does not apply, and they are drawn pale."),
    say(items.filter((item) => item.roof_share > 1.001 && item.isMeasured).length,
      "with measured bytes lie above a roof: short kernels' bytes are blurred by the counters' own, and a run that "
        + "was cut off has the roofs that it began with."),
    items.filter((item) => isKnown(item.x)).length > ROOFLINE_POINTS
      ? `Of the points ${ROOFLINE_POINTS} are drawn, spread evenly over the rows: filters show fewer.` : null];
  root.append(h("p", { class: "soft small" }, notes.filter(Boolean).join(" ")));
}

function rooflineCeilings(root, roofs) {
  const { gbps, rates, reason } = roofs;
  const line = (name, one, unit) => [name, `${fourDigits(one.value)} ${unit}`, breakable(one.by)];
  const lines = [
    gbps ? line("bandwidth", gbps, "GB/s") : ["bandwidth", { text: NONE, title: reason }, `not known: ${reason}`],
    ...[...rates].map(([dtype, one]) => line(`rate, ${dtype}`, one, "TFLOP/s"))];
  if (rates.size === 0) lines.push(["rate", NONE, "not known: no product has run"]);
  root.append(h("details", { id: "roofs" }, h("summary", {}, "The roofs, and who reached them"),
    table("ceilings", [{ text: "roof", title: WORDS.ceiling }, "value", "reached by"], lines)));
}

// --- charts ---

function rooflineChart(root, view, all, roofs, isBySteps) {
  const items = thinned(all, ROOFLINE_POINTS);
  const dtypes = [...roofs.rates].filter(([dtype]) => items.some((item) => item.row.dtype === dtype))
    .sort(([, a], [, b]) => b.value - a.value);
  const best = dtypes[0]?.[1].value ?? largest(items.map((item) => item.tflops));
  const memory = items.every((item) => item.row.backend === "cpu") ? "memory" : "HBM";
  const ridge = roofs.gbps ? best / roofs.gbps.value * 1e3 : null;
  const low = smallest([...items.map((item) => item.x), ridge === null ? Infinity : ridge / 4]);
  const high = largest([...items.map((item) => item.x), ridge === null ? 0 : ridge * 6]);
  const xAxis = { ...logAxis(`FLOP per byte of ${memory}`, [low, high], { room: 0.03 }), nameLocation: "middle",
    nameGap: 28 };
  const lowest = smallest(items.map((item) => item.tflops));
  const yAxis = { ...logAxis("TFLOP/s", [lowest, best * 1.6]), nameLocation: "middle", nameGap: 44 };
  const middle = Math.sqrt(low * high);
  const names = rooflineNames(items);
  const chosen = new Set(view.selected.rows);
  const share = (item) => item.us / sumOf(item.row.steps.map((step) => step.time_us));
  const point = (item, at) => {
    const { color } = variantStyle(view.report, item.row.variant);
    const isChosen = !isBySteps && chosen.has(item.row);
    return { value: [item.x, item.tflops], row: item.row.index, at,
      symbolSize: isBySteps ? 8 + 26 * Math.sqrt(share(item)) : isChosen ? 16 : 10,
      itemStyle: { color: item.isMeasured ? color : "transparent", borderColor: isChosen ? cssColor("--ink") : color,
        borderWidth: isChosen || !item.isMeasured ? 2 : 0, opacity: item.isHot ? 0.45 : 1 },
      label: { show: items.length <= ROOFLINE_NAMES, formatter: plainText(clipped(names.get(item), 32)),
        position: item.x > middle ? "left" : "right" } };
  };
  const variants = distinct(items, (item) => item.row.variant);
  const points = items.map(point);
  const series = variants.map((variant) => {
    const own = points.filter((one, i) => items[i].row.variant === variant);
    const { color, symbol } = variantStyle(view.report, variant);
    return { type: "scatter", name: variant, symbol, itemStyle: { color }, data: own, z: 3,
      labelLayout: { hideOverlap: true },
      label: { color: cssColor("--soft"), fontSize: 11, textBorderColor: cssColor("--paper"), textBorderWidth: 2 } };
  });
  const count = plural(items.length, isBySteps ? "step" : "row");
  drawChart(root, `Roofline: ${count} of ${variants.join(", ")} by FLOP per byte and TFLOP/s`, {
    grid: { left: 66, right: 24, top: 40, bottom: 48 }, legend: { data: variants }, xAxis, yAxis,
    series: [...roofSeries(roofs, dtypes, low, high, yAxis), ...(isBySteps ? [] : caseLines(items)), ...series],
  }, { height: 480, tip: (of) => roofTip(items[of.data?.at], of), onclick: opensRow(view) });
}

// What stands beside a point: colours tell variants.
function rooflineNames(items) {
  const groups = groupByCase(items.map((item) => item.row));
  const names = shortNames(groups);
  const byKey = new Map(groups.map((group, i) => [group.key, names[i]]));
  return new Map(items.map((item) => [item, item.step?.name ?? byKey.get(item.row.key)]));
}

// The bandwidth roof up to the highest ridge, and one rate roof for each dtype.
function roofSeries(roofs, dtypes, low, high, yAxis) {
  const ink = cssColor("--ink");
  const line = (name, data, type, label) => ({ type: "line", name, data, symbol: "none", silent: true, z: 2,
    lineStyle: { color: ink, width: 1.5, type },
    endLabel: { show: true, formatter: label, color: ink, fontSize: 11, align: "right" } });
  const series = [];
  const slope = roofs.gbps ? roofs.gbps.value / 1e3 : null;
  if (slope !== null) {
    const top = dtypes.length > 0 ? dtypes[0][1].value / slope : high;
    const start = Math.max(low, (yAxis.min ?? 0) / slope);
    const one = line("bandwidth roof", [[start, start * slope], [top, top * slope]], "solid",
      `${fourDigits(roofs.gbps.value)} GB/s, ${roofBy(roofs.gbps)}`);
    series.push({ ...one, endLabel: { ...one.endLabel, offset: [-14, -12] } });
  }
  dtypes.forEach(([dtype, rate], i) => {
    const start = slope === null ? low : rate.value / slope;
    const one = line(`rate roof, ${dtype}`, [[Math.max(start, low), rate.value], [high, rate.value]],
      ["solid", "dashed", "dotted"][i % 3], `${dtype}: ${fourDigits(rate.value)} TFLOP/s, ${roofBy(rate)}`);
    // Names of roofs that lie close together stand above one another.
    const close = dtypes.slice(i + 1).filter(([, lower]) => lower.value > rate.value / 1.4).length;
    series.push({ ...one, endLabel: { ...one.endLabel, offset: [-8, -10 - 14 * close] } });
  });
  return series;
}

// Who reached a roof, without the case: it stands in the table below.
function roofBy(one) {
  return plainText(clipped(one.by.split(" of ")[0], 40));
}

// A thin line from variant to variant of one case: what fusing moves.
function caseLines(items) {
  const cases = [...groupBy(items, (item) => item.row.key).values()];
  if (cases.length > 30) return [];
  return cases.filter((own) => own.length > 1).map((own) => ({
    type: "line", name: "one case", data: own.map((item) => [item.x, item.tflops]), symbol: "none", silent: true, z: 1,
    lineStyle: { color: cssColor("--soft"), width: 1, opacity: 0.5 }, tooltip: { show: false } }));
}

function roofTip(item, of) {
  if (!item) return of.seriesName;
  const { row, step } = item;
  return [step ? `${row.variant}: ${step.name}` : row.variant, row.case_id, row.mode,
    step ? `kernel ${step.kernel}` : null,
    `${formatTime(item.us)}, ${fourDigits(item.flops / 1e9)} GFLOP, ${formatBytes(item.bytes)} ${bytesKind(item)}`,
    `${fourDigits(item.x)} FLOP per byte, ${fourDigits(item.tflops)} TFLOP/s, ${fourDigits(item.gbps)} GB/s`,
    item.roof === null ? null
      : `${formatPercent(item.roof_share)} of its roof (${item.bound}, ${fourDigits(item.roof)} TFLOP/s)`,
    step ? null : floorText(row), "click: its line in the table"].filter(Boolean).join("\n");
}

// How a table's line begins, and how it ends: steps have no share of the floor.
function itemHeads(report, isBySteps, heads) {
  return isBySteps ? ["variant", "step", ...heads]
    : ["case", "mode", "variant", ...heads, n("share of floor", columnHelp(report, "floor_share"))];
}

function itemLine(view, { row, step }, cells) {
  const link = rowLink(view, row, row.variant);
  return step ? [link, step.name, ...cells]
    : [breakable(row.case_id), row.mode, link, ...cells, columnCell(view.report, row, "floor_share", formatPercent)];
}

function rooflineTable(root, view, items, isBySteps) {
  const report = view.report;
  const heads = itemHeads(report, isBySteps, [n("time \u00b5s"), n("GFLOP"), n("MB"), "bytes are",
    n("FLOP/byte", WORDS["arithmetic intensity"]), n("TFLOP/s", isBySteps ? null : columnHelp(report, "tflops")),
    n("GB/s", "those bytes over the time"), "roof",
    n("of its roof", "TFLOP/s over the lower of the two roofs at its intensity")]);
  const chosen = new Set(view.selected.rows);
  const first = [...items.filter((item) => chosen.has(item.row)), ...items.filter((item) => !chosen.has(item.row))];
  const lines = first.slice(0, ROOFLINE_LINES).map((item) => itemLine(view, item, [
    n(fourDigits(item.us)), n(fourDigits(item.flops / 1e9)), n(formatMb(item.bytes)),
    { text: bytesKind(item), title: item.isMeasured ? null : (item.step ?? item.row).traffic_reason },
    n(fourDigits(item.x)), n(fourDigits(item.tflops)), n(fourDigits(item.gbps)),
    item.bound ?? { text: NONE, title: `no roof is known for ${item.row.dtype}` }, n(formatPercent(item.roof_share))]));
  root.append(h("details", { id: "roofline-figures" }, h("summary", {}, "Figures of the roofline"),
    table("figures of the roofline", heads, lines), andMore(items, lines)));
}

// --- what has no FLOPs ---

// Bars: the op's compulsory bytes over the time (a step's: modelled). Marks: measured bytes over the time.
function bandwidthChart(root, view, items, roofs, isBySteps) {
  const hot = items.filter((item) => item.isHot).length;
  const all = items.filter((item) => !item.isHot);
  const shown = all.slice(0, ROOFLINE_BARS);
  append(root, [h("h3", {}, "Without FLOPs: by bandwidth"), h("p", { class: "soft" },
    isBySteps ? "Bars: modelled bytes of the step, over its time. Marks: measured bytes."
      : "Bars: compulsory bytes, over the median: long is fast. Marks: measured bytes, over the median: a mark far "
        + "beyond its bar is traffic that fusing could save.",
    hot > 0 ? ` ${plural(hot, isBySteps ? "step" : "row")} ran hot: L2 may serve them, so no bandwidth is known.` : "",
    all.length > shown.length ? ` The first ${shown.length} of ${all.length} are drawn: filters show others.` : "")]);
  if (shown.length === 0) return;
  const names = isBySteps ? shown.map((item) => `${item.row.variant}: ${item.step.name}`)
    : shortNames(shown.map((item) => item.row));
  const useful = (item) => (isBySteps ? item.step.bytes_modelled / item.us / 1e3 : item.row.gbps);
  const variants = distinct(shown, (item) => item.row.variant);
  const ink = cssColor("--ink");
  const series = variants.map((variant) => ({ type: "bar", name: variant, stack: "one", barMaxWidth: 14,
    itemStyle: { color: variantStyle(view.report, variant).color },
    data: shown.map((item) => (item.row.variant === variant && isKnown(useful(item))
      ? { value: useful(item), row: item.row.index } : null)) }));
  series.push({ type: "scatter", name: "measured", symbol: "diamond", symbolSize: 9, z: 4,
    itemStyle: { color: ink, borderColor: cssColor("--paper"), borderWidth: 1 },
    data: shown.map((item, i) => ({ value: [item.gbps, i], row: item.row.index }))
      .filter((one, i) => isKnown(shown[i].gbps) && shown[i].isMeasured) });
  const said = (roof) => ({ formatter: `${fourDigits(roof.value)} GB/s, ${roofBy(roof)}`, color: ink, position: "start",
    align: "right" });
  if (roofs.gbps) series[0].markLine = lineAt({ xAxis: roofs.gbps.value }, "--ink", { label: said(roofs.gbps) });
  const { room, axis } = nameAxis(names, 0.42 * root.clientWidth);
  const most = largest([roofs.gbps?.value ?? 0,
    ...shown.map((item) => Math.max(item.isMeasured ? item.gbps ?? 0 : 0, useful(item) ?? 0))]);
  const round = 10 ** Math.floor(Math.log10(most) - 1);
  const tip = (of) => {
    const at = of.seriesType === "scatter" ? of.value[1] : of.dataIndex;
    const item = shown[at];
    return [names[at], item.row.case_id, item.row.mode, item.step ? `kernel ${item.step.kernel}` : null,
      formatTime(item.us), `${isBySteps ? "modelled" : "compulsory"}: ${fourDigits(useful(item))} GB/s`,
      `moved (${bytesKind(item)}): ${fourDigits(item.gbps)} GB/s, ${formatBytes(item.bytes)}`,
      item.step ? null : floorText(item.row)].filter(Boolean).join("\n");
  };
  const count = plural(shown.length, isBySteps ? "step" : "row");
  drawChart(root, `Achieved GB/s of ${count} without FLOPs against the bandwidth ceiling`, {
    grid: { left: room, right: 40, top: 58, bottom: 44 }, legend: { data: [...variants, "measured"] },
    xAxis: { type: "value", name: "GB/s", min: 0, max: Math.ceil((most * 1.02) / round) * round,
      nameLocation: "middle", nameGap: 26 },
    yAxis: axis, series,
  }, { height: 110 + 19 * shown.length, tip, onclick: opensRow(view) });

  const heads = itemHeads(view.report, isBySteps, [n("time \u00b5s"),
    isBySteps ? n("modelled GB/s") : n("compulsory GB/s", columnHelp(view.report, "gbps")), n("moved GB/s"),
    "bytes are"]);
  const lines = items.slice(0, ROOFLINE_LINES).map((item) => itemLine(view, item, [n(fourDigits(item.us)),
    isBySteps ? n(fourDigits(useful(item))) : columnCell(view.report, item.row, "gbps"),
    n(fourDigits(item.gbps)), bytesKind(item)]));
  root.append(h("details", { id: "bandwidth-figures" }, h("summary", {}, "Figures of the bandwidth chart"),
    table("figures of the bandwidth chart", heads, lines), andMore(items, lines)));
}
