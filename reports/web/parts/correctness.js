// Whether the outputs are right: errors against their budgets, and proof that the check can fail.
const CORRECT_POINTS = 3000;
const CORRECT_LINES = 200;
const CORRECT_WORST = 50;
const CORRECT_NAMED = 20;

PARTS.push({
  id: "correctness", order: 70, title: "Correctness",
  about: "How far every output lies from the double-precision reference, as a part of what rounding may cost: at most "
    + "1 passes.",
  render(root, view) {
    append(root, [correctTiles(view), correctFailures(view)]);
    correctCharts(root, view);
    append(root, [correctTable(view), correctWorst(view), correctOddities(view), correctMutants(view)]);
  },
});

function correctShareText(share) {
  if (share === Infinity) return "no budget";
  if (share > 0 && share < 0.01) return `${fourDigits(share * 100)}%`;
  return formatPercent(share);
}

// Figures of many rows in one pass; `null`s are counted as not known.
function correctSums(rows) {
  const sums = { known: 0, checked: 0, total: 0, checkedRows: 0, nonfinite: 0, close: 0, closeKnown: 0, same: 0,
    sameKnown: 0, worst: null, shares: ERROR_MEASURES.map(() => null) };
  for (const row of rows) {
    if (row.error_share !== null) ++sums.known;
    if (row.error_share !== null && (sums.worst === null || row.error_share > sums.worst.error_share)) sums.worst = row;
    ERROR_MEASURES.forEach((name, i) => {
      const share = errorShare(row, name);
      if (share !== null && (sums.shares[i] === null || share > sums.shares[i])) sums.shares[i] = share;
    });
    if (isKnown(row.rows_checked) && isKnown(row.rows_total)) {
      sums.checked += row.rows_checked;
      sums.total += row.rows_total;
      ++sums.checkedRows;
    }
    sums.nonfinite += isKnown(row.nonfinite) ? row.nonfinite : 0;
    if (typeof row.seed_allclose === "boolean") { ++sums.closeKnown; sums.close += row.seed_allclose; }
    if (typeof row.deterministic === "boolean") { ++sums.sameKnown; sums.same += row.deterministic; }
  }
  return sums;
}

const correctPart = (part, whole) => (whole > 0 ? `${part} of ${whole}` : NONE);

// --- tiles ---

function correctTiles(view) {
  const sums = correctSums(view.rows);
  const why = (name) => correctFirstReason(view, name);
  const tile = (id, title, text, sentence, isBad = false) => h("div", { class: "tile", "data-tile": id },
    h("div", { class: "soft" }, title), h("strong", {}, text), h("p", { class: isBad ? "bad" : null }, sentence));
  const over = view.rows.filter((row) => row.error_share > 1).length;
  const help = (name) => columnHelp(view.report, name);
  return h("div", { class: "tiles", id: "correct-tiles" },
    tile("worst", ["worst error / ", word("budget")],
      sums.worst === null ? NONE : correctShareText(sums.worst.error_share),
      sums.worst === null ? `Nothing was checked: ${why("rel_l2")}.`
        : [over > 0 ? `${plural(over, "row")} over the budget. The worst: ` : "Nearest to its budget: ",
          rowLink(view, sums.worst)], over > 0),
    tile("checked", h("abbr", { title: help("rows_checked") }, "token rows checked"),
      sums.total > 0 ? correctPercentDown(sums.checked / sums.total) : NONE,
      sums.total > 0
        ? `${sums.checked} of ${sums.total} in ${plural(sums.checkedRows, "row")}`
          + `${sums.checked < sums.total ? "; the others are held against naive's" : ""}.`
        : `Not known: ${why("rows_checked")}.`),
    tile("deterministic", h("abbr", { title: help("deterministic") }, "deterministic"),
      correctPart(sums.same, sums.sameKnown),
      sums.sameKnown === 0 ? `Not known: ${why("deterministic")}.`
        : sums.same === sums.sameKnown ? "Every launch gave the same bits."
          : `${plural(sums.sameKnown - sums.same, "row")} gave other bits when launched again.`),
    tile("seed_allclose", h("abbr", { title: help("seed_allclose") }, "within the seed's own tolerance"),
      correctPart(sums.close, sums.closeKnown),
      sums.closeKnown === 0 ? `Not known: ${why("seed_allclose")}.`
        : sums.close === sums.closeKnown ? "All of them."
          : "It decides nothing: 2e-3 is the same for every dtype and size, and roundings of bf16 or of long sums are "
            + "often larger."),
    tile("nonfinite", h("abbr", { title: help("nonfinite") }, "NaN or infinite elements"),
      sums.known > 0 ? String(sums.nonfinite) : NONE,
      sums.known === 0 ? `Not known: ${why("nonfinite")}.`
        : sums.nonfinite === 0 ? "None where the reference has none." : "Where the reference has none.",
      sums.nonfinite > 0),
    correctMutantTile(view, tile));
}

// Never rounded up to all.
const correctPercentDown = (part) => (part > 0 && part < 0.01 ? "<1%" : `${Math.floor(part * 100 + 1e-9)}%`);

function correctFirstReason(view, name) {
  for (const row of view.rows) {
    const reason = row[name] === null ? whyNot(view.report, row, name) : null;
    if (reason) return reason;
  }
  return "the records do not say why";
}

function correctFailures(view) {
  const failed = view.rows.filter((row) =>
    ["fail", "no_power"].includes(row.verdict) || row.error_share > 1 || row.nonfinite > 0);
  if (failed.length === 0) return null;
  const shown = failed.slice(0, CORRECT_NAMED);
  // The first part has shown them already.
  return h("details", { id: "correct-failures" },
    h("summary", { class: "fail" }, `${plural(failed.length, "row")} that the check does not let pass, with reasons`),
    failedRowsTable(view, "rows that the check does not let pass", shown), andMore(failed, shown));
}

// --- dot plots ---

function correctCharts(root, view) {
  const known = view.rows.filter((row) => row.error_share !== null);
  if (known.length === 0) {
    root.append(h("p", { class: "note" }, `No error is known: ${correctFirstReason(view, "rel_l2")}.`));
    return;
  }
  const kinds = distinct(known, correctKind);
  const variants = distinct(known, (row) => row.variant);
  const shown = correctThinned(known);
  root.append(h("h3", {}, "Error as a part of its budget"));
  if (shown.length < known.length) {
    root.append(h("p", { class: "soft" }, `${shown.length} of ${plural(known.length, "row")} are drawn: the worst of `
      + "each kind, and an even choice of the others."));
  }
  // Both places are there before a chart takes its width from one.
  const frames = ERROR_MEASURES.map(() => h("div"));
  root.append(h("div", { class: "pair" }, frames));
  ERROR_MEASURES.forEach((name, i) => correctChart(frames[i], view, name, { kinds, variants, shown }));
}

const correctKind = (row) => `${row.op} ${row.dtype}`;

// At most some thousand points: of each kind and variant the worst twenty, and every n-th of the rest.
function correctThinned(rows) {
  if (rows.length <= CORRECT_POINTS) return rows;
  const kinds = groupBy(rows, (row) => `${correctKind(row)} ${row.variant}`);
  const kept = [];
  const room = Math.max(CORRECT_POINTS - 20 * kinds.size, 0);
  for (const list of kinds.values()) {
    const sorted = [...list].sort((a, b) => b.error_share - a.error_share);
    kept.push(...sorted.slice(0, 20), ...thinned(sorted.slice(20), Math.floor((room * list.length) / rows.length)));
  }
  return kept.slice(0, CORRECT_POINTS);
}

function correctChart(root, view, name, { kinds, variants, shown }) {
  const shares = shown.map((row) => errorShare(row, name));
  const positive = shares.filter((share) => share > 0 && share < Infinity);
  const least = Math.max(Math.min(0.1, ...positive), 1e-6);
  const most = Math.min(Math.max(2, ...positive), 1e6);
  // What a log axis cannot show stands at its end: an exact result, or an error that has no budget.
  const place = (share) => (share === Infinity ? most : Math.min(Math.max(share, least), most));
  const { room, axis } = nameAxis(kinds);
  const beside = Math.min(9, 26 / variants.length);
  const series = variants.map((variant, i) => {
    const style = variantStyle(view.report, variant);
    const data = shown.map((row, at) => ({ row, share: shares[at] }))
      .filter(({ row, share }) => row.variant === variant && share !== null)
      .map(({ row, share }) => ({ value: [place(share), kinds.indexOf(correctKind(row))], row: row.index }));
    return { name: variant, type: "scatter", symbol: style.symbol, symbolSize: 8,
      symbolOffset: [0, (i - (variants.length - 1) / 2) * beside],
      itemStyle: { color: style.color, opacity: 0.7 }, data,
      markLine: i > 0 ? undefined : lineAt({ xAxis: 1 }, "--bad",
        { label: { formatter: "budget", color: cssColor("--bad"), position: "start" } }) };
  });
  drawChart(root, `${name} / its budget by op, dtype and variant; the figures are in the table below`, {
    title: { text: `${name} / its budget`, left: 0, top: 0,
      textStyle: { fontSize: 13, fontWeight: 600, color: cssColor("--ink") } },
    grid: { left: room, right: 24, top: 62, bottom: 44 },
    legend: { top: 20 },
    xAxis: { type: "log", min: 10 ** Math.floor(Math.log10(least)),
      max: most <= 2 ? 2 : 10 ** Math.ceil(Math.log10(most)),
      axisLabel: { formatter: (value) => String(Number(value.toPrecision(3))) } },
    yAxis: { ...axis, splitLine: { show: true, lineStyle: { color: cssColor("--line"), opacity: 0.5 } } },
    series,
  }, { height: 120 + kinds.length * 34, tip: (item) => correctTip(view.report.rows[item.data.row], name),
    onclick: opensRow(view) });
}

function correctTip(row, name) {
  const share = errorShare(row, name);
  const said = share === 0 ? "exact" : correctShareText(share);
  return [row.key, row.variant, `${name} ${correctError(row[name])} of ${correctError(row[`budget_${name}`])}: ${said}`,
    `token rows checked: ${row.rows_checked} of ${row.rows_total}`, `verdict: ${row.verdict}`,
    "click: show it in the table"].join("\n");
}

const correctError = (value) =>
  (!isKnown(value) ? NONE : value === 0 ? "0" : value < 0.01 ? value.toExponential(2) : value.toPrecision(3));

// --- tables ---

function correctTable(view) {
  const kinds = groupBy(view.rows, (row) => JSON.stringify([row.op, row.dtype, row.variant]));
  const help = (name) => columnHelp(view.report, name);
  const head = ["op", "dtype", "variant", n("rows"), n("passed"), n("worst rel_l2 / budget", help("rel_l2")),
    n("worst max_abs / budget", help("max_abs")), n("token rows checked", help("rows_checked")),
    n("deterministic", help("deterministic")), n("seed_allclose", help("seed_allclose")),
    n("nonfinite", help("nonfinite")), "nearest to its budget"];
  const lines = [...kinds.values()].slice(0, CORRECT_LINES).map((rows) => {
    const sums = correctSums(rows);
    const passed = rows.filter((row) => row.verdict === "pass").length;
    const why = rows.find((row) => row.check_reason)?.check_reason ?? rows.find((row) => row.reason)?.reason;
    const marked = (isMarked, css, text) => (isMarked ? h("span", { class: css }, text) : text);
    const share = (value) => n(marked(value > 1, "fail", correctShareText(value)), value === null ? why : null);
    const count = (part, whole, name, isMarked = false) => n(marked(isMarked, "note", correctPart(part, whole)),
      whole === 0 ? reasonOf(view.report, rows[0], name) : null);
    return [rows[0].op, rows[0].dtype, rows[0].variant, n(String(rows.length)),
      n(marked(passed < rows.length, "note", String(passed))), ...sums.shares.map(share),
      sums.total > 0 ? n(`${sums.checked} of ${sums.total}`) : n(NONE, why),
      count(sums.same, sums.sameKnown, "deterministic", sums.same < sums.sameKnown),
      count(sums.close, sums.closeKnown, "seed_allclose"),
      sums.known > 0 ? n(marked(sums.nonfinite > 0, "fail", String(sums.nonfinite))) : n(NONE, why),
      sums.worst ? rowLink(view, sums.worst, breakable(sums.worst.case_id)) : NONE];
  });
  return h("details", { id: "correct-kinds", open: lines.length <= 12 },
    h("summary", {}, `By op, dtype and variant (${kinds.size})`),
    table("correctness by op, dtype and variant", head, lines), andMore([...kinds], lines));
}

function correctWorst(view) {
  const known = view.rows.filter((row) => row.error_share !== null)
    .sort((a, b) => (a.error_share === b.error_share ? 0 : b.error_share - a.error_share));
  if (known.length === 0) return null;
  const shown = known.slice(0, CORRECT_WORST);
  const head = ["row", "verdict", ...ERROR_MEASURES.flatMap((name) => [n(name), n("budget"), n("share")]),
    n("token rows checked")];
  const lines = shown.map((row) => [
    rowLink(view, row), verdictText(row.verdict),
    ...ERROR_MEASURES.flatMap((name) => [n(correctError(row[name])), n(correctError(row[`budget_${name}`])),
      n(correctShareText(errorShare(row, name)))]),
    n(isKnown(row.rows_checked) ? `${row.rows_checked} of ${row.rows_total}` : NONE)]);
  return h("details", { id: "correct-worst" },
    h("summary", {}, known.length === shown.length ? "Every row, nearest to its budget first"
      : `The ${shown.length} rows nearest to their budgets, of ${known.length}`),
    table("rows nearest to their budgets", head, lines));
}

// Rows that passed and yet want a look, by name.
function correctOddities(view) {
  const oddity = (id, name, text) => {
    const rows = view.rows.filter((row) => row[name] === false);
    if (rows.length === 0) return null;
    const shown = rows.slice(0, CORRECT_WORST);
    return h("details", { id }, h("summary", {}, `${plural(rows.length, "row")} ${text}`),
      h("ul", {}, shown.map((row) =>
        h("li", {}, rowLink(view, row), row.verdict === "pass" ? null : [" ", verdictText(row.verdict)]))),
      andMore(rows, shown));
  };
  return [
    oddity("correct-changing", "deterministic",
      "not deterministic: launched again, they gave other bits, which were judged anew"),
    oddity("correct-far", "seed_allclose", "not within the seed's own tolerance of 2e-3"),
  ];
}

// --- mutants ---

// A case's variants share its check, so that a mutant counts once a case. By name: in how many cases it was rejected,
// left out as equivalent, or let through.
function correctMutantCounts(rows) {
  const cases = [...groupBy(rows, (row) => row.case_id).values()].map((own) => {
    const mutants = new Map();
    for (const row of own) {
      for (const { name, outcome } of row.mutants) {
        if (mutants.get(name)?.outcome !== "let through") mutants.set(name, { name, outcome, row });
      }
    }
    return [...mutants.values()];
  });
  const names = [...groupBy(cases.flat(), (mutant) => mutant.name)].map(([name, all]) => {
    const of = (outcome) => all.filter((mutant) => mutant.outcome === outcome).length;
    const through = all.filter((mutant) => !["rejected", "equivalent"].includes(mutant.outcome))
      .map((mutant) => mutant.row);
    return { name, rejected: of("rejected"), equivalent: of("equivalent"), through };
  });
  return { names, proved: cases.filter((mutants) => mutants.length > 0).length, cases: cases.length };
}

function correctMutantSums({ names }) {
  const rejected = sumOf(names.map((one) => one.rejected));
  const through = sumOf(names.map((one) => one.through.length));
  return { rejected, through, equivalent: sumOf(names.map((one) => one.equivalent)), tried: rejected + through };
}

const CORRECT_MUTANTS = "outputs that are exactly what a kernel with one mistake would leave: the check must reject "
  + "them (fusebench run --prove)";

function correctMutantTile(view, tile) {
  const counts = correctMutantCounts(view.rows);
  const sums = correctMutantSums(counts);
  const title = h("abbr", { title: CORRECT_MUTANTS }, "wrong outputs rejected");
  if (counts.proved === 0) {
    return tile("mutants", title, NONE,
      `The check was not tried on wrong outputs: ${correctFirstReason(view, "mutants_tried")
        .replace(/^run without/, "this was a run without")}.`);
  }
  const through = counts.names.filter((one) => one.through.length > 0).map((one) => one.name);
  return tile("mutants", title, `${sums.rejected} of ${sums.tried}`,
    sums.through > 0 ? `${sums.through} let through: ${through.slice(0, CORRECT_NAMED).join("; ")}.`
      : `None was let through, in ${plural(counts.proved, "case")}`
        + `${counts.proved < counts.cases ? ` of ${counts.cases}` : ""}.`, sums.through > 0);
}

function correctMutants(view) {
  const counts = correctMutantCounts(view.rows);
  if (counts.proved === 0) return null;
  const sums = correctMutantSums(counts);
  const sorted = [...counts.names].sort((a, b) => b.through.length - a.through.length);
  const lines = sorted.slice(0, CORRECT_LINES).map((one) => [
    one.name, n(String(one.rejected + one.through.length)), n(String(one.rejected)), n(String(one.equivalent)),
    n(one.through.length > 0 ? h("span", { class: "fail" }, String(one.through.length)) : "0"),
    one.through.length > 0 ? rowLink(view, one.through[0]) : ""]);
  return h("details", { id: "correct-mutants", open: sums.through > 0 },
    h("summary", {},
      `Proof that the check can fail: ${sums.tried} wrong outputs tried in ${plural(counts.proved, "case")}, `
        + `${sums.rejected} rejected, ${sums.through} let through`),
    h("p", { class: "soft" },
      `A wrong output is what a kernel with one mistake would leave. ${sums.equivalent} more were not tried, since `
        + "they leave their case's exact result as it is. A case's variants share its check, so each counts once a "
        + "case."),
    table("wrong outputs", ["wrong output", n("cases tried"), n("rejected"), n("equivalent"), n("let through"), "in"],
      lines),
    andMore(sorted, lines, ""));
}
