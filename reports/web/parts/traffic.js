// Bytes: compulsory for the op, modelled by each variant's steps, and measured by the counters.
PARTS.push({
  id: "traffic",
  order: 20,
  title: "Traffic",
  about: "The bytes that each variant moves, beside those that the op cannot do without.",
  render(root, view) {
    root.append(caseChooser(view));
    const rows = view.selected.rows;
    append(root, [h("p", { class: "headline" }, trafficHeadline(view.report, rows)), trafficVerdictNotes(rows),
      trafficDetails(rows)]);
    const by = rows.some(trafficHasTensors) && view.state.get("traffic_by") === "tensor" ? "tensor" : "";
    const without = view.state.get("traffic_without");
    const left = rows.filter((row) => !without.includes(row.variant));
    const drawn = left.slice(0, TRAFFIC_MOST_VARIANTS);
    root.append(trafficSwitches(view, rows, by));
    if (left.length === 0) root.append(h("p", { class: "note" }, "All variants are left out: choose one above."));
    else trafficDrawBars(root, view, drawn, by);
    append(root, [andMore(left, drawn, ": leave out others above to see them")]);
    append(root, [trafficReasons(view.report, rows), trafficStepTable(view.report, rows), trafficTensorTable(rows)]);
    trafficOverview(root, view);
  },
});

// In the order in which they stand in a bar.
const TRAFFIC_STORAGE = [
  { name: "op", color: "#009e73", group: "inputs and outputs", text: "the op's own inputs and outputs" },
  { name: "prepared", color: "#cc79a7", group: "prepared", text: "weights in a form prepared once" },
  { name: "workspace", color: "#e69f00", group: "intermediates", text: "intermediates: what fusing can save" },
];
const TRAFFIC_OP_COLOR = TRAFFIC_STORAGE[0].color;
const TRAFFIC_OLD = "these records have no bytes by tensor: they are of an older version";
const TRAFFIC_GREY = "#8a8a8a";
const TRAFFIC_LATE = "#56b4e9";
const TRAFFIC_HATCHING = { symbol: "rect", color: "rgba(0, 0, 0, 0.25)", dashArrayX: [1, 0], dashArrayY: [1, 5],
  rotation: Math.PI / 4 };
const TRAFFIC_MOST_PIECES = 14;
const TRAFFIC_MOST_VARIANTS = 10;
const TRAFFIC_MOST_CASES = 60;

const trafficSigned = (value, format) => (value === 0 ? "0" : formatSigned(value, format));

// Records of older versions have no tensors.
function trafficHasTensors(row) {
  return row.steps.some((step) => Object.keys(step.reads).length + Object.keys(step.writes).length > 0);
}

const trafficBaseline = (report, rows) => rows.find((row) => row.variant === report.baseline)
  ?? rows.find((row) => row.variant === "cublas" || row.variant === "eigen") ?? null;

// --- said first ---

function trafficHeadline(report, rows) {
  const known = rows.filter((row) => isKnown(row.moved_bytes));
  if (known.length === 0) return "No variant of this case has bytes: none has a plan.";
  const lead = known.find((row) => row.variant === "fused") ?? known.at(-1);
  const others = known.filter((row) => row !== lead);
  const base = trafficBaseline(report, others) ?? others[0] ?? null;
  const { isMeasured, of: bytes } = bytesOfOneKind([lead, base].filter(Boolean));
  const share = base && ratioOf(bytes(lead), bytes(base));
  const parts = [];
  if (isKnown(share)) {
    const part = share > 9.99 ? formatTimes(share) : formatPercent(share);
    parts.push(`${part} of ${base.variant}'s ${formatBytes(bytes(base))}`);
  }
  if (lead.bytes_compulsory > 0) {
    const times = trafficTimes(bytes(lead) / lead.bytes_compulsory);
    parts.push(`${times} the compulsory ${formatBytes(lead.bytes_compulsory)}`);
  }
  const note = isMeasured ? "" : " These bytes are modelled, not measured.";
  return `${lead.variant} moves ${formatBytes(bytes(lead))}${parts.length ? `: ${parts.join(" and ")}` : ""}.${note}`;
}

const trafficTimes = (ratio) =>
  (ratio < 1.005 && ratio > 0.995 ? "just" : `${formatTimes(ratio).replace("x", "")} times`);

// Which step moves most, and how much is intermediates.
function trafficDetails(rows) {
  const sentences = rows.filter((row) => row.steps.length > 1 && row.moved_bytes > 0).map((row) => {
    const figure = (step) => (row.isMeasured ? step.measured_bytes : step.bytes_modelled);
    const most = row.steps.reduce((best, step) => (figure(step) > figure(best) ? step : best));
    const stored = trafficHasTensors(row) ? trafficWorkspaceShare(row) : null;
    return h("li", {}, `${row.variant}: ${most.name} moves most, ${formatPercent(figure(most) / row.moved_bytes)}`,
      isKnown(stored) && `; ${formatPercent(stored)} of its modelled bytes is intermediates, stored and read again`);
  });
  return sentences.length ? h("ul", { class: "soft" }, sentences) : null;
}

function trafficWorkspaceShare(row) {
  const stored = [...trafficByTensor(row).values()].filter(({ tensor }) => tensor?.storage === "workspace");
  return ratioOf(sumOf(stored.map(trafficPieceBytes)), sumOf(row.steps.map((step) => step.bytes_modelled)));
}

// A row that did not pass may have bytes and times all the same.
const trafficVerdictNotes = (rows) => rows.filter((row) => row.verdict !== "pass" && row.steps.length > 0)
  .map((row) => h("p", { class: "warning" },
    `${row.variant} did not pass: ${row.verdict}${row.reason ? `, ${row.reason}` : ""}`));

// Why a row has no measured bytes, or no plan.
function trafficReasons(report, rows) {
  const missing = (said, isMissing, why) => [...groupBy(rows.filter(isMissing), why)].map(([reason, own]) =>
    h("p", { class: "note" }, `${said} (${own.map((row) => row.variant).join(", ")}): ${reason}`));
  const reason = (name) => (row) => whyNot(report, row, name, NO_REASON);
  return [
    missing("Not modelled", (row) => !isKnown(row.bytes_modelled), reason("bytes_modelled")),
    missing("Not measured", (row) => !isKnown(row.measured_bytes), reason("dram_read_bytes")),
    missing("Not known by tensor", (row) => row.steps.length > 0 && !trafficHasTensors(row),
      () => "the record is of an older version of fusebench"),
  ];
}

// --- switches ---

function trafficSwitches(view, rows, by) {
  const without = view.state.get("traffic_without");
  const canTensor = rows.some(trafficHasTensors);
  const variants = distinct(rows, (row) => row.variant).map((name) => [name, name, "leave out or bring back"]);
  const kinds = [["", "step", "one piece a launch of the plan"],
    ["tensor", "tensor", canTensor ? "one piece a tensor that the steps read or write" : TRAFFIC_OLD, !canTensor]];
  return h("div", { class: "switches" },
    choiceButtons(view, "traffic_by", "modelled bytes by", kinds, by),
    rows.length < 2 ? null : buttonGroup("variants", variants, { isPressed: (name) => !without.includes(name),
      press: (name) => view.state.set({ traffic_without: toggled(without, name) }) }));
}

// --- pieces of a bar: { label, group, color, read, written, hover, isKept } ---

const trafficPieceBytes = (piece) => piece.read + piece.written;
const trafficPiece = (label, color, read, written, hover, isKept = false) =>
  ({ label, group: "", color, read: read || 0, written: written || 0, hover, isKept });

// Compulsory bytes are the same for every variant. A plan that reads prepared weights does not name them, another does.
function trafficCompulsoryTensors(report, row) {
  const tensors = new Map();
  for (const other of report.rows) {
    if (other.case_id !== row.case_id || other.backend !== row.backend) continue;
    for (const tensor of other.tensors) {
      if (tensor.compulsory_read_bytes + tensor.compulsory_write_bytes > 0 && !tensors.has(tensor.name)) {
        tensors.set(tensor.name, tensor);
      }
    }
  }
  return [...tensors.values()];
}

function trafficCompulsoryPieces(report, row) {
  const tensors = trafficCompulsoryTensors(report, row);
  const sum = sumOf(tensors.map((tensor) => tensor.compulsory_read_bytes + tensor.compulsory_write_bytes));
  // What does not add up is not divided.
  if (tensors.length === 0 || sum > row.bytes_compulsory) {
    return [trafficPiece("inputs and outputs", TRAFFIC_OP_COLOR, row.bytes_compulsory, 0,
      "each input read once, each output written once\nnot divided: the record does not say by which tensor", true)];
  }
  const pieces = tensors.map((tensor) => {
    const own = row.tensors.some((one) => one.name === tensor.name);
    const hover = trafficTensorText(row, tensor)
      + (own || row.tensors.length === 0 ? "" : "\nthis plan reads it in a form prepared once");
    return trafficPiece(tensor.name, TRAFFIC_OP_COLOR, tensor.compulsory_read_bytes, tensor.compulsory_write_bytes,
      hover);
  });
  if (sum < row.bytes_compulsory) {
    pieces.push(trafficPiece("other inputs and outputs", TRAFFIC_GREY, row.bytes_compulsory - sum, 0,
      "of no tensor that these plans name", true));
  }
  return trafficShade(pieces);
}

function trafficTensorPieces(row) {
  const pieces = [...trafficByTensor(row)].map(([name, { tensor, read, written }]) => {
    const rank = TRAFFIC_STORAGE.findIndex((one) => one.name === tensor?.storage);
    const { color = TRAFFIC_GREY, group = "" } = TRAFFIC_STORAGE[rank] ?? {};
    const piece = trafficPiece(name, color, read, written, trafficTensorText(row, tensor ?? { name }));
    return { ...piece, group, rank: rank < 0 ? TRAFFIC_STORAGE.length : rank };
  });
  return trafficShade(pieces.sort((a, b) => a.rank - b.rank));
}

// name -> { tensor, read, written, readers, writers }
function trafficByTensor(row) {
  const untouched = (tensor) => ({ tensor, read: 0, written: 0, readers: [], writers: [] });
  const all = new Map(row.tensors.map((tensor) => [tensor.name, untouched(tensor)]));
  const add = (step, touches, bytesName, stepsName) => {
    for (const [name, bytes] of Object.entries(touches)) {
      if (!all.has(name)) all.set(name, untouched(null));
      all.get(name)[bytesName] += bytes;
      all.get(name)[stepsName].push(step.name);
    }
  };
  for (const step of row.steps) {
    add(step, step.reads, "read", "readers");
    add(step, step.writes, "written", "writers");
  }
  return all;
}

function trafficStepPieces(row, colors, readOf, writtenOf) {
  return row.steps.map((step) => {
    const piece = trafficPiece(step.name, colors.get(step.name), readOf(step), writtenOf(step), trafficStepText(step));
    return { ...piece, group: trafficStage(row, step) };
  });
}

// What of the total is in no piece gets a piece. Less than nothing cannot be drawn: the table says it.
function trafficClosed(pieces, total, label, hover) {
  const rest = total - sumOf(pieces.map(trafficPieceBytes));
  return rest > 0 ? [...pieces, trafficPiece(label, TRAFFIC_GREY, rest, 0, hover, true)] : pieces;
}

function trafficMeasuredPieces(row, colors) {
  const pieces = trafficStepPieces(row, colors, (step) => step.dram_read_bytes, (step) => step.dram_write_bytes);
  if (row.dram_late_write_bytes > 0) {
    pieces.push(trafficPiece("late writes", TRAFFIC_LATE, 0, row.dram_late_write_bytes,
      "still in L2 when the plan ended, written to HBM after it", true));
  }
  return trafficClosed(pieces, row.measured_bytes, row.steps.length ? "in no step" : "the whole plan",
    "measured over the plan, and over no step: plan and steps are measured in launches of their own");
}

// Small pieces of a group (a stage, a kind of storage) become one, so that a plan of many steps can be read. The order
// stays.
function trafficMerged(pieces) {
  const seen = pieces.filter((piece) => trafficPieceBytes(piece) > 0);
  const total = sumOf(seen.map(trafficPieceBytes));
  const bySize = [...seen].sort((a, b) => trafficPieceBytes(b) - trafficPieceBytes(a));
  const large = new Set(bySize.slice(0, TRAFFIC_MOST_PIECES)
    .filter((piece) => trafficPieceBytes(piece) >= 0.01 * total));
  const small = groupBy(bySize.filter((piece) => !piece.isKept && !large.has(piece)), (piece) => piece.group);
  return seen.flatMap((piece) => {
    const others = small.get(piece.group) ?? [];
    if (others.length < 2 || !others.includes(piece)) return [piece];
    const isLast = seen.findLast((one) => others.includes(one)) === piece;
    return isLast ? [trafficOther(others)] : [];
  });
}

function trafficOther(pieces) {
  const group = pieces[0].group;
  const names = pieces.slice(0, 10).map((piece) => `${piece.label}: ${formatBytes(trafficPieceBytes(piece))}`);
  const hover = `${names.join("\n")}${pieces.length > 10 ? `\nand ${pieces.length - 10} more: the table has all` : ""}`;
  return trafficPiece(`other${group ? ` ${group}` : ""} (${pieces.length})`, group ? pieces[0].color : TRAFFIC_GREY,
    sumOf(pieces.map((piece) => piece.read)), sumOf(pieces.map((piece) => piece.written)), hover);
}

// --- colours ---

const trafficRgb = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));

// A colour with so much white.
function trafficMix(color, share) {
  const mixed = trafficRgb(color).map((part) => Math.round(part * (1 - share) + 255 * share));
  return `#${mixed.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

function trafficInk(color) {
  const [r, g, b] = trafficRgb(color);
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#111111" : "#ffffff";
}

// Neighbours of one colour differ a little: gives the next shade of each colour that it is asked for.
function trafficShades() {
  const seen = new Map();
  return (color) => {
    const count = seen.get(color) ?? 0;
    seen.set(color, count + 1);
    return trafficMix(color, [0, 0.25, 0.12][count % 3]);
  };
}

function trafficShade(pieces) {
  const shade = trafficShades();
  return pieces.map((piece) => ({ ...piece, color: shade(piece.color) }));
}

const trafficStage = (row, { name }) =>
  (row.op === "block" && name.includes(".") ? name.slice(0, name.indexOf(".")) : "");

// A step has one colour in all bars: its stage's in a block, otherwise its own.
function trafficStepColors(rows) {
  const names = [...new Map(rows.flatMap((row) => row.steps.map((step) => [step.name, trafficStage(row, step)])))];
  const stages = distinct(names, ([, stage]) => stage);
  const hues = PALETTE.filter((color) => color !== TRAFFIC_GREY && color !== TRAFFIC_LATE);
  const hue = (i) => hues[i % hues.length];
  const shade = trafficShades();
  const colors = new Map(names.map(([name, stage], i) =>
    [name, stages.length > 1 ? shade(hue(stages.indexOf(stage))) : hue(i)]));
  colors.stages = stages.length > 1 ? stages.map((stage, i) => [stage || "no stage", hue(i)]) : [];
  return colors;
}

// --- what hovering says ---

function trafficNames(names) {
  if (names.length === 0) return "no step";
  return names.length > 6 ? `${names.slice(0, 5).join("; ")}; and ${names.length - 5} more` : names.join("; ");
}

function trafficTensorText(row, tensor) {
  const touched = trafficByTensor(row).get(tensor.name);
  const lines = [[tensor.storage, tensor.dtype, tensor.dims?.length ? `[${tensor.dims.join(", ")}]` : null]
    .filter(Boolean).join(", ")];
  if (tensor.compulsory_read_bytes > 0) lines.push(`compulsory: read ${formatBytes(tensor.compulsory_read_bytes)}`);
  if (tensor.compulsory_write_bytes > 0) {
    lines.push(`compulsory: written ${formatBytes(tensor.compulsory_write_bytes)}`);
  }
  if (touched) {
    const isGiven = touched.writers.length === 0 && tensor.storage !== "workspace";
    const writers = isGiven ? "no step: it is given" : trafficNames(touched.writers);
    lines.push(`written by ${writers}, ${formatBytes(touched.written)}`);
    lines.push(`read by ${trafficNames(touched.readers)}, ${formatBytes(touched.read)}`);
  }
  return lines.filter(Boolean).join("\n");
}

function trafficStepText(step) {
  const touches = (given) => Object.entries(given).map(([name, bytes]) => `${name} ${formatBytes(bytes)}`);
  const both = (read, written) => `reads ${formatBytes(read)}, writes ${formatBytes(written)}`;
  const lines = [step.kernel, `modelled: ${both(step.bytes_read, step.bytes_written)}`];
  if (Object.keys(step.reads).length) lines.push(`reads ${trafficNames(touches(step.reads))}`);
  if (Object.keys(step.writes).length) lines.push(`writes ${trafficNames(touches(step.writes))}`);
  if (step.isMeasured) {
    lines.push(`measured in its place: ${both(step.dram_read_bytes, step.dram_write_bytes)}`);
  }
  return lines.filter(Boolean).join("\n");
}

// --- the chart ---

function trafficBars(view, rows, by) {
  const colors = trafficStepColors(rows);
  return rows.flatMap((row) => {
    const modelled = by === "tensor" && trafficHasTensors(row) ? trafficTensorPieces(row)
      : trafficStepPieces(row, colors, (step) => step.bytes_read, (step) => step.bytes_written);
    const bar = (kind, total, pieces) => ({ row, kind, total, pieces: isKnown(total) ? trafficMerged(pieces()) : [] });
    return [
      bar("compulsory", row.bytes_compulsory, () => trafficCompulsoryPieces(view.report, row)),
      bar("modelled", row.bytes_modelled, () => trafficClosed(modelled, row.bytes_modelled,
        row.steps.length ? "in no step" : "the whole plan", "modelled for the plan, and for no step")),
      bar("measured", row.measured_bytes, () => trafficMeasuredPieces(row, colors)),
    ];
  });
}

function trafficDrawBars(root, view, rows, by) {
  const bars = trafficBars(view, rows, by);
  // A gap between variants.
  const lines = bars.flatMap((bar, i) => (i > 0 && i % 3 === 0 ? [null, bar] : [bar]));
  const drawn = (bar) => Math.max(sumOf([bar.total]), sumOf(bar.pieces.map(trafficPieceBytes)));
  const most = Math.max(...bars.map(drawn), 1);
  const interval = trafficNiceStep(most);
  const names = lines.map((bar) =>
    (bar === null ? "" : bar.kind === "compulsory" ? `${bar.row.variant}  ${bar.kind}` : bar.kind));
  const { room, axis } = nameAxis(names, 240);
  const right = 88;
  const end = Math.ceil(most / interval - 1e-9) * interval;
  const pixels = Math.max((root.clientWidth || 900) - room - right, 100) / end;
  const parts = lines.map((bar) =>
    (bar === null ? [] : bar.pieces.flatMap((piece) => trafficParts(bar, piece, pixels))));
  const slots = Math.max(...parts.map((list) => list.length), 1);
  const series = Array.from({ length: slots }, (_, slot) => ({
    type: "bar", stack: "bytes", name: `piece ${slot + 1}`, barCategoryGap: "12%",
    data: parts.map((list) => list[slot] ?? null),
  }));
  const total = (bar) => {
    const said = isKnown(bar.total) ? formatBytes(bar.total) : bar.kind === "measured" ? "not measured" : "not known";
    const color = cssColor(isKnown(bar.total) ? "--ink" : "--warn");
    return { value: 0, label: { show: true, position: "right", color, formatter: said } };
  };
  const totals = lines.map((bar) => bar && total(bar));
  series.push({ type: "bar", stack: "bytes", name: "total", silent: true, data: totals });
  drawChart(root, `Bytes of ${view.selected.key}. ${trafficHeadline(view.report, rows)}`, {
    grid: { left: room, right, top: 34, bottom: 40 },
    xAxis: { type: "value", max: end, interval, axisLabel: { formatter: axisBytes, hideOverlap: true } },
    yAxis: axis,
    series,
  }, { height: 34 * lines.length + 90, tip: hoverOf,
    onclick: (item) => { if (lines[item.dataIndex]) view.open(lines[item.dataIndex].row); } });
  root.append(trafficKeys(rows, by));
}

// A piece's reads are plain, its writes hatched.
function trafficParts(bar, piece, pixels) {
  const isReadLarger = piece.read >= piece.written;
  const part = (bytes, verb, isLabelled) => {
    const width = bytes * pixels - 8;
    const color = verb === "written" ? trafficMix(piece.color, 0.2) : piece.color;
    const said = `${formatBytes(bytes)} ${verb}, ${formatPercent(bytes / bar.total)} of ${formatBytes(bar.total)}`;
    return {
      value: bytes, name: piece.label, verb,
      hover: `${bar.row.variant}, ${bar.kind}\n${piece.label}\n${said}\n${piece.hover}`,
      itemStyle: { color, borderColor: cssColor("--paper"), borderWidth: bytes * pixels > 4 ? 1 : 0,
        decal: verb === "written" ? TRAFFIC_HATCHING : { color: "rgba(0, 0, 0, 0)" } },
      label: { show: isLabelled && width > 40, position: "inside", formatter: plainText(trafficShort(bar, piece)),
        width, overflow: "truncate", ellipsis: "\u2026", fontSize: 11,
        color: trafficInk(color), textBorderColor: color, textBorderWidth: 2 },
    };
  };
  return [piece.read > 0 ? part(piece.read, "read", isReadLarger) : null,
    piece.written > 0 ? part(piece.written, "written", !isReadLarger) : null].filter(Boolean);
}

const trafficShort = (bar, { label }) =>
  (bar.row.op === "block" ? label.replace(/^(qkv|attention|attn_out|mlp)\./, "") : label);

function trafficKeys(rows, by) {
  const swatch = (color, css = "") => {
    const made = h("span", { class: `swatch ${css}` });
    made.style.backgroundColor = color;
    return made;
  };
  const colors = trafficStepColors(rows);
  const entries = [
    ...(by === "" ? colors.stages : TRAFFIC_STORAGE.map(({ color, text }) => [text, color])),
    ...(by === "" && rows.some((row) => row.tensors.length)
      ? [["compulsory: the op's inputs and outputs", TRAFFIC_OP_COLOR]] : []),
    ...(rows.some((row) => row.dram_late_write_bytes > 0) ? [["late writes", TRAFFIC_LATE]] : []),
  ];
  return h("p", { class: "keys soft" }, h("span", {}, swatch(TRAFFIC_GREY), "read"),
    h("span", {}, swatch(trafficMix(TRAFFIC_GREY, 0.2), "hatched"), "written"),
    entries.map(([text, color]) => h("span", {}, swatch(color), text)));
}

// 1, 2 or 5 times a power of ten: about six on an axis.
function trafficNiceStep(most) {
  const power = 10 ** Math.floor(Math.log10(most / 4));
  return power * [1, 2, 5, 10].find((factor) => (factor * power) * 6 >= most);
}

// --- the figures ---

const trafficCell = (bytes, title = null) => n(formatMb(bytes), isKnown(bytes) ? null : title);

function trafficStepTable(report, rows) {
  const columns = report.stepColumns;
  const help = (name) => columnHelp(report, name, columns);
  const lines = rows.flatMap((row) => {
    const why = whyNot(report, row, "dram_read_bytes");
    const measured = (step, name) => trafficCell(step[name], reasonOf(report, step, name, columns) ?? why);
    const steps = row.steps.map((step) => [row.variant, step.name, step.kernel,
      trafficCell(step.bytes_read), trafficCell(step.bytes_written),
      measured(step, "dram_read_bytes"), measured(step, "dram_write_bytes"),
      n(formatTimes(ratioOf(step.measured_bytes, step.bytes_modelled)))]);
    const isWhole = (name) => row.steps.length > 0 && row.steps.every((step) => isKnown(step[name]));
    const sum = (name) => (isWhole(name) ? sumOf(row.steps.map((step) => step[name])) : null);
    const late = row.dram_late_write_bytes;
    const difference = (plan, steps) =>
      (isKnown(plan) && isKnown(steps) ? n(trafficSigned(plan - steps, formatMb)) : trafficCell(null, why));
    const readDifference = difference(row.dram_read_bytes, sum("dram_read_bytes"));
    const inTime = isKnown(row.dram_write_bytes) ? row.dram_write_bytes - (late ?? 0) : null;
    const writeDifference = difference(inTime, sum("dram_write_bytes"));
    const bold = (text) => h("strong", {}, text);
    const lateHead = { text: "late writes", title: columnHelp(report, "dram_late_write_bytes") };
    const differenceHead = { text: "plan less its steps",
      title: "the plan and its steps are measured in launches of their own: this is what they differ by" };
    return [...steps,
      [row.variant, lateHead, "", "", "", "", trafficCell(late, why), ""],
      [row.variant, differenceHead, "", "", "", readDifference, writeDifference, ""],
      [bold(row.variant), bold("the plan"), "",
        ...["bytes_read", "bytes_written"].map((name) => trafficCell(sum(name), "the plan has no steps")),
        trafficCell(row.dram_read_bytes, why), trafficCell(row.dram_write_bytes, why),
        n(formatTimes(ratioOf(row.measured_bytes, row.bytes_modelled)))]];
  });
  const heads = ["variant", "step", "kernel", n("modelled read", help("bytes_read")),
    n("modelled written", help("bytes_written")), n("measured read", help("dram_read_bytes")),
    n("measured written", help("dram_write_bytes")),
    n("measured / modelled", "measured bytes over modelled bytes, reads and writes together")];
  return h("details", { class: "by-step" }, h("summary", {}, "Figures by step, in MB"),
    h("p", { class: "soft" },
      "A step is measured in its place: what it left in L2 is written while later steps run, so that a step's own "
        + "writes may be less than modelled and the next one's more."),
    table("bytes by step", heads, lines));
}

function trafficTensorTable(rows) {
  const line = (row, name, { tensor, read, written, readers, writers }) => [
    row.variant, name, tensor?.storage ?? NONE, tensor?.dtype ?? NONE,
    Array.isArray(tensor?.dims) ? tensor.dims.join(" x ") : NONE,
    trafficCell(tensor?.compulsory_read_bytes ?? 0), trafficCell(tensor?.compulsory_write_bytes ?? 0),
    trafficCell(read), trafficCell(written), writers.join("; "), readers.join("; ")];
  const lines = rows.filter(trafficHasTensors)
    .flatMap((row) => [...trafficByTensor(row)].map(([name, touched]) => line(row, name, touched)));
  if (lines.length === 0) return null;
  const heads = ["variant", "tensor", { text: "storage",
    title: "op: an input or output; prepared: made once from weights; workspace: an intermediate of the plan" },
  "dtype", "shape",
  n("compulsory read", WORDS["compulsory bytes"]), n("compulsory written", WORDS["compulsory bytes"]),
  n("modelled read", WORDS["modelled bytes"]), n("modelled written", WORDS["modelled bytes"]), "written by", "read by"];
  return h("details", { class: "by-tensor" }, h("summary", {}, "Figures by tensor, in MB"),
    table("bytes by tensor", heads, lines));
}

// --- all cases ---

function trafficOverview(root, view) {
  const ratios = view.rows.filter((row) => isKnown(row.moved_bytes) && row.bytes_compulsory > 0)
    .map((row) => ({ row, ratio: row.moved_bytes / row.bytes_compulsory }));
  root.append(h("h3", {}, "All cases"));
  if (ratios.length === 0) {
    root.append(h("p", { class: "note" }, "No row has bytes to compare with the compulsory ones."));
    return;
  }
  root.append(h("p", {}, "Bytes of each row over its ", word("compulsory bytes"),
    ": 1x is what the op cannot do without. ", word("measured bytes", "Measured"),
    " where counters could be read, otherwise ", word("modelled bytes", "modelled"), "."));
  trafficDrawDots(root, view, ratios);
  root.append(trafficRatioTable(ratios), trafficCaseTable(view, ratios));
}

// A line an op: it says something of all rows, however many there are.
function trafficRatioTable(ratios) {
  const variants = distinct(ratios, ({ row }) => row.variant);
  const cell = (list) => {
    const sorted = list.map((one) => one.ratio).sort((a, b) => a - b);
    const middle = medianOf(sorted);
    if (sorted.length === 0) return n(NONE, "no such row has bytes");
    return n(sorted.length === 1 ? formatTimes(middle) : formatTimes(middle, sorted[0], sorted.at(-1)),
      `${plural(sorted.length, "row")}: median${sorted.length > 1 ? " [least, most]" : ""}`);
  };
  const lines = [...groupBy(ratios, ({ row }) => row.op)].map(([op, list]) => [
    op, n(String(list.length)), n(String(list.filter(({ row }) => row.isMeasured).length)),
    ...variants.map((variant) => cell(list.filter(({ row }) => row.variant === variant)))]);
  const help = "bytes / compulsory bytes: the median of the op's rows, and the least and most";
  const heads = ["op", n("rows"), n("measured", "rows whose bytes were measured; the others' are modelled"),
    ...variants.map((variant) => n(variant, help))];
  return h("div", { class: "by-op" }, table("bytes over compulsory bytes, by op", heads, lines));
}

function trafficDrawnCases(view) {
  return view.groups.slice(0, TRAFFIC_MOST_CASES);
}

function trafficCaseTable(view, ratios) {
  const drawn = new Set(trafficDrawnCases(view).flatMap((group) => group.rows));
  const lines = ratios.filter(({ row }) => drawn.has(row)).map(({ row, ratio }) => [breakable(row.key), row.variant,
    n(formatMb(row.moved_bytes)), bytesKind(row), n(formatMb(row.bytes_compulsory)), n(formatTimes(ratio))]);
  return h("details", { class: "by-case" }, h("summary", {}, "Figures by case"),
    table("bytes over compulsory bytes, by case", ["case", "variant", n("MB"), "", n("compulsory MB"),
      n("ratio", "MB / compulsory MB")], lines));
}

function trafficDrawDots(root, view, ratios) {
  const groups = trafficDrawnCases(view);
  const place = new Map(groups.flatMap((group, i) => group.rows.map((row) => [row, i])));
  const names = shortNames(groups);
  const drawn = ratios.filter(({ row, ratio }) => place.has(row) && ratio > 0);
  if (drawn.length === 0) return;
  const variants = distinct(drawn, ({ row }) => row.variant);
  const { room, axis } = nameAxis(names, (root.clientWidth || 900) * 0.45);
  const least = Math.min(...drawn.map(({ ratio }) => ratio), 1);
  const series = variants.map((variant) => {
    const { color, symbol } = variantStyle(view.report, variant);
    const data = drawn.filter(({ row }) => row.variant === variant).map(({ row, ratio }) => ({
      value: [ratio, place.get(row)],
      itemStyle: row.isMeasured ? {} : { color: "transparent", borderColor: color, borderWidth: 2 },
      hover: [row.case_id, `${row.variant}, ${row.mode}`,
        `${formatBytes(row.moved_bytes)} ${bytesKind(row)}, ${timesCompulsory(row)}`].join("\n") }));
    return { type: "scatter", name: variant, symbol, symbolSize: 11, itemStyle: { color }, data };
  });
  series[0].markLine = lineAt({ xAxis: 1 }, "--soft", { type: "dashed" });
  if (view.groups.length > groups.length) {
    root.append(h("p", { class: "note" },
      `Drawn are the first ${groups.length} of ${view.groups.length} cases: the filters above choose others. The `
        + "table by op below is of all."));
  }
  drawChart(root, `Bytes over compulsory bytes of ${plural(groups.length, "case")}`, {
    grid: { left: room, right: 24, top: 40, bottom: 40 },
    legend: {},
    xAxis: { type: "log", logBase: 2, min: 2 ** Math.floor(Math.log2(least) + 1e-9),
      axisLabel: { formatter: (value) => `${value}x` }, name: "bytes / compulsory bytes", nameLocation: "middle",
      nameGap: 24 },
    yAxis: { ...axis, splitLine: { show: true, lineStyle: { color: cssColor("--line"), type: "dotted" } } },
    series,
  }, { height: Math.max(22 * groups.length + 90, 150), tip: hoverOf, onclick: (item) => {
    const group = groups[item.data?.value?.[1]];
    if (group) view.state.set({ case: group.key });
  } });
  if (drawn.some(({ row }) => !row.isMeasured)) {
    root.append(h("p", { class: "soft" }, "Hollow marks are modelled, not measured."));
  }
}
