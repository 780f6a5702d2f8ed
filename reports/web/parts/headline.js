// What a reader must know within five seconds: what failed, whether fusing paid, and in which cases.
const HEADLINE_FAILURES = 20;
const HEADLINE_CASES = 12;
const HEADLINE_LINES = 200;

PARTS.push({
  id: "headline", order: 10, title: "At a glance",
  about: "Whether fusing paid: time, bytes, launches and memory of fused against the library's products (cublas, on "
    + "the CPU eigen) and against naive.",
  render(root, view) {
    const pairs = headlinePairs(view);
    append(root, [headlineFailures(view), headlineUnsupported(view), headlineLead(view, pairs), caseChooser(view),
      headlineTiles(view)]);
    headlineChart(root, view, pairs);
    append(root, [headlineTable(view, pairs)]);
  },
});

// --- who is compared with whom ---

// Each row that the filters leave and that is neither naive nor the library's, with these two beside it, which the
// filters may have taken away. A case without such a row is told by the library's, or else by naive's.
function headlinePairs(view) {
  const whole = new Map(view.report.groups.map((group) => [group.key, group]));
  return view.groups.flatMap((group) => {
    const passed = group.rows.filter((row) => row.verdict === "pass");
    return headlineContenders(view.report, passed.length > 0 ? passed : group.rows)
      .map((row) => headlinePair(view.report, whole.get(group.key), row));
  });
}

function headlineContenders(report, rows) {
  const others = rows.filter((row) => row.variant !== "naive" && row.variant !== report.baseline);
  const byFame = (a, b) => (b.variant === "fused") - (a.variant === "fused");
  if (others.length > 0) return others.sort(byFame);
  return [rows.find((row) => row.variant === report.baseline) ?? rows[0]];
}

function headlinePair(report, group, row) {
  const other = (variant) => (row.variant === variant ? null : rowOf(group, variant));
  const pair = { group, row, baseline: row.variant === "naive" ? null : other(report.baseline), naive: other("naive") };
  const { isMeasured, of } = bytesOfOneKind([row, pair.baseline, pair.naive].filter((one) => one?.verdict === "pass"));
  return { ...pair, isMeasured, bytes: (one) => (one === null ? null : of(one)) };
}

const HEADLINE_SHORT = { faster: "faster", slower: "slower", same: "no difference shown", noise: "within noise",
  few: "too few samples", unknown: "not known" };

// --- failures ---

const isHeadlineFailure = (row) => row.verdict !== "pass" && row.verdict !== "unsupported";

function headlineFailures(view) {
  const failed = view.rows.filter(isHeadlineFailure);
  if (failed.length === 0) return null;
  const verdicts = distinct(failed, (row) => row.verdict);
  const showAll = h("button", { type: "button", onclick: () => view.state.set({ verdict: verdicts, row: "" }) },
    "show only these rows");
  const more = failed.length - HEADLINE_FAILURES;
  return h("div", { id: "headline-failures" },
    h("h3", { class: "fail" }, `${plural(failed.length, "row")} did not pass`),
    failedRowsTable(view, "rows that did not pass", failed.slice(0, HEADLINE_FAILURES)),
    h("p", {}, more > 0 ? `And ${more} more. ` : null, failed.length < view.rows.length ? showAll : null));
}

// Also the correctness part's.
function failedRowsTable(view, label, rows) {
  return table(label, ["verdict", "row", "reason", "to repeat it"], rows.map((row) => [
    verdictText(row.verdict), rowLink(view, row), { text: row.reason ?? NONE, class: "reason" },
    row.repro ? [copyButton(row.repro), " ", h("code", {}, row.repro)] : NONE]), { css: "failures" });
}

// Folded away, one line a reason.
function headlineUnsupported(view) {
  const rows = view.rows.filter((row) => row.verdict === "unsupported");
  if (rows.length === 0) return null;
  const reasons = groupBy(rows, (row) => row.reason);
  const lines = [...reasons].slice(0, HEADLINE_FAILURES);
  return h("details", { id: "headline-unsupported" },
    h("summary", {}, `${plural(rows.length, "row")} unsupported, by name`),
    table("unsupported rows", ["reason", n("rows"), "the first of them"],
      lines.map(([reason, all]) => [reason ?? NONE, n(String(all.length)), rowLink(view, all[0])])),
    reasons.size > lines.length ? h("p", {}, `And ${plural(reasons.size - lines.length, "more reason")}.`) : null);
}

// --- the run in a sentence ---

function headlineLead(view, pairs) {
  const passed = view.rows.filter((row) => row.verdict === "pass").length;
  if (passed === 0) {
    return h("p", { id: "headline-lead" },
      `None of the ${plural(view.rows.length, "row")} passed, so that there is nothing to compare.`,
      view.report.warnings.length > 0 ? " The warnings above may say why." : null);
  }
  const base = view.report.baseline;
  const variants = distinct(pairs.filter((pair) => pair.baseline), (pair) => pair.row.variant).slice(0, 4);
  const present = distinct(view.rows, (row) => row.variant);
  const sentences = variants.map((variant) =>
    headlineCounts(view, variant, base, pairs.filter((pair) => pair.row.variant === variant && pair.baseline)));
  const alone = `the only variant${present.length === 1 ? " is" : "s are"} ${present.join(", ")}`;
  return h("div", { id: "headline-lead" },
    sentences.length > 0 ? sentences : h("p", {}, `No row here can be held against ${base}: ${alone}.`));
}

// How the bytes of several pairs are known.
function headlineKind(pairs) {
  if (pairs.every((pair) => pair.isMeasured)) return "measured";
  return pairs.some((pair) => pair.isMeasured) ? "some modelled" : "modelled";
}

const HEADLINE_DOUBT = "the speed-up's 95% interval includes 1, there are too few samples for one, or the difference "
  + "is no larger than that of one variant timed twice in this run";

function headlineCounts(view, variant, base, pairs) {
  const kinds = pairs.map((pair) => judgeSpeedup(view.report, pair.row, "cublas").kind);
  const count = (...wanted) => kinds.filter((kind) => wanted.includes(kind)).length;
  const known = kinds.length - count("unknown");
  const bytes = pairs.map((pair) => ratioOf(pair.bytes(pair.row), pair.bytes(pair.baseline))).filter(isKnown);
  const fewer = bytes.filter((ratio) => ratio < 0.99).length;
  const unsure = count("same", "noise", "few");
  const how = { measured: "", "some modelled": " (some modelled)", modelled: " (modelled)" }[headlineKind(pairs)];
  const said = [["faster", "pass", count("faster")], ["slower", "fail", count("slower")]]
    .filter(([, , number]) => number > 0)
    .map(([kind, css, number], i) => [i > 0 ? ", " : "", h("strong", { class: css },
      i > 0 ? `${kind} in ${number}` : `${kind} than ${base} in ${number} of ${plural(known, "case")}`)]);
  const doubt = h("abbr", { title: HEADLINE_DOUBT }, "show no difference");
  return h("p", {}, h("strong", {}, variant), known === 0 ? ` cannot be compared with ${base} in time` : null,
    said.length > 0 ? [" is ", said] : null,
    unsure === 0 ? null : said.length > 0 ? [", and in ", h("strong", {}, String(unsure)), " the samples ", doubt]
      : [` against ${base}: in all ${plural(known, "case")} the samples `, doubt],
    bytes.length > 0 ? `. It moves fewer bytes${how} in ${fewer} of ${bytes.length}.` : ".");
}

// --- tiles of one case ---

function headlineTiles(view) {
  if (!view.selected) return null;
  const whole = view.report.groups.find((group) => group.key === view.selected.key);
  const passed = view.selected.rows.filter((row) => row.verdict === "pass");
  const row = headlineContenders(view.report, passed.length > 0 ? passed : view.selected.rows)[0];
  const pair = headlinePair(view.report, whole, row);
  const tiles = h("div", { class: "tiles", id: "headline-tiles" }, headlineTimeTile(view, pair),
    headlineBytesTile(view, pair), headlineFloorTile(view, pair),
    headlineCountTile(view, pair, { title: "launches", name: "launches",
      format: (value) => (isKnown(value) ? String(value) : NONE), sentence: headlineLaunchesSentence }),
    headlineCountTile(view, pair, { title: "workspace", name: "workspace_bytes", format: formatBytes,
      sentence: headlineWorkspaceSentence }));
  const hasOthers = [pair.baseline, pair.naive].some(Boolean);
  return [tiles, hasOthers ? h("p", { class: "soft small", id: "headline-beside" },
    `Grey, beside another variant: ${row.variant}'s speed-up over it, or ${row.variant}'s figure as a part of its.`)
    : null];
}

// `of(row)` is the tile's figure; bars are drawn to the scale of the row and the library's, and longer ones are cut.
function headlineTile(view, pair, { id, title, of, format, note, sentence, whole = null, isBad = false,
  beside = () => null, why = () => null }) {
  const rows = [pair.row, pair.baseline, pair.naive].filter(Boolean);
  const main = of(pair.row);
  const known = [main, pair.baseline ? of(pair.baseline) : null].filter(isKnown);
  const scale = whole ?? Math.max(0, ...(known.length > 0 ? known : rows.map(of).filter(isKnown)));
  return h("div", { class: "tile headline-tile", "data-tile": id },
    h("div", { class: "soft" }, title), h("strong", { title: isKnown(main) ? null : why(pair.row) }, format(main)),
    h("table", { class: "bars", "aria-label": id }, h("tbody", {}, rows.map((row) => {
      const value = of(row);
      return h("tr", {}, h("th", { scope: "row" }, rowLink(view, row, row.variant)),
        h("td", { class: "bar", "aria-hidden": "true" }, headlineBar(view.report, row, value, scale)),
        h("td", { class: "n", title: isKnown(value) ? null : why(row) }, format(value)),
        h("td", { class: "n soft" }, row === pair.row ? null : beside(row)));
    }))),
    note, h("p", { class: isBad ? "bad" : null }, sentence));
}

function headlineBar(report, row, value, scale) {
  const bar = h("div", { class: isKnown(value) && value > scale ? "cut" : null });
  bar.style.width = isKnown(value) && scale > 0 ? `${Math.min(value / scale, 1) * 100}%` : "0";
  bar.style.background = variantStyle(report, row.variant).color;
  return bar;
}

// Why a figure of a row is missing: the row's own reason where it did not pass.
const headlineWhy = (report, row, name) =>
  (row.verdict === "pass" ? reasonOf(report, row, name) : `${row.verdict}: ${row.reason ?? "no reason given"}`);

function headlineTimeTile(view, pair) {
  const over = (row) => (row === pair.naive ? "naive" : "cublas");
  const others = [pair.baseline, pair.naive].filter(Boolean);
  const note = others.length === 0 ? null : h("p", { class: "soft" }, word("speed-up"), " ",
    others.map((row, i) => `${i > 0 ? "; " : ""}${speedupOf(pair.row, over(row))} over ${row.variant}`));
  const against = pair.baseline ?? pair.naive;
  const judged = against ? judgeSpeedup(view.report, pair.row, over(against)) : null;
  const beside = (row) => {
    const [speedup, reason] = ["", "_reason"].map((end) => pair.row[`speedup_vs_${over(row)}${end}`]);
    const help = isKnown(speedup) ? `${pair.row.variant}'s speed-up over ${row.variant}` : reason;
    return h("abbr", { title: help }, formatTimes(speedup));
  };
  return headlineTile(view, pair, { id: "time",
    title: [`${pair.row.variant}: `, h("abbr", { title: columnHelp(view.report, "median_us") }, "time")],
    of: (row) => row.median_us, format: formatTime, beside, note,
    why: (row) => headlineWhy(view.report, row, "median_us"), isBad: judged?.kind === "slower",
    sentence: headlineTimeSentence(view.report, pair, against, judged) });
}

function headlineTimeSentence(report, pair, against, judged) {
  const { row } = pair;
  if (!isKnown(row.median_us)) {
    return `${row.variant} has no time: ${headlineWhy(report, row, "median_us") ?? "it is not in the records"}.`;
  }
  const mine = `${row.variant} takes ${formatTime(row.median_us)}`;
  if (!against) {
    const isTheirs = row.variant === report.baseline || row.variant === "naive";
    const others = isTheirs ? "no other variant of this case" : `neither ${report.baseline} nor naive`;
    return `${mine}; ${others} is in the run.`;
  }
  if (!isKnown(against.median_us)) {
    return `${mine}; ${against.variant} has no time: `
      + `${headlineWhy(report, against, "median_us") ?? "it is not in the records"}.`;
  }
  const theirs = `${against.variant}'s ${formatTime(against.median_us)}`;
  const times = row.median_us / against.median_us;
  if (judged.kind === "slower") {
    return times > 1 ? `${mine}, ${times.toFixed(2)} times ${theirs}: it is slower here.`
      : `${mine} against ${theirs}; in pairs of one round it is slower.`;
  }
  const both = `${mine} against ${theirs}`;
  if (judged.kind === "faster") {
    return `${both}: it is faster, ${formatTimes(judged.value).replace("x", "")} times as fast.`;
  }
  if (judged.kind === "same") return `${both}: no difference that the samples show.`;
  if (judged.kind === "noise") {
    return `${both}: no more of a difference than one variant shows when it is timed twice `
      + `(${headlineSmall(judged.control)}).`;
  }
  if (judged.kind === "few") return `${both}: too few samples to say whether that is a difference.`;
  return `${both}; the speed-up is not known.`;
}

const headlineSmall = (part) => `${(part * 100).toFixed(1)}%`;

function headlineBytesTile(view, pair) {
  const { row } = pair;
  const against = pair.baseline ?? pair.naive;
  const kind = pair.isMeasured ? word("measured bytes", "HBM bytes, measured")
    : word("modelled bytes", "bytes, modelled");
  const compulsory = isKnown(row.bytes_compulsory) ? h("p", { class: "soft" }, "compulsory: ",
    h("abbr", { title: columnHelp(view.report, "bytes_compulsory") }, formatBytes(row.bytes_compulsory))) : null;
  const ratio = against ? ratioOf(pair.bytes(row), pair.bytes(against)) : null;
  const why = (one) => headlineWhy(view.report, one, pair.isMeasured ? "dram_read_bytes" : "bytes_modelled");
  return headlineTile(view, pair, { id: "bytes", title: [`${row.variant}: `, kind], of: pair.bytes, format: formatBytes,
    note: compulsory, isBad: isKnown(ratio) && ratio > 1.01,
    beside: (other) => headlineShareText(ratioOf(pair.bytes(row), pair.bytes(other)), row, other), why,
    sentence: headlineBytesSentence(pair, against, ratio, why(row)) });
}

function headlineShareText(ratio, row, other) {
  return isKnown(ratio) ? h("abbr", { title: `${row.variant} over ${other.variant}` }, headlinePart(ratio)) : null;
}

// A part of another figure: per cent up to all of it, times beyond.
function headlinePart(ratio) {
  if (!isKnown(ratio)) return NONE;
  return ratio <= 1.005 ? `${ratio > 0 && ratio < 0.01 ? "<1" : Math.round(ratio * 100)}%` : formatTimes(ratio);
}

function headlineBytesSentence(pair, against, ratio, why) {
  const { row } = pair;
  if (!isKnown(pair.bytes(row))) {
    return `${row.variant}'s bytes are not known: ${why ?? "they are not in the records"}.`;
  }
  const mine = `${row.variant} moves ${formatBytes(pair.bytes(row))}`;
  const note = pair.isMeasured ? "" : ` These bytes are modelled, not measured${headlineUnmeasuredWhy(pair)}.`;
  if (!against || ratio === null) return `${mine}.${note}`;
  const theirs = `${against.variant}'s ${formatBytes(pair.bytes(against))}`;
  if (Math.abs(ratio - 1) <= 0.01) return `${mine}, as much as ${theirs}.${note}`;
  return `${mine}, ${headlinePart(ratio).replace(/x$/, " times")}${ratio <= 1.005 ? " of" : ""} ${theirs}: `
    + `${ratio < 1 ? "it saves" : "it costs"} ${formatBytes(Math.abs(pair.bytes(against) - pair.bytes(row)))}.${note}`;
}

function headlineUnmeasuredWhy(pair) {
  const reason = [pair.row, pair.baseline, pair.naive]
    .map((row) => (row && !row.isMeasured ? row.traffic_reason : null)).find(Boolean);
  return reason ? `: ${reason}` : "";
}

function headlineFloorTile(view, pair) {
  const { row } = pair;
  const against = pair.baseline ?? pair.naive;
  const why = (one) => headlineWhy(view.report, one, "floor_share");
  const times = (one) => `${(1 / one.floor_share).toFixed(2)} times`;
  const theirs = isKnown(against?.floor_share) ? `, ${against.variant} ${times(against)}` : "";
  const sentence = isKnown(row.floor_share)
    ? `Nothing takes less than ${formatTime(row.floor_us)} here; ${row.variant} takes ${times(row)} that${theirs}.`
    : `The share is not known: ${why(row) ?? "it is not in the records"}.`;
  return headlineTile(view, pair, { id: "floor", title: [`${row.variant}: `, word("share of floor")],
    of: (one) => one.floor_share, whole: 1, format: formatPercent, why, sentence });
}

function headlineCountTile(view, pair, { title, name, format, sentence }) {
  const { row } = pair;
  const against = pair.baseline ?? pair.naive;
  const why = (one) => headlineWhy(view.report, one, name);
  const said = isKnown(row[name]) ? sentence(row, against, against ? against[name] : null)
    : `Not known: ${why(row) ?? "it is not in the records"}.`;
  return headlineTile(view, pair, { id: name,
    title: [`${row.variant}: `, h("abbr", { title: columnHelp(view.report, name) }, title)],
    of: (one) => one[name], format, why, sentence: said,
    beside: (other) => headlineShareText(ratioOf(row[name], other[name]), row, other) });
}

function headlineLaunchesSentence(row, against, theirs) {
  const mine = `${row.variant} needs ${plural(row.launches, "launch").replace(/launchs$/, "launches")}`;
  if (!isKnown(theirs)) return `${mine}.`;
  const less = theirs - row.launches;
  return less === 0 ? `${mine}, as many as ${against.variant}.`
    : `${mine}, ${Math.abs(less)} ${less > 0 ? "fewer" : "more"} than ${against.variant}.`;
}

function headlineWorkspaceSentence(row, against, theirs) {
  if (row.workspace_bytes === 0) {
    const other = theirs === 0 ? "stores none either" : `stores ${formatBytes(theirs)}`;
    return `${row.variant} stores no intermediates${isKnown(theirs) ? `; ${against.variant} ${other}` : ""}.`;
  }
  const mine = `${row.variant}'s intermediates take ${formatBytes(row.workspace_bytes)}`;
  if (!isKnown(theirs)) return `${mine}.`;
  const less = theirs - row.workspace_bytes;
  return less === 0 ? `${mine}, as much as ${against.variant}.`
    : `${mine}, ${formatBytes(Math.abs(less))} ${less > 0 ? "less" : "more"} than ${against.variant}.`;
}

// --- the dozen cases that tell most ---

// Blocks where there are some, else cases of every op in turn; the longest first.
function headlineTelling(pairs) {
  const known = pairs.filter((pair) => pair.baseline && isKnown(pair.row.speedup_vs_cublas));
  const blocks = known.filter((pair) => pair.row.op === "block");
  const turns = [...groupBy(blocks.length > 0 ? blocks : known, (pair) => pair.row.op).values()].flatMap((list) =>
    list.sort((a, b) => b.row.median_us - a.row.median_us).map((pair, turn) => ({ pair, turn })));
  const chosen = new Set(turns.sort((a, b) => a.turn - b.turn).slice(0, HEADLINE_CASES).map(({ pair }) => pair));
  return pairs.filter((pair) => chosen.has(pair));
}

function headlineChart(root, view, pairs) {
  const told = headlineTelling(pairs);
  if (told.length === 0) return;
  const base = view.report.baseline;
  const comparable = pairs.filter((pair) => pair.baseline && isKnown(pair.row.speedup_vs_cublas)).length;
  const names = shortNames(told.map((pair) => pair.row));
  append(root, [h("h3", {}, `Time, bytes and workspace as a part of ${base}'s`),
    h("p", { class: "soft" },
      `${told.length} of ${plural(comparable, "case")} that can be compared. What lies left of 1x is less than `
        + `${base}'s, right of it more. A line through a time is its 95% interval. `,
      comparable > told.length ? actionLink("#headline-cases", null, "Show all cases", () => headlineShowCases(root))
        : null)]);
  const time = told.map((pair) => ratioOf(1, pair.row.speedup_vs_cublas));
  const ends = told.map(({ row }) => [ratioOf(1, row.speedup_vs_cublas_hi), ratioOf(1, row.speedup_vs_cublas_lo)]);
  const bytes = told.map((pair) => ratioOf(pair.bytes(pair.row), pair.bytes(pair.baseline)));
  const space = told.map((pair) => ratioOf(pair.row.workspace_bytes, pair.baseline.workspace_bytes))
    .map((ratio) => (ratio > 0 ? ratio : null));
  const known = [...time, ...bytes, ...space, ...ends.flat(), 1].filter((value) => isKnown(value) && value > 0);
  const points = (values) => values.map((value, i) => (isKnown(value) ? [value, i] : null)).filter(Boolean);
  const how = `bytes, ${headlineKind(told)}`;
  const { room, axis } = nameAxis(names, root.clientWidth * 0.4);
  drawChart(root, `time, bytes and workspace as a part of ${base}'s; the figures are in the table below`, {
    grid: { left: room, right: 24, top: 56, bottom: 8 },
    legend: { data: ["time", how, "workspace"] },
    xAxis: { type: "log", position: "top", logBase: 2, min: headlinePower(Math.min(...known), -0.1),
      max: headlinePower(Math.max(...known), 0.1),
      axisLabel: { formatter: (value) => `${Number(value.toPrecision(3))}x` } },
    yAxis: { ...axis, axisLabel: { ...axis.axisLabel, overflow: "break", lineHeight: 15 } },
    series: [
      { name: "time", type: "scatter", symbol: "circle", symbolSize: 13, color: PALETTE[1], data: points(time), z: 4,
        markLine: lineAt({ xAxis: 1 }) },
      { name: "interval", type: "custom", silent: true, tooltip: { show: false },
        data: ends.map((pair, i) => [...pair, i]).filter((one) => one.every(isKnown)), encode: { x: [0, 1], y: 2 },
        renderItem: headlineWhisker, z: 3 },
      { name: how, type: "scatter", symbol: "diamond", symbolSize: 13, color: PALETTE[0], data: points(bytes) },
      { name: "workspace", type: "scatter", symbol: "triangle", symbolSize: 11, color: PALETTE[2],
        data: points(space) }],
  }, { height: 80 + told.length * (room < 300 ? 44 : 32), tip: (item) => headlineTip(view.report, told[item.value[1]]),
    onclick: (item) => { if (item.value) view.state.set({ case: told[item.value.at(-1)].group.key }); } });
}

// The power of two beyond a value, with some room.
const headlinePower = (value, room) =>
  2 ** (room < 0 ? Math.floor(Math.log2(value) + room) : Math.ceil(Math.log2(value) + room));

function headlineWhisker(_, api) {
  const [left, right] = [api.coord([api.value(0), api.value(2)]), api.coord([api.value(1), api.value(2)])];
  return { type: "line", shape: { x1: left[0], y1: left[1], x2: right[0], y2: right[1] },
    style: { stroke: PALETTE[1], lineWidth: 3, opacity: 0.6 } };
}

function headlineTip(report, pair) {
  const { row, baseline } = pair;
  const line = (name, mine, theirs, ratio) =>
    `${name}: ${mine} against ${theirs}${isKnown(ratio) ? `, ${headlinePart(ratio)}` : ""}`;
  return [pair.group.key, `${row.variant} against ${baseline.variant}`,
    line("time", formatTime(row.median_us), formatTime(baseline.median_us), ratioOf(row.median_us, baseline.median_us)),
    `speed-up: ${speedupOf(row, "cublas")}, ${HEADLINE_SHORT[judgeSpeedup(report, row, "cublas").kind]}`,
    line(`bytes, ${bytesKind(pair)}`, formatBytes(pair.bytes(row)), formatBytes(pair.bytes(baseline)),
      ratioOf(pair.bytes(row), pair.bytes(baseline))),
    line("workspace", formatBytes(row.workspace_bytes), formatBytes(baseline.workspace_bytes),
      ratioOf(row.workspace_bytes, baseline.workspace_bytes)),
    "click: look at this case"].join("\n");
}

function headlineShowCases(root) {
  const list = root.querySelector("#headline-cases");
  list.open = true;
  list.scrollIntoView();
  list.querySelector("summary").focus({ preventScroll: true });
}

// --- every case, a line each ---

function headlineTable(view, pairs) {
  const base = view.report.baseline;
  const lines = pairs.slice(0, HEADLINE_LINES);
  const allMeasured = lines.every((pair) => pair.isMeasured || pair.row.verdict !== "pass");
  const noneMeasured = lines.every((pair) => !pair.isMeasured);
  const help = (name) => columnHelp(view.report, name);
  const head = ["case", "variant", { text: `against ${base}`, title: WORDS["speed-up"] }, n("time", help("median_us")),
    n(`${base}'s`, help("median_us")), n(`speed-up over ${base}`, WORDS["speed-up"]),
    n("over naive", WORDS["speed-up"]),
    n(noneMeasured ? "MB, modelled" : allMeasured ? "HBM MB, measured" : "HBM MB",
      WORDS[noneMeasured ? "modelled bytes" : "measured bytes"]),
    n(`of ${base}'s`), n("share of floor", WORDS["share of floor"]), n("launches", help("launches")),
    n("workspace", help("workspace_bytes"))];
  return h("details", { id: "headline-cases", open: pairs.length <= HEADLINE_CASES },
    h("summary", {}, `All cases, a line each (${pairs.length})`),
    table("all cases", head, lines.map((pair) => headlineLine(view, pair, !allMeasured && !noneMeasured))),
    andMore(pairs, lines));
}

function headlineLine(view, pair, isMixed) {
  const { row, baseline } = pair;
  const figure = (name, format) =>
    n(format(row[name]), isKnown(row[name]) ? null : headlineWhy(view.report, row, name));
  const isItself = (over) => row.variant === (over === "cublas" ? view.report.baseline : over);
  const speedup = (over) => (isItself(over) ? n(NONE, "it is this variant itself") : speedupCell(row, over));
  const kind = judgeSpeedup(view.report, row, "cublas").kind;
  const said = row.verdict !== "pass" ? verdictText(row.verdict) : !baseline ? NONE
    : h("span", { class: kind === "faster" ? "pass" : kind === "slower" ? "fail" : "soft" }, HEADLINE_SHORT[kind]);
  const bytes = pair.bytes(row);
  return [rowLink(view, row, [breakable(pair.group.case_id), ` (${pair.group.mode})`]), row.variant, said,
    figure("median_us", formatTime),
    n(formatTime(baseline?.median_us),
      baseline ? headlineWhy(view.report, baseline, "median_us") : "it is not in the run"),
    speedup("cublas"), speedup("naive"),
    n(formatMb(bytes) + (isMixed && !pair.isMeasured && isKnown(bytes) ? " modelled" : ""),
      isKnown(bytes) && pair.isMeasured ? null : headlineWhy(view.report, row, "dram_read_bytes")),
    n(headlinePart(baseline ? ratioOf(bytes, pair.bytes(baseline)) : null)), figure("floor_share", formatPercent),
    figure("launches", (value) => (isKnown(value) ? String(value) : NONE)), figure("workspace_bytes", formatBytes)];
}
