// What the parts share: logarithmic axes, cells of tables, and short names.

// A row whose latency may be drawn.
const isTimed = (row) => row.verdict === "pass" && isKnown(row.median_us) && row.median_us > 0;

// Marks of a logarithmic axis from `low` to `high`: powers of ten, with their halves and fifths where these are few.
function logMarks(low, high) {
  const decades = Math.log10(high / low);
  if (!(decades < 40)) return [low, high]; // figures that no device has
  const parts = decades > 3.5 ? [1] : decades > 1.6 ? [1, 3] : [1, 1.5, 2, 3, 5, 7];
  const marks = [];
  for (let exponent = Math.floor(Math.log10(low)); exponent <= Math.ceil(Math.log10(high)); ++exponent) {
    for (const part of parts) marks.push(Number((part * 10 ** exponent).toPrecision(2)));
  }
  return marks.filter((mark) => mark >= low * 0.999 && mark <= high * 1.001);
}

// A logarithmic axis around positive values, a little wider than they are.
function logAxis(name, values, { marks = null, format = axisNumber, room = 0.06 } = {}) {
  const known = values.filter((value) => isKnown(value) && value > 0);
  if (known.length === 0) return { type: "value", name };
  const wider = Math.max(room * Math.log10(largest(known) / smallest(known)), 0.08);
  const min = smallest(known) / 10 ** wider;
  const max = largest(known) * 10 ** wider;
  const at = marks ?? logMarks(min, max);
  return { type: "log", name, min, max,
    axisTick: { customValues: at }, axisLabel: { customValues: at, formatter: format, hideOverlap: true },
    splitLine: { show: true, lineStyle: { color: cssColor("--line"), opacity: 0.6 } },
    minorSplitLine: { show: false } };
}

// An axis of names, from the top down, and the room that it takes beside the chart.
function nameAxis(names, most = Infinity) {
  const room = Math.min(18 + 7 * largest(names.map((name) => name.length)), most);
  return { room, axis: { type: "category", inverse: true, data: names, axisTick: { show: false },
    axisLabel: { width: room - 12, overflow: "truncate", interval: 0 } } };
}

const timesCompulsory = (row) =>
  `${formatTimes(row.moved_bytes / row.bytes_compulsory)} the compulsory ${formatBytes(row.bytes_compulsory)}`;

// --- tables ---

// A cell with a figure.
const n = (text, title = null) => ({ text, class: "n", title });


// A row's figure; a dash says why on hover.
function columnCell(report, row, name, format = fourDigits) {
  return n(format(row[name]), isKnown(row[name]) ? null : whyNot(report, row, name));
}

// Under a table that has a part of a list.
function andMore(all, shown, where = ": filters show fewer; results.csv has all") {
  return all.length > shown.length ? h("p", { class: "soft" }, `And ${all.length - shown.length} more${where}.`) : null;
}

// A row's speed-up over another variant, with its interval.
const speedupOf = (row, over) => formatTimes(...["", "_lo", "_hi"].map((end) => row[`speedup_vs_${over}${end}`]));

function speedupCell(row, over) {
  return n(speedupOf(row, over), isKnown(row[`speedup_vs_${over}`]) ? null : row[`speedup_vs_${over}_reason`]);
}

// Opens a row where it stands in the table.
function rowLink(view, row, text = [breakable(row.label), ` (${row.mode})`]) {
  return actionLink("#table", `${row.label} (${row.mode}): show it in the table`, text, () => view.open(row));
}

// For charts whose data have their own text, and for those whose data name rows: a click on one opens it.
const hoverOf = (item) => item.data?.hover;
const opensRow = (view) => (item) => {
  if (item.data?.row !== undefined) view.open(view.report.rows[item.data.row]);
};

// Buttons of which one is chosen; the choice is kept in the address under `key`.
function choiceButtons(view, key, label, choices, chosen) {
  return buttonGroup(label, choices, { "data-choice": key, isPressed: (value) => value === chosen,
    press: (value) => view.state.set({ [key]: value }) });
}

// --- names ---

// Of rows, or of cases, without what all of them share; op and dtype stay.
function shortNames(all) {
  const split = all.map((one) => [...String(one.case_id).split("/"), one.mode, one.variant]
    .filter((part) => part !== undefined));
  const counts = countBy(split.flatMap((parts) => distinct(parts)));
  return split.map((parts) => parts.filter((part, i) => i < 2 || counts.get(part) < all.length).join(" "));
}

function clipped(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}\u2026` : text;
}

// By how much the larger of two exceeds the smaller, from their ratio.
const apartOf = (ratio) => Math.max(ratio, 1 / ratio) - 1;

// What the samples say of a row's speed-up over another variant: the records call the library's product cublas on the
// CPU, too.
function judgeSpeedup(report, row, over) {
  const [value, lo, hi] = ["", "_lo", "_hi"].map((end) => row[`speedup_vs_${over}${end}`]);
  const judged = { value, lo, hi, kind: "unknown", control: controlNear(report, row.median_us) };
  if (!isKnown(value)) return judged;
  if (!isKnown(lo) || !isKnown(hi)) return { ...judged, kind: "few" };
  if (lo <= 1 && hi >= 1) return { ...judged, kind: "same" };
  if (judged.control !== null && apartOf(value) <= judged.control) return { ...judged, kind: "noise" };
  return { ...judged, kind: value > 1 ? "faster" : "slower" };
}

// By how much one variant, timed as if it were two, differed from itself in this run, at latencies like this one.
function controlNear(report, us) {
  const controls = report.header?.controls;
  if (!Array.isArray(controls) || !isKnown(us)) return null;
  const isNear = (one) => one.ratio > 0 && one.median_us > us / 3 && one.median_us < us * 3;
  const near = controls.filter((one) => isKnown(one?.ratio) && isNear(one));
  return near.length > 0 ? largest(near.map((one) => apartOf(one.ratio))) : null;
}
