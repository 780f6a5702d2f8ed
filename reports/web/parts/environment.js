// On what, with what, and how quietly it was measured; nothing of the header is left out.
const ENVIRONMENT_POINTS = 3000;
const ENVIRONMENT_LINES = 200;

PARTS.push({
  id: "environment", order: 80, withoutRows: true, title: "How it was measured",
  about: "The machine, the command, the ceilings that floors are held against, and how far figures differ where "
    + "nothing does.",
  render(root, view) {
    const header = view.report.header && typeof view.report.header === "object" ? view.report.header : {};
    append(root, [environmentUnfinished(header), environmentWarnings(view.report)]);
    const pair = h("div", { class: "pair" }, environmentFacts(view, header), environmentCeilings(header));
    root.append(pair);
    environmentClocks(root, view);
    environmentNoise(root, header);
    environmentStages(root, header);
    append(root, [environmentRest(header)]);
  },
});

function environmentUnfinished(header) {
  if (header.stages_s !== undefined) return null;
  return h("p", { class: "note", id: "environment-unfinished" }, Object.keys(header).length === 0
    ? "The records have no header: nothing is known of the machine."
    : "The run did not come to its end, or an older version made it: ceilings are those from before the first case, "
      + "and what is written at the end (A/A controls, seconds by stage) is missing.");
}

function environmentWarnings(report) {
  if (report.warnings.length === 0) {
    return h("p", { class: "soft", id: "environment-warnings" }, "The run has no warnings.");
  }
  return h("div", { id: "environment-warnings" }, h("h3", {}, "Warnings"),
    h("ul", {}, report.warnings.map((warning) => h("li", { class: "note" }, warning))));
}

// --- facts ---

// A value of the header as text; one that is null shows its reason.
function environmentValue(object, key, format = anyText) {
  const value = object?.[key];
  if (value === undefined) return NONE;
  if (value === null) {
    return [NONE, h("span", { class: "soft" }, ` ${anyText(object[`${key}_reason`] ?? "no reason given")}`)];
  }
  return format(value);
}

function environmentList(object) {
  if (!object) return NONE;
  const entries = Object.entries(object);
  return entries.length === 0 ? "none" : entries.map(([name, value]) => `${name} ${anyText(value)}`).join(", ");
}

function environmentTable(id, label, lines) {
  return h("div", { id, class: "facts" }, h("h3", {}, label),
    table(label, ["", "value"], lines.map(([name, value]) => [{ text: name, class: "name" }, value])));
}

function environmentFacts(view, header) {
  const device = header.device ?? {};
  const isGpu = header.backend === "cuda";
  const modes = countBy(view.report.rows, (row) => row.mode);
  const capability = isKnown(device.compute_capability) && device.compute_capability > 0
    ? (device.compute_capability / 10).toFixed(1) : NONE;
  const code = (value) => h("code", {}, anyText(value));
  const copied = (value) => [code(value), " ", copyButton(anyText(value))];
  return environmentTable("environment-facts", "What it ran on", [
    ["device", environmentValue(device, "name")],
    ["uuid", environmentValue(device, "uuid")],
    isGpu ? ["compute capability", capability] : null,
    [isGpu ? "multiprocessors" : "cores", environmentValue(device, "multiprocessors")],
    [isGpu ? "L2" : "last-level cache", environmentValue(device, "l2_bytes", formatBytes)],
    ["memory", environmentValue(device, "memory_bytes", formatBytes)],
    ["backend", environmentValue(header, "backend")],
    ["driver", environmentValue(header, "driver")],
    ["libraries", environmentList(header.libraries)],
    ["build", environmentList(header.build)],
    ["config", environmentValue(header, "config", code)],
    ["config's SHA-256", environmentValue(header, "config_sha256", copied)],
    ["command", environmentValue(header, "command", copied)],
    ["started", environmentValue(header, "started")],
    ["run", environmentValue(header, "run_id", code)],
    ["modes", [...modes].map(([mode, count]) => `${mode}: ${plural(count, "row")}`).join("; ") || NONE],
  ].filter(Boolean));
}

function environmentCeilings(header) {
  const ceilings = header.ceilings;
  if (!ceilings) {
    return h("div", { id: "environment-ceilings" }, h("h3", {}, word("ceiling", "Ceilings")),
      h("p", { class: "soft" }, anyText(header.ceilings_reason ?? "The records have none.")));
  }
  const best = (name, unit, entry, reason) => [name, n(fourDigits(entry?.value)), unit,
    anyText(entry?.by ?? reason ?? "no reason given")];
  const lines = [best("bandwidth", "GB/s", ceilings.bandwidth_gbps, ceilings.bandwidth_gbps_reason),
    ...Object.entries(ceilings.rate_tflops ?? {})
      .map(([dtype, entry]) => best(`rate, ${dtype}`, "TFLOP/s", entry, null))];
  const probes = Object.entries(ceilings.probes ?? {}).filter(([name]) => !name.endsWith("_reason"))
    .map(([name, value]) => [
      name.replace(/_(gbps|tflops)$/, "").replaceAll("_", " "), n(fourDigits(value)),
      name.endsWith("_tflops") ? "TFLOP/s" : name.endsWith("_gbps") ? "GB/s" : "",
      value === null ? anyText(ceilings.probes[`${name}_reason`] ?? "no reason given") : ""]);
  return h("div", { id: "environment-ceilings" }, h("h3", {}, word("ceiling", "Ceilings")),
    table("ceilings", ["ceiling", n("value"), "unit", "reached by"], lines),
    h("h3", {}, "Probes, before the first case"), table("probes", ["probe", n("value"), "unit", ""], probes),
    h("p", {}, "Load: ", environmentValue(ceilings, "load"), ". An empty pair of events takes ",
      environmentValue(ceilings, "event_pair_us", formatTime),
      ", the same around an empty kernel ", environmentValue(ceilings, "empty_launch_us", formatTime), ". ",
      "What L2 may keep of the written: ", environmentValue(ceilings, "l2_retained_bytes", formatBytes),
      ceilings.l2_retained_source ? ` (${anyText(ceilings.l2_retained_source)}).` : "."),
    h("p", { class: "soft" }, ceilings.datasheet
      ? `Datasheet: ${anyText(ceilings.datasheet)}. For readers only: it decides nothing.`
      : "No datasheet figures are known; they would decide nothing."));
}

// --- clocks, power, temperature ---

function environmentClocks(root, view) {
  const { rows } = view;
  const of = (name) => rows.filter((row) => isKnown(row[name]));
  root.append(h("h3", {}, "Clocks, power and temperature while sampling"));
  const lines = [["sm_mhz", "MHz"], ["power_w", "W"], ["temperature_c", "°C"]].map(([name, unit]) => {
    const values = of(name).map((row) => row[name]).sort((a, b) => a - b);
    return [h("abbr", { title: columnHelp(view.report, name) }, name), n(fourDigits(values[0])),
      n(fourDigits(medianOf(values))), n(fourDigits(values.at(-1))), unit, n(`${values.length} of ${rows.length}`),
      values.length > 0 ? "" : environmentReason(rows.find((row) => row.device_reason)?.device_reason, name)];
  });
  const limits = countBy(rows.map((row) => row.clock_limits).filter((limit) => limit !== null));
  const throttled = rows.filter((row) => row.throttled_samples > 0).length;
  const unheld = rows.filter((row) => row.unheld_samples > 0).length;
  const explained = (name, text) => h("abbr", { title: columnHelp(view.report, name) }, text);
  const heads = ["", n("least"), n("median"), n("most"), "unit", n("rows"), "why not known"];
  const held = [...limits].map(([limit, count]) => `${limit} (${plural(count, "row")})`).join(", ");
  append(root, [h("div", { id: "environment-clocks" }, table("clocks, power and temperature", heads, lines)),
    h("p", { id: "environment-limits" }, explained("clock_limits", "What held the clock down"),
      `: ${held || "not known"}. ${plural(throttled, "row")} with `,
      explained("throttled_samples", "throttled samples"), `, ${unheld} with `,
      explained("unheld_samples", "samples that may hold the host's time"), ".")]);
  const known = rows.filter((row) => isKnown(row.sm_mhz) || isKnown(row.power_w));
  if (known.length < 2) return;
  const every = Math.ceil(known.length / ENVIRONMENT_POINTS);
  environmentClockChart(root, view, known.filter((_, i) => i % every === 0), every);
}

// A reason may name several columns, each with its own: "a: why; b, c: why".
function environmentReason(reason, name) {
  if (!reason) return "the records do not say why";
  const own = String(reason).split("; ").find((part) => part.split(":")[0].split(", ").includes(name));
  return own ? own.slice(own.indexOf(":") + 1).trim() : String(reason);
}

function environmentClockChart(root, view, rows, every) {
  const series = (name, color, symbol, yAxisIndex) => ({ name, type: "scatter", symbol, symbolSize: 6,
    itemStyle: { color, opacity: 0.8 }, yAxisIndex,
    data: rows.filter((row) => isKnown(row[name])).map((row) => ({ value: [row.index, row[name]], row: row.index })) });
  if (every > 1) root.append(h("p", { class: "soft" }, `Every ${every}th row is drawn.`));
  const tip = (item) => {
    const row = view.report.rows[item.data.row];
    const figures = ["sm_mhz", "power_w", "temperature_c"].map((name) => `${name} ${fourDigits(row[name])}`);
    return [`${row.label} (${row.mode})`, figures.join(", "), `limits: ${row.clock_limits ?? NONE}`,
      "click: show it in the table"].join("\n");
  };
  drawChart(root, "SM clock and power by row, in the order of the records; the ranges are in the table above", {
    grid: { left: 56, right: 64, top: 56, bottom: 40 },
    legend: {},
    xAxis: { type: "value", name: "row", nameLocation: "middle", nameGap: 24, minInterval: 1, min: "dataMin",
      max: "dataMax", splitLine: { show: false } },
    yAxis: [{ type: "value", name: "MHz", scale: true },
      { type: "value", name: "W", scale: true, splitLine: { show: false } }],
    series: [series("sm_mhz", PALETTE[0], "circle", 0), series("power_w", PALETTE[1], "triangle", 1)],
  }, { height: 260, tip, onclick: opensRow(view) });
}

// --- noise ---

const environmentRange = (from, to) =>
  (isKnown(to) ? `${formatTime(from)} to ${formatTime(to)}` : `from ${formatTime(from)}`);
const environmentPart = (part) => (isKnown(part * 100) ? `${(part * 100).toFixed(2)}%` : NONE);

function environmentNoise(root, header) {
  root.append(h("h3", {}, "Noise: how far figures differ where nothing does"));
  const [left, right] = [h("div"), h("div")];
  root.append(h("div", { class: "pair" }, left, right));
  left.append(...environmentNoiseTable(header));
  environmentControls(right, header);
}

// Damaged records may have anything in a list's place.
const environmentItems = (list) => (Array.isArray(list) ? list.filter(Boolean) : []);

function environmentNoiseTable({ noise, noise_reason: reason }) {
  if (!noise) {
    return [h("p", { class: "soft", id: "environment-no-noise" },
      `Not known between processes: ${anyText(reason ?? "the records do not say why there is no noise table")}.`)];
  }
  const within = environmentItems(noise.a_a?.classes);
  const figures = (one) => [
    isKnown(one?.relative) ? n(environmentPart(one.relative)) : n(NONE, "no pairs of this latency"),
    n(anyText(one?.pairs ?? NONE))];
  const heads = ["latency", n("between processes", "medians of the same row in different processes"), n("pairs"),
    n("within this run", "one variant timed twice, as if it were two: the A/A controls"), n("pairs")];
  const lines = environmentItems(noise.classes).map((one) => [environmentRange(one.from_us, one.to_us), ...figures(one),
    ...figures(within.find((other) => other.from_us === one.from_us))]);
  const facts = ["restarts", "learned", "device_uuid", "driver"]
    .filter((key) => noise[key] !== undefined && noise[key] !== null)
    .map((key) => `${key.replace("_", " ")} ${anyText(noise[key])}`);
  return [
    h("p", { class: "soft" }, `${facts.join(", ")}. 99% of pairs differ by no more than the noise of their class.`),
    h("div", { id: "environment-noise" }, table("noise by latency", heads, lines))];
}

// As the noise is reckoned; negative where the second was the faster.
const environmentApart = (ratio) =>
  (isKnown(ratio) && ratio > 0 ? Math.sign(ratio - 1) * apartOf(ratio) : null);

function environmentControls(root, header) {
  const controls = environmentItems(header.controls);
  if (controls.length === 0) {
    root.append(h("p", { class: "soft", id: "environment-no-controls" },
      header.controls === undefined ? "A/A controls are not in the records." : "The run has no A/A controls."));
    return;
  }
  const worst = largest(controls.map(({ ratio }) => Math.abs(environmentApart(ratio) ?? 0)));
  append(root, [h("p", { id: "environment-controls-said" },
    h("abbr", { title: "one variant of a case timed twice, as if it were two: what differs is noise" }, "A/A controls"),
    `: ${plural(controls.length, "pair")}, which differ by ${environmentPart(worst)} at most.`)]);
  environmentControlChart(root, controls);
  const lines = controls.slice(0, ENVIRONMENT_LINES).map(({ median_us: us, ratio }) => [n(formatTime(us)),
    n(isKnown(ratio) ? ratio.toFixed(4) : NONE), n(formatSigned(environmentApart(ratio), environmentPart))]);
  append(root, [h("details", { id: "environment-controls" }, h("summary", {}, `The controls (${controls.length})`),
    table("A/A controls", [n("median"), n("ratio"), n("difference")], lines),
    andMore(controls, lines, ", in results.jsonl"))]);
}

function environmentControlChart(root, controls) {
  const isDrawn = (one) => isKnown(one.median_us) && one.median_us > 0 && environmentApart(one.ratio) !== null;
  const data = controls.filter(isDrawn).slice(0, ENVIRONMENT_POINTS)
    .map((one) => [one.median_us, environmentApart(one.ratio) * 100]);
  if (data.length === 0) return;
  const label = "A/A controls: difference of one variant from itself, by latency; the figures are in the list below";
  drawChart(root, label, {
    grid: { left: 64, right: 24, top: 40, bottom: 40 },
    xAxis: { type: "log", name: "median latency", nameLocation: "middle", nameGap: 24,
      min: environmentDecade(Math.floor, Math.min(...data.map(([us]) => us))),
      max: environmentDecade(Math.ceil, Math.max(...data.map(([us]) => us))), axisLabel: { formatter: axisTime } },
    yAxis: { type: "value", name: "difference, %" },
    series: [{ name: "control", type: "scatter", symbolSize: 9, itemStyle: { color: PALETTE[0] }, data,
      markLine: lineAt({ yAxis: 0 }) }],
  }, { height: 220, tip: ({ value: [us, percent] }) =>
    `median ${formatTime(us)}\ndiffers from itself by ${formatSigned(percent, (value) => value.toFixed(2))}%` });
}

const environmentDecade = (round, us) => 10 ** round(Math.log10(us * (round === Math.ceil ? 1.01 : 0.99)));

// --- where the time went ---

function environmentStages(root, header) {
  const stages = header.stages_s;
  if (!stages || typeof stages !== "object") return;
  const all = stages.all;
  const named = Object.entries(stages).filter(([name, seconds]) => name !== "all" && isKnown(seconds))
    .sort(([, a], [, b]) => b - a);
  const rest = isKnown(all) ? all - sumOf(named.map(([, seconds]) => seconds)) : null;
  const share = (seconds) => (isKnown(all) && all > 0 && isKnown(seconds) ? formatPercent(seconds / all) : NONE);
  const lines = [...named, ...(isKnown(rest) && rest > 0 ? [["what no stage claims", rest]] : [])];
  const kept = header.measured_s;
  const said = isKnown(kept)
    ? `Of ${fourDigits(all)} s, ${fourDigits(kept)} s (${share(kept)}) are the latencies that were kept; the rest is `
      + "care: settling, flushing, checking, reading counters."
    : "How much of it the kept latencies are is not in the records.";
  const line = (name, seconds, bar) => [name, n(fourDigits(seconds)), n(share(seconds)), bar];
  append(root, [h("h3", {}, "Where the run's time went"), h("p", { id: "environment-measured" }, said),
    h("div", { id: "environment-stages" }, table("seconds by stage", ["stage", n("seconds"), n("of the run"), ""],
      [...lines.map(([name, seconds]) => line(name, seconds, environmentBar(seconds, all))), line("all", all, "")]))]);
}

function environmentBar(seconds, all) {
  const bar = h("div", { class: "share", "aria-hidden": "true" });
  bar.style.width = isKnown(all) && all > 0 ? `${Math.min(seconds / all, 1) * 12}rem` : "0";
  return bar;
}

// --- the header as it stands ---

// Every name of the header down to its leaves.
function environmentLeaves(value, path = "") {
  if (value === null || typeof value !== "object") return [[path, value]];
  const entries = Object.entries(value);
  if (entries.length === 0) return [[path, Array.isArray(value) ? "[]" : "{}"]];
  const place = (key) => (path === "" ? key : Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`);
  return entries.flatMap(([key, one]) => environmentLeaves(one, place(key)));
}

function environmentRest(header) {
  const leaves = environmentLeaves(header).filter(([path]) => path !== "");
  const reasons = new Map(leaves);
  const none = (path) => [NONE, h("span", { class: "soft" },
    ` ${reasons.get(`${path}_reason`) ?? (path.endsWith("_reason") ? "" : "null")}`)];
  const lines = leaves.slice(0, 5 * ENVIRONMENT_LINES)
    .map(([path, value]) => [h("code", {}, path), value === null ? none(path) : String(value)]);
  return h("details", { id: "environment-header" },
    h("summary", {}, `The whole header, name by name (${leaves.length})`),
    table("the header", ["name", "value"], lines), andMore(leaves, lines, ", in results.jsonl"));
}
