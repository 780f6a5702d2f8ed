// What each step of the next variant saves of the one before: bytes and microseconds, predicted and measured.
PARTS.push({
  id: "waterfall",
  order: 30,
  title: "What fusing saved",
  about: "From naive through the library's variant to the fused one: which step saves which bytes, and which time.",
  render(root, view) {
    root.append(caseChooser(view));
    const chain = waterfallChain(root, view);
    if (chain.length < 2) return;
    const pairs = chain.slice(1).map((row, i) => waterfallPair(view.report, chain[i], row));
    const isMeasured = chain.every((row) => row.isMeasured && row.steps.every((step) => step.isMeasured));
    append(root, [waterfallHeadline(view.report, chain), waterfallMost(pairs.at(-1)), waterfallAdvice(chain.at(-1)),
      trafficVerdictNotes(chain), waterfallMatchNote(pairs)]);
    const kind = isMeasured && view.state.get("waterfall_kind") !== "modelled" ? "measured" : "modelled";
    // Both stand before either is drawn, so that each knows its width.
    const bytes = h("div", { class: "bytes" });
    const time = h("div", { class: "time" });
    root.append(h("div", { class: "pair" }, bytes, time));
    waterfallDrawBytes(bytes, view, chain, pairs, kind, isMeasured);
    waterfallDrawTime(time, view, chain, pairs);
    for (const pair of pairs) append(root, waterfallTable(view.report, pair));
  },
});

const WATERFALL_SAVED = "#009e73";
const WATERFALL_LOST = "#cc3377";
const WATERFALL_REST = "#8a8a8a";
const WATERFALL_MOST_BARS = 24;

// --- which variants, in which order ---

// naive, the library's, and the one that the reader asks about. Says which cannot take part, and why.
function waterfallChain(root, view) {
  const rows = view.selected.rows;
  const naive = rows.find((row) => row.variant === "naive") ?? null;
  const base = trafficBaseline(view.report, rows);
  const targets = rows.filter((row) => row !== naive && row !== base);
  const target = targets.find((row) => row.variant === view.state.get("waterfall_to"))
    ?? targets.find((row) => row.variant === "fused") ?? targets[0] ?? null;
  if (targets.length > 1) {
    const names = targets.map((row) => [row.variant]);
    root.append(h("div", { class: "switches" }, choiceButtons(view, "waterfall_to", "to", names, target.variant)));
  }
  const wanted = [["naive", naive], [view.report.baseline, base], [target?.variant ?? "fused", target]];
  const whole = view.report.groups.find((group) => group.key === view.selected.key);
  const why = (name, row) => {
    if (row) return row.steps.length > 0 ? null : `has no steps: ${whyNot(view.report, row, "launches", NO_REASON)}`;
    return whole && rowOf(whole, name) ? "is left out by the filters above." : "is not in this case.";
  };
  const note = (text) => root.append(h("p", { class: "note" }, text));
  for (const [name, row] of wanted) if (why(name, row)) note(`${name} ${why(name, row)}`);
  const chain = wanted.filter(([name, row]) => !why(name, row)).map(([, row]) => row);
  if (chain.length < 2) note("Two variants of a case are needed to say what one saves of the other.");
  return chain;
}

// --- which steps cover which ---

// Finds sets in 0..n-1 that links join.
class WaterfallSets {
  constructor(count) {
    this.parent = Array.from({ length: count }, (_, i) => i);
  }
  find(i) {
    while (this.parent[i] !== i) i = this.parent[i] = this.parent[this.parent[i]];
    return i;
  }
  join(a, b) {
    this.parent[this.find(a)] = this.find(b);
  }
}

// All steps of both variants in groups { before, after, how }, each step in one group, so that sums are sums. A group
// with one side only is not attributed. By tensors: the tensors that both variants store cut their plans into pieces,
// and pieces that end at the same tensors do the same work.
function waterfallGroups(before, after) {
  const nodes = [...before.steps.map((step) => ({ step, side: "before", stage: trafficStage(before, step) })),
    ...after.steps.map((step) => ({ step, side: "after", stage: trafficStage(after, step) }))];
  const stages = (side) => new Set(nodes.filter((node) => node.side === side).map((node) => node.stage));
  const [early, late] = [stages("before"), stages("after")];
  for (const node of nodes) node.isShared = early.has(node.stage) && late.has(node.stage);
  if (!trafficHasTensors(before) || !trafficHasTensors(after)) return waterfallByName(nodes);
  const cuts = waterfallCuts(nodes);
  // Where both variants have a stage it ends where the stage ends.
  const inStage = (a, b) => a.stage === b.stage || !a.isShared || !b.isShared;
  const groups = waterfallByFlops(waterfallJoined(nodes, cuts, inStage));
  return waterfallLeftovers(groups.flatMap((group) => waterfallFiner(group, cuts, inStage)));
}

// Tensors that both variants touch.
function waterfallCuts(nodes) {
  const touched = (side) => new Set(nodes.filter((node) => node.side === side)
    .flatMap(({ step }) => [...Object.keys(step.reads), ...Object.keys(step.writes)]));
  const after = touched("after");
  return new Set([...touched("before")].filter((name) => after.has(name)));
}

// Steps belong together where one hands the other a tensor that only its variant stores, and where they write the same
// tensor.
function waterfallJoined(nodes, cuts, mayJoin, isOther = () => false) {
  const sets = new WaterfallSets(nodes.length);
  const keyOf = (node, name) => (cuts.has(name) ? `both ${name}` : `${node.side} ${name}`);
  const writes = nodes.flatMap((node, i) =>
    Object.keys(node.step.writes).map((name) => ({ i, key: keyOf(node, name) })));
  const writers = groupBy(writes, ({ key }) => key);
  for (const [{ i: first }, ...others] of writers.values()) {
    for (const { i } of others) {
      if (mayJoin(nodes[i], nodes[first]) || nodes[i].side !== nodes[first].side) sets.join(i, first);
    }
  }
  nodes.forEach((node, reader) => Object.keys(node.step.reads).forEach((name) => {
    if (cuts.has(name)) return;
    for (const { i } of writers.get(keyOf(node, name)) ?? []) if (mayJoin(nodes[i], node)) sets.join(reader, i);
  }));
  const [host, ...rest] = [...nodes.keys()].filter((i) => isOther(nodes[i]));
  for (const i of rest) sets.join(i, host);
  const groups = groupBy([...nodes.keys()], (i) => sets.find(i));
  return [...groups.values()].map((own) => waterfallSides(own.map((i) => nodes[i])));
}

function waterfallSides(nodes, how = "tensors") {
  const of = (side) => nodes.filter((node) => node.side === side).map((node) => node.step);
  return { nodes, how, before: of("before"), after: of("after") };
}

const waterfallFlops = (steps) => sumOf(steps.map((step) => step.flops));
const waterfallIsMatched = (group) => group.before.length > 0 && group.after.length > 0;
const waterfallSameFlops = (group) =>
  Math.abs(waterfallFlops(group.before) - waterfallFlops(group.after)) <= 1e-6 * waterfallFlops(group.before);

// A product whose result only its own variant stores, for another stage, belongs to the group of its stage that lacks
// its FLOPs.
function waterfallByFlops(groups) {
  let all = groups;
  for (const group of groups) {
    if (waterfallIsMatched(group) || waterfallFlops([...group.before, ...group.after]) === 0) continue;
    const joined = (other) => waterfallSides([...other.nodes, ...group.nodes]);
    const host = all.find((other) => other !== group && waterfallIsMatched(other)
      && other.nodes.some((node) => node.stage === group.nodes[0].stage)
      && !waterfallSameFlops(other) && waterfallSameFlops(joined(other)));
    if (host) all = [...all.filter((other) => other !== host && other !== group), joined(host)];
  }
  return all;
}

// Products apart from the rest, where both sides have them apart and every piece has its match, with the same FLOPs.
function waterfallFiner(group, cuts, mayJoin) {
  if (!waterfallIsMatched(group)) return [group];
  const isProduct = (node) => node.step.flops > 0;
  const apart = (a, b) => mayJoin(a, b) && isProduct(a) === isProduct(b);
  const sets = waterfallJoined(group.nodes, cuts, apart, isProduct);
  return sets.length > 1 && sets.every((one) => waterfallIsMatched(one) && waterfallSameFlops(one)) ? sets : [group];
}

// Pieces without a match are matched by their stage, where it has some on both sides.
function waterfallLeftovers(groups) {
  const matched = groups.filter(waterfallIsMatched);
  const left = groups.filter((group) => !waterfallIsMatched(group)).flatMap((group) => group.nodes);
  for (const stage of new Set(left.map((node) => node.stage))) {
    matched.push(waterfallSides(left.filter((node) => node.stage === stage), "stage"));
  }
  return matched;
}

// Without tensors: a stage is a group. Steps of one name and the same FLOPs are groups of their own, where what they
// leave of the stage has two sides, or none.
function waterfallByName(nodes) {
  return [...new Set(nodes.map((node) => node.stage))].flatMap((stage) => {
    const own = nodes.filter((node) => node.stage === stage);
    const pairs = [...groupBy(own, (node) => node.step.name).values()]
      .filter((same) => same.length === 2 && same[0].side === "before" && same[1].side === "after")
      .filter(([a, b]) => a.step.flops === b.step.flops);
    const rest = own.filter((node) => !pairs.flat().includes(node));
    const restSides = waterfallSides(rest, "stage");
    if (rest.length > 0 && !waterfallIsMatched(restSides)) return [waterfallSides(own, "stage")];
    return [...pairs.map((pair) => waterfallSides(pair, "name")), ...(rest.length ? [restSides] : [])];
  });
}

// --- what a group saves; less is negative ---

// Lines of a pair in plan order, then what is not attributed. Each: { label, group, modelled, measured, us, predicted,
// why }.
function waterfallPair(report, before, after) {
  const order = new Map(after.steps.map((step, i) => [step, i]));
  const early = new Map(before.steps.map((step, i) => [step, i]));
  const place = (group) => (group.after.length ? order.get(group.after[0]) : 1e6 + early.get(group.before[0]));
  const groups = waterfallGroups(before, after).sort((a, b) => place(a) - place(b));
  return { before, after, groups, lines: groups.map((group) => waterfallLine(report, before, after, group)) };
}

function waterfallLine(report, before, after, group) {
  const events = report.header?.ceilings?.event_pair_us;
  const eventPair = isKnown(events) ? events : 0;
  const change = (figure) => {
    const known = [...group.before, ...group.after].every((step) => isKnown(figure(step)));
    return known ? sumOf(group.after.map(figure)) - sumOf(group.before.map(figure)) : null;
  };
  return { label: waterfallLabel(group), group, modelled: change((step) => step.bytes_modelled),
    measured: change((step) => step.measured_bytes),
    us: change((step) => (isKnown(step.time_us) ? step.time_us - eventPair : null)),
    ...waterfallPredicted(report, before, after, group) };
}

const waterfallLabel = (group) =>
  (waterfallIsMatched(group) ? group.after.map((step) => step.name).join(" + ") : "not attributed");

// Bytes predict the time of steps without FLOPs: at best the bandwidth ceiling. Gives { predicted, why }.
function waterfallPredicted(report, before, after, group) {
  const gbps = report.header?.ceilings?.bandwidth_gbps?.value;
  const bytes = (steps) => sumOf(steps.filter((step) => !(step.flops > 0)).map((step) => step.bytes_modelled));
  const none = (why) => ({ predicted: null, why });
  if (!(gbps > 0)) return none("no bandwidth ceiling is known");
  if (before.cache === "hot" || after.cache === "hot") {
    return none("hot: L2 holds much of what the plan reads, so that bytes at the bandwidth ceiling say little");
  }
  if ([...group.before, ...group.after].every((step) => step.flops > 0)) {
    return none("products only: FLOPs decide their time, bytes do not predict it");
  }
  const hasProducts = [...group.before, ...group.after].some((step) => step.flops > 0);
  return { predicted: (bytes(group.after) - bytes(group.before)) / gbps / 1e3,
    why: hasProducts ? "of the steps without FLOPs alone: bytes do not predict the products' time"
      : "bytes saved / the bandwidth ceiling" };
}

// Tensors of a group: those no longer stored, those stored instead, those that both have and that are touched less or
// more.
function waterfallTensors(pair, group) {
  const touched = (steps) => {
    const touches = steps.flatMap((step) => [...Object.entries(step.reads), ...Object.entries(step.writes)]);
    const byName = [...groupBy(touches, ([name]) => name)];
    return new Map(byName.map(([name, all]) => [name, sumOf(all.map(([, bytes]) => bytes))]));
  };
  const tensors = [...pair.before.tensors, ...pair.after.tensors];
  const storage = new Map(tensors.map((tensor) => [tensor.name, tensor.storage]));
  const everywhere = { before: touched(pair.before.steps), after: touched(pair.after.steps) };
  const written = (steps) => new Set(steps.flatMap((step) => Object.keys(step.writes)));
  const [before, after] = [touched(group.before), touched(group.after)];
  const isStored = (name) => (storage.get(name) ?? "workspace") === "workspace";
  const gone = [...written(group.before)].filter((name) => isStored(name) && !everywhere.after.has(name));
  const fresh = [...written(group.after)].filter((name) => isStored(name) && !everywhere.before.has(name));
  const less = [...before].filter(([name, bytes]) => after.has(name) && after.get(name) < bytes).map(([name]) => name);
  return { gone, fresh, less };
}

// --- said first ---

// What its samples do not bear out is said beside a difference.
const WATERFALL_DOUBTS = {
  same: " (no difference that the samples show)",
  noise: " (no more than the noise of this run)",
  few: " (too few samples to be sure)",
};

function waterfallHeadline(report, chain) {
  const [from, to] = [chain.at(-2), chain.at(-1)];
  const sentences = [];
  const times = [from.median_us, to.median_us];
  const { isMeasured, of } = bytesOfOneKind([from, to]);
  const note = isMeasured ? "" : " (modelled)";
  const byBytes = isKnown(of(from)) && isKnown(of(to)) ? of(to) - of(from) : null;
  const { kind } = judgeSpeedup(report, to, from.variant === "naive" ? "naive" : "cublas");
  if (times.every(isKnown)) {
    const change = times[1] - times[0];
    const same = Math.abs(change) <= 0.005 * times[0];
    const by = `${formatTime(Math.abs(change))} (${formatPercent(Math.abs(change) / times[0])})`;
    const how = same ? "as long as" : `${by} ${change > 0 ? "longer" : "less"} than`;
    const doubt = same ? "" : WATERFALL_DOUBTS[kind] ?? "";
    sentences.push(
      `${to.variant} takes ${formatTime(times[1])}, ${how} ${from.variant}'s ${formatTime(times[0])}${doubt}`);
    const it = change > 0 && byBytes < 0 && !same && doubt === "" ? "although it" : "it";
    if (isKnown(byBytes)) sentences.push(`${it} moves ${waterfallLess(byBytes)}${note}`);
  } else if (isKnown(byBytes)) {
    sentences.push(`${to.variant} moves ${waterfallLess(byBytes)} than ${from.variant}${note}`);
  }
  if (sentences.length === 0) {
    return h("p", { class: "note" }, "Neither latencies nor bytes of these variants are known.");
  }
  const isSlower = times.every(isKnown) && times[1] > 1.005 * times[0] && !WATERFALL_DOUBTS[kind];
  return h("p", { class: isSlower ? "headline fail" : "headline" }, `${sentences.join(", ")}.`);
}

const waterfallLess = (change) =>
  (change === 0 ? "as many bytes" : `${formatBytes(Math.abs(change))} ${change < 0 ? "less" : "more"}`);

// Where most time is saved, and where most is lost.
function waterfallMost(pair) {
  const known = pair.lines.filter((line) => isKnown(line.us));
  const best = known.reduce((one, line) => (line.us < (one?.us ?? 0) ? line : one), null);
  const worst = known.reduce((one, line) => (line.us > (one?.us ?? 0) ? line : one), null);
  const said = (verb, line) => `most is ${verb} in ${line.label} (${trafficSigned(line.us, formatTime)})`;
  const parts = [best ? said("saved", best) : null, worst ? said("lost", worst) : null].filter(Boolean);
  return parts.length ? h("p", {}, `From ${pair.before.variant} to ${pair.after.variant} ${parts.join(", ")}.`) : null;
}

function waterfallAdvice(row) {
  const all = sumOf(row.steps.map((step) => step.time_us));
  const products = sumOf(row.steps.filter((step) => step.flops > 0).map((step) => step.time_us));
  if (!(all > 0) || products < 0.5 * all) return null;
  return h("p", {},
    `Steps with matrix products take ${formatPercent(products / all)} of the time of ${row.variant}'s steps. FLOPs `
      + "decide there: bytes saved do not predict time.");
}

const waterfallHasTensors = (pair) => trafficHasTensors(pair.before) && trafficHasTensors(pair.after);

function waterfallMatchNote(pairs) {
  const hows = new Set(pairs.flatMap((pair) => pair.groups.filter(waterfallIsMatched).map((group) => group.how)));
  const texts = [];
  if (hows.has("tensors")) {
    texts.push("Steps are matched by the tensors that both variants store: what lies between the same tensors does the "
      + "same work.");
  }
  if (hows.has("stage") || hows.has("name")) {
    texts.push(pairs.every(waterfallHasTensors) ? "Where no tensor fits, steps are matched by stage."
      : "These records have no bytes by tensor (they are of an older version): steps are matched by stage and by "
        + "name.");
  }
  if (pairs.some((pair) => pair.groups.some((group) => !waterfallIsMatched(group)))) {
    texts.push("Steps without a match are shown as not attributed.");
  }
  return h("p", { class: "soft" }, texts.join(" "));
}

// --- the bars ---

// Bars of a chain: totals, and the changes between them, which end exactly at the next total. What the steps do not
// say is the rest.
function waterfallBars(chain, pairs, totalOf, changeOf, restLabel, predictedOf = () => null) {
  const bars = [{ kind: "total", row: chain[0], label: chain[0].variant, from: 0, to: totalOf(chain[0]) }];
  for (const pair of pairs) {
    let at = totalOf(pair.before);
    const end = totalOf(pair.after);
    const push = (kind, label, to, line, predicted = null) => {
      bars.push({ kind, label, from: at, to, row: pair.after, pair, line,
        predicted: isKnown(predicted) ? at + predicted : null, predictedChange: predicted });
      at = to;
    };
    for (const line of waterfallFewer(pair.lines, changeOf)) {
      const change = changeOf(line);
      if (isKnown(change)) {
        push(waterfallIsMatched(line.group) ? "change" : "none", line.label, at + change, line, predictedOf(line));
      }
    }
    if (Math.abs(end - at) > 1e-9 * Math.max(Math.abs(end), Math.abs(at))) push("rest", restLabel, end, null);
    bars.push({ kind: "total", row: pair.after, label: pair.after.variant, from: 0, to: end });
  }
  return bars;
}

// The smallest changes as one, where there are too many to draw.
function waterfallFewer(lines, changeOf) {
  if (lines.length <= WATERFALL_MOST_BARS) return lines;
  const known = lines.filter((line) => isKnown(changeOf(line)));
  const large = new Set([...known].sort((a, b) => Math.abs(changeOf(b)) - Math.abs(changeOf(a)))
    .slice(0, WATERFALL_MOST_BARS - 1));
  const small = known.filter((line) => !large.has(line));
  const sum = (name) => (small.every((line) => isKnown(line[name])) ? sumOf(small.map((line) => line[name])) : null);
  const group = { how: "stage", before: small.flatMap((line) => line.group.before),
    after: small.flatMap((line) => line.group.after) };
  const other = { label: `${small.length} smaller changes`, modelled: sum("modelled"), measured: sum("measured"),
    us: sum("us"), predicted: null, why: "the table has each", group };
  return [...lines.filter((line) => large.has(line)), other];
}

// Where naive would dwarf the rest the chart starts at the next variant, unless the reader asks for all.
function waterfallStart(view, key, chain, totalOf) {
  const asked = chain.findIndex((row) => row.variant === view.state.get(key));
  if (asked >= 0 && asked < chain.length - 1) return asked;
  return chain.length > 2 && totalOf(chain[0]) > 8 * Math.max(totalOf(chain[1]), totalOf(chain[2])) ? 1 : 0;
}

function waterfallStartSwitch(view, key, chain, start) {
  if (chain.length < 3) return null;
  return choiceButtons(view, key, "from", chain.slice(0, -1).map((row) => [row.variant]), chain[start].variant);
}

function waterfallDrawBytes(root, view, chain, pairs, kind, isMeasured) {
  root.append(h("h3", {}, kind === "measured" ? "Bytes, measured" : "Bytes, modelled"));
  const totalOf = (row) => (kind === "measured" ? row.measured_bytes : row.bytes_modelled);
  const unknown = chain.find((row) => !isKnown(totalOf(row)));
  if (unknown) {
    const reason = whyNot(view.report, unknown, "bytes_modelled", NO_REASON);
    root.append(h("p", { class: "note" }, `Not drawn: ${unknown.variant} has no modelled bytes: ${reason}`));
    return;
  }
  const why = chain.map((row) => reasonOf(view.report, row, "dram_read_bytes")).find(Boolean)
    ?? "some steps or variants were not measured";
  const kinds = [["", "measured", isMeasured ? null : `not measured: ${why}`, !isMeasured], ["modelled"]];
  const start = waterfallStart(view, "waterfall_bytes", chain, totalOf);
  append(root, [h("div", { class: "switches" },
    choiceButtons(view, "waterfall_kind", "bytes", kinds, kind === "measured" ? "" : kind),
    waterfallStartSwitch(view, "waterfall_bytes", chain, start))]);
  const bars = waterfallBars(chain.slice(start), pairs.slice(start), totalOf, (line) => line[kind],
    kind === "measured" ? "outside the steps" : "in no step",
    kind === "measured" ? (line) => line.modelled : undefined);
  waterfallDraw(root, view, bars, formatBytes, axisBytes, `${kind} bytes`, "as modelled");
  if (!isMeasured) root.append(h("p", { class: "note" }, `Not measured: ${why}`));
}

function waterfallDrawTime(root, view, chain, pairs) {
  root.append(h("h3", {}, "Time, measured"));
  const unknown = chain.find((row) => !isKnown(row.median_us));
  if (unknown) {
    root.append(h("p", { class: "note" },
      `Not drawn: ${unknown.variant} has no latency: ${whyNot(view.report, unknown, "median_us", NO_REASON)}`));
    return;
  }
  const start = waterfallStart(view, "waterfall_time", chain, (row) => row.median_us);
  append(root, [h("div", { class: "switches" }, waterfallStartSwitch(view, "waterfall_time", chain, start))]);
  const bars = waterfallBars(chain.slice(start), pairs.slice(start), (row) => row.median_us, (line) => line.us,
    "outside the steps", (line) => line.predicted);
  waterfallDraw(root, view, bars, formatTime, axisTime, "latency", "as bytes predict");
}

function waterfallColor(report, bar) {
  if (bar.kind === "total") return variantStyle(report, bar.row.variant).color;
  if (bar.kind !== "change") return WATERFALL_REST;
  return bar.to > bar.from ? WATERFALL_LOST : WATERFALL_SAVED;
}

function waterfallDraw(root, view, bars, format, tick, what, predictedName) {
  const most = Math.max(...bars.map((bar) => Math.max(bar.from, bar.to, bar.predicted ?? 0)));
  const least = Math.min(...bars.map((bar) => Math.min(bar.from, bar.to, bar.predicted ?? 0)), 0);
  const labels = bars.map((bar) => bar.label);
  const { room, axis } = nameAxis(labels, Math.max(0.36 * Math.min(root.clientWidth || 640, 1300), 120));
  const interval = trafficNiceStep(Math.max(most - least, 1e-9));
  const said = (bar) => (bar.kind === "total" ? format(bar.to) : trafficSigned(bar.to - bar.from, format));
  const data = bars.map((bar, i) => ({ name: labels[i], kind: bar.kind, value: [bar.from, bar.to, i], said: said(bar),
    predicted: bar.predicted, hover: waterfallHover(bar, format),
    itemStyle: { color: waterfallColor(view.report, bar) } }));
  const ink = cssColor("--ink");
  const soft = cssColor("--soft");
  const label = `${what}: ${bars.map((bar) => `${bar.label} ${said(bar)}`).join("; ")}`;
  const marks = bars.map((bar, i) => ({ bar, i })).filter(({ bar }) => isKnown(bar.predicted))
    .map(({ bar, i }) => ({ value: [bar.predicted, i],
      hover: `${bar.label}\n${predictedName}: ${trafficSigned(bar.predictedChange, format)}` }));
  drawChart(root, label, {
    grid: { left: room, right: 84, top: 34, bottom: 34 },
    xAxis: { type: "value", min: least < 0 ? Math.floor(least / interval) * interval : 0,
      max: Math.ceil(most / interval - 1e-9) * interval, interval, axisLabel: { formatter: tick, hideOverlap: true } },
    yAxis: axis,
    series: [
      { type: "custom", name: what, data, encode: { x: [0, 1], y: 2 },
        renderItem: (_, api) => waterfallBox(api, data, ink, soft) },
      { type: "scatter", name: predictedName, symbol: "diamond", symbolSize: 10, data: marks, z: 5,
        itemStyle: { color: "transparent", borderColor: ink, borderWidth: 1.5 } },
    ],
  }, { height: 30 * bars.length + 80, tip: hoverOf, onclick: (item) => {
    const bar = bars[item.data?.value?.[item.seriesType === "custom" ? 2 : 1]];
    if (bar) view.open(bar.row);
  } });
  if (marks.length) {
    root.append(h("p", { class: "soft" },
      "Falling bars (green) are saved, rising bars (red) are lost, grey ones are in no matched step. Diamonds: where "
        + `a bar would end ${predictedName}.`));
  }
}

// A bar, a line to the next, and its figure at its right.
function waterfallBox(api, data, ink, soft) {
  const at = api.value(2);
  const [x0, y] = api.coord([api.value(0), at]);
  const [x1] = api.coord([api.value(1), at]);
  const mark = isKnown(data[at].predicted) ? api.coord([data[at].predicted, at])[0] : -Infinity;
  const step = api.size([0, 1])[1];
  const height = step * 0.66;
  const children = [
    { type: "rect", shape: { x: Math.min(x0, x1), y: y - height / 2, width: Math.max(Math.abs(x1 - x0), 1), height },
      style: { fill: data[at].itemStyle.color } },
    { type: "text", style: { text: data[at].said, x: Math.max(x0, x1, mark) + (mark >= Math.max(x0, x1) ? 10 : 6), y,
      fill: ink, fontSize: 12, textVerticalAlign: "middle", verticalAlign: "middle" }, silent: true },
  ];
  if (at + 1 < data.length) {
    children.push({ type: "line", shape: { x1, y1: y + height / 2, x2: x1, y2: y + step - height / 2 },
      style: { stroke: soft, lineDash: [2, 2] }, silent: true });
  }
  return { type: "group", children };
}

function waterfallHover(bar, format) {
  if (bar.kind === "total") return `${bar.row.variant}\n${format(bar.to)} in ${plural(bar.row.steps.length, "step")}`;
  const lines = [`${bar.pair.before.variant} to ${bar.pair.after.variant}`, bar.label,
    trafficSigned(bar.to - bar.from, format)];
  if (!bar.line) return lines.join("\n");
  lines.push(`was: ${trafficNames(bar.line.group.before.map((step) => step.name))}`);
  if (isKnown(bar.predictedChange)) lines.push(`predicted: ${trafficSigned(bar.predictedChange, format)}`);
  else if (bar.line.why && format === formatTime) lines.push(`not predicted: ${bar.line.why}`);
  return lines.join("\n");
}

// --- the figures ---

const WATERFALL_OUTSIDE = "what the plan's figure and the steps' differ by: late writes; in time, gaps between "
  + "launches, overlap, and an empty pair of events";

function waterfallTable(report, pair) {
  const hasTensors = waterfallHasTensors(pair);
  const signed = (value, format, why) => (isKnown(value) ? n(trafficSigned(value, format)) : n(NONE, why));
  const names = (steps) => steps.map((step) => step.name).join("; ");
  const now = ({ group }) =>
    (waterfallIsMatched(group) || group.after.length === 0 ? "" : ` (now: ${names(group.after)})`);
  const whyBytes = reasonOf(report, pair.after, "dram_read_bytes") ?? reasonOf(report, pair.before, "dram_read_bytes")
    ?? "not all of these steps were measured";
  const lines = pair.lines.map((line) => [
    line.label, (names(line.group.before) || NONE) + now(line),
    hasTensors ? waterfallTensorCell(pair, line.group) : { text: NONE, title: TRAFFIC_OLD },
    signed(line.modelled, formatMb, "not modelled"), signed(line.measured, formatMb, whyBytes),
    { ...signed(line.predicted, fourDigits, line.why), title: line.why },
    signed(line.us, fourDigits, "not all of these steps were timed")]);
  const sum = (name) => sumOf(pair.lines.map((line) => line[name]));
  const change = (name) => (isKnown(pair.before[name]) && isKnown(pair.after[name])
    ? pair.after[name] - pair.before[name] : null);
  const rest = (total, name) => (total === null ? null : waterfallClean(total - sum(name), total));
  const totals = { modelled: change("bytes_modelled"), measured: change("measured_bytes"), us: change("median_us") };
  lines.push([{ text: "outside the steps", title: WATERFALL_OUTSIDE }, "", "",
    signed(rest(totals.modelled, "modelled"), formatMb, "not known"),
    signed(rest(totals.measured, "measured"), formatMb, whyBytes), "",
    signed(rest(totals.us, "us"), fourDigits, "no latency")]);
  const predicted = pair.lines.some((line) => isKnown(line.predicted)) ? sum("predicted") : null;
  const bold = (cell) => ({ ...cell, text: h("strong", {}, cell.text) });
  lines.push([h("strong", {}, `${pair.after.variant} less ${pair.before.variant}`), "", "",
    bold(signed(totals.modelled, formatMb, "not known")), bold(signed(totals.measured, formatMb, whyBytes)),
    bold(signed(predicted, fourDigits, "nothing is predicted")),
    bold(signed(totals.us, fourDigits, reasonOf(report, pair.after, "median_us") ?? "no latency"))]);
  const title = `${pair.before.variant} to ${pair.after.variant}`;
  const heads = [`step of ${pair.after.variant}`, `was, in ${pair.before.variant}`, "intermediates",
    n("MB modelled", "change in the steps' modelled bytes: what is saved is negative"),
    n("MB measured", "change in the bytes by the counters, each step in its place"),
    n("\u00b5s predicted", "change in the bytes of steps without FLOPs, over the bandwidth ceiling"),
    n("\u00b5s measured", "change in the steps' time_us, each less an empty pair of events")];
  return [h("h3", {}, title), table(title, heads, lines, { css: "saved" })];
}

// Nothing but rounding is nothing.
const waterfallClean = (rest, total) => (Math.abs(rest) <= 1e-9 * Math.max(Math.abs(total), 1) ? 0 : rest);

function waterfallTensorCell(pair, group) {
  const { gone, fresh, less } = waterfallTensors(pair, group);
  const line = (said, names) =>
    (names.length ? h("div", {}, h("span", { class: "soft" }, `${said} `), names.join("; ")) : null);
  const cells = [line("no longer stored:", gone), line("stored instead:", fresh), line("read or written less:", less)]
    .filter(Boolean);
  return cells.length ? { text: cells } : NONE;
}
